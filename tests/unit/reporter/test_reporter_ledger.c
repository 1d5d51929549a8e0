// SPDX-License-Identifier: Apache-2.0
/* Processes and events over HTTP: their lines, and the clients. */
#include "tests/unit/reporter/test_reporter_ledger.h"

#include <math.h>
#include <signal.h>

#include "reporter/http/http.h"

static const struct ledger_head no_head;

/* An event with the keys of processes. */
static json_t *plain_at(const char *text, size_t i)
{
	json_t *event = line_at(text, i), *o = reporter_event_plain(event);

	json_decref(event);
	return o;
}

static void forget_wall(json_t *o)
{
	static const char *const keys[] = {
		"start", "start_boot_ns", "image_start", "image_start_boot_ns",
		"exit",	 "reap"
	};
	json_t *v = json_object_get(o, "images");
	size_t i;

	for (i = 0; i < ARRAY_SIZE(keys); i++)
		json_object_del(o, keys[i]);
	for (i = 0; i < json_array_size(v); i++)
		forget_wall(json_array_get(v, i));
}

static json_t *process_line(struct pm_image *img)
{
	struct strbuf sb = STRBUF_INIT;
	json_t *o;

	processes[0] = img;
	processes[1] = NULL;
	read_table(&sb);
	processes[0] = NULL;
	assert_int_equal(count_lines(strbuf_str(&sb)), 1);
	o = line_at(sb.data, 0);
	strbuf_fini(&sb);
	return o;
}

static void a_process_is_one_object(void **state)
{
	struct pm_image img = make(7, PM_REAPED);
	static const char args[] = "prog\0a b\0\xff";
	json_t *o;

	img.info.cmdline = args;
	img.info.cmdline_len = sizeof(args);
	img.info.args_cut = true;
	img.info.cgroup = "/lxc/web";
	img.process.wait_status = 3 << 8;
	img.process.exit = 6 * SEC;
	img.process.cpu = PM_CPU_EXACT;
	img.process.cpu_ns = SEC;
	img.process.user_ns = SEC / 4;
	img.process.system_ns = SEC - SEC / 4;
	img.process.samples = 98;
	img.process.leader_type = QUARK_ELT_SSHD;
	img.process.leader = 44;
	o = process_line(&img);
	assert_int_equal(num(o, "pid"), 7);
	assert_int_equal(num(o, "ppid"), 1);
	assert_string_equal(str(o, "process"), "7-abc");
	assert_string_equal(str(o, "state"), "reaped");
	assert_string_equal(str(o, "container"), "web");
	assert_string_equal(str(o, "engine"), "lxc");
	assert_string_equal(str(o, "entry"), "sshd");
	assert_int_equal(num(o, "entry_pid"), 44);
	assert_int_equal(num(o, "exit_code"), 3);
	assert_null(json_object_get(o, "signal"));
	assert_string_equal(str(o, "cpu"), "exact");
	assert_int_equal(num(o, "cpu_ns"), SEC);
	assert_int_equal(num(o, "user_ns"), SEC / 4);
	assert_int_equal(num(o, "samples"), 98);
	assert_true(fabs(json_real_value(json_object_get(o, "coverage")) -
			 0.98) < 1e-9);
	assert_true(
		fabs(json_real_value(json_object_get(o, "coverage_deviation")) -
		     0.1) < 1e-9);
	assert_int_equal(json_array_size(json_object_get(o, "args")), 3);
	assert_true(json_is_true(json_object_get(o, "args_cut")));
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(o, "args"), 2)),
			    "\xef\xbf\xbd");
	assert_int_equal(strlen(str(o, "start")),
			 strlen("2026-01-01T00:00:00.000000000Z"));
	assert_null(json_object_get(o, "reap"));
	json_decref(o);
}

