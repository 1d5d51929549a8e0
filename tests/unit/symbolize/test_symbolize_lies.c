// SPDX-License-Identifier: Apache-2.0
/*
 * How profd handles a worker that sends invalid messages, crashes or hangs on
 * one file, while there are requests for others.
 */
#include "symbolize/reader/quarantine.h"
#include "tests/unit/symbolize/test_symbolize_fake.h"

/* The requests: for three files, of which the middle one is evil. */
struct load {
	struct fixture fx;
	struct symbolizer_file *files[3];
	int answers;
	int errors[3];
	int named[3];
};

static void on_load_open(void *arg, int err, struct symbolizer_file *file)
{
	struct load *l = arg;

	assert_int_equal(err, 0);
	l->files[l->answers++] = file;
}

struct load_ref {
	struct load *l;
	int file;
};

static void on_load_names(void *arg, int err,
			  const struct symbolizer_symbol *syms, size_t n)
{
	struct load_ref *r = arg;

	r->l->answers++;
	r->l->errors[r->file] = err;
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(syms[i].functions->name, "honest");
		r->l->named[r->file]++;
	}
}

static void on_crowd(void *arg, int err, const struct symbolizer_symbol *syms,
		     size_t n)
{
	((struct load_ref *)arg)->l->answers++;
}

static void on_load_rows(void *arg, int err, struct symbolizer_rows *rows)
{
	struct load_ref *r = arg;

	assert_null(rows);
	r->l->answers++;
	r->l->errors[r->file] = err;
}

static uint64_t counted(const struct load *l, enum fake_count what)
{
	struct symbolizer_stats st = stats(&l->fx);

	return what == FAKE_LIES   ? st.worker_lies
	       : what == FAKE_HUNG ? st.worker_hung
				   : st.worker_failed;
}

static void load_open(struct load *l, const struct fake_lie *lie)
{
	static const char *const names[] = { "a.so", "evil.so", "b.so" };
	/* Long enough for a busy machine, unless the deadline is tested. */
	struct symbolizer_opts opts = {
		.worker = fake_program(lie->name),
		.worker_deadline_ms = lie->count == FAKE_HUNG ? 1000 : 60000,
		.open_deadline_ms = 60000,
	};

	memset(l, 0, sizeof(*l));
	fixture_init(&l->fx, &opts);
	for (int i = 0; i < 3; i++) {
		struct symbolizer_open_req req = { .path = in_dir(names[i]) };

		assert_int_equal(
			symbolizer_open(l->fx.s, &req, on_load_open, l), 0);
		wait_for(&l->fx, &l->answers, i + 1);
	}
	l->answers = 0;
}

static void load_ask(struct load *l, const struct fake_lie *lie)
{
	static const uint64_t at[] = { 0x1000, 0x1010 };
	struct load_ref refs[3];
	int want = 0;

	for (int i = 0; i < 3; i++)
		refs[i] = (struct load_ref){ l, i };
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3; i++, want++)
			symbolizer_resolve(l->fx.s, l->files[i], at, 2,
					   on_load_names, &refs[i]);
		if (!lie->table || round)
			continue;
		/* Its names are as bad by then. */
		symbolizer_rows(l->fx.s, l->files[1], on_load_rows, &refs[1]);
		want++;
	}
	wait_for(&l->fx, &l->answers, want);
	assert_int_equal(l->answers, want);
}

static void one_lie(const struct fake_lie *lie)
{
	struct symbolizer_quarantined q;
	struct load l;
	int fails;

	load_open(&l, lie);
	load_ask(&l, lie);
	for (int i = 0; i < 3; i += 2) {
		assert_int_equal(l.errors[i], 0);
		assert_int_equal(l.named[i], 4); /* they lose nothing */
	}
	assert_int_equal(l.errors[1], -EBADMSG);
	assert_int_equal(l.named[1], 0);
	/* After one failure; after three, if there may be another cause. */
	fails = lie->count == FAKE_KILLED ? 3 : 1;
	/* On a busy machine it used too little CPU time to count fully. */
	if (lie->count == FAKE_HUNG)
		assert_in_range(counted(&l, lie->count), 1, 3);
	else /* and one that may have been due to another file */
		assert_in_range(counted(&l, lie->count), fails, 1 + fails);
	assert_in_range(stats(&l.fx).worker_shared, 0, 1);
	assert_int_equal(stats(&l.fx).quarantined, 1);
	/*
	 * While one is slow there may be a second, and a third. After the last
	 * failure there is none, if nothing else waits.
	 */
	assert_in_range(stats(&l.fx).worker_starts, fails, 5 + fails);
	assert_true(symbolizer_quarantined(l.fx.s, 0, &q));
	assert_string_equal(q.path, in_dir("evil.so"));
	assert_false(symbolizer_quarantined(l.fx.s, 1, &q));
	for (int i = 0; i < 3; i++)
		symbolizer_close(l.fx.s, l.files[i]);
	fixture_fini(&l.fx);
}

