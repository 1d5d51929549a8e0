// SPDX-License-Identifier: Apache-2.0
/*
 * bench_symbols [FILE NAME]: names of 100,000 addresses of FILE, by default a library
 * with 34,000 symbols and no DWARF: time of the first pass, which builds the index,
 * and of a second one; then that of a new process which has what the first one kept of
 * compile units ("kept_"); CPU time of each; peak memory above that of a process that
 * names nothing; bytes of index a function. Beside it what else names addresses and is
 * installed, with one pass and with two. One JSON line each; "ratio" is the time of the
 * other to that of the first pass. Addresses ascend, as profd asks for them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "symbolize/demangle.h"
#include "symbolize/units/dwarf_store.h"
#include "symbolize/file.h"
#include "symbolize/names/index.h"

#define LIBRARY "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"
#define ADDRESSES 100000
#define REQUEST 2048
#define LIMIT_S 60 /* for another program */

/* Before the path of the file. */
static const char *const others[][2] = {
	{ "addr2line", "addr2line -f -C -i -e " },
	{ "llvm-symbolizer", "llvm-symbolizer --inlines --obj=" },
	{ "eu-addr2line", "eu-addr2line -f -C -i -e " },
	{ "blazecli", "xargs blazecli symbolize elf --path " },
};

static const char *path = LIBRARY, *bench = "symbols";

static uint64_t offsets[ADDRESSES];

/* What is kept of compile units, as the cache on disk has it. */
static char store_path[] = "/tmp/bench_store.XXXXXX";
static struct strbuf store;
static size_t store_bytes;

enum run {
	RUN_NOTHING,
	RUN_COLD,
	RUN_KEPT
};

struct result {
	uint64_t cold_ns, warm_ns;
	double cpu_ms; /* of the first pass */
	size_t named, index_bytes, functions;
};

static int no_file(void *arg, const char *name, const uint8_t *build_id,
		   size_t len, uint32_t crc, bool has_crc)
{
	return -ENOENT;
}

static int kept_units(void *arg, uint64_t *at)
{
	*at = 0;
	return store_bytes ? open(store_path, O_RDONLY | O_CLOEXEC) : -ENOENT;
}

static void keep_units(void *arg, const void *p, size_t len)
{
	FILE *out = fopen(store_path, "w");

	if (!out || dwarf_store_add(&store, p, len))
		abort();
	store_bytes = fwrite(store.data, 1, store.len, out);
	fclose(out);
}

static int resolve_pass(struct symbolizer_file *f, size_t *named)
{
	const struct symbolizer_ask ask = { .file = no_file,
					    .units = kept_units,
					    .keep = keep_units };
	int err = 0;

	*named = 0;
	for (size_t i = 0; i < ADDRESSES && !err; i += REQUEST) {
		struct symbolizer_answer a = { 0 };

		arena_init(&a.names);
		err = symbolizer_file_resolve(f, &ask, offsets + i, NULL,
					      MIN(REQUEST, ADDRESSES - i), &a);
		*named += a.tally.resolved - a.tally.unnamed;
		symbolizer_answer_fini(&a);
	}
	return err;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Opens the library, and chooses addresses of its code. */
static struct symbolizer_file *library(void)
{
	struct symbolizer_file *f = symbolizer_file_new();
	struct symbolizer_src src;
	struct stat st;

	if (!f)
		return NULL;
	f->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0 || fstat(f->fd, &st))
		return NULL;
	symbolizer_src_fd(&src, f->fd, (uint64_t)st.st_size);
	if (symbolizer_file_load(f, &src) || !f->n_segments)
		return NULL;
	srandom(1);
	for (size_t i = 0; i < ADDRESSES; i++)
		offsets[i] = f->segments[0].offset +
			     (uint64_t)random() % f->segments[0].size;
	qsort(offsets, ADDRESSES, sizeof(*offsets), compare);
	return f;
}

static size_t functions(struct symbolizer_file *f)
{
	struct symbolizer_index *x;
	struct symbolizer_src src;
	struct symbolizer_elf e;
	size_t n = 0;

	symbolizer_src_fd(&src, f->fd, f->ident.size);
	if (symbolizer_elf_init(&e, &src))
		return 0;
	if (!symbolizer_elf_tables(&e) && !symbolizer_index_new(&x, &e, NULL)) {
		n = symbolizer_index_count(x);
		symbolizer_index_free(x);
	}
	symbolizer_elf_fini(&e);
	return n;
}

static double cpu_ms(const struct rusage *use)
{
	return (double)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) * 1e3 +
	       (double)(use->ru_utime.tv_usec + use->ru_stime.tv_usec) / 1e3;
}

static int work(struct symbolizer_file *f, struct result *r, enum run run)
{
	uint64_t begin = clock_boottime_ns();
	struct rusage use;

	if (resolve_pass(f, &r->named))
		return 1;
	r->cold_ns = clock_boottime_ns() - begin;
	getrusage(RUSAGE_SELF, &use);
	r->cpu_ms = cpu_ms(&use);
	begin = clock_boottime_ns();
	if (run == RUN_COLD && resolve_pass(f, &r->named))
		return 1;
	r->warm_ns = clock_boottime_ns() - begin;
	r->index_bytes = symbolizer_file_index_bytes(f);
	return 0;
}