/* A line is valid JSON whatever name a process has. */
static void any_bytes_make_a_line(void **state)
{
	struct pm_image img = make(7, PM_ALIVE);
	char bytes[301] = "", comm[16] = "";
	unsigned int seed = 1;
	size_t i, k;
	json_t *o;

	img.info.comm = comm;
	img.info.exe = img.info.cwd = img.info.cgroup = bytes;
	img.info.cmdline = bytes;
	img.info.cmdline_len = sizeof(bytes);
	for (i = 0; i < 2000; i++) {
		for (k = 0; k < sizeof(bytes) - 1; k++)
			bytes[k] = rand_r(&seed) >> 4;
		for (k = 0; k < sizeof(comm) - 1; k++)
			comm[k] = rand_r(&seed) >> 4;
		o = process_line(&img);
		assert_int_equal(num(o, "pid"), 7);
		json_decref(o);
	}
}

static void a_death_by_signal_names_the_signal(void **state)
{
	struct pm_image img = make(7, PM_EXITED);
	json_t *o;

	img.process.wait_status = SIGSEGV | 0x80;
	o = process_line(&img);
	assert_int_equal(num(o, "signal"), SIGSEGV);
	assert_string_equal(str(o, "signal_name"), "SEGV");
	assert_true(json_is_true(json_object_get(o, "core")));
	assert_null(json_object_get(o, "exit_code"));
	json_decref(o);
}

/* A vanished process has no status, one from before the start no coverage. */
static void what_is_not_known_is_left_out(void **state)
{
	struct pm_image img = make(7, PM_VANISHED);
	json_t *o;

	img.process.before = true;
	img.process.cpu = PM_CPU_NOW;
	img.process.cpu_ns = SEC;
	o = process_line(&img);
	assert_string_equal(str(o, "state"), "vanished");
	assert_null(json_object_get(o, "exit_code"));
	assert_null(json_object_get(o, "signal"));
	assert_null(json_object_get(o, "coverage"));
	assert_null(json_object_get(o, "container"));
	assert_null(json_object_get(o, "entry"));
	json_decref(o);
	img.process.end = PM_EXITED;
	img.process.wait_status = PM_STATUS_UNKNOWN;
	o = process_line(&img);
	assert_string_equal(str(o, "state"), "exited");
	assert_null(json_object_get(o, "exit_code"));
	assert_null(json_object_get(o, "signal"));
	json_decref(o);
}

/* All images, oldest first; the process has the data of the newest. */
static void a_process_has_all_its_images(void **state)
{
	struct pm_image img = make(7, PM_ALIVE), sh = img, su = img;
	json_t *o, *v, *e;

	img.info.begin = 7 * SEC;
	su.info.exe = "/bin/su";
	su.info.comm = "su";
	su.info.uid = 5;
	su.info.samples = 9;
	su.info.begin = 6 * SEC;
	su.info.cmdline = "su\0-";
	su.info.cmdline_len = 5;
	snprintf(su.info.image_id, sizeof(su.info.image_id), "7-abc-2");
	sh.info.exe = "/bin/sh";
	sh.info.cwd = "/tmp";
	sh.info.begin = 5 * SEC;
	older[0] = &su;
	older[1] = &sh;
	o = process_line(&img);
	older[0] = older[1] = NULL;
	assert_string_equal(str(o, "exe"), "/usr/bin/alpha");
	assert_null(json_object_get(o, "args_cut"));
	v = json_object_get(o, "images");
	assert_int_equal(json_array_size(v), 3);
	e = json_array_get(v, 0);
	assert_string_equal(str(e, "exe"), "/bin/sh");
	assert_string_equal(str(e, "cwd"), "/tmp");
	assert_int_equal(num(e, "start_boot_ns"), 5 * SEC);
	e = json_array_get(v, 1);
	assert_string_equal(str(e, "image"), "7-abc-2");
	assert_string_equal(str(e, "comm"), "su");
	assert_int_equal(num(e, "uid"), 5);
	assert_int_equal(num(e, "samples"), 9);
	assert_int_equal(json_array_size(json_object_get(e, "args")), 2);
	e = json_array_get(v, 2);
	assert_string_equal(str(e, "image"), str(o, "image"));
	assert_string_equal(str(e, "exe"), "/usr/bin/alpha");
	json_decref(o);
}

