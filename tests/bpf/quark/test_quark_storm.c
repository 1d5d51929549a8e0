// SPDX-License-Identifier: Apache-2.0
/*
 * libquark under load: many processes at once, a reader that stops, pids that are
 * reused within seconds.
 *
 * A process is one event if it ends within the hold time, and several if not: on a
 * busy host, or when the queue fills up. So the tests count raw events ("pieces"),
 * all of them; and while the queue is below a tenth of max_length, a piece must be
 * in the same event unless it came later than hold_time.
 */
#include <elf.h>
#include <linux/sched.h>
#include <sys/param.h>

#include "tests/bpf/quark/test_quark.h"

#define MAX_WORKERS 8
#define FREE_PIDS 100
/* All of a storm, however fast the machine is, and however late its reader. */
#define RING_BYTES (64UL << 20)
#define HOLD_MS 1000
#define HANG 120 /* seconds without any event that counts */

#define KINDS 3
#define LIFE_BITS (QUARK_EV_FORK | QUARK_EV_EXEC | QUARK_EV_EXIT)

static const uint64_t bits[KINDS] = { QUARK_EV_FORK, QUARK_EV_EXEC,
				      QUARK_EV_EXIT };

struct storm {
	int workers;
	int lives; /* of all workers */
	uint64_t life; /* what each consists of */
	const char *comm; /* once it executed, or NULL */
	void (*one)(void);
	int max_length;
	bool whole; /* the hold cannot shrink: the queue stays that empty */
	bool stall;
};

/* The youngest process of a pid. */
struct last {
	uint64_t start;
	uint64_t seen; /* kinds */
	uint64_t piece; /* time of the piece that came last */
	uint64_t exit;
	char id[17];
};

struct ledger {
	const struct storm *s;
	pid_t workers[MAX_WORKERS];
	struct last *pids; /* by pid, as far as there was one */
	size_t n_pids;
	int seen[KINDS];
	int pieces;
	int whole;
	uint64_t time;
	uint64_t disorder;
	double hang;
};

static char dir[] = "/tmp/test_quark_storm.XXXXXX", path[64];

/*
 * The smallest program there is: exit(0). With a loader and libraries, as /bin/true has
 * them, most of a storm's time would be theirs.
 */
static const struct {
	Elf64_Ehdr e;
	Elf64_Phdr p;
	unsigned char code[9];
} smallest = {
	.e = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			    ELFDATA2LSB, EV_CURRENT },
	       .e_type = ET_EXEC,
	       .e_machine = EM_X86_64,
	       .e_version = EV_CURRENT,
	       .e_entry = 0x400000 + sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
	       .e_phoff = sizeof(Elf64_Ehdr),
	       .e_ehsize = sizeof(Elf64_Ehdr),
	       .e_phentsize = sizeof(Elf64_Phdr),
	       .e_phnum = 1 },
	.p = { .p_type = PT_LOAD,
	       .p_flags = PF_R | PF_X,
	       .p_vaddr = 0x400000,
	       .p_filesz = sizeof(smallest),
	       .p_memsz = sizeof(smallest),
	       .p_align = 0x1000 },
	/* xor %edi, %edi; mov $SYS_exit, %eax; syscall */
	.code = { 0x31, 0xff, 0xb8, SYS_exit, 0, 0, 0, 0x0f, 0x05 },
};

static int make_program(void **state)
{
	int fd;

	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/smallest", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	if (fd < 0 ||
	    write(fd, &smallest, sizeof(smallest)) != sizeof(smallest))
		return -1;
	return close(fd);
}

static int remove_program(void **state)
{
	return unlink(path) || rmdir(dir) ? -1 : 0;
}

static void one_program(void)
{
	char *argv[] = { path, NULL }, *env[] = { NULL };
	pid_t pid;

	CHECK(posix_spawn(&pid, path, NULL, NULL, argv, env) == 0);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

/*
 * Pids that no process has or gets: after the first wrap the kernel skips those
 * below 300 (RESERVED_PIDS). If these are not sufficient, the highest.
 */
static pid_t free_pids[FREE_PIDS];

static void find_free_pids(void)
{
	FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
	pid_t pid = 299;
	int n = 0, max;

	CHECK(f && fscanf(f, "%d", &max) == 1);
	fclose(f);
	for (; n < FREE_PIDS; pid = pid == 2 ? max - 1 : pid - 1)
		if (kill(pid, 0) && errno == ESRCH)
			free_pids[n++] = pid;
}

/*
 * clone3(2) with the pid that it is to have (5.5), as vfork(2) does it: the child
 * has its parent's stack and must not touch it, so it ends where it begins.
 */
static long vfork_as(pid_t *pid)
{
	struct clone_args args = {
		.flags = CLONE_VM | CLONE_VFORK,
		.exit_signal = SIGCHLD,
		.set_tid = (uintptr_t)pid,
		.set_tid_size = 1,
	};
	long ret;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "mov %[exit], %%eax\n\t"
			 "xor %%edi, %%edi\n\t"
			 "syscall\n"
			 "1:"
			 : "=a"(ret)
			 : "a"(SYS_clone3), "D"(&args),
			   "S"(sizeof(args)), [exit] "i"(SYS_exit)
			 : "rcx", "r11", "memory");
	return ret;
}

