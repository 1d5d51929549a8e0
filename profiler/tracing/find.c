// SPDX-License-Identifier: Apache-2.0
/*
 * find: see profiler/tracing/find.h. x86-64; the words are those that glibc and musl
 * write: "ELF Handling For Thread-Local Storage", and for descriptors "Thread-Local
 * Storage Descriptors for IA32 and AMD64/EM64T".
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/tracing/find.h"

#define FIND_MODULES_MAX (1U << 20)
/* Bytes of /proc/PID/maps; a process with more has no context, as far as is known. */
#define FIND_MAPS_MAX (4U << 20)
#define FIND_MAPS_STEP 16384
#define FIND_PHDRS_MAX 64
#define FIND_AUXV_MAX 64

static bool find_read(int mem, uint64_t at, void *to, size_t len)
{
	/* Above it offsets are negative. */
	return at <= INT64_MAX &&
	       pread(mem, to, len, (off_t)at) == (ssize_t)len;
}

/* --- the process context --------------------------------------------------- */

bool tracing_is_context(const char *line, size_t len)
{
	static const char *const names[] = {
		"/memfd:OTEL_CTX",
		"[anon:OTEL_CTX]",
		"[anon_shmem:OTEL_CTX]",
	};
	const char *end = line + len, *p = line;
	size_t n;

	/* address perms offset dev inode name */
	for (int i = 0; i < 5; i++) {
		p = memchr(p, ' ', (size_t)(end - p));
		if (!p)
			return false;
		while (p < end && *p == ' ')
			p++;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		n = strlen(names[i]);
		if ((size_t)(end - p) >= n && !memcmp(p, names[i], n))
			return true;
	}
	return false;
}

/* Where the first line of 'text' with one begins; NULL: none has. '*rest': its last, cut. */
static const char *find_context_line(const char *text, size_t len, size_t *rest)
{
	const char *nl;

	*rest = len;
	for (; (nl = memchr(text, '\n', *rest)); text = nl + 1) {
		if (tracing_is_context(text, (size_t)(nl - text)))
			return text;
		*rest -= (size_t)(nl + 1 - text);
	}
	return NULL;
}

uint64_t tracing_find_context(int dir)
{
	int fd = openat(dir, "maps", O_RDONLY | O_CLOEXEC);
	char buf[FIND_MAPS_STEP + 1];
	size_t len = 0, rest = 0, all = 0;
	const char *line = NULL;
	ssize_t n;

	if (fd < 0)
		return 0;
	while (!line && all < FIND_MAPS_MAX &&
	       (n = read(fd, buf + rest, FIND_MAPS_STEP - rest)) > 0) {
		all += (size_t)n;
		len = rest + (size_t)n;
		buf[len] = '\0';
		line = find_context_line(buf, len, &rest);
		/* A path has at most 4096 bytes. */
		if (!line)
			memmove(buf, buf + len - rest, rest);
	}
	close(fd);
	return line ? strtoull(line, NULL, 16) : 0;
}

/* --- the loader ------------------------------------------------------------ */

static bool find_musl_interp(int mem, const Elf64_Phdr *ph, size_t n,
			     uint64_t at)
{
	static const char musl[] = "/ld-musl-";
	char path[64] = "";
	uint64_t bias = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (ph[i].p_type == PT_PHDR)
			bias = at - ph[i].p_vaddr;
	for (i = 0; i < n; i++)
		if (ph[i].p_type == PT_INTERP &&
		    find_read(mem, bias + ph[i].p_vaddr, path,
			      MIN(ph[i].p_filesz, sizeof(path) - 1)))
			return strstr(path, musl);
	return false;
}

/* Whether musl has loaded it: the program names its loader. */
static bool find_musl(int dir, int mem)
{
	Elf64_auxv_t aux[FIND_AUXV_MAX + 1];
	Elf64_Phdr ph[FIND_PHDRS_MAX];
	uint64_t at = 0, n = 0;
	ssize_t len;

	len = procfs_read(dir, "auxv", (char *)aux, sizeof(aux));
	for (ssize_t i = 0; i < len / (ssize_t)sizeof(*aux); i++) {
		if (aux[i].a_type == AT_PHDR)
			at = aux[i].a_un.a_val;
		if (aux[i].a_type == AT_PHNUM)
			n = aux[i].a_un.a_val;
	}
	n = MIN(n, (uint64_t)FIND_PHDRS_MAX);
	return find_read(mem, at, ph, n * sizeof(*ph)) &&
	       find_musl_interp(mem, ph, n, at);
}

/* --- the words ------------------------------------------------------------- */

