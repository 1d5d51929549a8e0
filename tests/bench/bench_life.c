// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of a process in user space, without the kernel side: the records of
 * posix_spawn(/bin/true) (fork, exec, exit, reap, and mappings of the exec), made by
 * hand, go through libquark, the pump and the process manager to the events of the
 * ledger, as many a tick as in a storm. Medians of ROUNDS rounds, with warm caches and
 * with cold ones, as when profd wakes up on a busy CPU; under valgrind's callgrind it
 * counts instructions, which do not depend on other load:
 *
 *	valgrind --tool=callgrind build/tests/bench/bench_life 2000
 */
#include <elf.h>
#include <link.h>

#include "processmanager/quark/agg.c"
#include "processmanager/quark/apply.c"
#include "processmanager/quark/cache.c"
#include "processmanager/quark/error.c"
#include "processmanager/quark/event.c"
#include "processmanager/quark/file.c"
#include "processmanager/quark/leader.c"
#include "processmanager/quark/lookup.c"
#include "processmanager/quark/names.c"
#include "processmanager/quark/order.c"
#include "processmanager/quark/parent.c"
#include "processmanager/quark/proc/procfs.c"
#include "processmanager/quark/proc/procfs_task.c"
#include "processmanager/quark/proc/reader.c"
#include "processmanager/quark/queue.c"
#include "processmanager/quark/record.c"
#include "processmanager/quark/rules.c"
#undef BIT
#include "processmanager/quark/scan.c"
#include "profiler/engine.c"
#include "profiler/engine_open.c"
#include "profiler/source/source_bpf.c"

#define ROUNDS 9
#define LIVES 20000
#define LIVES_A_TICK 120
#define TICK_NS (100 * CLOCK_NSEC_PER_MSEC)
#define FILES_MAX 3
#define EVICT_BYTES (64 << 20)
#define PARENT 90000
#define FIRST_PID 100000
#define PIDS 60000

struct bench_file {
	char path[PATH_MAX];
	uint8_t build_id[SYMBOLIZER_BUILD_ID_MAX];
	size_t build_id_len;
};

/* The ring: the records of the next drain. */
static struct {
	ring_fn fn;
	void *arg;
	unsigned char data[LIVES_A_TICK * 2048];
	size_t len;
	uint64_t now;
} ring;

static struct bench_file files[FILES_MAX];
static size_t nfiles;
static struct pm_map_event maps[LIVES_A_TICK * (FILES_MAX + 2)];
static int nmaps;
static uint64_t lives;
static bool cold;

/* --- a backend ---------------------------------------------------------------- */

static int fake_open(void **bp, const struct quark_backend_conf *conf,
		     ring_fn fn, void *arg)
{
	ring.fn = fn;
	ring.arg = arg;
	*bp = &ring;
	return 0;
}

static void fake_close(void *b)
{
}

static int fake_consume(void *b)
{
	size_t off, len;
	int n = 0;

	for (off = 0; off < ring.len; off += len, n++) {
		memcpy(&len, ring.data + off, sizeof(len));
		off += sizeof(len);
		ring.fn(ring.arg, ring.data + off, len);
		len = (len + 7) & ~(size_t)7;
	}
	ring.len = 0;
	return n;
}

static uint64_t fake_watermark(const void *b)
{
	return ring.now;
}

static uint64_t fake_slack(const void *b)
{
	return 0;
}

static int fake_epoll_fd(const void *b)
{
	static int fd = -1;

	if (fd < 0)
		fd = epoll_create1(EPOLL_CLOEXEC);
	return fd;
}

static size_t fake_backlog(const void *b)
{
	return ring.len;
}

static void fake_losses(void *b, struct quark_loss_report *out)
{
	memset(out, 0, sizeof(*out));
}

static int fake_scan(void *b, ring_fn fn, void *arg)
{
	return 0;
}

#define FAKE                                                        \
	{                                                           \
		.flag = QQ_EBPF, .name = "fake", .open = fake_open, \
		.close = fake_close, .consume = fake_consume,       \
		.watermark = fake_watermark, .slack = fake_slack,   \
		.epoll_fd = fake_epoll_fd, .backlog = fake_backlog, \
		.losses = fake_losses, .scan = fake_scan,           \
	}
const struct quark_backend quark_ebpf = FAKE;
const struct quark_backend quark_kprobe = FAKE;

/* --- the records of a process -------------------------------------------------- */

static void put(const void *rec, size_t len)
{
	if (ring.len + sizeof(len) + len + 8 > sizeof(ring.data))
		abort();
	memcpy(ring.data + ring.len, &len, sizeof(len));
	memcpy(ring.data + ring.len + sizeof(len), rec, len);
	ring.len += sizeof(len) + ((len + 7) & ~(size_t)7);
}

