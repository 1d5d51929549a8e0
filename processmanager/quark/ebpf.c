// SPDX-License-Identifier: Apache-2.0
/*
 * ebpf: loads bpf/quark.bpf.c, owns its ring, its loss counters and its task
 * iterator. libbpf prints nothing meanwhile; the caller's print function is
 * restored.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/perfring.h"
#include "processmanager/quark/priv.h"
#include "bpf/quark.skel.h"

/* See quark_queue_know_file(). */
#define KNOWN_FILES 16384

/* The maps and programs together need at least as many descriptors. */
#define LOAD_FDS 16

struct ebpf {
	struct quark_bpf *skel;
	struct bpf_link *scan; /* of the iterator */
	struct ring *ring;
	struct abi_quark_loss *losses; /* one a CPU, mapped */
	size_t losses_size;
	uint32_t cpus;
	uint32_t home[ABI_QUARK_NAMESPACES];
	ring_fn fn;
	void *arg;
	struct quark_unpacked unpacked; /* what fn gets */
	uint64_t seen[ABI_QUARK_KIND_MAX]; /* losses reported already */
};

static int ebpf_no_print(enum libbpf_print_level level, const char *fmt,
			 va_list ap)
{
	return 0;
}

static bool kernel_too_old(struct utsname *u)
{
	int a, b;

	if (uname(u) || sscanf(u->release, "%d.%d", &a, &b) != 2)
		return false;
	return a < 6 || (a == 6 && b < 1);
}

/* Sets the reason for an error of libbpf; returns an errno that fits it. */
static int ebpf_explain(int err, const char *what)
{
	const char *caps = quark_missing_caps();
	struct utsname u;
	int btf;

	if (*caps) {
		quark_error("%s: no privilege: %s missing", what, caps);
		return -EPERM;
	}
	btf = quark_btf_error();
	if (btf == -ENOTSUP) {
		quark_error("%s: the kernel has no BTF", what);
		return btf;
	}
	/* libbpf's error for every failure to read existing BTF. */
	if (err == -ESRCH)
		err = btf;
	if (kernel_too_old(&u)) {
		quark_error("%s: kernel %s is too old, 6.1 is needed", what,
			    u.release);
		return -ENOTSUP;
	}
	quark_error("%s: %s", what, strerror(-err));
	return err;
}

/*
 * Records omit namespaces that equal libquark's own, as those of most processes do.
 * If one cannot be read, all records have it.
 */
static void find_home(struct ebpf *e)
{
	static const char *const names[] = {
		[ABI_QUARK_UTS] = "/proc/self/ns/uts",
		[ABI_QUARK_IPC] = "/proc/self/ns/ipc",
		[ABI_QUARK_MNT] = "/proc/self/ns/mnt",
		[ABI_QUARK_NET] = "/proc/self/ns/net",
	};
	struct stat st;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!stat(names[i], &st))
			e->home[i] = st.st_ino;
	memcpy((void *)e->skel->rodata->quark_home, e->home, sizeof(e->home));
}

static int ebpf_configure(struct ebpf *e, const struct quark_backend_conf *conf)
{
	struct quark_bpf *s = e->skel;
	size_t size = perfring_size(sysconf(_SC_PAGESIZE), conf->ring_bytes);
	const struct {
		struct bpf_map *map;
		uint32_t entries;
	} sizes[] = {
		{ s->maps.ring, size },
		{ s->maps.losses, e->cpus },
		{ s->maps.scratches, e->cpus + 1 },
		{ s->maps.mapping_rings, e->cpus },
		{ s->maps.known_files, conf->new_files ? KNOWN_FILES : 1 },
	};
	int err = 0;
	size_t i;

	bpf_program__set_autoload(s->progs.quark_sys_exit, conf->syscalls);
	bpf_program__set_autoattach(s->progs.quark_task, false);
	s->rodata->quark_no_wakeup = conf->no_wakeup;
	s->rodata->quark_threads = conf->threads;
	s->rodata->quark_max_env = conf->max_env;
	s->rodata->quark_repeats = conf->repeats;
	s->rodata->quark_new_files = conf->new_files;
	s->rodata->quark_cpus = e->cpus;
	s->rodata->quark_half = size / 2;
	find_home(e);
	for (i = 0; !err && i < ARRAY_SIZE(sizes); i++)
		err = bpf_map__set_max_entries(sizes[i].map, sizes[i].entries);
	return err;
}

