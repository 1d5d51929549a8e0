// SPDX-License-Identifier: Apache-2.0
/* profd: which command, and its options. */
#include <stdio.h>
#include <string.h>

#include "profiler/cmd.h"
#include "symbolize/symbolize.h"

static int (*const commands[])(const struct options *o) = {
#define X(name, word, args, help) [OPTIONS_BIT_##name] = cmd_##word,
	OPTIONS_COMMANDS(X)
#undef X
};

/* Prints what was asked for; an exit status. */
static int print(struct strbuf *text)
{
	int err =
		text->failed || fputs(text->data, stdout) < 0 || fflush(stdout);

	strbuf_fini(text);
	return err ? cmd_fail("standard output cannot be written") : 0;
}

static int usage(const char *what, const char *word)
{
	fprintf(stderr, "profd: %s%s%s%s (see profd --help)\n", what,
		word ? " '" : "", word ? word : "", word ? "'" : "");
	return OPTIONS_USAGE;
}

static int run_command(enum options_command cmd, int argc, char **argv)
{
	struct strbuf help = STRBUF_INIT;
	struct options o;
	char msg[1024];
	int status;

	status = options_parse(&o, cmd, argc, argv, msg, sizeof(msg));
	if (status == OPTIONS_OK) {
		status = commands[cmd](&o);
	} else if (status == OPTIONS_HELP) {
		options_help(cmd, &help);
		status = print(&help);
	} else {
		fprintf(stderr, "%s\n", msg);
	}
	options_fini(&o);
	return status;
}

int main(int argc, char **argv)
{
	struct strbuf text = STRBUF_INIT;
	int cmd;

	if (argc < 2)
		return usage("a command is needed", NULL);
	/* Not for people: profd runs itself so. */
	if (!strcmp(argv[1], SYMBOLIZER_WORKER))
		return symbolizer_worker_main(argc, argv);
	if (!strcmp(argv[1], "--version")) {
		strbuf_puts(&text, "profd " PROFD_VERSION "\n");
		return print(&text);
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		options_usage(&text);
		return print(&text);
	}
	cmd = options_command(argv[1]);
	if (cmd >= 0)
		return run_command(cmd, argc - 1, argv + 1);
	return usage(argv[1][0] == '-' ? "unknown option" : "unknown command",
		     argv[1]);
}
