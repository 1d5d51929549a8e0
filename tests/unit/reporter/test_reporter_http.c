// SPDX-License-Identifier: Apache-2.0
/* The answers over HTTP, to real clients and to raw sockets. */
#include <jansson.h>

#include "tests/unit/place.h"
#include "tests/unit/reporter/test_reporter_client.h"

/* --- small answers ------------------------------------------------------- */

static void healthz_on_every_listener(void **state)
{
	struct strbuf a = get("/healthz");
	struct strbuf b = get_with(dial_tcp(), "GET", "/healthz", "");

	assert_has(&a, "200 OK");
	assert_has(&a, "\r\n\r\nok\n");
	assert_has(&b, "\r\n\r\nok\n");
	strbuf_fini(&a);
	strbuf_fini(&b);
}

static void a_request_calls_refresh(void **state)
{
	struct strbuf a;

	assert_int_equal(t.refreshed, 0);
	a = get("/metrics");
	assert_true(t.refreshed > 0);
	strbuf_fini(&a);
}

static void errors_name_what_is_wrong(void **state)
{
	static const struct {
		const char *method, *path, *status, *text;
	} cases[] = {
		{ "GET", "/nowhere", "404", "/nowhere" },
		{ "GET", "/debug/pprof/profile?seconds=0", "400", "seconds" },
		{ "GET", "/debug/pprof/profile?seconds=1.5", "400", "\"1.5\"" },
		{ "GET", "/debug/pprof/profile?seconds=3601", "400", "3600" },
		{ "GET", "/debug/pprof/profile?seconds=x", "400", "\"x\"" },
		{ "GET", "/debug/pprof/profile?seconds=-1", "400", "\"-1\"" },
		{ "GET", "/debug/pprof/profile?seconds=", "400", "seconds" },
		{ "GET", "/debug/pprof/profile?seconds=4294967297", "400",
		  "seconds" },
		{ "HEAD", "/debug/pprof/profile?seconds=0", "400", "" },
		{ "GET", "/debug/pprof/profile?labels=comm,x", "400",
		  "labels: a list of labels (comm,unit), all or none, "
		  "not \"comm,x\"" },
		{ "GET", "/debug/pprof/profile?labels=", "400", "labels" },
		{ "GET", "/debug/pprof/profile?label_prefix=", "400",
		  "label_prefix" },
		{ "GET", "/debug/pprof/profile?label_prefix=9", "400",
		  "\"9\"" },
		{ "GET", "/debug/pprof/profile?label_prefix=a-b", "400",
		  "letters" },
		{ "GET",
		  "/debug/pprof/profile?label_prefix="
		  "a23456789012345678901234567890123",
		  "400", "32" },
		{ "GET", "/debug/pprof/profile?symbols=some", "400",
		  "\"some\"" },
		{ "GET", "/debug/pprof/profile?second=1", "400",
		  "second: no such parameter" },
		{ "GET", "/debug/pprof/profile?seconds=1&seconds=2", "400",
		  "seconds: given twice" },
		{ "GET", "/metrics?x", "400", "x: no such parameter" },
		{ "GET", "/debug/pprof/?=", "400", "no such parameter" },
		{ "POST", "/metrics", "405", "Allow: GET, HEAD" },
		{ "DELETE", "/debug/pprof/profile", "405", "DELETE" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf a = get_with(dial_unix(), cases[i].method,
					   cases[i].path, "Host: h\r\n");

		assert_has(&a, cases[i].status);
		assert_has(&a, cases[i].text);
		strbuf_fini(&a);
	}
	assert_int_equal(stats().http_errors, ARRAY_SIZE(cases));
}

static void head_answers_at_once_without_a_body(void **state)
{
	static const char *const paths[] = { "/healthz", "/metrics", "/status",
					     "/debug/pprof/profile" };
	uint64_t begin = clock_boottime_ns();
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		struct strbuf a =
			get_with(dial_unix(), "HEAD", paths[i], "Host: h\r\n");

		assert_has(&a, "200 OK");
		body(&a, &len);
		assert_int_equal(len, 0);
		strbuf_fini(&a);
	}
	assert_true(clock_boottime_ns() - begin < 25 * SEC);
	assert_int_equal(stats().http_waiting, 0);
}