/* A table's lie comes as the answer to a question for names too. */
static void lies_in_tables_are_told_for_tables(void **state)
{
	struct load_ref ref;
	struct symbolizer_quarantined q;
	struct load l;

	for (size_t i = 0; i < ARRAY_SIZE(fake_lies); i++) {
		if (!fake_lies[i].table)
			continue;
		load_open(&l, &fake_lies[i]);
		ref = (struct load_ref){ &l, 1 };
		symbolizer_rows(l.fx.s, l.files[1], on_load_rows, &ref);
		wait_for(&l.fx, &l.answers, 1);
		if (l.errors[1] != -EBADMSG ||
		    stats(&l.fx).worker_lies - stats(&l.fx).worker_shared !=
			    1 ||
		    !symbolizer_quarantined(l.fx.s, 0, &q))
			fail_msg("%s: %d", fake_lies[i].name, l.errors[1]);
		ref.file = 0;
		symbolizer_rows(l.fx.s, l.files[0], on_load_rows, &ref);
		wait_for(&l.fx, &l.answers, 2);
		assert_int_equal(l.errors[0], -ENODATA); /* an honest answer */
		for (int k = 0; k < 3; k++)
			symbolizer_close(l.fx.s, l.files[k]);
		fixture_fini(&l.fx);
	}
}

/* The number of files that a job asked for starts at 0 with each job. */
static void each_job_has_its_own_questions(void **state)
{
	struct symbolizer_opts opts = { .worker = fake_program("ask_and_exit"),
					.open_deadline_ms = 60000 };
	struct symbolizer_file *files[3];
	const uint64_t at[] = { 0x1000 };
	struct fixture fx;
	char name[32];

	fixture_init(&fx, &opts);
	for (int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "evil%d.so", i);
		sh("cp evil.so %s", name);
		assert_int_equal(open_path(&fx, in_dir(name)), 0);
		files[i] = fx.file;
		fx.file = NULL;
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(resolve_wait(&fx, files[i], at, 1), -EBADMSG);
	for (int i = 0; i < 3; i++)
		symbolizer_close(fx.s, files[i]);
	/* The first time it had read the other files. */
	assert_int_equal(stats(&fx).worker_shared, 1);
	assert_int_equal(stats(&fx).worker_failed, 4);
	assert_int_equal(stats(&fx).worker_lies, 0);
	fixture_fini(&fx);
}

/* A path on its way to a terminal: C0, C1, marks of direction, no UTF-8. */
static void paths_of_quarantined_files_are_text(void **state)
{
	char path[] = "/a\n\x1b[1m\xc2\x9b\xe2\x80\xae\xff";
	struct symbolizer_file f = { .path = path };
	struct quarantine aside = { .retry_ms = 1 };
	struct symbolizer_quarantined q;

	assert_true(quarantine_add(&aside, &f, QUARANTINE_WHOLE,
				   SYMBOLIZER_REASON_CRASHED, 0));
	assert_true(quarantine_at(&aside, 0, &q));
	assert_string_equal(q.path, "/a\\012\\033[1m\\u{9b}\\u{202e}\\377");
	quarantine_fini(&aside);
}

/* --- functions inlined into each other ------------------------------------- */

static struct {
	size_t n;
	struct symbolizer_symbol syms[2];
	struct symbolizer_function functions[2][3];
	char text[2][3][3][32];
} inlined;

static const char *inlined_keep(char *to, const char *text)
{
	strcpy(to, text);
	return to;
}

