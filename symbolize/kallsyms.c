// SPDX-License-Identifier: Apache-2.0
/* kallsyms: see symbolize/kallsyms.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "symbolize/kallsyms.h"
#include "symbolize/names/index.h"

#define BLOCK 16 /* symbols */
#define SYMS_MAX (1U << 21)
#define MODULES_MAX 4096
/* No 64-bit kernel lives below; and a distance has 62 bits, see pack_entry(). */
#define KERNEL_HALF (3ULL << 62)
#define PREFIX "__pfx_"
#define PREFIX_LEN (sizeof(PREFIX) - 1)

/* The head of a packed symbol, a ULEB128: distance << 2 and these flags. */
#define PACKED_MODULE 1 /* the module's number follows */
#define PACKED_PREFIX 2 /* no name: it is PREFIX and the name of the next */

struct block {
	uint64_t addr; /* of its first symbol */
	uint32_t at; /* in packed */
	uint16_t module;
};

struct kallsyms {
	struct strtab modules; /* 0, "", is the kernel */
	struct block *blocks;
	size_t n, n_blocks;
	struct strbuf packed;
	uint64_t core_start, core_end;
};

/* A symbol while the file is being read. */
struct entry {
	uint64_t addr;
	uint32_t name; /* in names */
	uint16_t module;
	uint8_t rank; /* less is better */
};

struct reader {
	struct kallsyms *k;
	struct strbuf names;
	struct entry *v;
	size_t n, cap;
	bool zeros; /* there were functions at address 0 */
};

static bool take_hex(const char **p, const char *end, uint64_t *v)
{
	const char *s = *p;
	int digit;

	for (*v = 0; s < end && s - *p < 16; s++) {
		if (*s >= '0' && *s <= '9')
			digit = *s - '0';
		else if (*s >= 'a' && *s <= 'f')
			digit = *s - 'a' + 10;
		else
			break;
		*v = *v << 4 | (uint64_t)digit;
	}
	if (s == *p)
		return false;
	*p = s;
	return true;
}

/* The number of the module in "\t[NAME]" at the end of a line. */
static int reader_module(struct reader *r, const char *p, const char *end,
			 uint16_t *module)
{
	int64_t id;

	*module = 0;
	while (p < end && (*p == '\t' || *p == ' '))
		p++;
	if (end - p < 3 || *p != '[' || end[-1] != ']')
		return 0;
	if (r->k->modules.count >= MODULES_MAX)
		return -E2BIG;
	id = strtab_id_len(&r->k->modules, p + 1, (size_t)(end - p) - 2);
	if (id < 0)
		return (int)id;
	*module = (uint16_t)id;
	return 0;
}

/* Skips malformed lines. */
static int reader_line(struct reader *r, const char *p, const char *end)
{
	struct entry e = { 0 };
	const char *name;
	char type;
	int err;

	if (!take_hex(&p, end, &e.addr) || end - p < 4 || p[0] != ' ' ||
	    p[2] != ' ')
		return 0;
	type = p[1];
	if (type != 't' && type != 'T' && type != 'w' && type != 'W')
		return 0;
	name = p += 3;
	while (p < end && *p != '\t' && *p != ' ' && *p != '\0')
		p++;
	if (p == name || p - name >= KALLSYMS_NAME_MAX || r->n == SYMS_MAX)
		return 0;
	r->zeros |= e.addr == 0;
	if (e.addr < KERNEL_HALF)
		return 0;
	err = reader_module(r, p, end, &e.module);
	if (err)
		return err == -E2BIG ? 0 : err;
	e.rank = type == 't'; /* as in index.h: exported before local */
	e.name = (uint32_t)r->names.len;
	strbuf_add(&r->names, name, (size_t)(p - name));
	strbuf_add(&r->names, "", 1);
	if (r->names.failed || VECTOR_ROOM(r->v, r->n, r->cap))
		return -ENOMEM;
	r->v[r->n++] = e;
	return 0;
}