static void a_body_is_not_read(void **state)
{
	int fd = dial_unix();
	struct strbuf a;

	ask(fd, "GET /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n"
		"Connection: close\r\n\r\nhello");
	a = answer(fd);
	assert_has(&a, "\r\n\r\nok\n");
	strbuf_fini(&a);
}

/* MHD would cut it there, to another URL or another value. */
static void a_nul_in_a_url_is_refused(void **state)
{
	static const char *const paths[] = {
		"/healthz%00",
		"/healthz%00/x",
		"/healthz?x=%00",
		"/debug/pprof/profile?seconds=1%00",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		struct strbuf a = get(paths[i]);

		assert_has(&a, " 400 ");
		assert_has(&a, "NUL");
		strbuf_fini(&a);
	}
}

/* --- connections without a request ----------------------------------------- */

static void trickle(int fd[2], const char *what, uint64_t *next, size_t *at)
{
	int i;

	uv_run(&t.loop, UV_RUN_NOWAIT);
	if (clock_boottime_ns() < *next || !what[*at])
		return;
	for (i = 0; i < 2; i++)
		if (send(fd[i], what + *at, 1, MSG_NOSIGNAL) < 0)
			assert_true(errno == EPIPE || errno == ECONNRESET);
	++*at;
	*next += SEC / 2;
}

static bool is_closed(int fd)
{
	char c;
	ssize_t n = recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK);

	return !n || (n < 0 && errno == ECONNRESET);
}

static void an_incomplete_request_is_closed(void **state)
{
	int fd[2] = { dial_unix(), dial_tcp() };
	uint64_t begin = clock_boottime_ns(), next = begin;
	size_t at = 0;

	while (!is_closed(fd[0]) || !is_closed(fd[1])) {
		trickle(fd, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ",
			&next, &at);
		usleep(5000);
		assert_true(clock_boottime_ns() - begin < 20 * SEC);
	}
	assert_true(clock_boottime_ns() - begin >= 5 * SEC);
	assert_int_equal(stats().http_slow, 2);
	close(fd[0]);
	close(fd[1]);
}

/* A child of that user connects and waits; our end of the connection. */
static int connection_of(uid_t uid, int family, pid_t *pid)
{
	struct sockaddr_storage a = { .ss_family = family };
	socklen_t len = family == AF_INET6 ? sizeof(struct sockaddr_in6)
					   : sizeof(struct sockaddr_in);
	int listener = socket(family, SOCK_STREAM, 0), fd;

	if (family == AF_INET6)
		((struct sockaddr_in6 *)&a)->sin6_addr = in6addr_loopback;
	else
		((struct sockaddr_in *)&a)->sin_addr.s_addr =
			htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&a, len)) {
		close(listener);
		return -1; /* no such address family */
	}
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	*pid = fork();
	if (!*pid) {
		fd = setuid(uid) ? -1 : socket(family, SOCK_STREAM, 0);
		if (fd < 0 || connect(fd, (struct sockaddr *)&a, len))
			_exit(1);
		pause();
	}
	fd = accept(listener, NULL, NULL);
	close(listener);
	return fd;
}