static void on_inlined(void *arg, int err, const struct symbolizer_symbol *syms,
		       size_t n)
{
	int *answers = arg;

	assert_int_equal(err, 0);
	assert_int_equal(n, 2);
	inlined.n = n;
	for (size_t i = 0; i < n; i++) {
		inlined.syms[i] = syms[i];
		assert_int_equal(syms[i].nfunctions, 3);
		for (size_t k = 0; k < 3; k++) {
			struct symbolizer_function *fn =
				&inlined.functions[i][k];

			*fn = syms[i].functions[k];
			fn->name =
				inlined_keep(inlined.text[i][k][0], fn->name);
			fn->system_name = inlined_keep(inlined.text[i][k][1],
						       fn->system_name);
			fn->file =
				inlined_keep(inlined.text[i][k][2], fn->file);
		}
	}
	++*answers;
}

static void an_address_has_a_list_of_functions(void **state)
{
	struct symbolizer_opts opts = { .worker = fake_program("inlined") };
	const uint64_t at[] = { 0x1008, 0x1020 };
	int answers = 0;
	struct fixture fx;

	fixture_init(&fx, &opts);
	assert_int_equal(open_path(&fx, in_dir("evil.so")), 0);
	assert_int_equal(symbolizer_resolve(fx.s, fx.file, at, 2, on_inlined,
					    &answers),
			 0);
	wait_for(&fx, &answers, 1);
	for (size_t i = 0; i < 2; i++) {
		const struct symbolizer_function *fn = inlined.functions[i];

		assert_int_equal(inlined.syms[i].offset, at[i]);
		assert_int_equal(inlined.syms[i].size, 16);
		assert_string_equal(fn[0].name, "deep()");
		assert_string_equal(fn[0].system_name, "_Z4deepv");
		assert_string_equal(fn[0].file, "/src/deep.h");
		assert_int_equal(fn[0].line, 12);
		assert_int_equal(fn[0].start_line, 10);
		assert_string_equal(fn[1].name, "mid");
		assert_string_equal(fn[1].system_name, "mid");
		assert_string_equal(fn[1].file, "/src/mid.h");
		assert_int_equal(fn[1].line, 99);
		assert_string_equal(fn[2].name, "outer");
		assert_string_equal(fn[2].file, "");
		assert_int_equal(fn[2].line, 0);
	}
	assert_int_equal(stats(&fx).worker_lies, 0);
	fixture_fini(&fx);
}

/* Of too many functions those are sent that are not inlined, or least. */
static void a_list_of_functions_has_limits(void **state)
{
	static struct symbolizer_function many[WORKER_FUNCTIONS_MAX + 9];
	static char numbers[WORKER_FUNCTIONS_MAX + 9][8];
	static uint8_t buf[WORKER_MSG_MAX];
	static char text[2 * WORKER_TEXT_MAX];
	struct symbolizer_symbol sym = { .start = 1, .size = 2 }, back;
	static struct worker_cursor c;
	size_t len, n = ARRAY_SIZE(many);

	for (size_t i = 0; i < n; i++) {
		snprintf(numbers[i], sizeof(numbers[i]), "%zu", i);
		many[i] = (struct symbolizer_function){ numbers[i], numbers[i],
							"", i, 0 };
	}
	sym.functions = many;
	sym.nfunctions = n;
	len = worker_name_add(buf, 0, sizeof(buf), &sym);
	c.p = buf;
	c.end = buf + len;
	assert_true(worker_name_next(&c, 1, &back));
	assert_ptr_equal(c.p, c.end);
	assert_int_equal(back.nfunctions, WORKER_FUNCTIONS_MAX);
	assert_string_equal(back.functions[0].name, "9");
	assert_int_equal(back.functions[WORKER_FUNCTIONS_MAX - 1].line, n - 1);

	/* Texts that are too long are cut; the outermost is always there. */
	memset(text, 'x', sizeof(text) - 1);
	for (size_t i = 0; i < n; i++)
		many[i] = (struct symbolizer_function){ text, text + 1, text, 1,
							1 };
	len = worker_name_add(buf, 0, sizeof(buf), &sym);
	assert_in_range(len, 1, WORKER_NAME_MAX);
	c.p = buf;
	c.end = buf + len;
	assert_true(worker_name_next(&c, 2, &back));
	assert_int_equal(back.nfunctions, 1);
	assert_int_equal(strlen(back.functions->name), WORKER_TEXT_MAX);
	assert_int_equal(strlen(back.functions->file), WORKER_SOURCE_MAX);
	assert_int_equal(worker_name_add(buf, 1, len, &sym), 0);
}