static int map_losses(struct ebpf *e)
{
	long page = sysconf(_SC_PAGESIZE);
	void *p;

	e->losses_size = (e->cpus * sizeof(*e->losses) + page - 1) & -page;
	p = mmap(NULL, e->losses_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		 bpf_map__fd(e->skel->maps.losses), 0);
	if (p == MAP_FAILED)
		return -errno;
	e->losses = p;
	return 0;
}

static int ebpf_unpack(void *arg, void *data, size_t len)
{
	struct ebpf *e = arg;
	ssize_t n = quark_unpack(&e->unpacked, data, len, e->home);

	return n < 0 ? 0 : e->fn(e->arg, &e->unpacked, n);
}

/*
 * Without a free descriptor for its BTF libbpf continues, and the kernel then
 * refuses the map that needs it (task storage) with EINVAL.
 */
static int load_error(int err)
{
	int fds[LOAD_FDS], n = 0;

	while (n < LOAD_FDS && (fds[n] = dup(STDERR_FILENO)) >= 0)
		n++;
	if (err == -EINVAL && n < LOAD_FDS && errno == EMFILE)
		err = -EMFILE;
	while (n)
		close(fds[--n]);
	return err;
}

static int ebpf_start(struct ebpf *e, const struct quark_backend_conf *conf,
		      ring_fn fn, void *arg)
{
	int err;

	errno = 0;
	e->skel = quark_bpf__open();
	if (!e->skel)
		return ebpf_explain(errno ? -errno : -ENOMEM,
				    "opening programs");
	err = ebpf_configure(e, conf);
	if (err)
		return err;
	err = quark_bpf__load(e->skel);
	if (err)
		return ebpf_explain(load_error(err), "loading programs");
	err = map_losses(e);
	if (err)
		return ebpf_explain(err, "mapping loss counters");
	e->fn = fn;
	e->arg = arg;
	err = ring_new(&e->ring, bpf_map__fd(e->skel->maps.ring), ebpf_unpack,
		       e);
	if (err)
		return ebpf_explain(err, "mapping the ring");
	err = quark_bpf__attach(e->skel);
	if (err)
		return ebpf_explain(err, "attaching to tracepoints");
	e->scan = bpf_program__attach_iter(e->skel->progs.quark_task, NULL);
	if (!e->scan)
		return ebpf_explain(errno ? -errno : -ENOTSUP,
				    "attaching the task iterator");
	return 0;
}

static void ebpf_close(void *b)
{
	struct ebpf *e = b;

	ring_free(e->ring);
	if (e->losses)
		munmap(e->losses, e->losses_size);
	bpf_link__destroy(e->scan);
	quark_bpf__destroy(e->skel);
	free(e);
}

static int ebpf_open(void **bp, const struct quark_backend_conf *conf,
		     ring_fn fn, void *arg)
{
	struct ebpf *e = calloc(1, sizeof(*e));
	libbpf_print_fn_t print;
	int err = cpus_number();

	if (!e)
		return -ENOMEM;
	print = libbpf_set_print(ebpf_no_print);
	e->cpus = MAX(err, 0);
	if (err > 0)
		err = ebpf_start(e, conf, fn, arg);
	if (err)
		ebpf_close(e);
	else
		*bp = e;
	libbpf_set_print(print);
	return err;
}

static int ebpf_consume(void *b)
{
	return ring_consume(((struct ebpf *)b)->ring);
}

static uint64_t ebpf_watermark(const void *b)
{
	return ring_watermark(((const struct ebpf *)b)->ring);
}

static uint64_t ebpf_slack(const void *b)
{
	return CLOCK_NSEC_PER_MSEC; /* base/ring.c */
}

static int ebpf_epoll_fd(const void *b)
{
	return ring_epoll_fd(((const struct ebpf *)b)->ring);
}

static size_t ebpf_backlog(const void *b)
{
	return ring_backlog(((const struct ebpf *)b)->ring);
}