/* The variable is in a block that the loader makes when a thread first uses it. */
static enum tracing_found find_dynamic(struct tracing_find *f, int dir, int mem,
				       uint64_t module, uint64_t offset,
				       uint64_t generation)
{
	bool musl = find_musl(dir, mem);

	if (!module)
		return TRACING_NOT_READY;
	if (module > FIND_MODULES_MAX)
		return TRACING_UNKNOWN;
	f->entry.module = module;
	f->entry.offset = offset;
	f->entry.generation = musl ? 0 : generation;
	f->entry.entry = musl ? 8 : 16;
	return TRACING_FOUND;
}

/* Code that returns the word behind its own address in the descriptor. */
static bool find_is_static(int mem, uint64_t fn)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	/* mov 8(%rax),%rax; ret */
	static const uint8_t code[] = { 0x48, 0x8b, 0x40, 0x08, 0xc3 };
	uint8_t b[sizeof(endbr64) + sizeof(code)];
	const uint8_t *p = b;

	if (!find_read(mem, fn, b, sizeof(b)))
		return false;
	if (!memcmp(b, endbr64, sizeof(endbr64)))
		p += sizeof(endbr64);
	return !memcmp(p, code, sizeof(code));
}

static enum tracing_found find_desc(struct tracing_find *f, int dir, int mem)
{
	const __u64 *words = f->entry.words;
	uint64_t arg[3] = { 0 };

	if (!words[0])
		return TRACING_NOT_READY;
	if (find_is_static(mem, words[0])) {
		f->entry.offset = words[1];
		return TRACING_FOUND;
	}
	if (!find_read(mem, words[1], arg, sizeof(arg)))
		return TRACING_UNKNOWN;
	return find_dynamic(f, dir, mem, arg[0], arg[1], arg[2]);
}

static enum tracing_found find_initial(struct tracing_find *f, int dir, int mem)
{
	f->entry.offset = f->entry.words[0];
	return f->entry.offset ? TRACING_FOUND : TRACING_NOT_READY;
}

static enum tracing_found find_module(struct tracing_find *f, int dir, int mem)
{
	const __u64 *words = f->entry.words;

	return find_dynamic(f, dir, mem, words[0],
			    f->slot.pair ? words[1] : (uint64_t)f->slot.offset,
			    0);
}

/* How many of the loader's words there are; behind them there may be nothing. */
static uint32_t find_words(const struct symbolizer_slot *slot)
{
	return slot->model == SYMBOLIZER_SLOT_DESC || slot->pair ? 2 : 1;
}

static enum tracing_found find_slot(struct tracing_find *f, int dir, int mem)
{
	static enum tracing_found (*const models[SYMBOLIZER_N_SLOTS])(
		struct tracing_find * f, int dir, int mem) = {
		[SYMBOLIZER_SLOT_INITIAL] = find_initial,
		[SYMBOLIZER_SLOT_DESC] = find_desc,
		[SYMBOLIZER_SLOT_MODULE] = find_module,
	};
	struct abi_trace_slot *e = &f->entry;

	if (f->slot.model == SYMBOLIZER_SLOT_EXEC) {
		e->offset = (uint64_t)f->slot.offset;
		return TRACING_FOUND;
	}
	if (!models[f->slot.model])
		return TRACING_UNKNOWN;
	e->guard = f->bias + f->slot.where;
	e->guard_words = find_words(&f->slot);
	if (!find_read(mem, e->guard, e->words,
		       e->guard_words * sizeof(*e->words)))
		return TRACING_GONE;
	return models[f->slot.model](f, dir, mem);
}

/*
 * Whether the ids are the process's own: a child of fork has its parent's, but no context,
 * and Elastic's tracer has none anywhere.
 */
static bool find_own(const struct tracing_find *f, int dir)
{
	if (f->slot.kind == SYMBOLIZER_SLOT_ELASTIC)
		return !f->forked;
	return tracing_find_context(dir);
}

/*
 * The start, read after 'mem' was opened, proves that 'mem' is not of a later process
 * with the same pid. An exec in between makes an entry of an image without samples.
 */
static enum tracing_found find_image(struct tracing_find *f, int dir)
{
	enum tracing_found found = TRACING_GONE;
	int mem = openat(dir, "mem", O_RDONLY | O_CLOEXEC);
	struct procfs_stat st;

	if (mem < 0)
		return TRACING_GONE;
	if (procfs_stat_at(dir, &st) &&
	    st.start == procfs_tick_of(f->key.start_boottime))
		found = find_own(f, dir) ? find_slot(f, dir, mem)
					 : TRACING_NO_CONTEXT;
	close(mem);
	return found;
}

void tracing_find(struct tracing_find *f)
{
	int dir = procfs_open(f->key.tgid);

	memset(&f->entry, 0, sizeof(f->entry));
	f->entry.start_boottime = f->key.start_boottime;
	f->entry.exec_id = f->key.exec_id;
	f->entry.elastic = f->slot.kind == SYMBOLIZER_SLOT_ELASTIC;
	f->found = TRACING_GONE;
	if (dir < 0)
		return;
	f->found = find_image(f, dir);
	close(dir);
}