/* The line of an ended process is complete, after its data was freed. */
static void an_ended_process_needs_no_other_data(void **state)
{
	char comm[16] = "alpha", exe[] = "/bin/alpha", args[] = "alpha\0-x";
	struct pm_image img = make(7, PM_REAPED), sh = img;
	struct strbuf line = STRBUF_INIT;
	struct ledger_ended *ended;
	struct vault *vault;
	json_t *o, *want;
	size_t size;

	img.info.comm = comm;
	img.info.exe = exe;
	img.info.cmdline = args;
	img.info.cmdline_len = sizeof(args);
	img.process.exit = 6 * SEC;
	img.process.reap = 8 * SEC;
	img.process.cpu = PM_CPU_EXACT;
	img.process.cpu_ns = SEC;
	img.process.samples = 50;
	older[0] = &sh;
	want = process_line(&img);
	assert_int_equal(vault_new(&vault), 0);
	ended = ledger_ended_new(&img, vault, &size);
	older[0] = NULL;
	memset(comm, 'x', sizeof(comm) - 1);
	memset(exe, 'x', sizeof(exe) - 1);
	memset(args, 'x', sizeof(args) - 1);
	memset(&img, 0, sizeof(img));
	memset(&sh, 0, sizeof(sh));
	assert_non_null(ended);
	ledger_ended(ended, &no_head, 100, &line);
	vault_give(ended);
	vault_free(vault);
	o = plain_at(line.data, 0);
	strbuf_fini(&line);
	assert_int_equal(num(o, "time_boot_ns"), 8 * SEC);
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(o, "events"), 0)),
			    "end");
	json_object_del(o, "time");
	json_object_del(o, "time_boot_ns");
	json_object_del(o, "events");
	assert_string_equal(str(o, "build_id"), "abcd01");
	assert_string_equal(str(o, "exe"), "/bin/alpha");
	assert_true(json_real_value(json_object_get(o, "coverage")) == 0.5);
	assert_int_equal(json_array_size(json_object_get(o, "images")), 2);
	/* wall clock times are computed at the request */
	forget_wall(o);
	forget_wall(want);
	assert_true(json_equal(o, want));
	json_decref(want);
	json_decref(o);
}

static void processes_are_listed_with_or_without_exited_ones(void **state)
{
	struct pm_image a = make(7, PM_ALIVE), b = make(8, PM_REAPED);
	struct strbuf sb;
	size_t len;

	processes[0] = &a;
	processes[1] = &b;
	sb = get_whole("/processes");
	assert_has(&sb, "application/x-ndjson");
	assert_int_equal(count_lines(body(&sb, &len)), 1);
	strbuf_fini(&sb);
	sb = get_whole("/processes?all=1");
	assert_int_equal(count_lines(body(&sb, &len)), 2);
	strbuf_fini(&sb);
	sb = get_whole("/processes?all=0");
	assert_int_equal(count_lines(body(&sb, &len)), 1);
	strbuf_fini(&sb);
	/* One is removed between two pieces. */
	last_is_gone = true;
	sb = get_whole("/processes?all=1");
	last_is_gone = false;
	assert_int_equal(count_lines(body(&sb, &len)), 1);
	strbuf_fini(&sb);
	sb = get_with(dial_unix(), "HEAD", "/processes", "Host: h\r\n");
	assert_has(&sb, "200 OK");
	strbuf_fini(&sb);
	processes[0] = processes[1] = NULL;
}

/* --- events ---------------------------------------------------------------- */

static void event(uint64_t kinds, uint32_t pid)
{
	struct quark_process qp = { .pid = pid,
				    .key = { 5 * SEC, 1, pid, 0 },
				    .proc_ppid = 1,
				    .comm = "alpha",
				    .exe = (char *)"/bin/alpha",
				    .cmdline = (char *)"alpha\0-x",
				    .cmdline_len = 9,
				    .wait_status = 9 };
	struct quark_event ev = { .events = kinds,
				  .boottime = clock_boottime_ns(),
				  .process = &qp,
				  .cpu_time = 1000,
				  .cpu_exact = true };

	assert_int_equal(reporter_event(t.r, &ev), 0);
}

static json_t *event_line(const struct quark_event *ev)
{
	struct strbuf sb = STRBUF_INIT;
	json_t *o;

	ledger_event(ev, &no_head, &sb);
	assert_int_equal(count_lines(strbuf_str(&sb)), 1);
	o = plain_at(sb.data, 0);
	strbuf_fini(&sb);
	return o;
}

