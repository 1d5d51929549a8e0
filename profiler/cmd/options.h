/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: what the user asked for, from the one table in options.def. A flag
 * beats the configuration file, which beats the default.
 */
#ifndef PROFILER_OPTIONS_H
#define PROFILER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "profiler/source/source.h"
#include "reporter/reporter.h"

#define OPTIONS_CONFIG "/etc/profd/profd.conf"
#define OPTIONS_SERVER "unix:/run/profd/profd.sock"

/* X(name, word, arguments beside options, what it does) */
#define OPTIONS_COMMANDS(X)                                                 \
	X(RUN, run, "", "Profile this host until stopped.")                 \
	X(RECORD, record, " [--] [COMMAND [ARGUMENT...]]",                  \
	  "Record one profile: of a command and all it starts, of some\n"   \
	  "processes (--pid), or of the host (--all).")                     \
	X(FETCH, fetch, "",                                                 \
	  "Fetch a profile of the host from a running profd.")              \
	X(PS, ps, " [PID...]",                                              \
	  "Print the processes that a running profd knows, or these.")      \
	X(EVENTS, events, "",                                               \
	  "Print the process events that a running profd has seen.")        \
	X(STATUS, status, "", "Print how a running profd is doing.")        \
	X(DEBUG, debug,                                                     \
	  " unwind-table FILE | unwind FILE:PC... | files [ID...]",         \
	  "Print how profd unwinds the stacks of an executable; or which\n" \
	  "executables a running profd knows.")

enum options_command {
#define X(name, word, args, help) OPTIONS_BIT_##name,
	OPTIONS_COMMANDS(X)
#undef X
	OPTIONS_COMMAND_MAX,
};

enum options_flag {
#define X(name, word, args, help) OPTIONS_##name = 1 << OPTIONS_BIT_##name,
	OPTIONS_COMMANDS(X)
#undef X
};

struct options_strings {
	const char **items;
	size_t n;
};

struct options_numbers {
	uint64_t *items;
	size_t n;
};

/* What profd ps may be sorted by. X(NAME, word) */
#define OPTIONS_SORTS(X)    \
	X(CPU, cpu)         \
	X(SAMPLES, samples) \
	X(START, start)     \
	X(PID, pid)         \
	X(USER, user)       \
	X(NAME, name)

enum options_sort {
	OPTIONS_SORT_NONE, /* not said */
#define X(name, word) OPTIONS_SORT_##name,
	OPTIONS_SORTS(X)
#undef X
};

/* The member that holds a value of each type; TIME is in Unix seconds. */
#define OPTIONS_TYPES(X)                     \
	X(FLAG, bool)                        \
	X(NUMBER, uint64_t)                  \
	X(SIZE, uint64_t)                    \
	X(SECONDS, uint64_t)                 \
	X(STRING, const char *)              \
	X(SERVER, const char *)              \
	X(LEVEL, enum log_level)             \
	X(SORT, enum options_sort)           \
	X(TIME, uint64_t)                    \
	X(SOURCE, enum source)               \
	X(FORMAT, enum reporter_format)      \
	X(STRINGS, struct options_strings)   \
	X(ADDRESSES, struct options_strings) \
	X(NUMBERS, struct options_numbers)

#define X(name, type) typedef type options_##name;
OPTIONS_TYPES(X)
#undef X

/* Everything in it lives until options_fini(). */
struct options {
#define OPTION(id, name, key, type, ...) options_##type id;
#include "profiler/cmd/options.def"
#undef OPTION
	/* What stood behind the options; points into argv, NULL at the end. */
	char **args;
	size_t nargs;
	struct arena arena;
};

/* The command named 'word', or -1. */
int options_command(const char *word);

enum options_result {
	OPTIONS_OK = 0,
	OPTIONS_FAILED = 1, /* these two are exit statuses */
	OPTIONS_USAGE = 2,
	OPTIONS_HELP, /* --help was asked for */
	OPTIONS_VERSION, /* --version was */
};

/*
 * Reads argv (argv[0] is the command's word), then the configuration file if
 * the command has one. Unless OK, HELP or VERSION, one line without newline is in
 * 'msg', which names the option and the value, and what is allowed. *o is
 * always to be ended with options_fini().
 */
enum options_result options_parse(struct options *o, enum options_command cmd,
				  int argc, char **argv, char *msg,
				  size_t msglen);
void options_fini(struct options *o);

/* The text of `profd --help`, and of `profd COMMAND --help`. */
void options_usage(struct strbuf *out);
void options_help(enum options_command cmd, struct strbuf *out);

#endif /* PROFILER_OPTIONS_H */