/* By its size, before it is mapped: all of it would be read on the loop. */
static void a_large_table_is_refused(void **state)
{
	struct worker_in in = { .fd = 0, .len = sizeof(struct worker_rows) };
	struct worker_rows r = {
		.a.head = { .type = WORKER_ROWS, .len = sizeof(r) },
		.bytes = SYMBOLIZER_ROWS_MAX,
	};

	memcpy(in.bytes, &r, sizeof(r));
	assert_non_null(worker_rows(&in));
	r.bytes++;
	memcpy(in.bytes, &r, sizeof(r));
	assert_null(worker_rows(&in));
}

static void each_lie_costs_its_own_file_only(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(fake_lies); i++) {
		if (fake_lies[i].count == FAKE_SLOW)
			continue;
		print_message("# %s\n", fake_lies[i].name);
		one_lie(&fake_lies[i]);
	}
}

/*
 * A request may take several questions. They share one deadline; otherwise a
 * file with many addresses could occupy a worker for ever.
 */
static void questions_of_a_request_share_its_deadline(void **state)
{
	static uint64_t at[8 * WORKER_NAMES_MAX];
	struct symbolizer_opts opts = { .worker = fake_program("crowd"),
					.worker_deadline_ms = 2000,
					.open_deadline_ms = 60000 };
	struct symbolizer_open_req req = { .path = in_dir("evil.so") };
	struct load_ref ref;
	struct load l;

	memset(&l, 0, sizeof(l));
	fixture_init(&l.fx, &opts);
	assert_int_equal(symbolizer_open(l.fx.s, &req, on_load_open, &l), 0);
	wait_for(&l.fx, &l.answers, 1);
	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		at[i] = 0x1000 + i % 16;
	ref = (struct load_ref){ &l, 0 };
	symbolizer_resolve(l.fx.s, l.files[0], at, ARRAY_SIZE(at), on_crowd,
			   &ref);
	while (l.answers < 2 && !stats(&l.fx).worker_hung)
		uv_run(&l.fx.loop, UV_RUN_ONCE);
	assert_true(stats(&l.fx).worker_hung > 0);
	symbolizer_close(l.fx.s, l.files[0]);
	fixture_fini(&l.fx);
}

/* The kernel keeps what is in nobody's table. */
static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Each of these lacks one thing; what a table says is looked at elsewhere. */
static void only_a_sealed_and_whole_memfd_is_mapped(void **state)
{
	const size_t len = FAKE_TABLE;
	static const int seals[] = { 0, FAKE_SEALS & ~F_SEAL_SEAL,
				     FAKE_SEALS & ~F_SEAL_SHRINK,
				     FAKE_SEALS & ~F_SEAL_GROW,
				     FAKE_SEALS & ~F_SEAL_WRITE };
	int good = fake_memfd(len, len, FAKE_SEALS), fd, pipes[2];
	char *p = worker_table_map(good, len);

	assert_non_null(p);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(p[i], 0);
	assert_int_equal(munmap(p, len), 0);
	assert_null(worker_table_map(good, len - 1));
	assert_null(worker_table_map(good, len + 1));
	assert_null(worker_table_map(good, 0));
	assert_null(worker_table_map(good, UINT64_MAX));
	close(good);
	for (size_t i = 0; i < ARRAY_SIZE(seals); i++) {
		fd = fake_memfd(len, len, seals[i]);
		assert_null(worker_table_map(fd, len));
		close(fd);
	}
	fd = fake_memfd(len / 2, len, FAKE_SEALS);
	assert_null(worker_table_map(fd, len));
	close(fd);
	fd = fake_memfd_beyond(len / 2, len);
	assert_null(worker_table_map(fd, len));
	close(fd);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_null(worker_table_map(fd, 4096));
	close(fd);
	assert_int_equal(pipe(pipes), 0);
	assert_null(worker_table_map(pipes[0], len));
	close(pipes[0]);
	close(pipes[1]);
}