static void a_gap_names_the_events_that_may_be_missing(void **state)
{
	struct quark_event ev = { .events = QUARK_EV_GAP,
				  .boottime = SEC,
				  .gap_from = SEC,
				  .gap_to = 2 * SEC,
				  .gap_lost = 17,
				  .gap_kinds = QUARK_EV_FORK | QUARK_EV_EXIT };
	json_t *o = event_line(&ev), *kinds = json_object_get(o, "kinds");

	assert_int_equal(num(o, "lost"), 17);
	assert_int_equal(json_array_size(kinds), 2);
	assert_string_equal(json_string_value(json_array_get(kinds, 1)),
			    "exit");
	assert_null(json_object_get(o, "pid"));
	json_decref(o);
}

static const char *kind(const json_t *o, size_t i)
{
	const json_t *v = json_array_get(json_object_get(o, "events"), i);

	return json_string_value(v);
}

static void a_cgroup_move_differs_from_a_change_of_ids(void **state)
{
	struct quark_process qp = { .pid = 7,
				    .proc_uid = 5,
				    .cgroup = (char *)"/lxc/web" };
	struct quark_event ev = { .events = QUARK_EV_ID_CHANGE,
				  .id_change = QUARK_ID_CHANGE_CGROUP,
				  .process = &qp };
	json_t *o = event_line(&ev);

	assert_string_equal(kind(o, 0), "cgroup");
	assert_null(kind(o, 1));
	assert_string_equal(str(o, "container"), "web");
	json_decref(o);
	ev.id_change |= QUARK_ID_CHANGE_SETUID;
	o = event_line(&ev);
	assert_string_equal(kind(o, 0), "id_change");
	assert_string_equal(kind(o, 1), "cgroup");
	json_decref(o);
	ev.id_change = 0; /* as from perf events */
	o = event_line(&ev);
	assert_string_equal(kind(o, 0), "id_change");
	assert_null(kind(o, 1));
	assert_int_equal(num(o, "uid"), 5);
	json_decref(o);
}

/* A long answer does not block the loop. */
static void many_events_come_in_pieces(void **state)
{
	struct strbuf sb;
	size_t i, len, piece, most = 0, sum = 0;
	const char *p;
	char *end;

	for (i = 0; i < 3000; i++)
		event(QUARK_EV_REAP, 7);
	sb = get("/api/events");
	assert_has(&sb, "Transfer-Encoding: chunked\r\n");
	for (p = body(&sb, &len); (piece = strtoul(p, &end, 16));
	     p = end + 2 + piece + 2) {
		assert_memory_equal(end, "\r\n", 2);
		most = MAX(most, piece);
		sum += piece;
	}
	assert_in_range(sum, 3000 * 50, SIZE_MAX);
	assert_in_range(most, 1, 40 << 10);
	strbuf_fini(&sb);
	sb = get_whole("/api/events");
	assert_int_equal(count_lines(body(&sb, &len)), 3000);
	strbuf_fini(&sb);
}

static void events_of_before_are_there(void **state)
{
	struct strbuf sb;
	const char *text;
	json_t *o;
	size_t len;

	event(QUARK_EV_EXEC, 7);
	event(QUARK_EV_REAP, 7);
	sb = get_whole("/api/events");
	text = body(&sb, &len);
	assert_int_equal(count_lines(text), 2);
	o = line_at(text, 0);
	assert_string_equal(str(o, "process.executable.path"), "/bin/alpha");
	assert_string_equal(str(o, "profd.process"), "7-12a05f200");
	assert_null(json_object_get(o, "profd.signal"));
	json_decref(o);
	o = line_at(text, 1);
	assert_string_equal(str(o, "profd.signal_name"), "KILL");
	assert_string_equal(str(o, "profd.cpu"), "exact");
	assert_null(json_object_get(o, "process.executable.path"));
	json_decref(o);
	strbuf_fini(&sb);
}

/* Runs the loop until 'text' is received, or the server closes. */
static void await(int fd, struct strbuf *sb, const char *text)
{
	char buf[65536];
	ssize_t n = -1;

	while (n && (!sb->data || !strstr(sb->data, text))) {
		uv_run(&t.loop, UV_RUN_NOWAIT);
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n > 0)
			strbuf_add(sb, buf, n);
		else if (n < 0)
			poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 5);
	}
	assert_true(n);
}

