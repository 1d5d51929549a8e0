/* SPDX-License-Identifier: Apache-2.0 */
/* options_table: options.def as data; private to options*.c and completion.c. */
#ifndef PROFILER_OPTIONS_TABLE_H
#define PROFILER_OPTIONS_TABLE_H

#include "profiler/cmd/options.h"

enum options_id {
#define OPTION(id, ...) OPTIONS_ID_##id,
#include "profiler/cmd/options.def"
#undef OPTION
	OPTIONS_ID_MAX,
};

enum options_type {
#define X(name, type) OPTIONS_TYPE_##name,
	OPTIONS_TYPES(X)
#undef X
};

struct options_entry {
	const char *name;
	bool key; /* may be in the configuration file */
	enum options_type type;
	char letter; /* 0: none */
	unsigned int commands; /* OPTIONS_RUN | ... */
	uint64_t lowest, highest;
	const char *metavar;
	const char *def; /* NULL: none */
	const char *help;
	size_t offset; /* in struct options */
};

extern const struct options_entry options_table[OPTIONS_ID_MAX];

struct options_command_entry {
	const char *word;
	const char *args;
	const char *help;
};

extern const struct options_command_entry options_commands[OPTIONS_COMMAND_MAX];
extern const struct options_command_entry
	options_debug_commands[OPTIONS_DEBUG_MAX];

/* The entry of 'cmd' with that name, or NULL; other commands may have others. */
const struct options_entry *options_find(enum options_command cmd,
					 const char *name);
/* The entry of a key of the configuration file, or NULL. */
const struct options_entry *options_key(const char *name);

/*
 * Sets the member of 'e', or adds to it if it is a list. 0; -EINVAL, with the
 * allowed values in 'why'; -ENOMEM.
 */
int options_set(struct options *o, const struct options_entry *e,
		const char *text, char *why, size_t len);

/* The values of 'e' if it is an enum, with blanks between, or NULL. */
const char *options_words(const struct options_entry *e);

/* The option of 'cmd' with the most similar name, or NULL. */
const char *options_nearest(enum options_command cmd, const char *name,
			    size_t len);
/* The command with the most similar name, or NULL. */
const char *options_nearest_command(const char *word);
/*
 * Appends the commands with the option 'name' of 'len' bytes or, if that is NULL,
 * 'letter': "run and record have it". False: there are none.
 */
bool options_owners(const char *name, size_t len, char letter,
		    struct strbuf *out);

#endif /* PROFILER_OPTIONS_TABLE_H */
