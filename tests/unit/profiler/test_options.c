// SPDX-License-Identifier: Apache-2.0
/* The command line and the configuration file, and their errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "profiler/cmd/options_table.h"

#define MAX_ARGS 16

struct parsed {
	struct options o;
	enum options_result res;
	char msg[512];
	char *argv[MAX_ARGS];
	char text[512];
};

/* Splits 'line' at blanks; its first word is the command. */
static void parse(struct parsed *p, const char *line)
{
	int argc = 0;
	char *word;

	memset(p, 0, sizeof(*p));
	snprintf(p->text, sizeof(p->text), "%s", line);
	for (word = strtok(p->text, " "); word; word = strtok(NULL, " "))
		p->argv[argc++] = word;
	p->res = options_parse(&p->o, options_command(p->argv[0]), argc,
			       p->argv, p->msg, sizeof(p->msg));
}

/* A configuration file of this text; the path is static. */
static const char *config(const char *text)
{
	static char path[64];
	size_t len = strlen(text);
	int fd;

	snprintf(path, sizeof(path), "/tmp/test_options.XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	close(fd);
	return path;
}

static void parse_config(struct parsed *p, const char *flags, const char *text)
{
	const char *path = config(text);
	char line[256];

	snprintf(line, sizeof(line), "run --config %s %s", path, flags);
	parse(p, line);
	unlink(path);
}

static void commands_have_names(void **state)
{
	assert_int_equal(options_command("run"), OPTIONS_BIT_RUN);
	assert_int_equal(options_command("status"), OPTIONS_BIT_STATUS);
	assert_int_equal(options_command("runs"), -1);
	assert_int_equal(options_command(""), -1);
}

static void without_flags_defaults_hold(void **state)
{
	struct parsed p;

	parse_config(&p, "", "");
	assert_string_equal(p.msg, "");
	assert_int_equal(p.res, OPTIONS_OK);
	assert_string_equal(p.o.archive, "/var/lib/profd");
	assert_int_equal(p.o.listen.n, 1);
	assert_string_equal(p.o.listen.items[0], OPTIONS_SERVER);
	assert_int_equal(p.o.freq, 99);
	assert_int_equal(p.o.window, 60);
	assert_int_equal(p.o.stack_copy, 0); /* the default of the source */
	assert_int_equal(p.o.ring_size, 16 << 20);
	assert_int_equal(p.o.source, SOURCE_AUTO);
	assert_int_equal(p.o.archive_format, REPORTER_GZIP);
	assert_int_equal(p.o.log_level, LOG_INFO);
	options_fini(&p.o);

	parse(&p, "record");
	assert_int_equal(p.res, OPTIONS_OK);
	assert_string_equal(p.o.output, "profd.pb.gz");
	assert_int_equal(p.o.duration, 0);
	assert_int_equal(p.o.pid.n, 0);
	assert_false(p.o.all);
	options_fini(&p.o);

	parse(&p, "fetch");
	assert_int_equal(p.o.fetch_duration, 30);
	assert_string_equal(p.o.server, OPTIONS_SERVER);
	options_fini(&p.o);
}

static void flags_set_values(void **state)
{
	struct parsed p;

	parse(&p, "record -F 997 --duration=5m -p 1 --pid 4194304 -q -o x.pb "
		  "--stack-copy 128K --ring-size 1M");
	assert_string_equal(p.msg, "");
	assert_int_equal(p.res, OPTIONS_OK);
	assert_int_equal(p.o.freq, 997);
	assert_int_equal(p.o.duration, 300);
	assert_int_equal(p.o.pid.n, 2);
	assert_int_equal(p.o.pid.items[0], 1);
	assert_int_equal(p.o.pid.items[1], 4194304);
	assert_true(p.o.quiet);
	assert_string_equal(p.o.output, "x.pb");
	assert_int_equal(p.o.stack_copy, 131072);
	assert_int_equal(p.o.ring_size, 1 << 20);
	options_fini(&p.o);

	parse(&p, "run --wait");
	assert_int_equal(p.o.wait_min, 1000000);
	options_fini(&p.o);
	parse(&p, "run --wait-min 500us");
	assert_int_equal(p.o.wait_min, 500000);
	options_fini(&p.o);

	parse(&p, "fetch --server http://a.example/x -d 1h -f -q");
	assert_int_equal(p.res, OPTIONS_OK);
	assert_string_equal(p.o.server, "http://a.example/x");
	assert_int_equal(p.o.fetch_duration, 3600);
	assert_true(p.o.force);
	assert_true(p.o.quiet);
	options_fini(&p.o);
}

static void a_command_keeps_its_own_flags(void **state)
{
	static const char *const lines[] = {
		"record -a -- ls -l --freq 3",
		"record -a ls -l --freq 3",
	};
	struct parsed p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		parse(&p, lines[i]);
		assert_int_equal(p.res, OPTIONS_OK);
		assert_int_equal(p.o.freq, 99);
		assert_int_equal(p.o.nargs, 4);
		assert_string_equal(p.o.args[0], "ls");
		assert_string_equal(p.o.args[3], "3");
		assert_null(p.o.args[4]);
		options_fini(&p.o);
	}
}