static struct abi_quark_head head(uint32_t kind, uint64_t time, uint32_t pid,
				  uint64_t start, uint64_t exec_id)
{
	struct abi_key key = { start, exec_id, pid, 0 };

	return (struct abi_quark_head){ kind, 0, time, key, pid, 0 };
}

static void put_fork(uint64_t time, uint32_t pid)
{
	struct abi_quark_fork f = {
		.head = head(ABI_QUARK_FORK, time, pid, time, 1),
		.parent = { 1, 1, PARENT, 0 },
		.origin = { 1, 1, PARENT, 0 },
		.clone_flags = CLONE_VM | CLONE_VFORK,
		.comm = "load_spawn",
	};

	put(&f, sizeof(f));
}

static void put_exec(uint64_t time, uint32_t pid, uint64_t start)
{
	static const char *const texts[] = { "/usr/bin/true", "/bin/true",
					     "/work/directory", "/" };
	struct {
		struct abi_quark_image im;
		char text[256];
	} r = { .im = {
			.head = head(ABI_QUARK_EXEC, time, pid, start, 2),
			.parent = { 1, 1, PARENT, 0 },
			.comm = "true",
			.ino = 77,
			.exe_len = strlen(texts[0]),
			.args_len = strlen(texts[1]) + 1,
			.cwd_len = strlen(texts[2]),
			.cgroup_len = strlen(texts[3]),
		} };
	char *at = r.text;

	at = stpcpy(at, texts[0]);
	at = stpcpy(at, texts[1]) + 1;
	at = stpcpy(at, texts[2]);
	at = stpcpy(at, texts[3]);
	put(&r, sizeof(r.im) + (size_t)(at - r.text));
}

static void put_exit(uint64_t time, uint32_t pid, uint64_t start)
{
	struct abi_quark_exit e = {
		.head = head(ABI_QUARK_EXIT, time, pid, start, 2),
		.parent = { 1, 1, PARENT, 0 },
		.comm = "true",
		.cpu_time = 600000,
		.maxrss = 400,
	};

	e.head.flags = ABI_QUARK_GROUP_DEAD;
	put(&e, sizeof(e));
}

static void put_reap(uint64_t time, uint32_t pid, uint64_t start)
{
	struct abi_quark_reap r = {
		.head = head(ABI_QUARK_REAP, time, pid, start, 2),
		.comm = "true",
		.cpu_time = 700000,
	};

	put(&r, sizeof(r));
}

static void add_map(const struct pm_map_event *ev)
{
	if (nmaps == (int)ARRAY_SIZE(maps))
		abort();
	maps[nmaps++] = *ev;
}

static void put_maps(uint64_t time, uint32_t pid)
{
	struct pm_map_event ev = {
		.time = time, .kind = PM_MAP_EXEC, .tgid = pid, .tid = pid
	};
	size_t i;

	add_map(&ev);
	ev.kind = PM_MAP_MMAP;
	for (i = 0; i < nfiles; i++) {
		ev.time++;
		ev.start = 0x7f0000000000 + (i << 24);
		ev.end = ev.start + 0x10000;
		ev.pgoff = 0x1000;
		ev.build_id_len = files[i].build_id_len;
		memcpy(ev.build_id, files[i].build_id, sizeof(ev.build_id));
		ev.path = files[i].path;
		add_map(&ev);
	}
	ev.build_id_len = 0;
	ev.start = 0x7fff00000000;
	ev.end = ev.start + 0x2000;
	ev.path = "[vdso]";
	add_map(&ev);
}

static void one_life(uint64_t time)
{
	uint32_t pid = FIRST_PID + lives++ % PIDS;
	uint64_t step = TICK_NS / LIVES_A_TICK / 8;

	put_fork(time, pid);
	put_maps(time + step, pid);
	put_exec(time + 2 * step, pid, time);
	put_exit(time + 3 * step, pid, time);
	put_reap(time + 4 * step, pid, time);
}

static double cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* The load between two ticks: it evicts our data from the caches of the CPU. */
static void fill_caches(void)
{
	static unsigned char other[EVICT_BYTES];
	size_t i;

	for (i = 0; i < sizeof(other); i += 64)
		other[i]++;
}

/* As engine_drain(); its CPU time. */
static double tick(struct engine *e)
{
	struct intake *in = &e->in;
	uint64_t begin = ring.now + 1;
	double us;
	int i;

	for (i = 0; i < LIVES_A_TICK; i++)
		one_life(begin + i * (TICK_NS / LIVES_A_TICK));
	ring.now += TICK_NS;
	if (cold)
		fill_caches();
	us = cpu_us();
	for (i = 0; i < nmaps; i++)
		intake_map(in, &maps[i]);
	nmaps = 0;
	source_bpf_drain_life(e->source.state);
	pump_watermark(in->pump, PUMP_SAMPLE, ring.now);
	pump_watermark(in->pump, PUMP_MAPPING, ring.now);
	pump_watermark(in->pump, PUMP_SCAN, ring.now);
	in->passed = pump_run(in->pump);
	trace_handler_tick(e->th, ring.now, false);
	pm_forget(e->pm, in->passed);
	reporter_advance(e->reporter, engine_done(e));
	uv_run(e->opts.loop, UV_RUN_NOWAIT);
	return cpu_us() - us;
}