/* Parses whole lines; their length is returned in *used. */
static int reader_feed(struct reader *r, const char *text, size_t len,
		       bool last, size_t *used)
{
	const char *nl;
	int err;

	*used = 0;
	while (*used < len) {
		nl = memchr(text + *used, '\n', len - *used);
		if (!nl && !last)
			return 0;
		if (!nl)
			nl = text + len;
		err = reader_line(r, text + *used, nl);
		if (err)
			return err;
		*used = MIN((size_t)(nl - text) + 1, len);
	}
	return 0;
}

static int cmp_entry(const void *a, const void *b, void *names)
{
	const struct entry *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return symbolizer_index_prefer((char *)names + x->name,
				       (char *)names + y->name);
}

static void pack_number(struct strbuf *sb, uint64_t v)
{
	uint8_t byte;

	do {
		byte = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
		strbuf_add(sb, &byte, 1);
		v >>= 7;
	} while (v);
}

/* By address, one symbol for each. */
static void reader_sort(struct reader *r)
{
	size_t n = 0;

	qsort_r(r->v, r->n, sizeof(*r->v), cmp_entry, r->names.data);
	for (size_t i = 0; i < r->n; i++)
		if (i == 0 || r->v[i].addr != r->v[n - 1].addr)
			r->v[n++] = r->v[i];
	r->n = n;
}

/* Whether 'e' is the padding of 'next'. */
static bool is_prefix_of(const struct reader *r, const struct entry *e,
			 const struct entry *next)
{
	const char *name = r->names.data + e->name;

	return strncmp(name, PREFIX, PREFIX_LEN) == 0 &&
	       strncmp(name + PREFIX_LEN, PREFIX, PREFIX_LEN) != 0 &&
	       strcmp(name + PREFIX_LEN, r->names.data + next->name) == 0;
}

static void pack_entry(struct reader *r, size_t i)
{
	struct kallsyms *k = r->k;
	const struct entry *e = &r->v[i];
	const char *name = r->names.data + e->name;
	uint64_t prev = i % BLOCK ? r->v[i - 1].addr : e->addr;
	uint16_t module = i % BLOCK ? r->v[i - 1].module : e->module;
	bool changed = e->module != module;
	bool prefix = i + 1 < r->n && is_prefix_of(r, e, e + 1);
	uint64_t distance = e->addr - prev;

	if (i % BLOCK == 0)
		k->blocks[k->n_blocks++] =
			(struct block){ e->addr, (uint32_t)k->packed.len,
					e->module };
	pack_number(&k->packed, distance << 2 |
					(uint64_t)prefix * PACKED_PREFIX |
					(uint64_t)changed * PACKED_MODULE);
	if (changed)
		pack_number(&k->packed, e->module);
	if (!prefix)
		strbuf_add(&k->packed, name, strlen(name) + 1);
}

static int reader_pack(struct reader *r)
{
	struct kallsyms *k = r->k;
	char *exact;

	reader_sort(r);
	k->n = r->n;
	k->blocks = calloc((r->n + BLOCK - 1) / BLOCK, sizeof(*k->blocks));
	if (!k->blocks)
		return -ENOMEM;
	for (size_t i = 0; i < r->n; i++) {
		pack_entry(r, i);
		if (r->v[i].module != 0)
			continue;
		if (!k->core_start)
			k->core_start = r->v[i].addr;
		k->core_end = r->v[i].addr;
	}
	if (k->packed.failed)
		return -ENOMEM;
	exact = realloc(k->packed.data, k->packed.len + 1);
	if (exact) {
		k->packed.data = exact;
		k->packed.cap = k->packed.len + 1;
	}
	return 0;
}

static int reader_init(struct reader *r)
{
	*r = (struct reader){ .k = calloc(1, sizeof(*r->k)) };
	if (r->k && !strtab_init(&r->k->modules))
		return 0;
	free(r->k);
	return -ENOMEM;
}

