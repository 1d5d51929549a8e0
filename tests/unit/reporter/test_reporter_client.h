/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reporter that listens on a socket and a port, and its clients. The loop runs
 * while they wait. Included once per test program.
 */
#ifndef TESTS_UNIT_TEST_REPORTER_CLIENT_H
#define TESTS_UNIT_TEST_REPORTER_CLIENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "reporter/http/http_conn.h"
#include "reporter/http/http_parse.h"
#include "tests/unit/pprof_check.h"
#include "tests/unit/reporter/test_reporter_pm.h"

#define SEC CLOCK_NSEC_PER_SEC
#define CLIENTS_MAX 256 /* waiting at once */

static struct {
	uv_loop_t loop;
	uv_timer_t tick;
	struct reporter *r;
	char dir[64];
	char socket[96]; /* path */
	char unix_address[104];
	char tcp_address[32];
	int port;
	bool ticking;
	const char *degraded, *failing; /* reasons */
	unsigned int refreshed; /* calls */
	bool finished;
} t;

static inline void on_collect(void *arg, struct reporter_metrics *m)
{
	reporter_metric(m, "profd_test_total", "two \"CPUs\" \\ a line", true,
			"cpu=\"0\"", 1);
	reporter_metric(m, "profd_test_total", "two", true, "cpu=\"1\"", 2.5);
	reporter_metric(m, "profd_test_level", "a level", false, NULL, 1e6);
	reporter_status(m, "mood", "%s", "fine\nhealth: failing");
	reporter_member_int(m, "sampling", "hz", 99);
	reporter_member_row(m, "limited");
	reporter_member_int(m, "limited", "uid", 65534);
	reporter_member_row(m, "limited");
	reporter_member_text(m, "limited", "what", "a \xff \"thing\"\n");
}

static inline void on_refresh(void *arg)
{
	t.refreshed++;
}

static inline void on_health(void *arg, struct reporter_health *h)
{
	if (t.degraded)
		reporter_degraded(h, "%s", t.degraded);
	if (t.failing)
		reporter_failing(h, "%s", t.failing);
}

/* A sample every 10 ms, and a watermark that follows the clock. */
static inline void on_tick(uv_timer_t *timer)
{
	struct pm_image img = image(1, 100, EXE_A);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "work");
	struct reporter_trace tr = { .time = clock_boottime_ns(),
				     .image = &img,
				     .tid = 100,
				     .thread = "alpha",
				     .frames = &f,
				     .nframes = 1 };

	reporter_add(t.r, &tr);
	reporter_advance(t.r, tr.time);
}

static inline int free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	close(fd);
	return ntohs(a.sin_port);
}

static inline int setup(void **state)
{
	struct reporter_opts o = { .loop = &t.loop,
				   .hostname = "host",
				   .version = "9.9",
				   .freq_hz = 100,
				   .event_types = cpu_clock,
				   .nevent_types = ARRAY_SIZE(cpu_clock),
				   .window_s = 60,
				   .collect = on_collect,
				   .refresh = on_refresh,
				   .health = on_health };
	const char *where;

	memset(&t, 0, sizeof(t));
	snprintf(t.dir, sizeof(t.dir), "/tmp/test_reporter.XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	snprintf(t.socket, sizeof(t.socket), "%s/run/profd/sock", t.dir);
	snprintf(t.unix_address, sizeof(t.unix_address), "unix:%s", t.socket);
	t.port = free_port();
	snprintf(t.tcp_address, sizeof(t.tcp_address), "127.0.0.1:%d", t.port);
	uv_loop_init(&t.loop);
	uv_timer_init(&t.loop, &t.tick);
	uv_timer_start(&t.tick, on_tick, 0, 10);
	assert_int_equal(reporter_new(&t.r, &o, &where), 0);
	reporter_start(t.r, clock_boottime_ns());
	assert_int_equal(reporter_listen(t.r, t.unix_address), 0);
	assert_int_equal(reporter_listen(t.r, t.tcp_address), 0);
	return 0;
}

static inline int teardown(void **state)
{
	char cmd[128];

	reporter_free(t.r);
	uv_close((uv_handle_t *)&t.tick, NULL);
	uv_run(&t.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&t.loop), 0);
	assert_int_equal(exe_refs(), 0);
	assert_int_equal(access(t.socket, F_OK), -1);
	pprof_check_end();
	snprintf(cmd, sizeof(cmd), "rm -rf %s", t.dir);
	return system(cmd);
}