static void the_user_of_the_other_end_is_known(void **state)
{
	static const int families[] = { AF_INET, AF_INET6 };
	uid_t uid = place_has_users() ? 65534 : geteuid(), got = 0;
	int fd, pair[2];
	size_t i;
	pid_t pid;

	for (i = 0; i < ARRAY_SIZE(families); i++) {
		fd = connection_of(uid, families[i], &pid);
		if (fd < 0)
			continue;
		assert_int_equal(http_peer_uid(fd, &got), 0);
		assert_int_equal(got, uid);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		/* A socket without owner does not count as root's. */
		assert_true(http_peer_uid(fd, &got) < 0 || got == uid);
		close(fd);
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(http_peer_uid(pair[0], &got), 0);
	assert_int_equal(got, geteuid());
	close(pair[0]);
	close(pair[1]);
}

static void metrics_are_prometheus_text(void **state)
{
	struct strbuf a = get("/metrics");

	assert_has(&a, "Content-Type: text/plain; version=0.0.4");
	assert_has(&a, "# HELP profd_test_total two \"CPUs\" \\\\ a line\n"
		       "# TYPE profd_test_total counter\n"
		       "profd_test_total{cpu=\"0\"} 1\n"
		       "profd_test_total{cpu=\"1\"} 2.5\n");
	assert_has(&a, "# TYPE profd_test_level gauge\n"
		       "profd_test_level 1000000\n");
	assert_has(&a, "profd_reporter_http_requests_total 1\n");
	strbuf_fini(&a);
	a = run("curl -sf --unix-socket %s http://profd/metrics | "
		"promtool check metrics && echo fine",
		t.socket);
	assert_string_equal(strbuf_str(&a), "fine\n");
	strbuf_fini(&a);
}

static void status_is_lines_of_key_and_value(void **state)
{
	struct strbuf a = get("/status");

	assert_has(
		&a,
		"\r\n\r\nversion: 9.9\nhost: host\nhealth: ok\nwindows: 0 written, 0 failed\nmood: fine\\012health: failing\n");
	assert_null(strstr(strbuf_str(&a), "profd_test_total"));
	strbuf_fini(&a);
}

static void status_as_json_has_types(void **state)
{
	struct strbuf a = get("/status?format=json");
	const char *text;
	json_error_t err;
	json_t *o, *all;
	size_t len;

	assert_has(&a, "200 OK");
	assert_has(&a, "application/json");
	text = body(&a, &len);
	o = json_loadb(text, len, 0, &err);
	if (!o)
		fail_msg("%s in %s", err.text, text);
	assert_int_equal(json_integer_value(json_object_get(
				 json_object_get(o, "sampling"), "hz")),
			 99);
	assert_string_equal(json_string_value(json_object_get(o, "version")),
			    "9.9");
	assert_string_equal(json_string_value(json_object_get(
				    json_object_get(o, "health"), "state")),
			    "ok");
	assert_true(json_is_array(
		json_object_get(json_object_get(o, "health"), "reasons")));
	assert_int_equal(json_array_size(json_object_get(o, "limited")), 2);
	assert_string_equal(
		json_string_value(json_object_get(
			json_array_get(json_object_get(o, "limited"), 1),
			"what")),
		"a \xef\xbf\xbd \"thing\"\n");
	all = o;
	o = json_object_get(o, "metrics");
	assert_int_equal(
		json_integer_value(json_object_get(o, "profd_test_level")),
		1000000);
	assert_true(json_real_value(json_object_get(
			    json_object_get(o, "profd_test_total"),
			    "cpu=\"1\"")) == 2.5);
	json_decref(all);
	strbuf_fini(&a);
	a = get("/status?format=xml");
	assert_has(&a, " 400 ");
	strbuf_fini(&a);
}

static void health_is(const char *status, const char *text)
{
	struct strbuf a = get_with(dial_tcp(), "GET", "/healthz", "");

	assert_has(&a, status);
	assert_has(&a, text);
	strbuf_fini(&a);
}

static void healthz_has_the_reasons(void **state)
{
	health_is(" 200 ", "\r\n\r\nok\n");
	t.degraded = "samples lost: 3";
	health_is(" 200 ", "\r\n\r\ndegraded: samples lost: 3\n");
	t.failing = "no\nsamples";
	health_is(" 503 ", "\r\n\r\nno\\012samples; samples lost: 3\n");
	t.failing = t.degraded = NULL;
	health_is(" 200 ", "\r\n\r\nok\n");
	/* The socket cannot be reached any more. */
	assert_int_equal(unlink(t.socket), 0);
	health_is(" 503 ", t.socket);
}

/* --- profiles ------------------------------------------------------------ */

static void a_profile_is_gzip_unless_zstd_is_asked_for(void **state)
{
	struct strbuf a = get("/debug/pprof/profile?seconds=1");
	const char *p;
	size_t len;

	assert_has(&a, "Content-Type: application/octet-stream\r\n");
	assert_has(&a, "Content-Disposition: attachment; "
		       "filename=\"cpu-host-20");
	assert_has(&a, "Z-1s.pb.gz\"\r\n");
	assert_null(strstr(a.data, "Content-Encoding"));
	p = body(&a, &len);
	assert_memory_equal(p, "\x1f\x8b", 2);
	assert_int_equal(profile(&a)->duration_nanos, SEC);
	assert_true(pprof_samples(pprof_checked()) > 10);
	a = get_with(dial_tcp(), "GET", "/debug/pprof/profile?seconds=1",
		     "Host: localhost\r\nAccept-Encoding: gzip, zstd\r\n");
	assert_has(&a, "Content-Encoding: zstd\r\n");
	assert_has(&a, "Z-1s.pb\"\r\n");
	p = body(&a, &len);
	assert_memory_equal(p, "\x28\xb5\x2f\xfd", 4);
	assert_int_equal(profile(&a)->duration_nanos, SEC);
}

static void a_profile_is_of_the_time_that_was_asked_for(void **state)
{
	int one = dial_unix(), two = dial_tcp();
	int64_t wall = clock_boottime_ns() + clock_wall_offset_ns();
	const Perftools__Profiles__Profile *p;
	struct strbuf a, b;

	ask(two, "GET /debug/pprof/profile?seconds=2 HTTP/1.0\r\n\r\n");
	ask(one, "GET /debug/pprof/profile?seconds=1 HTTP/1.0\r\n\r\n");
	a = answer(one);
	assert_int_equal(stats().http_waiting, 1);
	b = answer(two);
	p = profile(&a);
	assert_int_equal(p->duration_nanos, SEC);
	assert_true(llabs(p->time_nanos - wall) < (int64_t)SEC / 2);
	p = profile(&b);
	assert_int_equal(p->duration_nanos, 2 * SEC);
	assert_int_equal(stats().http_profiles, 2);
}

static void fifty_clients_and_one_that_disconnects(void **state)
{
	int fds[50], i;

	for (i = 0; i < 50; i++) {
		fds[i] = i % 2 ? dial_unix() : dial_tcp();
		ask(fds[i], "GET /debug/pprof/profile?seconds=1 HTTP/1.0"
			    "\r\n\r\n");
	}
	while (stats().http_waiting < 50)
		uv_run(&t.loop, UV_RUN_ONCE);
	close(fds[20]);
	close(fds[21]);
	while (stats().http_waiting > 48)
		uv_run(&t.loop, UV_RUN_ONCE);
	for (i = 0; i < 50; i++) {
		struct strbuf a;

		if (i == 20 || i == 21)
			continue;
		a = answer(fds[i]);
		profile(&a);
	}
	assert_int_equal(stats().http_profiles, 48);
	assert_int_equal(stats().http_waiting, 0);
	assert_int_equal(stats().memory_bytes, 0);
}

static void too_many_clients_get_a_retry_after(void **state)
{
	int fds[CLIENTS_MAX], i;
	struct strbuf a;

	for (i = 0; i < CLIENTS_MAX; i++) {
		fds[i] = dial_unix();
		ask(fds[i], "GET /debug/pprof/profile?seconds=3600 HTTP/1.0"
			    "\r\n\r\n");
		uv_run(&t.loop, UV_RUN_NOWAIT);
	}
	while (stats().http_waiting < CLIENTS_MAX)
		uv_run(&t.loop, UV_RUN_ONCE);
	a = get("/debug/pprof/profile");
	assert_has(&a, " 503 ");
	assert_has(&a, "Retry-After: 5\r\n");
	strbuf_fini(&a);
	a = get("/healthz");
	assert_has(&a, " 200 ");
	strbuf_fini(&a);
	for (i = 0; i < CLIENTS_MAX; i++)
		close(fds[i]);
	while (stats().http_waiting)
		uv_run(&t.loop, UV_RUN_ONCE);
}

static void on_finished(void *arg)
{
	t.finished = true;
}

/* More than the buffers of a socket hold, once a profile has begun. */
static void add_much(void)
{
	struct pm_image img = image(1, 100, EXE_A);
	struct reporter_frame f[30];
	struct reporter_trace tr = { .time = clock_boottime_ns() + SEC / 8,
				     .image = &img,
				     .thread = "t",
				     .frames = f,
				     .nframes = ARRAY_SIZE(f) };
	unsigned int seed = 1;
	size_t i;

	for (tr.tid = 1; tr.tid < 20000; tr.tid++) {
		for (i = 0; i < ARRAY_SIZE(f); i++)
			f[i] = frame(EXE_A, 0x401000 + rand_r(&seed) % 0x2000,
				     0x401000, "work");
		assert_int_equal(reporter_add(t.r, &tr), 0);
	}
}

static void finish_answers_with_the_samples_so_far(void **state)
{
	struct strbuf a = STRBUF_INIT;
	int fd = dial_unix();
	char buf[65536];
	ssize_t n;

	ask(fd, "GET /debug/pprof/profile?seconds=3600 HTTP/1.0\r\n\r\n");
	while (!stats().http_waiting)
		uv_run(&t.loop, UV_RUN_ONCE);
	add_much();
	uv_timer_stop(&t.tick);
	reporter_finish(t.r, clock_boottime_ns() + SEC / 4, on_finished, NULL);
	while (!t.finished) {
		uv_run(&t.loop, UV_RUN_NOWAIT);
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		strbuf_add(&a, buf, n > 0 ? n : 0);
	}
	/* All was sent before the end was reported. */
	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		strbuf_add(&a, buf, n);
	close(fd);
	assert_true(a.len > 500000);
	assert_true(profile(&a)->duration_nanos < 60 * (int64_t)SEC);
	assert_true(pprof_samples(pprof_checked()) > 19000);
	a = get("/debug/pprof/profile");
	assert_has(&a, " 503 ");
	strbuf_fini(&a);
}

static void free_with_clients_waiting_is_safe(void **state)
{
	int fd = dial_unix(), gone = dial_tcp();

	ask(fd, "GET /debug/pprof/profile?seconds=3600 HTTP/1.0\r\n\r\n");
	ask(gone, "GET /debug/pprof/profile?seconds=1 HTTP/1.0\r\n\r\n");
	while (stats().http_waiting < 2)
		uv_run(&t.loop, UV_RUN_ONCE);
	/* The watermark jumps: one job is running at the end. */
	reporter_advance(t.r, clock_boottime_ns() + 2 * SEC);
	uv_timer_stop(&t.tick);
	reporter_free(t.r);
	t.r = NULL;
	uv_run(&t.loop, UV_RUN_DEFAULT);
	close(fd);
	close(gone);
}

/* --- real clients -------------------------------------------------------- */

static void curl_reads_it_by_zstd(void **state)
{
	struct strbuf a;
	char path[96];

	snprintf(path, sizeof(path), "%s/x", t.dir);
	a = run("curl -sf --unix-socket %s -H 'Accept-Encoding: zstd' -o %s "
		"'http://profd/debug/pprof/profile?seconds=1' && zstd -tq < %s",
		t.socket, path, path);
	strbuf_fini(&a);
	assert_null(pprof_check_file(path));
	a = run("curl -sfOJ --output-dir %s "
		"'http://%s/debug/pprof/profile?seconds=1' && "
		"gzip -t %s/cpu-host-*-1s.pb.gz",
		t.dir, t.tcp_address, t.dir);
	strbuf_fini(&a);
}

static void go_tool_pprof_fetches_it(void **state)
{
	struct strbuf a;

	a = run(PPROF_GO "-top 'http://%s/debug/pprof/profile?seconds=1'",
		t.tcp_address);
	assert_has(&a, "work");
	assert_has(&a, "Duration: 1");
	strbuf_fini(&a);
}

/* --- access -------------------------------------------------------------- */

static void names_of_other_sites_are_refused_over_tcp(void **state)
{
	static const struct {
		const char *host, *status;
	} cases[] = {
		{ "", "200" },
		{ "Host: localhost:7763\r\n", "200" },
		{ "Host: LOCALHOST\r\n", "200" },
		{ "Host: 127.0.0.1:7763\r\n", "200" },
		{ "Host: [::1]:7763\r\n", "200" },
		{ "Host: 10.1.2.3\r\n", "200" },
		{ "Host: evil.example:7763\r\n", "403" },
		{ "Host: localhost.evil.example\r\n", "403" },
		{ "Host: 127.0.0.1.evil.example\r\n", "403" },
		{ "Host: [::1\r\n", "403" },
		{ "Host: 127.0.0.1:x\r\n", "403" },
	};
	struct strbuf a;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		char req[256];
		int fd = dial_tcp();

		/* HTTP/1.1 requires a Host. */
		snprintf(req, sizeof(req), "GET /healthz HTTP/1.0\r\n%s\r\n",
			 cases[i].host);
		ask(fd, req);
		a = answer(fd);
		assert_has(&a, cases[i].status);
		strbuf_fini(&a);
	}
	a = get_with(dial_unix(), "GET", "/healthz", "Host: evil.example\r\n");
	assert_has(&a, " 200 ");
	strbuf_fini(&a);
}