/* Makes the result, and frees everything else. */
static int reader_finish(struct reader *r, int err, struct kallsyms **kp)
{
	if (!err && r->n == 0)
		err = r->zeros ? -EPERM : -ENODATA;
	if (!err)
		err = reader_pack(r);
	free(r->v);
	strbuf_fini(&r->names);
	if (err)
		kallsyms_free(r->k);
	else
		*kp = r->k;
	return err;
}

int kallsyms_parse(struct kallsyms **kp, const char *text, size_t len)
{
	struct reader r;
	size_t used;
	int err = reader_init(&r);

	if (err)
		return err;
	err = reader_feed(&r, text, len, true, &used);
	return reader_finish(&r, err, kp);
}

static int kallsyms_fill(struct reader *r, int fd, char *buf, size_t cap)
{
	size_t have = 0, used;
	ssize_t n;
	int err;

	for (;;) {
		n = read(fd, buf + have, cap - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		have += (size_t)n;
		err = reader_feed(r, buf, have, n == 0, &used);
		if (err || n == 0)
			return err;
		if (used == 0 && have == cap)
			used = have; /* too long for a line of a kernel */
		memmove(buf, buf + used, have - used);
		have -= used;
	}
}

int kallsyms_read(struct kallsyms **kp, const char *path)
{
	const size_t cap = 65536;
	struct reader r;
	char *buf;
	int fd, err;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	buf = malloc(cap);
	err = buf ? reader_init(&r) : -ENOMEM;
	if (!err) {
		err = kallsyms_fill(&r, fd, buf, cap);
		err = reader_finish(&r, err, kp);
	}
	free(buf);
	close(fd);
	return err;
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	strtab_fini(&k->modules);
	strbuf_fini(&k->packed);
	free(k->blocks);
	free(k);
}

size_t kallsyms_bytes(const struct kallsyms *k)
{
	return sizeof(*k) + k->packed.cap + k->n_blocks * sizeof(*k->blocks) +
	       strtab_bytes(&k->modules);
}

/* One packed symbol. */
struct kallsyms_cursor {
	struct cursor c; /* at the next one's head */
	size_t i; /* the next one's number */
	uint64_t addr;
	uint16_t module;
	bool prefix;
	const char *name;
};

/* Reads the next symbol; 'c' has to start at the first of a block. */
static void kallsyms_next(const struct kallsyms *k, struct kallsyms_cursor *c)
{
	const struct block *b = &k->blocks[c->i / BLOCK];
	uint64_t head = cursor_uleb(&c->c);

	if (c->i % BLOCK == 0) {
		c->addr = b->addr;
		c->module = b->module;
	}
	c->addr += head >> 2;
	if (head & PACKED_MODULE)
		c->module = (uint16_t)cursor_uleb(&c->c);
	c->prefix = head & PACKED_PREFIX;
	c->name = (const char *)c->c.p;
	if (!c->prefix)
		c->c.p += strlen(c->name) + 1;
	c->i++;
}

/* Ends of the kernel's text: no function, whatever follows. */
static bool is_end_marker(const char *name)
{
	return strcmp(name, "_etext") == 0 || strcmp(name, "_einittext") == 0;
}

bool kallsyms_find(const struct kallsyms *k, uint64_t addr,
		   struct kallsyms_symbol *out)
{
	struct kallsyms_cursor at, next = { 0 };
	uint64_t end;
	size_t block;

	VECTOR_SEARCH(block, k->n_blocks, k->blocks[block].addr <= addr);
	if (block == 0)
		return false;
	next.i = (block - 1) * BLOCK;
	next.c.p = (const uint8_t *)k->packed.data + k->blocks[block - 1].at;
	next.c.end = (const uint8_t *)k->packed.data + k->packed.len;
	kallsyms_next(k, &next);
	do {
		at = next;
		if (next.i == k->n)
			break;
		kallsyms_next(k, &next);
	} while (next.addr <= addr);
	/* After a break 'at' is the last symbol, and next.i == at.i. */
	end = next.i > at.i ? next.addr : UINT64_MAX;
	if (at.module || next.module != at.module || next.i == at.i)
		end = MIN(end, at.addr + MIN((uint64_t)KALLSYMS_TAIL,
					     UINT64_MAX - at.addr));
	if (addr >= end || (!at.prefix && is_end_marker(at.name)))
		return false;
	out->start = at.addr;
	out->size = end - at.addr;
	memcpy(out->name, PREFIX, PREFIX_LEN);
	out->name[at.prefix ? PREFIX_LEN : 0] = '\0';
	strncat(out->name, at.prefix ? next.name : at.name,
		sizeof(out->name) - 1 - strlen(out->name));
	out->module =
		at.module ? strtab_str(&k->modules, at.module) : "vmlinux";
	return true;
}

bool kallsyms_is_core(const struct kallsyms *k, uint64_t addr)
{
	return addr >= k->core_start && addr < k->core_end;
}

/* --- modules that are gone -------------------------------------------------------- */

/* BPF programs and trampolines are reported by perf, with their times. */
static bool past_is_module(const char *module)
{
	return *module && strcmp(module, "bpf") != 0 &&
	       strncmp(module, "__builtin__", 11) != 0;
}

/* The module's first function is where it was; 'name' NULL: the padding before it. */
static bool past_is_there(const struct kallsyms *now, uint64_t addr,
			  const char *name, const char *module)
{
	struct kallsyms_symbol s;

	return kallsyms_find(now, addr, &s) && s.start == addr &&
	       (!name || !strcmp(s.name, name)) && !strcmp(s.module, module);
}

static void past_line(struct strbuf *text, uint64_t addr, const char *name,
		      const char *module)
{
	strbuf_printf(text, "%llx t %s\t[%s]\n", (unsigned long long)addr, name,
		      module);
}

/*
 * As lines of kallsyms: the functions of modules that are gone, and where the next
 * module begins.
 */
static void past_text(const struct kallsyms *was, const struct kallsyms *now,
		      struct strbuf *text)
{
	struct kallsyms_cursor c = { 0 };
	const char *module = "", *name;
	bool gone = false;

	c.c.p = (const uint8_t *)was->packed.data;
	c.c.end = c.c.p + was->packed.len;
	while (c.i < was->n) {
		kallsyms_next(was, &c);
		name = strtab_str(&was->modules, c.module);
		if (strcmp(name, module) != 0) {
			if (gone)
				past_line(text, c.addr, "_etext", module);
			gone = past_is_module(name) &&
			       !past_is_there(now, c.addr,
					      c.prefix ? NULL : c.name, name);
			module = name;
		}
		if (gone && !c.prefix)
			past_line(text, c.addr, c.name, name);
	}
}

static void past_drop(struct kallsyms_past *p)
{
	p->bytes -= kallsyms_bytes(p->v[0].k);
	kallsyms_free(p->v[0].k);
	memmove(p->v, p->v + 1, --p->n * sizeof(*p->v));
}

int kallsyms_past_add(struct kallsyms_past *p, const struct kallsyms *was,
		      const struct kallsyms *now, uint64_t time)
{
	struct strbuf text = STRBUF_INIT;
	struct kallsyms *k = NULL;
	int err = 0;

	past_text(was, now, &text);
	if (text.len)
		err = kallsyms_parse(&k, text.data, text.len);
	if (text.failed)
		err = -ENOMEM;
	strbuf_fini(&text);
	if (err || !k) {
		kallsyms_free(k);
		return err;
	}
	if (p->n == KALLSYMS_PAST)
		past_drop(p);
	p->v[p->n].k = k;
	p->v[p->n++].until = time;
	p->bytes += kallsyms_bytes(k);
	while (p->bytes > KALLSYMS_PAST_BYTES)
		past_drop(p);
	return 0;
}

bool kallsyms_past_find(const struct kallsyms_past *p, uint64_t addr,
			uint64_t time, struct kallsyms_symbol *out)
{
	for (size_t i = 0; i < p->n; i++)
		if (time < p->v[i].until && kallsyms_find(p->v[i].k, addr, out))
			return true;
	return false;
}

void kallsyms_past_fini(struct kallsyms_past *p)
{
	while (p->n)
		past_drop(p);
}