static int follow(void)
{
	int fd = dial_unix();

	ask(fd, "GET /api/events?follow=1 HTTP/1.1\r\nHost: h\r\n\r\n");
	return fd;
}

static void a_follower_gets_new_events(void **state)
{
	struct strbuf sb = STRBUF_INIT;
	int fd;

	event(QUARK_EV_EXEC, 6); /* before the request */
	fd = follow();
	await(fd, &sb, "\r\n\r\n");
	event(QUARK_EV_EXEC, 7);
	await(fd, &sb, "\"process.pid\":7");
	event(QUARK_EV_EXIT, 8);
	await(fd, &sb, "\"process.pid\":8");
	assert_null(strstr(sb.data, "\"process.pid\":6"));
	assert_int_equal(stats().http_waiting, 1);
	assert_int_equal(reporter_due(t.r), 0);
	close(fd);
	while (stats().http_waiting)
		uv_run(&t.loop, UV_RUN_ONCE);
	assert_int_equal(reporter_due(t.r), UINT64_MAX);
	strbuf_fini(&sb);
}

/* The ring is bounded: a reader gets the number of missed events. */
static void a_slow_follower_gets_the_number_of_missed_events(void **state)
{
	struct strbuf sb = STRBUF_INIT;
	int fd = follow(), i;

	await(fd, &sb, "\r\n\r\n");
	while (!stats().http_waiting)
		uv_run(&t.loop, UV_RUN_NOWAIT);
	for (i = 0; i < 100000; i++)
		event(QUARK_EV_FORK, 1000 + i);
	event(QUARK_EV_EXEC, 99);
	await(fd, &sb, "\"process.pid\":99,");
	assert_has(&sb, "[\"missed\"],\"count\":");
	assert_null(strstr(sb.data, "\"process.pid\":1000,"));
	assert_has(&sb, "\"process.pid\":100999,");
	close(fd);
	while (stats().http_waiting)
		uv_run(&t.loop, UV_RUN_ONCE);
	strbuf_fini(&sb);
}

/* After the events of the process, for followers and for later requests. */
static void a_follower_gets_each_end(void **state)
{
	struct pm_image img = make(7, PM_REAPED);
	struct strbuf sb = STRBUF_INIT, all;
	int fd = follow();

	await(fd, &sb, "\r\n\r\n");
	event(QUARK_EV_EXIT, 7);
	assert_int_equal(reporter_ended(t.r, &img), 0);
	event(QUARK_EV_FORK, 8);
	await(fd, &sb, "\"process.pid\":8");
	assert_true(strstr(sb.data, "[\"exit\"]") <
		    strstr(sb.data, "[\"end\"]"));
	assert_has(&sb, "\"profd.state\":\"reaped\"");
	assert_has(&sb, "\"profd.images\":[{\"profd.image\":");
	close(fd);
	while (stats().http_waiting)
		uv_run(&t.loop, UV_RUN_ONCE);
	all = get("/api/events");
	assert_has(&all, "[\"end\"]");
	strbuf_fini(&all);
	strbuf_fini(&sb);
}

/* Followers get the same lines. */
static void several_may_follow(void **state)
{
	struct strbuf sb[3] = { STRBUF_INIT, STRBUF_INIT, STRBUF_INIT };
	int fd[3], i, k;

	for (i = 0; i < 2; i++) {
		fd[i] = follow();
		await(fd[i], &sb[i], "\r\n\r\n");
	}
	for (k = 0; k < 3000; k++)
		event(QUARK_EV_FORK, 10000 + k);
	/* A later follower begins later. */
	fd[2] = follow();
	await(fd[2], &sb[2], "\r\n\r\n");
	event(QUARK_EV_EXEC, 99);
	for (i = 0; i < 3; i++)
		await(fd[i], &sb[i], "\"process.pid\":99,");
	assert_int_equal(stats().http_followers, 3);
	for (i = 0; i < 2; i++) {
		assert_null(strstr(sb[i].data, "missed"));
		assert_has(&sb[i], "\"process.pid\":10000,");
		assert_has(&sb[i], "\"process.pid\":12999,");
	}
	assert_null(strstr(sb[2].data, "\"process.pid\":12999,"));
	for (i = 0; i < 3; i++) {
		close(fd[i]);
		strbuf_fini(&sb[i]);
	}
	while (stats().http_followers)
		uv_run(&t.loop, UV_RUN_ONCE);
}