/* In a process of its own, for its peak; that, or -1. */
static long run_own(struct symbolizer_file *f, struct result *r, enum run run)
{
	struct rusage use;
	int status, pipes[2];
	pid_t pid;

	if (pipe(pipes))
		return -1;
	pid = fork();
	if (pid == 0) {
		if (run == RUN_NOTHING)
			_exit(0);
		if (work(f, r, run))
			_exit(1);
		_exit(write(pipes[1], r, sizeof(*r)) != sizeof(*r));
	}
	close(pipes[1]);
	if (run != RUN_NOTHING && read(pipes[0], r, sizeof(*r)) != sizeof(*r))
		status = -1;
	close(pipes[0]);
	if (pid < 0 || wait4(pid, &status, 0, &use) != pid || status)
		return -1;
	return use.ru_maxrss;
}

/* Its time in ms and exit status for the addresses 'times' times; -1: it is missing. */
static double other_run(const char *const other[2], const char *addresses,
			int times, int *status, struct rusage *use)
{
	uint64_t begin = clock_boottime_ns();
	char line[1024];
	pid_t pid;

	snprintf(line, sizeof(line),
		 "PATH=$PATH:/tmp/blazecli/bin; command -v %s >/dev/null || "
		 "exit 77; cat %s %s | timeout %d %s%s > /dev/null 2>&1",
		 other[0], addresses, times > 1 ? addresses : "",
		 times * LIMIT_S, other[1], path);
	pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", line, NULL);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, status, 0, use) != pid ||
	    WEXITSTATUS(*status) == 77)
		return -1;
	return (double)(clock_boottime_ns() - begin) / 1e6;
}

static void run_other(const char *const other[2], const char *addresses,
		      uint64_t own_ns, long base)
{
	int status, again = 1;
	struct rusage use, unused;
	double took, twice = 0;

	took = other_run(other, addresses, 1, &status, &use);
	if (took < 0) {
		fprintf(stderr, "# %s is not installed\n", other[0]);
		return;
	}
	if (!WEXITSTATUS(status))
		twice = other_run(other, addresses, 2, &again, &unused);
	printf("{\"bench\":\"%s\",\"program\":\"%s\",\"status\":%d,"
	       "\"ms\":%.0f,\"cpu_ms\":%.0f,\"ratio\":%.2f,\"peak_bytes\":%ld",
	       bench, other[0], WEXITSTATUS(status), took, cpu_ms(&use),
	       took * 1e6 / (double)own_ns, (use.ru_maxrss - base) * 1024);
	if (!again)
		printf(",\"warm_ms\":%.0f", twice - took);
	printf("}\n");
	fflush(stdout);
}

static int write_addresses(struct symbolizer_file *f, char *to)
{
	int fd = mkstemp(to);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

	if (!out)
		return -1;
	for (size_t i = 0; i < ADDRESSES; i++)
		fprintf(out, "%#llx\n",
			(unsigned long long)symbolizer_file_vaddr(f,
								  offsets[i]));
	return fclose(out);
}

/* A new process that has what was kept. */
static int print_kept(struct symbolizer_file *f, long base, size_t named)
{
	struct result r = { 0 };
	struct stat st;
	long peak;

	if (stat(store_path, &st) || !st.st_size)
		return 0;
	store_bytes = (size_t)st.st_size;
	peak = run_own(f, &r, RUN_KEPT);
	if (peak < 0 || r.named != named)
		return 1;
	printf(",\"kept_ms\":%.0f,\"kept_cpu_ms\":%.0f,"
	       "\"kept_peak_bytes\":%ld,\"kept_bytes\":%lld",
	       (double)r.cold_ns / 1e6, r.cpu_ms, (peak - base) * 1024,
	       (long long)st.st_size);
	return 0;
}

int main(int argc, char **argv)
{
	char list[] = "/tmp/bench_symbols.XXXXXX";
	struct symbolizer_file *f;
	struct result r = { 0 };
	long base, peak;

	if (argc == 3) {
		path = argv[1];
		bench = argv[2];
	} else if (access(path, R_OK)) {
		return 0;
	}
	f = library();
	if (!f || symbolizer_demangle_start())
		return 1;
	if (mkstemp(store_path) < 0)
		return 1;
	base = run_own(f, &r, RUN_NOTHING);
	peak = run_own(f, &r, RUN_COLD);
	if (base < 0 || peak < 0 || write_addresses(f, list))
		return 1;
	r.functions = functions(f);
	printf("{\"bench\":\"%s\",\"program\":\"profd\",\"ms\":%.0f,"
	       "\"cpu_ms\":%.0f,\"warm_ms\":%.0f,\"peak_bytes\":%ld,\"named\":%zu,"
	       "\"functions\":%zu,\"index_bytes\":%zu,"
	       "\"bytes_a_function\":%.2f",
	       bench, (double)r.cold_ns / 1e6, r.cpu_ms,
	       (double)r.warm_ns / 1e6, (peak - base) * 1024, r.named,
	       r.functions, r.index_bytes,
	       (double)r.index_bytes / (double)MAX(r.functions, (size_t)1));
	if (print_kept(f, base, r.named))
		return 1;
	printf("}\n");
	fflush(stdout);
	unlink(store_path);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		run_other(others[i], list, r.cold_ns, base);
	unlink(list);
	return 0;
}
