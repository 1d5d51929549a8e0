// SPDX-License-Identifier: Apache-2.0
/*
 * prog_pattern ROUNDS GATE: waits until the FIFO GATE is written to; then, so many times,
 * sleeps for 20 ms, waits 5 ms for a futex, reads from a pipe that is empty and uses 5 ms
 * of CPU time. Each wait is one, whatever else the host does: the child that writes to the
 * pipe does so once this process sleeps.
 *
 * Prints, as JSON, between which moments (CLOCK_BOOTTIME, ns) that was, and how often the
 * thread has left its CPU meanwhile, by the kernel's count.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int asks[2], answers[2];

static uint64_t now_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void nap(long ms)
{
	const struct timespec ts = { 0, ms * 1000000 };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* Of this thread: those that it wanted, and others. */
static uint64_t switches(void)
{
	char text[4096];
	const char *a, *b;
	int fd = open("/proc/thread-self/status", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = '\0';
	a = strstr(text, "\nvoluntary_ctxt_switches:");
	b = strstr(text, "\nnonvoluntary_ctxt_switches:");
	if (!a || !b)
		exit(1);
	return strtoull(strchr(a, ':') + 1, NULL, 10) +
	       strtoull(strchr(b, ':') + 1, NULL, 10);
}

/* A moment at which the count was this. */
static uint64_t moment(uint64_t *count)
{
	uint64_t time;

	do {
		*count = switches();
		time = now_of(CLOCK_BOOTTIME);
	} while (switches() != *count);
	return time;
}

static char state_of(pid_t pid)
{
	char path[64], text[512] = "";
	const char *end;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	end = strrchr(text, ')');
	return end && end[1] ? end[2] : 'X';
}

static void writer(pid_t of)
{
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(asks[0], &c, 1) == 1) {
		do
			nap(1);
		while (state_of(of) != 'S');
		if (write(answers[1], &c, 1) != 1)
			break;
	}
	_exit(0);
}

static void burn(uint64_t ms)
{
	uint64_t until = now_of(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000;

	while (now_of(CLOCK_THREAD_CPUTIME_ID) < until)
		;
}

static void one_round(void)
{
	const struct timespec ts = { 0, 5000000 };
	static uint32_t word;
	char c = 0;

	nap(20);
	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0);
	if (write(asks[1], &c, 1) != 1 || read(answers[0], &c, 1) != 1)
		exit(1);
	burn(5);
}

int main(int argc, char **argv)
{
	uint64_t from, to, before, after;
	pid_t self = getpid();
	int gate;
	char c;

	if (argc != 3 || pipe(asks) || pipe(answers))
		return 2;
	if (!fork())
		writer(self);
	gate = open(argv[2], O_RDONLY);
	if (read(gate, &c, 1) != 1)
		return 1;
	from = moment(&before);
	for (int i = 0; i < atoi(argv[1]); i++)
		one_round();
	to = moment(&after);
	printf("{\"pid\": %d, \"from\": %" PRIu64 ", \"to\": %" PRIu64
	       ", \"switches\": %" PRIu64 "}\n",
	       self, from, to, after - before);
	fflush(stdout);
	/* What was on the CPU at the last moment is over. */
	nap(10);
	nap(10);
	return 0;
}