/* Up to the limit; other followers get an error, other requests are served. */
static void too_many_followers_are_refused(void **state)
{
	int fd[HTTP_FOLLOWERS_MAX], i, one_more;
	struct strbuf sb = STRBUF_INIT;

	for (i = 0; i < HTTP_FOLLOWERS_MAX; i++) {
		fd[i] = follow();
		await(fd[i], &sb, "200 OK");
		strbuf_reset(&sb);
	}
	one_more = follow();
	await(one_more, &sb, "too many clients follow events\n");
	assert_has(&sb, "503 Service Unavailable");
	assert_has(&sb, "Retry-After: 5");
	close(one_more);
	strbuf_fini(&sb);
	sb = get("/healthz");
	assert_has(&sb, "ok");
	/* One has gone, so one more may follow. */
	close(fd[0]);
	while (stats().http_followers == HTTP_FOLLOWERS_MAX)
		uv_run(&t.loop, UV_RUN_ONCE);
	strbuf_reset(&sb);
	fd[0] = follow();
	await(fd[0], &sb, "200 OK");
	for (i = 0; i < HTTP_FOLLOWERS_MAX; i++)
		close(fd[i]);
	while (stats().http_followers)
		uv_run(&t.loop, UV_RUN_ONCE);
	strbuf_fini(&sb);
}

/* The client closes in the middle of its answer. */
static void a_follower_disconnects(void **state)
{
	struct strbuf sb = STRBUF_INIT;
	int fd = follow(), i;

	await(fd, &sb, "\r\n\r\n");
	for (i = 0; i < 10000; i++)
		event(QUARK_EV_EXEC, 10000 + i);
	await(fd, &sb, "\"process.pid\":10000,");
	close(fd); /* some megabytes are pending */
	while (stats().http_followers)
		uv_run(&t.loop, UV_RUN_ONCE);
	strbuf_fini(&sb);
	sb = get("/healthz");
	assert_has(&sb, "ok");
	strbuf_fini(&sb);
}

/*
 * The ring itself. Each event has some hundred bytes: 5,000 are more than the 1 MiB
 * kept without readers, and less than the 16 MiB kept for readers.
 */
static void fill(struct ledger_events *l, int n, size_t cmdline_len)
{
	char *cmdline = calloc(1, cmdline_len + 1);
	struct quark_process qp = { .cmdline = cmdline,
				    .cmdline_len = cmdline_len };
	struct quark_event ev = { .events = QUARK_EV_EXEC, .process = &qp };

	assert_non_null(cmdline);
	for (; n; n--)
		assert_int_equal(ledger_events_add(l, &ev), 0);
	free(cmdline);
}

static void without_readers_a_mib_is_kept(void **state)
{
	struct ledger_events *l = ledger_events_new(100, "h", 1);
	uint64_t kept;

	assert_non_null(l);
	fill(l, 5000, 100);
	kept = ledger_events_next(l) - ledger_events_first(l);
	assert_int_equal(kept, 5000); /* all from the first on are needed */
	ledger_events_need(l, UINT64_MAX);
	fill(l, 1, 100);
	kept = ledger_events_next(l) - ledger_events_first(l);
	assert_in_range(kept, 500, 4000);
	ledger_events_free(l);
}

static void events_that_readers_need_are_kept(void **state)
{
	struct ledger_events *l = ledger_events_new(100, "h", 1);

	assert_non_null(l);
	fill(l, 100, 100);
	ledger_events_need(l, 51);
	fill(l, 5000, 100);
	/* All from that one on. */
	assert_int_equal(ledger_events_first(l), 51);
	/* Those that were read are freed at the next addition. */
	ledger_events_need(l, 5000);
	fill(l, 1, 100);
	assert_in_range(ledger_events_first(l), 1000, 5000);
	ledger_events_free(l);
}