/* --- the figures -------------------------------------------------------------- */

/* The build id of an object that is mapped here. */
static int file_of(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct bench_file *f = &files[nfiles];
	const ElfW(Nhdr) * note;
	const ElfW(Phdr) * ph;

	if (nfiles == FILES_MAX)
		return 1;
	if (!realpath(*info->dlpi_name ? info->dlpi_name : "/proc/self/exe",
		      f->path))
		return 0;
	for (ph = info->dlpi_phdr; ph < info->dlpi_phdr + info->dlpi_phnum;
	     ph++) {
		if (ph->p_type != PT_NOTE)
			continue;
		note = (const void *)(info->dlpi_addr + ph->p_vaddr);
		if (note->n_type != NT_GNU_BUILD_ID ||
		    note->n_descsz > sizeof(f->build_id))
			continue;
		f->build_id_len = note->n_descsz;
		memcpy(f->build_id, (const char *)(note + 1) + note->n_namesz,
		       note->n_descsz);
		nfiles++;
		return 0;
	}
	return 0;
}

static int bench_open(struct engine *e)
{
	static struct source_bpf bpf;
	static struct engine_opts opts;
	char dir[] = "/tmp/bench_life.XXXXXX", path[64];
	const char *listen[] = { path };
	struct quark_queue_attr attr;
	const char *what;
	char msg[256];
	int err;

	opts.loop = uv_default_loop();
	opts.freq_hz = 99;
	/* Events are kept for clients. */
	if (!mkdtemp(dir))
		return -errno;
	snprintf(path, sizeof(path), "unix:%s/sock", dir);
	opts.listen = listen;
	opts.nlisten = 1;
	e->opts = opts;
	engine_memory();
	err = engine_open_parts(e, &opts, &what);
	if (!err)
		err = engine_open_reporter(e, &opts, msg, sizeof(msg));
	unlink(path + strlen("unix:"));
	rmdir(dir);
	if (err)
		return err;
	bpf.opts.in = &e->in;
	bpf.opts.rescan = e->rescan;
	bpf.opts.pm = e->pm;
	bpf.opts.event = engine_event;
	bpf.opts.arg = e;
	source_bpf_attr(&bpf, &attr, 0);
	if (quark_queue_open(&bpf.quark, &attr))
		return -errno;
	bpf.quark_open = true;
	e->source = (struct source_run){ &source_bpf, &bpf };
	reporter_start(e->reporter, 1);
	ring.now = TICK_NS;
	return 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Per process, of 'each' of them; < 0: some are missing. */
static double measure(struct engine *e, uint64_t each)
{
	struct pm_stats stats;
	double us[ROUNDS];
	uint64_t first;
	int r;

	for (r = -1; r < ROUNDS; r++) {
		double sum = 0;

		for (first = lives; lives < first + each;)
			sum += tick(e);
		if (r >= 0)
			us[r] = sum / (double)(lives - first);
	}
	pm_get_stats(e->pm, &stats);
	if (stats.forks != lives || stats.execs != lives ||
	    stats.exits != lives || stats.reaps != lives || stats.unknown)
		return -1;
	qsort(us, ROUNDS, sizeof(*us), by_value);
	return us[ROUNDS / 2];
}

int main(int argc, char **argv)
{
	uint64_t each = argc > 1 ? strtoull(argv[1], NULL, 10) : LIVES;
	static struct engine e;
	double warm, evicted;
	int err;

	if (symbolizer_worker_wanted(argc, argv))
		return symbolizer_worker_main(argc, argv);
	dl_iterate_phdr(file_of, NULL);
	err = bench_open(&e);
	if (err) {
		fprintf(stderr, "bench_life: %s\n", strerror(-err));
		return 1;
	}
	warm = measure(&e, each);
	cold = true;
	evicted = measure(&e, each);
	if (warm < 0 || evicted < 0) {
		fprintf(stderr, "bench_life: lives went missing\n");
		return 1;
	}
	printf("{\"bench\":\"life_loop\",\"value\":%.2f,\"unit\":\"us of CPU a"
	       " life, no kernel side, caches warm\",\"budget\":null}\n"
	       "{\"bench\":\"life_loop_cold\",\"value\":%.2f,\"unit\":\"us of"
	       " CPU a life, no kernel side, caches cold\",\"budget\":25}\n",
	       warm, evicted);
	return 0;
}