struct wrong {
	const char *line, *msg;
};

static void check_wrong(const struct wrong *cases, size_t n)
{
	struct parsed p;
	size_t i;

	for (i = 0; i < n; i++) {
		parse(&p, cases[i].line);
		assert_string_equal(p.msg, cases[i].msg);
		assert_int_equal(p.res, OPTIONS_USAGE);
		options_fini(&p.o);
	}
}

static void an_unknown_option_is_reported(void **state)
{
	static const struct wrong cases[] = {
		{ "run --frek 9",
		  "profd run: unknown option '--frek' (is it --freq?)" },
		{ "run --frek=9",
		  "profd run: unknown option '--frek' (is it --freq?)" },
		{ "run --verbose", "profd run: unknown option '--verbose' "
				   "(see profd run --help)" },
		{ "run -x", "profd run: unknown option '-x' "
			    "(see profd run --help)" },
		{ "status --freq 9",
		  "profd status: unknown option '--freq' (run and record "
		  "have it; see profd status --help)" },
		{ "status -F 9",
		  "profd status: unknown option '-F' (run and record have it; "
		  "see profd status --help)" },
		{ "status --output=x",
		  "profd status: unknown option '--output' (record, fetch, "
		  "symbolize-profile and report have it; see profd "
		  "status --help)" },
		{ "run --tree",
		  "profd run: unknown option '--tree' (ps, "
		  "report and diff have it; see profd run --help)" },
		{ "fetch --seconds 9",
		  "profd fetch: unknown option '--seconds' (is it "
		  "--duration?)" },
		{ "record --durtion 9",
		  "profd record: unknown option '--durtion' (is it "
		  "--duration?)" },
		{ "fetch -d 2h", "profd fetch: --duration '2h': must be a "
				 "time from 1 to 3600 seconds (90, 90s, 5m)" },
		{ "ps --sort age",
		  "profd ps: --sort 'age': must be one of cpu cpu-rate "
		  "samples start pid user name" },
		{ "events --since noon",
		  "profd events: --since 'noon': must be how long ago (90, "
		  "5m, 2h) or a time (14:30, 2026-08-21 14:30)" },
		{ "run --version=3",
		  "profd run: option --version takes no value" },
	};

	check_wrong(cases, ARRAY_SIZE(cases));
}