static inline struct reporter_stats stats(void)
{
	struct reporter_stats st;

	reporter_get_stats(t.r, &st);
	return st;
}

/* --- clients ------------------------------------------------------------- */

static inline int dial_unix(void)
{
	struct http_address a;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_int_equal(http_parse_address(t.unix_address, &a), 0);
	assert_int_equal(connect(fd, &a.sa, a.len), 0);
	return fd;
}

static inline int dial_tcp(void)
{
	struct http_address a;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(http_parse_address(t.tcp_address, &a), 0);
	assert_int_equal(connect(fd, &a.sa, a.len), 0);
	return fd;
}

static inline void ask(int fd, const char *request)
{
	assert_int_equal(write(fd, request, strlen(request)),
			 (ssize_t)strlen(request));
}

/* Reads until the server closes; the loop runs meanwhile. */
static inline struct strbuf answer(int fd)
{
	struct strbuf sb = STRBUF_INIT;
	char buf[65536];
	ssize_t n;

	for (;;) {
		uv_run(&t.loop, UV_RUN_NOWAIT);
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n > 0)
			strbuf_add(&sb, buf, n);
		else if (!n || errno != EAGAIN)
			break;
		else
			poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 5);
	}
	close(fd);
	strbuf_add(&sb, "", 0);
	return sb;
}

static inline struct strbuf get_with(int fd, const char *method,
				     const char *path, const char *headers)
{
	char req[1024];

	snprintf(req, sizeof(req),
		 "%s %s HTTP/1.1\r\n%sConnection: close\r\n\r\n", method, path,
		 headers);
	ask(fd, req);
	return answer(fd);
}

static inline struct strbuf get(const char *path)
{
	return get_with(dial_unix(), "GET", path, "Host: localhost\r\n");
}

/* HTTP/1.0, which has no chunks. */
static inline struct strbuf get_whole(const char *path)
{
	char req[256];
	int fd = dial_unix();

	snprintf(req, sizeof(req), "GET %s HTTP/1.0\r\n\r\n", path);
	ask(fd, req);
	return answer(fd);
}

static inline void assert_has(const struct strbuf *sb, const char *text)
{
	if (!strstr(strbuf_str(sb), text))
		fail_msg("no \"%s\" in: %s", text, strbuf_str(sb));
}

static inline const char *body(const struct strbuf *sb, size_t *len)
{
	const char *p = strstr(sb->data, "\r\n\r\n");

	assert_non_null(p);
	*len = sb->len - (p + 4 - sb->data);
	return p + 4;
}

/* Checks the profile in an answer. */
static inline const Perftools__Profiles__Profile *profile(struct strbuf *sb)
{
	const char *wrong, *p;
	size_t len;

	assert_has(sb, "HTTP/1.1 200 OK\r\n");
	p = body(sb, &len);
	wrong = pprof_check(p, len);
	strbuf_fini(sb);
	if (wrong)
		fail_msg("%s", wrong);
	return pprof_checked();
}

/* The output of a shell command that must succeed; the loop runs. */
static inline struct strbuf run(const char *fmt, ...)
{
	char cmd[1024];
	struct strbuf sb = STRBUF_INIT;
	int p[2], status;
	va_list ap;
	pid_t pid;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
	pid = fork();
	if (!pid) {
		dup2(p[1], 1);
		dup2(p[1], 2);
		close(p[0]);
		close(p[1]);
		execl("/bin/sh", "sh", "-c", cmd, NULL);
		_exit(127);
	}
	close(p[1]);
	sb = answer(p[0]);
	waitpid(pid, &status, 0);
	if (status)
		fail_msg("%s: status %d: %s", cmd, status, strbuf_str(&sb));
	return sb;
}

#endif /* TESTS_UNIT_TEST_REPORTER_CLIENT_H */
