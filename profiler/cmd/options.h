/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options: the values of the table options.def. A flag overrides the configuration
 * file, which overrides the default.
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

/* X(NAME, id, "word", arguments beside options, help); cmd_id() runs it */
#define OPTIONS_COMMANDS(X)                                                     \
	X(RUN, run, "run", "", "Profile this host until stopped.")              \
	X(RECORD, record, "record", " [--] [COMMAND [ARGUMENT...]]",            \
	  "Record one profile of a command and its descendants, of some\n"      \
	  "processes (--pid), or of the host (--all).")                         \
	X(FETCH, fetch, "fetch", "",                                            \
	  "Write a profile of the host, of the next seconds or of the past,\n"  \
	  "from a running profd or an archive.")                                \
	X(PS, ps, "ps", " [PID...]",                                            \
	  "List processes with CPU time and samples, from a running profd.")    \
	X(EVENTS, events, "events", "",                                         \
	  "List forks, execs and exits of processes, from a running profd.")    \
	X(WATCH, watch, "watch", " NAME[/CATEGORY]...",                         \
	  "Print events of the kernel as they happen: TCP, signals, forks,\n"   \
	  "execs and exits, each with its process, by a running profd.")        \
	X(TIMELINE, timeline, "timeline", " PID",                               \
	  "Print what the threads of a process did one after the other, and\n"  \
	  "what woke them, from a running profd with --wait.")                  \
	X(WHY, why, "why", " PID",                                              \
	  "Print where the time of a thread went, through what woke it, from\n" \
	  "a running profd with --wait.")                                       \
	X(STATUS, status, "status", "",                                         \
	  "Print the state and the losses of a running profd.")                 \
	X(SYMBOLIZE, symbolize_profile, "symbolize-profile", " IN -o OUT",      \
	  "Add names, inlined functions and lines to a profile, from files\n"   \
	  "with the build ids of its mappings.")                                \
	X(REPORT, report, "report", " [FILE...]",                               \
	  "Print profiles of the past, or in files, as a table and a tree of\n" \
	  "calls, or write them in the format of another program.")             \
	X(DIFF, diff, "diff", " A B",                                           \
	  "Print what B has more than A: each a file, or a time FROM..TO of\n"  \
	  "the archive.")                                                       \
	X(EXPORT, export, "export", " DIR",                                     \
	  "Copy the profiles of a time from the archive into DIR, with all\n"   \
	  "that a query of DIR needs.")                                         \
	X(WINDOWS, windows, "windows", "",                                      \
	  "List the profiles of the archive: time, samples, losses and size.")  \
	X(TOP, top, "top", " [FILE...]",                                        \
	  "Show what uses the CPU now, in the past or in a file, by\n"          \
	  "function, process, container or line, on a terminal.")               \
	X(DEBUG, debug, "debug",                                                \
	  " unwind-table FILE | unwind FILE:PC... |\n"                          \
	  "                   symbolize FILE [ADDRESS...] | files [ID...]",     \
	  "Print how the stacks of an executable are unwound, the names and\n"  \
	  "lines of addresses, or which executables a running profd knows.")

enum options_command {
#define X(name, ...) OPTIONS_BIT_##name,
	OPTIONS_COMMANDS(X)
#undef X
	OPTIONS_COMMAND_MAX,
};

enum options_flag {
#define X(name, ...) OPTIONS_##name = 1 << OPTIONS_BIT_##name,
	OPTIONS_COMMANDS(X)
#undef X
};

/* The commands of profd debug. X(NAME, function, "word", arguments, help) */
#define OPTIONS_DEBUG_COMMANDS(X)                                             \
	X(TABLE, debug_unwind_table, "unwind-table", " FILE",                 \
	  "Print the unwind table of an executable.")                         \
	X(UNWIND, debug_unwind, "unwind", " FILE:PC...",                      \
	  "Print the unwind rule at an address.")                             \
	X(SYMBOLIZE, cmd_debug_symbolize, "symbolize", " FILE [ADDRESS...]",  \
	  "Print the functions and lines of addresses, of the arguments or\n" \
	  "of standard input.")                                               \
	X(FILES, cmd_debug_files, "files", " [ID...]",                        \
	  "Print which executables a running profd knows.")

enum options_debug {
#define X(name, ...) OPTIONS_DEBUG_BIT_##name,
	OPTIONS_DEBUG_COMMANDS(X)
#undef X
	OPTIONS_DEBUG_MAX,
};