static void wrong_usage_is_reported(void **state)
{
	static const struct wrong cases[] = {
		{ "run --freq", "profd run: option --freq needs a value: HZ" },
		{ "record -F",
		  "profd record: option --freq needs a value: HZ" },
		{ "record --all=3",
		  "profd record: option --all takes no value" },
		{ "run --help=3", "profd run: option --help takes no value" },
		{ "run now", "profd run: argument 'now' is not expected "
			     "(see profd run --help)" },
		{ "run --freq 0", "profd run: --freq '0': must be a number "
				  "from 1 to 10000" },
		{ "record -F 10001", "profd record: --freq '10001': must be a "
				     "number from 1 to 10000" },
		{ "run --freq 9x", "profd run: --freq '9x': must be a number "
				   "from 1 to 10000" },
		{ "run --freq -9", "profd run: --freq '-9': must be a number "
				   "from 1 to 10000" },
		{ "run --freq 99999999999999999999",
		  "profd run: --freq '99999999999999999999': must be a number "
		  "from 1 to 10000" },
		{ "run --wait-min 99us",
		  "profd run: --wait-min '99us': must be a time from 100us "
		  "to 1h (500us, 1ms, 2s)" },
		{ "run --stack-copy 4095",
		  "profd run: --stack-copy '4095': must be a size from 4K to "
		  "256K (64K, 65536)" },
		{ "run --stack-copy 18014398509482048K",
		  "profd run: --stack-copy '18014398509482048K': must be a "
		  "size from 4K to 256K (64K, 65536)" },
		{ "run --window 61m", "profd run: --window '61m': must be a "
				      "time from 1 to 3600 seconds "
				      "(90, 90s, 5m)" },
		{ "run --archive=",
		  "profd run: --archive '': must not be empty" },
		{ "run --log-level loud",
		  "profd run: --log-level 'loud': must be one of error warn "
		  "info debug" },
		{ "run --archive-format xz",
		  "profd run: --archive-format 'xz': must be one of "
		  "gz zst" },
		{ "run --listen 7763", "profd run: --listen '7763': must be "
				       "unix:PATH or HOST:PORT" },
		{ "run --listen unix:", "profd run: --listen 'unix:': must be "
					"unix:PATH or HOST:PORT" },
		{ "run --listen a:65536",
		  "profd run: --listen 'a:65536': must be unix:PATH or "
		  "HOST:PORT" },
		{ "run --listen http://a",
		  "profd run: --listen 'http://a': must be unix:PATH or "
		  "HOST:PORT" },
		{ "status --server x", "profd status: --server 'x': must be "
				       "unix:PATH, HOST:PORT or "
				       "http[s]://HOST:PORT" },
	};

	check_wrong(cases, ARRAY_SIZE(cases));
}

/* Names and letters are unique among the options of a command. */
static void options_of_a_command_are_distinct(void **state)
{
	const struct options_entry *a, *b;
	size_t i, k;

	for (i = 0; i < OPTIONS_ID_MAX; i++) {
		a = &options_table[i];
		assert_int_not_equal(a->letter, 'h');
		assert_int_not_equal(a->letter, 'V');
		for (k = 0; k < i; k++) {
			b = &options_table[k];
			if (!(a->commands & b->commands))
				continue;
			assert_string_not_equal(a->name, b->name);
			assert_true(!a->letter || a->letter != b->letter);
		}
	}
}

/* Options of the same name have the same letter in all commands. */
static void a_name_has_one_letter(void **state)
{
	size_t i, k;

	for (i = 0; i < OPTIONS_ID_MAX; i++)
		for (k = 0; k < i; k++)
			if (!strcmp(options_table[i].name,
				    options_table[k].name))
				assert_int_equal(options_table[i].letter,
						 options_table[k].letter);
}

static void options_may_follow_arguments(void **state)
{
	struct parsed p;

	parse(&p, "ps 12 --sort start 13 -w");
	assert_string_equal(p.msg, "");
	assert_int_equal(p.o.nargs, 2);
	assert_string_equal(p.o.args[1], "13");
	assert_int_equal(p.o.sort, OPTIONS_SORT_START);
	assert_true(p.o.ps_wide);
	options_fini(&p.o);
}

static void help_and_version_are_results(void **state)
{
	struct parsed p;

	parse(&p, "ps -h");
	assert_int_equal(p.res, OPTIONS_HELP);
	options_fini(&p.o);
	parse(&p, "record -V");
	assert_int_equal(p.res, OPTIONS_VERSION);
	options_fini(&p.o);
	assert_string_equal(options_nearest_command("recrod"), "record");
	assert_string_equal(options_nearest_command("hlp"), "help");
	assert_null(options_nearest_command("frobnicate"));
}