/* The first of several is no descriptor of ours either. */
static void a_message_has_one_descriptor_at_most(void **state)
{
	struct worker_hello h = { 0 };
	int pair[2], fds[2], before = count_fds();

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0,
				    pair),
			 0);
	assert_int_equal(worker_send(pair[0], &h.head, WORKER_HELLO, sizeof(h),
				     0, pair[0]),
			 0);
	assert_int_equal(worker_recv(pair[1], &fake_in), 0);
	assert_true(fake_in.fd >= 0);
	worker_in_close(&fake_in);
	fds[0] = fds[1] = pair[0];
	h.head.len = sizeof(h);
	fake_send_fds(pair[0], &h, sizeof(h), fds);
	assert_int_equal(worker_recv(pair[1], &fake_in), -EPROTO);
	assert_int_equal(fake_in.fd, -1);
	assert_int_equal(worker_recv(pair[1], &fake_in), -EAGAIN);
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(count_fds(), before);
}

/* What the worker makes is such a one. */
static void a_table_that_was_made_is_mapped(void **state)
{
	static char text[100000];
	void *p;
	int fd;

	memset(text, 7, sizeof(text));
	fd = worker_table_make(text, sizeof(text));
	assert_true(fd >= 0);
	p = worker_table_map(fd, sizeof(text));
	close(fd);
	assert_non_null(p);
	assert_memory_equal(p, text, sizeof(text));
	munmap(p, sizeof(text));
}

static void descriptors_that_come_with_lies_are_closed(void **state)
{
	static const char *const lies[] = { "two_fds", "an_fd", "garbage",
					    "pipe", "small_fd" };
	int before = count_fds();

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++)
		for (size_t k = 0; k < ARRAY_SIZE(fake_lies); k++)
			if (!strcmp(lies[i], fake_lies[k].name))
				one_lie(&fake_lies[k]);
	assert_int_equal(count_fds(), before);
}

/* Changed, it is another file. */
static void a_quarantined_file_is_read_again_when_it_changed(void **state)
{
	const uint64_t at = 0x1000;
	struct load_ref ref;
	struct load l;

	load_open(&l, &fake_lies[0]);
	ref = (struct load_ref){ &l, 1 };
	symbolizer_resolve(l.fx.s, l.files[1], &at, 1, on_load_names, &ref);
	wait_for(&l.fx, &l.answers, 1);
	assert_int_equal(l.errors[1], -EBADMSG);
	assert_int_equal(open_path(&l.fx, in_dir("evil.so")), -EBADMSG);
	/* As long as before, and at the same place. */
	sh("sed 's/EVIL/GOOD/g' evil.so > new.so && cat new.so > evil.so && "
	   "touch -d 2001-01-01 evil.so");
	assert_int_equal(open_path(&l.fx, in_dir("evil.so")), 0);
	expect_name(&l.fx, at, "honest");
	for (int i = 0; i < 3; i++)
		symbolizer_close(l.fx.s, l.files[i]);
	fixture_fini(&l.fx);
	make_library("evil.so", "EVIL");
}

static int setup_files(void **state)
{
	int err = setup(state);

	make_library("a.so", "fn");
	make_library("b.so", "fn");
	make_library("evil.so", "EVIL");
	return err;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_lie_costs_its_own_file_only),
		cmocka_unit_test(each_job_has_its_own_questions),
		cmocka_unit_test(paths_of_quarantined_files_are_text),
		cmocka_unit_test(a_large_table_is_refused),
		cmocka_unit_test(an_address_has_a_list_of_functions),
		cmocka_unit_test(a_list_of_functions_has_limits),
		cmocka_unit_test(lies_in_tables_are_told_for_tables),
		cmocka_unit_test(questions_of_a_request_share_its_deadline),
		cmocka_unit_test(only_a_sealed_and_whole_memfd_is_mapped),
		cmocka_unit_test(a_message_has_one_descriptor_at_most),
		cmocka_unit_test(a_table_that_was_made_is_mapped),
		cmocka_unit_test(descriptors_that_come_with_lies_are_closed),
		cmocka_unit_test(
			a_quarantined_file_is_read_again_when_it_changed),
	};

	if (argc == 3 && !strcmp(argv[1], "fake"))
		return fake_main(argv[2]);
	worker_or_test(argc, argv);
	return cmocka_run_group_tests(tests, setup_files, teardown);
}