/* Of a command of profd debug, and so of profd debug. */
#define OPTIONS_DEBUG_SHIFT 24
_Static_assert((int)OPTIONS_COMMAND_MAX <= OPTIONS_DEBUG_SHIFT,
	       "bits of flags");
enum options_debug_flag {
#define X(name, ...)                                                    \
	OPTIONS_DEBUG_##name =                                          \
		1 << (OPTIONS_DEBUG_SHIFT + OPTIONS_DEBUG_BIT_##name) | \
		OPTIONS_DEBUG,
	OPTIONS_DEBUG_COMMANDS(X)
#undef X
};

struct options_strings {
	const char **items; /* ends in NULL; NULL if there is none */
	size_t n;
};

struct options_numbers {
	uint64_t *items;
	size_t n;
};

/* Keys of profd ps --sort. X(NAME, word) */
/* clang-format off */
#define OPTIONS_SORTS(X)      \
	X(CPU, cpu)           \
	X(CPU_RATE, cpu-rate) \
	X(SAMPLES, samples)   \
	X(START, start)       \
	X(PID, pid)           \
	X(USER, user)         \
	X(NAME, name)
/* clang-format on */

enum options_sort {
	OPTIONS_SORT_NONE, /* no --sort */
#define X(name, word) OPTIONS_SORT_##name,
	OPTIONS_SORTS(X)
#undef X
};

/* Part of a disk: bytes, or percent of it. */
struct options_space {
	uint64_t bytes;
	unsigned int percent;
};

/* Columns of profd report --sort. X(NAME, word) */
#define OPTIONS_COLUMNS(X) \
	X(FLAT, flat)      \
	X(CUM, cum)

enum options_column {
	OPTIONS_COLUMN_NONE,
#define X(name, word) OPTIONS_COLUMN_##name,
	OPTIONS_COLUMNS(X)
#undef X
};

enum options_switch {
	OPTIONS_NO = 1,
	OPTIONS_YES,
};

/* The member for each type of value; DURATION is in ns; LIMIT and AGE are 0 for none; TIME is in Unix seconds. */
#define OPTIONS_TYPES(X)                      \
	X(FLAG, bool)                         \
	X(NUMBER, uint64_t)                   \
	X(SIZE, uint64_t)                     \
	X(SECONDS, uint64_t)                  \
	X(DURATION, uint64_t)                 \
	X(LIMIT, uint64_t)                    \
	X(AGE, uint64_t)                      \
	X(FREE, struct options_space)         \
	X(STRING, const char *)               \
	X(SERVER, const char *)               \
	X(LEVEL, enum log_level)              \
	X(SORT, enum options_sort)            \
	X(COLUMN, enum options_column)        \
	X(EXPORT, enum reporter_query_format) \
	X(TIME, uint64_t)                     \
	X(SOURCE, enum source)                \
	X(FORMAT, enum reporter_format)       \
	X(ARGS, enum reporter_args)           \
	X(SWITCH, enum options_switch)        \
	X(STRINGS, struct options_strings)    \
	X(ADDRESSES, struct options_strings)  \
	X(URLS, struct options_strings)       \
	X(NUMBERS, struct options_numbers)

#define X(name, type) typedef type options_##name;
OPTIONS_TYPES(X)
#undef X

/* Strings and lists are valid until options_fini(). */
struct options {
#define OPTION(id, name, key, type, ...) options_##type id;
#include "profiler/cmd/options.def"
#undef OPTION
	/* Arguments after the options; of argv, which ends in NULL. */
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
	OPTIONS_HELP, /* --help */
	OPTIONS_VERSION, /* --version */
};

/*
 * Reads argv (argv[0] is the command's word), then the configuration file if
 * the command has one. After FAILED and USAGE 'msg' is one line, without newline,
 * with the option, the value and what is allowed. options_fini() must be called
 * in any case.
 */
enum options_result options_parse(struct options *o, enum options_command cmd,
				  int argc, char **argv, char *msg,
				  size_t msglen);
void options_fini(struct options *o);

/* The texts of `profd --help` and `profd COMMAND --help`. */
void options_usage(struct strbuf *out);
void options_help(enum options_command cmd, struct strbuf *out);
/* The command of profd debug named 'word', or -1. */
int options_debug_command(const char *word);
/* The text of `profd debug COMMAND --help`. */
void options_debug_help(enum options_debug cmd, struct strbuf *out);

#endif /* PROFILER_OPTIONS_H */
