// SPDX-License-Identifier: Apache-2.0
/*
 * Records are packed in the ring and complete outside of it: unusual values of a
 * process are in its fork and its exec; and 8 MiB hold the records of 2,000
 * processes a second for five seconds.
 */
#include "tests/bpf/quark/test_quark.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/capability.h>

#include "processmanager/quark/unpack.c"
#include "bpf/quark.skel.h"

/* --- values ------------------------------------------------------------------ */

/* A process's own values. */
struct truth {
	pid_t pid;
	uid_t uid[3];
	gid_t gid[3];
	pid_t pgid, sid;
	uint64_t ns[ABI_QUARK_NAMESPACES];
	uint64_t caps[5];
};

static const char *const ns_files[ABI_QUARK_NAMESPACES] = {
	[ABI_QUARK_UTS] = "/proc/self/ns/uts",
	[ABI_QUARK_IPC] = "/proc/self/ns/ipc",
	[ABI_QUARK_MNT] = "/proc/self/ns/mnt",
	[ABI_QUARK_NET] = "/proc/self/ns/net",
};

static void say_caps(struct truth *t)
{
	static const char *const names[] = { "CapInh", "CapPrm", "CapEff",
					     "CapBnd", "CapAmb" };
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long v;
	char line[256];
	size_t i;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		for (i = 0; i < ARRAY_SIZE(names); i++)
			if (!strncmp(line, names[i], 6) &&
			    sscanf(line + 7, "%llx", &v) == 1)
				t->caps[i] = v;
	fclose(f);
}

static void say(struct truth *t)
{
	struct stat st;
	size_t i;

	t->pid = getpid();
	CHECK(getresuid(&t->uid[0], &t->uid[1], &t->uid[2]) == 0);
	CHECK(getresgid(&t->gid[0], &t->gid[1], &t->gid[2]) == 0);
	t->pgid = getpgid(0);
	t->sid = getsid(0);
	for (i = 0; i < ARRAY_SIZE(ns_files); i++) {
		CHECK(stat(ns_files[i], &st) == 0);
		t->ns[i] = st.st_ino;
	}
	say_caps(t);
}

static void check_both(const struct quark_process *p, const struct truth *t)
{
	CHECK_INT(p->proc_uid, t->uid[0]);
	CHECK_INT(p->proc_euid, t->uid[1]);
	CHECK_INT(p->proc_gid, t->gid[0]);
	CHECK_INT(p->proc_egid, t->gid[1]);
	CHECK_INT(p->proc_pgid, t->pgid);
	CHECK_INT(p->proc_sid, t->sid);
	CHECK_INT(p->proc_uts_inonum, t->ns[ABI_QUARK_UTS]);
	CHECK_INT(p->proc_ipc_inonum, t->ns[ABI_QUARK_IPC]);
	CHECK_INT(p->proc_mnt_inonum, t->ns[ABI_QUARK_MNT]);
	CHECK_INT(p->proc_net_inonum, t->ns[ABI_QUARK_NET]);
	CHECK_INT(p->proc_cap_bset, t->caps[3]);
}

/* Values that an exec changes are not in check_both(). */
static void check_fork(const struct quark_process *p, const struct truth *t)
{
	check_both(p, t);
	CHECK_INT(p->proc_suid, t->uid[2]);
	CHECK_INT(p->proc_sgid, t->gid[2]);
	CHECK_INT(p->proc_cap_inheritable, t->caps[0]);
	CHECK_INT(p->proc_cap_permitted, t->caps[1]);
	CHECK_INT(p->proc_cap_effective, t->caps[2]);
	CHECK_INT(p->proc_cap_ambient, t->caps[4]);
}

static void as_it_is(void)
{
}

static void six_ids(void)
{
	CHECK(setresgid(4, 5, 6) == 0);
	CHECK(setresuid(1, 2, 3) == 0);
	/* Its own /proc is root's now, unless it may be dumped. */
	CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
}

static void own_session(void)
{
	CHECK(setsid() > 0);
}

static void own_namespaces(void)
{
	CHECK(unshare(CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNS |
		      CLONE_NEWNET) == 0);
}

static void few_capabilities(void)
{
	cap_t caps = cap_from_text("cap_kill=eip cap_sys_nice=ep cap_chown=i");

	CHECK(caps);
	CHECK(prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT) == 0);
	CHECK(cap_set_proc(caps) == 0);
	CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0) == 0);
	cap_free(caps);
}