/* 4,000 of 16 KiB are 64 MiB. */
static void events_that_readers_need_are_bounded(void **state)
{
	struct ledger_events *l = ledger_events_new(100, "h", 1);
	uint64_t kept;

	assert_non_null(l);
	ledger_events_need(l, 1);
	fill(l, 4000, 16384);
	kept = ledger_events_next(l) - ledger_events_first(l);
	assert_in_range(kept, 500, 1024);
	ledger_events_free(l);
}

/* Over some drains, each of which wakes the followers. */
static void run_ticks(int n)
{
	uint64_t until = clock_boottime_ns() + n * 100000000ULL;

	while (clock_boottime_ns() < until)
		uv_run(&t.loop, UV_RUN_ONCE);
}

static void without_a_follower_little_is_kept(void **state)
{
	struct strbuf sb;
	size_t len;
	int i;

	for (i = 0; i < 5000; i++)
		event(QUARK_EV_FORK, 1000 + i);
	run_ticks(2);
	event(QUARK_EV_EXEC, 99);
	sb = get("/api/events");
	assert_in_range(count_lines(body(&sb, &len)), 500, 4000);
	strbuf_fini(&sb);
}

/* One that does not read for a while: the socket's buffer gets full. */
static void events_that_a_follower_has_not_read_are_kept(void **state)
{
	struct strbuf sb = STRBUF_INIT;
	int fd = follow(), i;

	await(fd, &sb, "\r\n\r\n");
	while (!stats().http_followers)
		uv_run(&t.loop, UV_RUN_NOWAIT);
	for (i = 0; i < 8000; i++)
		event(QUARK_EV_FORK, 1000 + i);
	run_ticks(2);
	event(QUARK_EV_EXEC, 99);
	await(fd, &sb, "\"process.pid\":99,");
	assert_null(strstr(sb.data, "missed"));
	assert_has(&sb, "\"process.pid\":1000,");
	close(fd);
	while (stats().http_followers)
		uv_run(&t.loop, UV_RUN_ONCE);
	strbuf_fini(&sb);
}

static void on_end(void *arg)
{
	t.finished = true;
}

/* When profd terminates, the answer ends properly. */
static void a_stream_ends_with_its_last_chunk(void **state)
{
	struct strbuf sb = STRBUF_INIT;
	int fd = follow();

	await(fd, &sb, "\r\n\r\n");
	event(QUARK_EV_EXEC, 7);
	await(fd, &sb, "\"process.pid\":7");
	uv_timer_stop(&t.tick);
	event(QUARK_EV_EXIT, 8);
	reporter_finish(t.r, clock_boottime_ns(), on_end, NULL);
	await(fd, &sb, "\"process.pid\":8");
	await(fd, &sb, "\r\n0\r\n\r\n");
	while (!t.finished)
		uv_run(&t.loop, UV_RUN_ONCE);
	close(fd);
	strbuf_fini(&sb);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_one_object),
		cmocka_unit_test(any_bytes_make_a_line),
		cmocka_unit_test(a_death_by_signal_names_the_signal),
		cmocka_unit_test(what_is_not_known_is_left_out),
		cmocka_unit_test(a_gap_names_the_events_that_may_be_missing),
		cmocka_unit_test(a_process_has_all_its_images),
		cmocka_unit_test(an_ended_process_needs_no_other_data),
		cmocka_unit_test(a_cgroup_move_differs_from_a_change_of_ids),
		T(processes_are_listed_with_or_without_exited_ones),
		T(events_of_before_are_there),
		T(many_events_come_in_pieces),
		T(a_follower_gets_new_events),
		T(a_follower_gets_each_end),
		T(a_slow_follower_gets_the_number_of_missed_events),
		T(several_may_follow),
		T(too_many_followers_are_refused),
		T(a_follower_disconnects),
		cmocka_unit_test(without_readers_a_mib_is_kept),
		cmocka_unit_test(events_that_readers_need_are_kept),
		cmocka_unit_test(events_that_readers_need_are_bounded),
		T(without_a_follower_little_is_kept),
		T(events_that_a_follower_has_not_read_are_kept),
		T(a_stream_ends_with_its_last_chunk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