static void a_time_is_a_duration_or_a_clock_time(void **state)
{
	uint64_t now = time(NULL);
	struct parsed p;
	struct tm tm;
	time_t t;

	parse(&p, "events --since 5m --type fork,exec --type reap");
	assert_string_equal(p.msg, "");
	assert_in_range(p.o.since, now - 300, now - 290);
	assert_int_equal(p.o.type.n, 2);
	options_fini(&p.o);
	parse(&p, "events --since 2026-08-21T14:30");
	t = p.o.since;
	localtime_r(&t, &tm);
	assert_int_equal(tm.tm_mon, 7);
	assert_int_equal(tm.tm_hour, 14);
	assert_int_equal(tm.tm_sec, 0);
	options_fini(&p.o);
	/* The result is not in the future. */
	parse(&p, "events --since 23:59:59");
	assert_in_range(p.o.since, now - 86400 - 3700, now + 1);
	options_fini(&p.o);
}

static void a_flag_overrides_the_file_and_the_default(void **state)
{
	static const char text[] = "# a comment\n"
				   "freq = 49\n"
				   "window = 5m ; another\n"
				   "listen = 127.0.0.1:1\n"
				   "listen = unix:/x\n"
				   "log-level = debug\n";
	struct parsed p;

	parse_config(&p, "", text);
	assert_string_equal(p.msg, "");
	assert_int_equal(p.o.freq, 49);
	assert_int_equal(p.o.window, 300);
	assert_int_equal(p.o.listen.n, 2);
	assert_string_equal(p.o.listen.items[1], "unix:/x");
	assert_int_equal(p.o.log_level, LOG_DEBUG);
	assert_int_equal(p.o.stack_copy, 0);
	options_fini(&p.o);

	parse_config(&p, "--freq 7 --listen [::1]:9", text);
	assert_int_equal(p.o.freq, 7);
	assert_int_equal(p.o.window, 300);
	assert_int_equal(p.o.listen.n, 1);
	assert_string_equal(p.o.listen.items[0], "[::1]:9");
	options_fini(&p.o);
}

static void a_flag_is_yes_or_no_in_a_file(void **state)
{
	struct parsed p;

	parse_config(&p, "", "");
	assert_false(p.o.wait);
	options_fini(&p.o);
	parse_config(&p, "", "wait = yes\n");
	assert_true(p.o.wait);
	options_fini(&p.o);
	parse_config(&p, "", "wait = no\n");
	assert_string_equal(p.msg, "");
	assert_false(p.o.wait);
	options_fini(&p.o);
	parse_config(&p, "--wait", "wait = no\n");
	assert_true(p.o.wait);
	options_fini(&p.o);
}

static void errors_in_a_file_have_the_line(void **state)
{
	static const struct {
		const char *text, *msg;
	} cases[] = {
		{ "\n\nx = 1\n", ":3: unknown key 'x'" },
		{ "pid = 1\n", ":1: unknown key 'pid'" },
		{ "freq = 1\n[push]\nfreq = 2\n",
		  ":3: unknown section 'push'" },
		{ "# c\nfreq = 0\nx = 1\n", ":2: freq '0': must be a number "
					    "from 1 to 10000" },
		{ "freq = 9\nfreq\nx = 1\n",
		  ":2: neither 'key = value' nor a comment" },
		{ "x = 1\nfreq\n", ":1: unknown key 'x'" },
		{ "wait = 1\n", ":1: wait '1': must be yes or no" },
		{ "freq =\n", ":1: freq '': must be a number from 1 to 10000" },
	};
	struct parsed p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		parse_config(&p, "", cases[i].text);
		assert_memory_equal(p.msg, "profd: /", 8);
		assert_non_null(strchr(p.msg + 7, ':'));
		assert_string_equal(strchr(p.msg + 7, ':'), cases[i].msg);
		assert_int_equal(p.res, OPTIONS_USAGE);
		options_fini(&p.o);
	}
}

static void a_long_line_is_an_error(void **state)
{
	char text[600] = "freq = 9\narchive = /", *at;
	struct parsed p;

	at = text + strlen(text);
	memset(at, 'x', 400);
	strcpy(at + 400, "\nwindow = 9\n");
	parse_config(&p, "", text);
	assert_non_null(strstr(p.msg, ":2: longer than "));
	assert_int_equal(p.res, OPTIONS_USAGE);
	options_fini(&p.o);
}