static void ebpf_losses(void *b, struct quark_loss_report *out)
{
	struct ebpf *e = b;
	uint64_t sum[ABI_QUARK_KIND_MAX] = { 0 }, first;
	uint32_t cpu, k;

	memset(out, 0, sizeof(*out));
	for (cpu = 0; cpu < e->cpus; cpu++) {
		for (k = 0; k < ABI_QUARK_KIND_MAX; k++)
			sum[k] += __atomic_load_n(&e->losses[cpu].lost[k],
						  __ATOMIC_RELAXED);
		out->unwoken += __atomic_load_n(&e->losses[cpu].unwoken,
						__ATOMIC_RELAXED);
		out->limited += __atomic_load_n(&e->losses[cpu].limited,
						__ATOMIC_RELAXED);
	}
	for (k = 0; k < ABI_QUARK_KIND_MAX; k++) {
		out->lost[k] = sum[k] - e->seen[k];
		out->total += out->lost[k];
		e->seen[k] = sum[k];
	}
	if (!out->total)
		return;
	for (cpu = 0; cpu < e->cpus; cpu++) {
		struct abi_quark_loss *l = &e->losses[cpu];

		first = __atomic_exchange_n(&l->first, 0, __ATOMIC_RELAXED);
		if (!first)
			continue;
		if (!out->first || first < out->first)
			out->first = first;
		out->last = MAX(out->last, l->last);
	}
}

/* The iterator's output is a stream of records; read(2) may end inside one. */
static int scan_records(int fd, char *buf, size_t size, ring_fn fn, void *arg)
{
	const struct abi_quark_image *im;
	size_t have = 0, off, len;
	ssize_t n;
	int err;

	for (;;) {
		n = read(fd, buf + have, size - have);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return n < 0 ? -errno : have ? -EIO : 0;
		have += n;
		for (off = 0; have - off >= sizeof(*im); off += len) {
			im = (const void *)(buf + off);
			len = sizeof(*im) + im->exe_len + im->cwd_len +
			      im->cgroup_len;
			len = (len + 7) & ~(size_t)7;
			if (len > size)
				return -EIO;
			if (len > have - off)
				break;
			err = fn(arg, buf + off, len);
			if (err)
				return err;
		}
		memmove(buf, buf + off, have - off);
		have -= off;
	}
}

static int ebpf_scan(void *b, ring_fn fn, void *arg)
{
	struct ebpf *e = b;
	size_t size = 64 * 1024;
	char *buf = malloc(size);
	int fd, err;

	if (!buf)
		return -ENOMEM;
	fd = bpf_iter_create(bpf_link__fd(e->scan));
	if (fd < 0) {
		err = -errno;
	} else {
		err = scan_records(fd, buf, size, fn, arg);
		close(fd);
	}
	free(buf);
	return err;
}

/* The leader alone, by an iterator of one thread. */
static bool ebpf_look(void *b, uint32_t pid, struct abi_quark_image *im)
{
	struct ebpf *e = b;
	union bpf_iter_link_info info = { .task.tid = pid };
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = &info,
		    .iter_info_len = sizeof(info));
	int prog = bpf_program__fd(e->skel->progs.quark_task);
	int link, fd;
	ssize_t n = 0;

	link = bpf_link_create(prog, 0, BPF_TRACE_ITER, &opts);
	if (link < 0)
		return false;
	fd = bpf_iter_create(link);
	if (fd >= 0) {
		n = read(fd, im, sizeof(*im));
		close(fd);
	}
	close(link);
	return n == sizeof(*im) && im->head.key.tgid == pid;
}

static int ebpf_know(void *b, const struct abi_quark_file *file, bool known)
{
	struct ebpf *e = b;
	int fd = bpf_map__fd(e->skel->maps.known_files);
	uint32_t one = 1;

	if (known)
		return bpf_map_update_elem(fd, file, &one, BPF_ANY);
	return bpf_map_delete_elem(fd, file);
}

static int ebpf_mark(void *b, unsigned int cpu, int perf_fd)
{
	struct ebpf *e = b;
	int fd = bpf_map__fd(e->skel->maps.mapping_rings);

	return bpf_map_update_elem(fd, &cpu, &perf_fd, BPF_ANY);
}

const struct quark_backend quark_ebpf = {
	.flag = QQ_EBPF,
	.name = "ebpf",
	.open = ebpf_open,
	.close = ebpf_close,
	.consume = ebpf_consume,
	.watermark = ebpf_watermark,
	.slack = ebpf_slack,
	.epoll_fd = ebpf_epoll_fd,
	.backlog = ebpf_backlog,
	.losses = ebpf_losses,
	.scan = ebpf_scan,
	.look = ebpf_look,
	.know = ebpf_know,
	.mark = ebpf_mark,
};