/* A process with such values has a child, which reports them and executes true. */
static void child_of(void (*become)(void), struct truth *t)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0) {
		become();
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			say(t);
			execl("/bin/true", "true", NULL);
			_exit(127);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		_exit(status != 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_INT(status, 0);
}

static void ids_body(void)
{
	static void (*const ways[])(void) = { as_it_is, six_ids, own_session,
					      own_namespaces,
					      few_capabilities };
	struct truth *t =
		mmap(NULL, sizeof(*t) * ARRAY_SIZE(ways),
		     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct tape tape = { 0 };
	struct quark_queue qq;
	size_t i;

	CHECK(t != MAP_FAILED);
	open_raw(&qq, 0);
	for (i = 0; i < ARRAY_SIZE(ways); i++)
		child_of(ways[i], &t[i]);
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		tape_wait(&tape, &qq, t[i].pid, QUARK_EV_EXIT);
		check_fork(tape_find(&tape, t[i].pid, QUARK_EV_FORK)->process,
			   &t[i]);
		check_both(tape_find(&tape, t[i].pid, QUARK_EV_EXEC)->process,
			   &t[i]);
	}
	tape_fini(&tape);
	quark_queue_close(&qq);
	munmap(t, sizeof(*t) * ARRAY_SIZE(ways));
}

static void test_ids(void **state)
{
	in_child(ids_body);
}

/* --- sizes --------------------------------------------------------------------- */

#define RING (8U << 20)
#define LIVES_A_SECOND 2000
#define STALL 5
#define LIVES 50
/* Each record's own header in the ring (linux/bpf.h: BPF_RINGBUF_HDR_SZ). */
#define RECORD_HEAD 8

struct sizes {
	pid_t pids[LIVES];
	uint32_t home[ABI_QUARK_NAMESPACES];
	struct quark_unpacked u;
	size_t bytes; /* of the ring, by those */
	size_t strings; /* of that, what is the host's and not ours */
	int records, reaped;
};

static int weigh(void *arg, void *data, size_t len)
{
	struct sizes *s = arg;
	const struct abi_quark_image *im = &s->u.image;
	int i;

	CHECK(quark_unpack(&s->u, data, len, s->home) > 0);
	for (i = 0; i < LIVES && (pid_t)s->u.head.key.tgid != s->pids[i]; i++)
		;
	if (i == LIVES)
		return 0;
	s->records++;
	s->bytes += RECORD_HEAD + ((len + 7) & ~(size_t)7);
	s->reaped += s->u.head.kind == ABI_QUARK_REAP;
	if (s->u.head.kind == ABI_QUARK_EXEC)
		s->strings += im->cwd_len + im->cgroup_len;
	return 0;
}

static struct quark_bpf *load(struct sizes *s)
{
	struct quark_bpf *skel = quark_bpf__open();
	int cpus = libbpf_num_possible_cpus();
	struct stat st;
	size_t i;

	CHECK(skel && cpus > 0);
	for (i = 0; i < ARRAY_SIZE(ns_files); i++) {
		CHECK(stat(ns_files[i], &st) == 0);
		skel->rodata->quark_home[i] = s->home[i] = st.st_ino;
	}
	bpf_program__set_autoload(skel->progs.quark_sys_exit, false);
	bpf_program__set_autoattach(skel->progs.quark_task, false);
	skel->rodata->quark_cpus = cpus;
	skel->rodata->quark_half = RING;
	CHECK(!bpf_map__set_max_entries(skel->maps.losses, cpus));
	CHECK(!bpf_map__set_max_entries(skel->maps.scratches, cpus + 1));
	CHECK(!quark_bpf__load(skel));
	CHECK(!quark_bpf__attach(skel));
	return skel;
}

/* With directories and cgroups of 64 bytes for each process. */
static void size_body(void)
{
	struct sizes *s = calloc(1, sizeof(*s));
	double end = seconds() + 120;
	struct quark_bpf *skel;
	struct ring_buffer *rb;
	int i;

	CHECK(s);
	skel = load(s);
	rb = ring_buffer__new(bpf_map__fd(skel->maps.ring), weigh, s, NULL);
	CHECK(rb);
	for (i = 0; i < LIVES; i++) {
		s->pids[i] = spawn_true();
		CHECK(waitpid(s->pids[i], NULL, 0) == s->pids[i]);
	}
	while (s->reaped < LIVES && seconds() < end)
		CHECK(ring_buffer__poll(rb, 100) >= 0);
	CHECK_INT(s->reaped, LIVES);
	/* Fork, exec, exit, reap: no more, and none of them missing. */
	CHECK_INT(s->records, 4 * LIVES);
	fprintf(stderr, "%zu bytes a life, %zu of them directory and cgroup\n",
		s->bytes / LIVES, s->strings / LIVES);
	CHECK(s->bytes / LIVES - s->strings / LIVES + 2 * 64 <=
	      RING / (LIVES_A_SECOND * STALL));
	ring_buffer__free(rb);
	quark_bpf__destroy(skel);
	free(s);
}

/* Of BPF's ring alone: the other backend has perf's. */
static void test_size(void **state)
{
	if (backend() == QQ_EBPF)
		in_child(size_body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