/* The next of them that is not in use. */
static void one_of_few(void)
{
	static unsigned int next;
	pid_t *pid;
	long ret;

	do {
		pid = &free_pids[(getpid() + next++) % FREE_PIDS];
		ret = vfork_as(pid);
	} while (ret == -EEXIST);
	CHECK_INT(ret, *pid);
	CHECK(waitpid(*pid, NULL, 0) == *pid);
}

static pid_t worker(const struct storm *s)
{
	pid_t pid = fork();
	int i;

	CHECK(pid >= 0);
	if (pid)
		return pid;
	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	for (i = 0; i < s->lives / s->workers; i++)
		s->one();
	_exit(0);
}

static bool of_worker(const struct ledger *l, const struct quark_process *p)
{
	int i;

	for (i = 0; i < l->s->workers; i++)
		if (p->proc_ppid == (uint32_t)l->workers[i])
			return true;
	return false;
}

/* Its first piece, the fork's: of another process than the pid's last one. */
static void begin_life(struct ledger *l, struct last *last,
		       const struct quark_event *ev)
{
	const struct quark_process *p = ev->process;

	CHECK(ev->events & QUARK_EV_FORK);
	CHECK(!last->start || last->seen == l->s->life);
	CHECK(p->key.start_boottime > last->exit);
	CHECK(p->key.start_boottime <= ev->boottime);
	CHECK(strcmp(p->proc_entity_id, last->id));
	last->start = p->key.start_boottime;
	last->seen = 0;
	last->exit = 0;
	strcpy(last->id, p->proc_entity_id);
}

/* Another piece of the process that has the pid. */
static void go_on(struct ledger *l, struct last *last,
		  const struct quark_event *ev)
{
	CHECK_INT(last->seen & ev->events, 0);
	CHECK(last->seen < (ev->events & LIFE_BITS));
	CHECK_STR(ev->process->proc_entity_id, last->id);
	if (l->s->whole)
		CHECK(ev->boottime >= last->piece + HOLD_MS * 1000000ULL);
}

static struct last *last_of(struct ledger *l, uint32_t pid)
{
	size_t n = MAX(pid + 1UL, 2 * l->n_pids);

	if (pid >= l->n_pids) {
		l->pids = realloc(l->pids, n * sizeof(*l->pids));
		CHECK(l->pids != NULL);
		memset(l->pids + l->n_pids, 0,
		       (n - l->n_pids) * sizeof(*l->pids));
		l->n_pids = n;
	}
	return &l->pids[pid];
}

static void take_piece(struct ledger *l, const struct quark_event *ev)
{
	const struct quark_process *p = ev->process;
	struct last *last;
	int k;

	l->disorder += ev->boottime < l->time;
	l->time = MAX(l->time, ev->boottime);
	if (!of_worker(l, p))
		return;
	l->hang = seconds() + HANG;
	last = last_of(l, p->pid);
	CHECK_INT(ev->events & ~l->s->life, 0);
	if (p->key.start_boottime != last->start)
		begin_life(l, last, ev);
	else
		go_on(l, last, ev);
	last->seen |= ev->events;
	last->piece = ev->boottime;
	for (k = 0; k < KINDS; k++)
		l->seen[k] += !!(ev->events & bits[k]);
	if (ev->events & (QUARK_EV_EXEC | QUARK_EV_EXIT) && l->s->comm)
		CHECK_STR(p->comm, l->s->comm);
	if (ev->events & QUARK_EV_EXIT) {
		CHECK(p->exit_boottime >= ev->boottime);
		CHECK_INT(p->exit_code, 0);
		last->exit = p->exit_boottime;
	}
	l->pieces++;
	l->whole += ev->events == l->s->life;
}

/* Reads until all processes have been seen, or one event of that pid. */
static void read_pieces(struct ledger *l, struct quark_queue *qq, pid_t until)
{
	const struct quark_event *ev;

	l->hang = seconds() + HANG;
	while (until || l->seen[KINDS - 1] < l->s->lives) {
		ev = quark_queue_get_event(qq);
		if (ev) {
			take_piece(l, ev);
			if (until && ev->process->pid == (uint32_t)until)
				return;
			continue;
		}
		CHECK(quark_queue_block(qq) == 0);
		if (seconds() < l->hang)
			continue;
		fprintf(stderr, "%d forks, %d execs, %d exits of %d lives\n",
			l->seen[0], l->seen[1], l->seen[2], l->s->lives);
		_exit(1);
	}
}