static void addresses_are_loopback_or_refused(void **state)
{
	static const struct {
		const char *address;
		int err; /* 1: none, beyond loopback */
	} cases[] = {
		{ "127.0.0.1:7763", 0 },
		{ "127.9.9.9:1", 0 },
		{ "[::1]:7763", 0 },
		{ "localhost:65535", 0 },
		{ "unix:/x", 0 },
		{ "0.0.0.0:7763", 1 },
		{ "10.0.0.1:7763", 1 },
		{ "[::]:7763", 1 },
		{ "[fe80::1]:1", 1 },
		{ "example.com:80", -EINVAL },
		{ ":7763", -EINVAL },
		{ "127.0.0.1", -EINVAL },
		{ "127.0.0.1:", -EINVAL },
		{ "127.0.0.1:0", -EINVAL },
		{ "127.0.0.1:65536", -EINVAL },
		{ "127.0.0.1:1x", -EINVAL },
		{ "[::1]", -EINVAL },
		{ "[::1:1", -EINVAL },
		{ "[::1]1", -EINVAL },
		{ "[x]:1", -EINVAL },
		{ "::1:7763", -EINVAL },
		{ "unix:", -EINVAL },
		{ "", -EINVAL },
		{ "/run/x", -EINVAL },
	};
	struct http_address a;
	char path[200];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		if ((http_parse_address(cases[i].address, &a) ?: a.remote) !=
		    cases[i].err)
			fail_msg("%s", cases[i].address);
	memset(path, 'x', sizeof(path));
	memcpy(path, "unix:/", 6);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(http_parse_address(path, &a), -ENAMETOOLONG);
	assert_int_equal(reporter_listen(t.r, "0.0.0.0:7763"), -EPERM);
}

