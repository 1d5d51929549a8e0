// SPDX-License-Identifier: Apache-2.0
/* main: the choice of the command, and its options. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profiler/cmd/cmd.h"
#include "profiler/cmd/completion.h"
#include "profiler/rescan/mapsreader.h"
#include "profiler/cmd/options_table.h"
#include "profiler/tracing/connector.h"
#include "symbolize/symbolize.h"

static int (*const commands[])(const struct options *o) = {
#define X(name, id, ...) [OPTIONS_BIT_##name] = cmd_##id,
	OPTIONS_COMMANDS(X)
#undef X
};

static int main_usage(const char *what, const char *word, const char *near)
{
	fprintf(stderr, "profd: %s%s%s%s (", what, word ? " '" : "",
		word ? word : "", word ? "'" : "");
	if (near)
		fprintf(stderr, "is it %s?)\n", near);
	else
		fprintf(stderr, "see profd --help)\n");
	return OPTIONS_USAGE;
}

static int print_version(void)
{
	struct strbuf text = STRBUF_INIT;

	strbuf_puts(&text, "profd " PROFD_VERSION "\n");
	return cmd_print(&text);
}

/* Of `profd debug`, that of the command in 'args' (NULL-terminated), if there is one. */
static int print_help(enum options_command cmd, char **args)
{
	struct strbuf text = STRBUF_INIT;
	int sub = -1;

	for (; cmd == OPTIONS_BIT_DEBUG && *args && sub < 0; args++)
		sub = options_debug_command(*args);
	if (sub >= 0)
		options_debug_help(sub, &text);
	else
		options_help(cmd, &text);
	return cmd_print(&text);
}

/* For `make install`. */
static int print_completion(const char *shell)
{
	struct strbuf text = STRBUF_INIT;

	if (completion_script(shell, &text))
		return cmd_print(&text);
	return main_usage("completion: bash or zsh, not", shell, NULL);
}

static int main_unknown(const char *word)
{
	if (word[0] == '-')
		return main_usage("unknown option", word, NULL);
	return main_usage("unknown command", word,
			  options_nearest_command(word));
}

/* profd help [COMMAND], profd help debug COMMAND */
static int main_help(int argc, char **argv)
{
	struct strbuf text = STRBUF_INIT;
	int cmd = argc > 1 ? options_command(argv[1]) : -1;
	int most = cmd == OPTIONS_BIT_DEBUG && argc > 2 &&
				   options_debug_command(argv[2]) >= 0
			   ? 3
			   : 2;

	if (argc > most)
		return main_usage("help takes one command, not also",
				  argv[most], NULL);
	if (argc > 1)
		return cmd >= 0 ? print_help(cmd, argv + 2)
				: main_unknown(argv[1]);
	options_usage(&text);
	return cmd_print(&text);
}

static int run_command(enum options_command cmd, int argc, char **argv)
{
	struct options o;
	char msg[1024];
	int status;

	status = options_parse(&o, cmd, argc, argv, msg, sizeof(msg));
	if (status == OPTIONS_OK)
		status = commands[cmd](&o);
	else if (status == OPTIONS_HELP)
		status = print_help(cmd, argv + 1);
	else if (status == OPTIONS_VERSION)
		status = print_version();
	else
		fprintf(stderr, "%s\n", msg);
	options_fini(&o);
	return status;
}

static bool main_is_word(const char *arg, const char *letter, const char *word)
{
	return !strcmp(arg, letter) || !strcmp(arg, word);
}

/*
 * If a standard descriptor is closed, the next file opened would take its place:
 * messages would be written into it, and libuv aborts when it closes one. /dev/null
 * takes the place instead, as the lowest free descriptor; in a root directory without
 * it, a descriptor that can neither be read nor written. Because of O_CLOEXEC the
 * command of profd record gets its descriptors as they were.
 */
static void main_open_standard(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
		    open("/dev/null", O_RDWR | O_CLOEXEC) < 0 &&
		    open("/", O_PATH | O_CLOEXEC) < 0)
			return;
}

static void main_on_large_file(int signum)
{
}

/*
 * A write beyond RLIMIT_FSIZE fails with EFBIG, an error as any other, instead of
 * killing the process. Unlike SIG_IGN a handler is not inherited over exec: the command
 * of profd record gets the signal as profd got it.
 */
static void main_survive_large_files(void)
{
	struct sigaction was, sa = { .sa_handler = main_on_large_file,
				     .sa_flags = SA_RESTART };

	if (!sigaction(SIGXFSZ, NULL, &was) && was.sa_handler == SIG_DFL)
		sigaction(SIGXFSZ, &sa, NULL);
}

int main(int argc, char **argv)
{
	int cmd;

	main_open_standard();
	main_survive_large_files();
	if (argc < 2)
		return main_usage("a command is needed", NULL, NULL);
	/* Worker processes of profd. */
	if (symbolizer_worker_wanted(argc, argv))
		return symbolizer_worker_main(argc, argv);
	if (mapsreader_wanted(argc, argv))
		return mapsreader_main();
	if (connector_wanted(argc, argv))
		return connector_main();
	if (!strcmp(argv[1], COMPLETION_COMMAND))
		return print_completion(argc > 2 ? argv[2] : "");
	if (main_is_word(argv[1], "-V", "--version") ||
	    !strcmp(argv[1], "version"))
		return print_version();
	if (main_is_word(argv[1], "-h", "--help"))
		return main_help(1, argv);
	if (!strcmp(argv[1], "help"))
		return main_help(argc - 1, argv + 1);
	cmd = options_command(argv[1]);
	return cmd >= 0 ? run_command(cmd, argc - 1, argv + 1)
			: main_unknown(argv[1]);
}