/* Stops this process, the reader, for five seconds. */
static void stand_still(void)
{
	pid_t self = getpid(), pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		sleep(5);
		_exit(kill(self, SIGCONT));
	}
	CHECK(raise(SIGSTOP) == 0);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static void check_totals(const struct ledger *l, struct quark_queue *qq)
{
	struct quark_queue_stats st;
	int k;

	for (k = 0; k < KINDS; k++)
		CHECK_INT(l->seen[k], l->s->life & bits[k] ? l->s->lives : 0);
	/* Ten minutes are too short for more that outlast the hold. */
	if (l->s->whole)
		CHECK(l->whole >= l->s->lives / 10 * 9);
	quark_queue_get_stats(qq, &st);
	CHECK_INT(st.lost, 0);
	/* A probe's record may be on its way for as long as a CPU is stolen. */
	if (backend() == QQ_EBPF)
		CHECK_INT(st.late, 0);
	CHECK(l->disorder <= st.late);
	CHECK(st.aggregations + l->pieces >=
	      (uint64_t)l->s->lives * __builtin_popcountll(l->s->life));
}

/* QUARK_TEST_STORM=PERCENT: fewer processes, for an emulated machine. */
static void scale(struct storm *s)
{
	const char *percent = getenv("QUARK_TEST_STORM");
	int all = s->lives;

	if (!percent)
		return;
	s->lives = all / 100 * atoi(percent);
	s->lives -= s->lives % s->workers; /* each has as many */
	CHECK(s->lives > 0);
	printf("# %d lives, not %d: QUARK_TEST_STORM is %s\n", s->lives, all,
	       percent);
}

static void run_storm(struct storm *s)
{
	struct quark_queue_attr attr;
	struct ledger l = { .s = s };
	struct quark_queue qq;
	int i;

	scale(s);
	quark_queue_default_attr(&attr);
	attr.flags = backend();
	attr.max_env = 0;
	attr.hold_time = HOLD_MS;
	attr.ring_bytes = RING_BYTES;
	if (s->max_length)
		attr.max_length = s->max_length;
	if (quark_queue_open(&qq, &attr) < 0) {
		fprintf(stderr, "%s\n", quark_queue_open_error());
		_exit(1);
	}
	/* On a busy host it is to end all the same. */
	setpriority(PRIO_PROCESS, 0, -10);
	for (i = 0; i < s->workers; i++)
		l.workers[i] = worker(s);
	if (s->stall)
		stand_still();
	read_pieces(&l, &qq, 0);
	/* Whatever else there is of them came before this one. */
	read_pieces(&l, &qq, short_life());
	check_totals(&l, &qq);
	/* Until now their pids are not reused. */
	for (i = 0; i < s->workers; i++)
		CHECK(waitpid(l.workers[i], NULL, 0) == l.workers[i]);
	quark_queue_close(&qq);
	free(l.pids);
}

static void body_storm(void)
{
	/* Ten times as long as all events of it and as many of others. */
	struct storm s = { .workers = 2,
			   .lives = 10000,
			   .life = LIFE_BITS,
			   .comm = "smallest",
			   .one = one_program,
			   .max_length = 600000,
			   .whole = true };

	run_storm(&s);
}

/* 10,000 processes, each of which is one event if it ends within the hold time. */
static void test_storm(void **state)
{
	in_child(body_storm);
}

static void body_stall(void)
{
	struct storm s = { .workers = 2,
			   .lives = 12000, /* of a queue of 10,000 */
			   .life = LIFE_BITS,
			   .comm = "smallest",
			   .one = one_program,
			   .stall = true };

	run_storm(&s);
}

/*
 * The reader stops for five seconds and finds more than the queue may hold: no event
 * is lost, and the order is kept.
 */
static void test_stall(void **state)
{
	in_child(body_stall);
}

static void body_reuse(void)
{
	struct storm s = { .workers = 8,
			   .lives = 20000,
			   .life = QUARK_EV_FORK | QUARK_EV_EXIT,
			   .one = one_of_few };

	find_free_pids();
	run_storm(&s);
}

/* The start times of a pid rise, and each of 200 processes is seen once. */
static void test_reuse(void **state)
{
	in_child(body_reuse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_storm),
		cmocka_unit_test(test_stall),
		cmocka_unit_test(test_reuse),
	};

	return cmocka_run_group_tests(tests, make_program, remove_program);
}
