// SPDX-License-Identifier: Apache-2.0
/*
 * load_first SOCKET PROFD ARGS...: executes profd, requests /metrics every 20 ms until
 * a stack reached its end and a trace, with names for all its frames, was added to the
 * window; ends it, and prints the milliseconds between fork and that answer. More
 * frequent requests slow down profd: on a busy host it would work for them only.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GIVE_UP_MS 20000

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

static int connect_to(const char *path)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&sun, sizeof(sun))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* The whole answer in 'buf', or "". */
static void metrics(const char *path, char *buf, size_t size)
{
	static const char ask[] = "GET /metrics HTTP/1.0\r\n\r\n";
	int fd = connect_to(path);
	size_t len = 0;
	ssize_t n;

	buf[0] = '\0';
	if (fd < 0)
		return;
	if (write(fd, ask, sizeof(ask) - 1) == (ssize_t)sizeof(ask) - 1) {
		while (len < size - 1 &&
		       (n = read(fd, buf + len, size - 1 - len)) > 0)
			len += n;
		buf[len] = '\0';
	}
	close(fd);
}

static double value(const char *text, const char *name)
{
	char line[128];
	const char *p;

	snprintf(line, sizeof(line), "\n%s ", name);
	p = strstr(text, line);
	return p ? atof(p + strlen(line)) : 0;
}

int main(int argc, char **argv)
{
	static char text[1 << 17];
	const struct timespec pause = { 0, 20000000 };
	double begin = now_ms(), end = 0;
	pid_t pid;

	if (argc < 3)
		return 2;
	pid = fork();
	if (pid < 0)
		return 1;
	if (!pid) {
		execv(argv[2], argv + 2);
		_exit(127);
	}
	while (!end && now_ms() - begin < GIVE_UP_MS) {
		metrics(argv[1], text, sizeof(text));
		if (value(text, "profd_trace_stack_root_total") > 0 &&
		    value(text, "profd_trace_names_late_total") == 0 &&
		    value(text, "profd_reporter_traces_total") > 0)
			end = now_ms();
		else
			nanosleep(&pause, NULL);
	}
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	if (!end)
		return 1;
	printf("%.1f\n", end - begin);
	return 0;
}