static void a_file_of_a_flag_must_exist(void **state)
{
	struct parsed p;

	parse(&p, "run --config /nonexistent/x");
	assert_string_equal(p.msg,
			    "profd: /nonexistent/x: No such file or directory");
	assert_int_equal(p.res, OPTIONS_FAILED);
	options_fini(&p.o);

	parse(&p, "run --config /tmp");
	assert_string_equal(p.msg, "profd: /tmp: cannot be read");
	assert_int_equal(p.res, OPTIONS_FAILED);
	options_fini(&p.o);
}

/* --help has all options of a command and no others. */
static void help_lists_the_options(void **state)
{
	struct parsed p;
	size_t cmd, i;

	for (cmd = 0; cmd < OPTIONS_COMMAND_MAX; cmd++) {
		struct strbuf sb = STRBUF_INIT;

		options_help(cmd, &sb);
		assert_false(sb.failed);
		for (i = 0; i < OPTIONS_ID_MAX; i++) {
			char name[40];

			snprintf(name, sizeof(name), "--%s ",
				 options_table[i].name);
			if (options_find(cmd, options_table[i].name))
				assert_non_null(strstr(sb.data, name));
			else
				assert_null(strstr(sb.data, name));
		}
		strbuf_fini(&sb);
	}
	parse(&p, "record -F 9 --help --nonsense");
	assert_int_equal(p.res, OPTIONS_HELP);
	options_fini(&p.o);
	parse(&p, "run -h");
	assert_int_equal(p.res, OPTIONS_HELP);
	options_fini(&p.o);
}

static void the_usage_lists_the_commands(void **state)
{
	struct strbuf sb = STRBUF_INIT;
	size_t i;

	options_usage(&sb);
	for (i = 0; i < OPTIONS_COMMAND_MAX; i++) {
		char word[40];
		const char *line;

		snprintf(word, sizeof(word), "\n  %s",
			 options_commands[i].word);
		line = strstr(sb.data, word);
		assert_non_null(line);
		assert_non_null(strchr(" \n", line[strlen(word)]));
	}
	strbuf_fini(&sb);
}

static void debug_takes_options_anywhere(void **state)
{
	struct parsed p;

	parse(&p, "debug unwind-table a --stats");
	assert_int_equal(p.res, OPTIONS_OK);
	assert_true(p.o.stats);
	assert_int_equal(p.o.nargs, 2);
	assert_string_equal(p.o.args[0], "unwind-table");
	assert_string_equal(p.o.args[1], "a");
	options_fini(&p.o);
	/* record leaves options after the command to the command. */
	parse(&p, "record a --stats");
	assert_int_equal(p.res, OPTIONS_OK);
	assert_int_equal(p.o.nargs, 2);
	options_fini(&p.o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands_have_names),
		cmocka_unit_test(without_flags_defaults_hold),
		cmocka_unit_test(flags_set_values),
		cmocka_unit_test(a_command_keeps_its_own_flags),
		cmocka_unit_test(an_unknown_option_is_reported),
		cmocka_unit_test(wrong_usage_is_reported),
		cmocka_unit_test(options_of_a_command_are_distinct),
		cmocka_unit_test(a_name_has_one_letter),
		cmocka_unit_test(options_may_follow_arguments),
		cmocka_unit_test(help_and_version_are_results),
		cmocka_unit_test(a_time_is_a_duration_or_a_clock_time),
		cmocka_unit_test(a_flag_overrides_the_file_and_the_default),
		cmocka_unit_test(a_flag_is_yes_or_no_in_a_file),
		cmocka_unit_test(errors_in_a_file_have_the_line),
		cmocka_unit_test(a_long_line_is_an_error),
		cmocka_unit_test(a_file_of_a_flag_must_exist),
		cmocka_unit_test(help_lists_the_options),
		cmocka_unit_test(the_usage_lists_the_commands),
		cmocka_unit_test(debug_takes_options_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
