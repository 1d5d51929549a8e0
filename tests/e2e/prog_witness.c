// SPDX-License-Identifier: Apache-2.0
/*
 * prog_witness FILE COMMAND ARGS...: runs COMMAND and observes, by ptrace(2), it and
 * all its descendants. FILE gets JSON, a line for each process at its end:
 *
 *	{"pid":1,"ppid":1,"start":1,"execs":[["sh","-c","true"]],
 *	 "status":"exit 0","cpu_ns":1,"forks":0,"wait4_us":1}
 *
 * "start" is that of /proc/PID/stat, in clock ticks. "cpu_ns" is its CPU clock, read
 * when it is dead and not reaped; "wait4_us" includes its reaped children. Exits with
 * the status of COMMAND.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct life {
	bool thread;
	int ppid;
	int forks;
	uint64_t start;
	char *execs; /* JSON, without the outer brackets; NULL: none */
};

static struct life **lives; /* by pid */
static FILE *out;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* The parent, as the process itself sees it, and the start. */
static void read_stat(int pid, struct life *l)
{
	char path[32], text[1024] = "", *p;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f || !fread(text, 1, sizeof(text) - 1, f))
		die(path);
	fclose(f);
	p = strrchr(text, ')');
	if (!p || sscanf(p,
			 ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u "
			 "%*d %*d %*d %*d %*d %*d %" SCNu64,
			 &l->ppid, &l->start) != 2)
		die(text);
}

static struct life *life_of(int pid)
{
	struct life *l = lives[pid];

	if (l)
		return l;
	l = lives[pid] = calloc(1, sizeof(*l));
	if (!l)
		die("calloc");
	l->thread = syscall(SYS_tgkill, pid, pid, 0) != 0;
	if (!l->thread)
		read_stat(pid, l);
	return l;
}

static void put_json(FILE *f, const char *s, size_t len)
{
	size_t i;

	putc('"', f);
	for (i = 0; i < len; i++) {
		if ((unsigned char)s[i] < 0x20 || s[i] == '"' || s[i] == '\\')
			fprintf(f, "\\u%04x", (unsigned char)s[i]);
		else
			putc(s[i], f);
	}
	putc('"', f);
}

static void note_exec(int pid)
{
	struct life *l = life_of(pid);
	char path[32], *arg = NULL, *text = NULL, *sep = "";
	size_t cap = 0, size;
	ssize_t len;
	FILE *f, *to;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	f = fopen(path, "re");
	to = open_memstream(&text, &size);
	if (!f || !to)
		die(path);
	fprintf(to, "%s%s[", l->execs ? l->execs : "", l->execs ? "," : "");
	while ((len = getdelim(&arg, &cap, '\0', f)) > 0) {
		fputs(sep, to);
		put_json(to, arg, (size_t)len - 1);
		sep = ",";
	}
	putc(']', to);
	fclose(f);
	fclose(to);
	free(arg);
	free(l->execs);
	l->execs = text;
}

/* It is dead, and not reaped yet. */
static uint64_t cpu_ns(int pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void note_end(int pid, int status, uint64_t ns, const struct rusage *ru)
{
	struct life *l = life_of(pid);
	uint64_t us;

	us = (uint64_t)(ru->ru_utime.tv_sec + ru->ru_stime.tv_sec) * 1000000 +
	     (uint64_t)(ru->ru_utime.tv_usec + ru->ru_stime.tv_usec);
	if (!l->thread)
		fprintf(out,
			"{\"pid\":%d,\"ppid\":%d,\"start\":%" PRIu64
			",\"execs\":[%s],\"status\":\"%s %d\",\"cpu_ns\":%" PRIu64
			",\"forks\":%d,\"wait4_us\":%" PRIu64 "}\n",
			pid, l->ppid, l->start, l->execs ? l->execs : "",
			WIFEXITED(status) ? "exit" : "signal",
			WIFEXITED(status) ? WEXITSTATUS(status)
					  : WTERMSIG(status),
			ns, l->forks, us);
	free(l->execs);
	free(l);
	lives[pid] = NULL;
}

static void note_stop(int pid, int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);
	unsigned long child;

	switch (event) {
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		if (!ptrace(PTRACE_GETEVENTMSG, pid, 0, &child) &&
		    !life_of((int)child)->thread)
			life_of(pid)->forks++;
		break;
	case PTRACE_EVENT_EXEC:
		note_exec(pid);
		break;
	case PTRACE_EVENT_STOP:
		life_of(pid);
		if (sig != SIGTRAP) {
			ptrace(PTRACE_LISTEN, pid, 0, 0);
			return;
		}
		break;
	}
	/* ESRCH: killed meanwhile; its end is reported. */
	ptrace(PTRACE_CONT, pid, 0, event ? 0 : sig);
}

static int watch(int first)
{
	siginfo_t si;
	struct rusage ru;
	int status, result = 1;
	uint64_t ns;

	for (;;) {
		si.si_pid = 0;
		if (waitid(P_ALL, 0, &si,
			   WEXITED | WSTOPPED | WNOWAIT | __WALL)) {
			if (errno == EINTR)
				continue;
			return result;
		}
		ns = si.si_code == CLD_TRAPPED || si.si_code == CLD_STOPPED
			     ? 0
			     : cpu_ns(si.si_pid);
		if (wait4(si.si_pid, &status, __WALL, &ru) != si.si_pid)
			die("wait4");
		if (WIFSTOPPED(status)) {
			note_stop(si.si_pid, status);
			continue;
		}
		note_end(si.si_pid, status, ns, &ru);
		if (si.si_pid == first)
			result = WIFEXITED(status) ? WEXITSTATUS(status)
						   : 128 + WTERMSIG(status);
	}
}

static size_t pid_max(void)
{
	FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
	size_t n = 0;

	if (!f || fscanf(f, "%zu", &n) != 1)
		die("pid_max");
	fclose(f);
	return n;
}

int main(int argc, char **argv)
{
	int go[2], status;
	pid_t pid;
	char c;

	if (argc < 3)
		return 2;
	out = fopen(argv[1], "we");
	lives = calloc(pid_max() + 1, sizeof(struct life *));
	if (!out || !lives || pipe(go))
		die(argv[1]);
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &c, 1) != 1)
			_exit(1);
		close(go[0]);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	close(go[0]);
	/* So many wait for it, and it for so little. */
	setpriority(PRIO_PROCESS, 0, -20);
	if (ptrace(PTRACE_SEIZE, pid, 0,
		   PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			   PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
			   PTRACE_O_EXITKILL))
		die("PTRACE_SEIZE");
	life_of(pid);
	if (write(go[1], "", 1) != 1)
		die("pipe");
	close(go[1]);
	status = watch(pid);
	return fclose(out) ? 1 : status;
}
