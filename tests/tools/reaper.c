// SPDX-License-Identifier: Apache-2.0
/*
 * reaper LEFT COMMAND...: runs a test program and writes to the file LEFT, one line a
 * process, what it leaves behind. As a child subreaper (prctl(2)) it inherits each
 * descendant that loses its parent, also one in another process group or session.
 * Orphans are reaped as soon as they end. After the end of COMMAND, those that remain
 * have two seconds; then they are listed and killed.
 *
 * The CPU time of all of them is written to LEFT.cpu, in seconds.
 *
 * SIGTERM is passed on to COMMAND. The exit status is COMMAND's, or 128 and the number
 * of the signal that ended it.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_MS 2000
/* A process in uninterruptible sleep does not end. */
#define KILL_MS 10000
#define TASKS 65536

struct task {
	pid_t pid, ppid;
	int ours;
};

static struct task tasks[TASKS];
static volatile sig_atomic_t command;

static void pass_on(int sig)
{
	if (command > 0)
		kill(command, sig);
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The fourth field of /proc/PID/stat; the second, in parentheses, may hold any byte. */
static pid_t parent_of(pid_t pid)
{
	char path[64], line[512], *end;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(line, 1, sizeof(line) - 1, f);
	fclose(f);
	line[n] = '\0';
	end = strrchr(line, ')');
	return end && strlen(end) > 4 ? atoi(end + 4) : 0;
}

static size_t read_tasks(void)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	size_t n = 0;

	while (d && (e = readdir(d)) && n < TASKS) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		tasks[n].pid = atoi(e->d_name);
		tasks[n].ppid = parent_of(tasks[n].pid);
		tasks[n++].ours = 0;
	}
	if (d)
		closedir(d);
	return n;
}

static int is_ours(size_t n, pid_t ppid)
{
	size_t i;

	if (ppid == getpid())
		return 1;
	for (i = 0; i < n; i++)
		if (tasks[i].pid == ppid)
			return tasks[i].ours;
	return 0;
}

/* Marks the descendants of this process. */
static size_t find_ours(void)
{
	size_t n = read_tasks(), i;
	int found = 1;

	while (found) {
		found = 0;
		for (i = 0; i < n; i++)
			if (!tasks[i].ours && is_ours(n, tasks[i].ppid))
				found = tasks[i].ours = 1;
	}
	return n;
}

static void list_task(FILE *out, pid_t pid)
{
	char path[64], args[256];
	size_t n = 0, i;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	f = fopen(path, "re");
	if (f) {
		n = fread(args, 1, sizeof(args) - 1, f);
		fclose(f);
	}
	for (i = 0; i < n; i++)
		if (!isprint((unsigned char)args[i]))
			args[i] = ' ';
	args[n] = '\0';
	fprintf(out, "%d %s\n", pid, args);
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* Reaps for at most ms; returns whether children are left. */
static int reap_for(long ms)
{
	long end = now_ms() + ms;
	pid_t pid;

	for (;;) {
		pid = waitpid(-1, NULL, WNOHANG);
		if (pid < 0 && errno == ECHILD)
			return 0;
		if (pid > 0)
			continue;
		if (now_ms() >= end)
			return 1;
		sleep_ms(5);
	}
}

/* Parents are killed first, so that they do not see their children end. */
static void kill_ours(void)
{
	long end = now_ms() + KILL_MS;
	size_t n, i;

	do {
		n = find_ours();
		for (i = 0; i < n; i++)
			if (tasks[i].ours && tasks[i].ppid == getpid())
				kill(tasks[i].pid, SIGKILL);
		for (i = 0; i < n; i++)
			if (tasks[i].ours)
				kill(tasks[i].pid, SIGKILL);
	} while (reap_for(20) && now_ms() < end);
}

/*
 * What ends by itself must get to do so: a process of nice 10 has no CPU for seconds
 * beside the loads of other tests, which have nice -20.
 */
static void hurry_ours(void)
{
	size_t n = find_ours(), i;

	for (i = 0; i < n; i++)
		if (tasks[i].ours)
			setpriority(PRIO_PROCESS, (id_t)tasks[i].pid, -20);
}

static void end_rest(const char *path)
{
	FILE *out = fopen(path, "we");
	size_t n, i;

	if (reap_for(0))
		hurry_ours();
	if (reap_for(GRACE_MS)) {
		n = find_ours();
		for (i = 0; out && i < n; i++)
			if (tasks[i].ours)
				list_task(out, tasks[i].pid);
		kill_ours();
	}
	if (out)
		fclose(out);
}

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static void write_cpu(const char *left)
{
	struct rusage used;
	char path[4096];
	FILE *out;

	snprintf(path, sizeof(path), "%s.cpu", left);
	out = fopen(path, "we");
	if (!out)
		return;
	if (!getrusage(RUSAGE_CHILDREN, &used))
		fprintf(out, "%.1f\n",
			seconds(&used.ru_utime) + seconds(&used.ru_stime));
	fclose(out);
}

static int wait_for_command(void)
{
	int status;
	pid_t pid;

	do {
		pid = waitpid(-1, &status, 0);
	} while (pid != command && (pid > 0 || errno == EINTR));
	if (pid < 0)
		return 125;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				   : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = pass_on };
	int rc;

	if (argc < 3 || prctl(PR_SET_CHILD_SUBREAPER, 1))
		return 125;
	sigaction(SIGTERM, &act, NULL);
	command = fork();
	if (command < 0)
		return 125;
	if (!command) {
		execvp(argv[2], argv + 2);
		fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
		_exit(127);
	}
	rc = wait_for_command();
	end_rest(argv[1]);
	write_cpu(argv[1]);
	return rc;
}