static void an_address_in_use_is_an_error(void **state)
{
	assert_int_equal(reporter_listen(t.r, t.unix_address), -EADDRINUSE);
	assert_int_equal(reporter_listen(t.r, t.tcp_address), -EADDRINUSE);
	assert_int_equal(access(t.socket, F_OK), 0);
}

static void a_stale_socket_is_replaced_other_files_are_not(void **state)
{
	char address[128];
	struct http_address a;
	struct stat st;
	int fd;

	snprintf(address, sizeof(address), "unix:%s/stale", t.dir);
	assert_int_equal(http_parse_address(address, &a), 0);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, &a.sa, a.len), 0);
	close(fd);
	assert_int_equal(reporter_listen(t.r, address), 0);
	assert_int_equal(stat(a.un.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	snprintf(address, sizeof(address), "unix:%s/file", t.dir);
	fd = open(address + 5, O_CREAT | O_WRONLY, 0600);
	close(fd);
	assert_int_equal(reporter_listen(t.r, address), -EEXIST);
	assert_int_equal(access(address + 5, F_OK), 0);
	snprintf(address, sizeof(address), "unix:%s/run", t.dir);
	assert_int_equal(stat(address + 5, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
}

static void accept_encoding_is_read_with_its_weights(void **state)
{
	static const struct {
		const char *accept;
		bool zstd;
	} cases[] = {
		{ NULL, false },
		{ "", false },
		{ "zstd", true },
		{ "ZSTD", true },
		{ "gzip, deflate, br, zstd", true },
		{ "gzip,zstd", true },
		{ "gzip", false },
		{ "*", false },
		{ "zstdx", false },
		{ "zstd;q=0", false },
		{ "zstd;q=0.0", false },
		{ "zstd;q=0.000", false },
		{ "zstd;q=0.001", true },
		{ "zstd ; q=0.5", true },
		{ "zstd;q=0.5, gzip;q=0.4", true },
		{ "zstd;q=0.5, gzip;q=0.50", true },
		{ "gzip;q=1, zstd;q=0.5", false },
		{ "gzip, zstd;q=0.5", false },
		{ "identity, zstd;q=0.5", false },
		{ "identity;q=0, zstd;q=0.5", true },
		{ ",,zstd,,", true },
		{ "zstd;q=", true },
		{ ";q=1,zstd", true },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		if (http_accepts_zstd(cases[i].accept) != cases[i].zstd)
			fail_msg("%s", cases[i].accept);
}

#define FULL_HOUSE 420 /* above the limit */

/* At its limit MHD stops listening, until a connection ends. */
static void after_the_limit_clients_are_served_again(void **state)
{
	uint64_t end = clock_boottime_ns() + 60 * SEC;
	struct strbuf sb = STRBUF_INIT;
	static int fd[FULL_HOUSE];
	char buf[4096];
	ssize_t n = -1;
	int i, one;

	for (i = 0; i < FULL_HOUSE; i++) {
		fd[i] = dial_unix();
		uv_run(&t.loop, UV_RUN_NOWAIT);
	}
	for (i = 0; i < 20; i++)
		uv_run(&t.loop, UV_RUN_ONCE);
	for (i = 0; i < FULL_HOUSE; i++)
		close(fd[i]);
	one = dial_unix();
	ask(one, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
	while (!sb.len && clock_boottime_ns() < end) {
		uv_run(&t.loop, UV_RUN_NOWAIT);
		n = recv(one, buf, sizeof(buf), MSG_DONTWAIT);
		if (n > 0)
			strbuf_add(&sb, buf, n);
		else
			poll(&(struct pollfd){ one, POLLIN, 0 }, 1, 5);
	}
	assert_has(&sb, "200 OK");
	close(one);
	strbuf_fini(&sb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(healthz_on_every_listener),
		T(a_request_calls_refresh),
		T(errors_name_what_is_wrong),
		T(head_answers_at_once_without_a_body),
		T(a_body_is_not_read),
		T(a_nul_in_a_url_is_refused),
		T(an_incomplete_request_is_closed),
		T(the_user_of_the_other_end_is_known),
		T(metrics_are_prometheus_text),
		T(status_is_lines_of_key_and_value),
		T(status_as_json_has_types),
		T(healthz_has_the_reasons),
		T(a_profile_is_gzip_unless_zstd_is_asked_for),
		T(a_profile_is_of_the_time_that_was_asked_for),
		T(fifty_clients_and_one_that_disconnects),
		T(too_many_clients_get_a_retry_after),
		T(after_the_limit_clients_are_served_again),
		T(finish_answers_with_the_samples_so_far),
		T(free_with_clients_waiting_is_safe),
		T(curl_reads_it_by_zstd),
		T(go_tool_pprof_fetches_it),
		T(names_of_other_sites_are_refused_over_tcp),
		T(addresses_are_loopback_or_refused),
		T(an_address_in_use_is_an_error),
		T(a_stale_socket_is_replaced_other_files_are_not),
		T(accept_encoding_is_read_with_its_weights),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
