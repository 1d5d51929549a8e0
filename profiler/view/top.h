/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top: profd top. A profile, of now, of the past or of a file (cmd_top.c), becomes a
 * table (top_data.c), for rows that are processes together with what a running profd
 * knows of them (top_process.c) and of those that have ended (top_ended.c), and that is printed, or drawn on a terminal, where
 * keys choose another table of the same profile (top_screen.c).
 */
#ifndef PROFILER_TOP_H
#define PROFILER_TOP_H

#include "profiler/view/ask.h"

#define TOP_CELLS 8
#define TOP_FOCUS_MAX 8

/* X(key on the screen, WHAT of --rows, title) */
#define TOP_ROWS(X)                      \
	X('f', "function", "FUNCTION")   \
	X('l', "line", "LINE")           \
	X('p', "process", "PROCESS")     \
	X('n', "comm", "NAME")           \
	X('e', "exe", "EXECUTABLE")      \
	X('c', "container", "CONTAINER") \
	X('u', "unit", "UNIT")

struct top_column {
	const char *title;
	size_t width;
	bool left; /* aligned */
	size_t from; /* left out on a terminal with fewer columns */
};

/* All texts are escaped, but 'value'. */
struct top_row {
	const char *cells[TOP_CELLS];
	const char *name; /* the last column */
	const char *value; /* of the label; NULL: not of a label */
};

struct top_table {
	struct reporter_query *q;
	struct reporter_query_rows rows;
	const struct top_column *columns;
	size_t ncolumns;
	const char *title; /* of the last column */
	struct top_row *items;
	size_t n;
	struct arena arena; /* of the texts */
	struct strbuf head; /* time, length and sum of the profile */
	struct strbuf what; /* rows, order and focus */
};

/* A label that all samples have; 'by' is to be restored. */
struct top_focus {
	struct reporter_query_terms terms;
	char *value;
	const char *by;
};

/* As /processes has it; all texts are escaped. */
struct top_process {
	char id[40], parent_id[40];
	char pid[12], state[20], cpu[16], cover[16];
	char *command;
	struct top_process *parent; /* NULL: none that is known */
	size_t children; /* that are not in 'cum' yet */
	int64_t flat, cum; /* of the process, and with all its descendants */
};

struct top_processes {
	struct top_process *items; /* by id */
	size_t n, cap;
};

struct top {
	const struct options *o;
	struct ask ask;
	bool live; /* of a running profd, again and again */
	const char *source; /* what the profile is of */
	void *profile; /* raw, of the samples that the options choose */
	size_t len;
	const char *by;
	bool cum;
	struct top_focus focus[TOP_FOCUS_MAX];
	size_t nfocus;
	struct top_processes processes; /* none: not known */
	struct top_ended *ended; /* NULL: not needed yet */
	struct top_table table;
	/* Of the screen. */
	bool paused, help, leave;
	size_t selected, first; /* rows of the table */
	const char *note; /* a message, until the next key */
};

/* --- top_data.c ------------------------------------------------------------------- */

/* Replaces the profile by that of 'q', which is freed. 0 or -errno. */
int top_take(struct top *t, struct reporter_query *q);
/* Makes t->table. 0 or -errno. */
int top_make(struct top *t);
void top_table_fini(struct top_table *table);
/* A value, or its share of all, as text; NULL: no memory. */
enum top_cell {
	TOP_VALUE,
	TOP_PERCENT,
};
const char *top_cell(struct top_table *table, enum top_cell cell, int64_t v);
/* Empties 'sb'. Its text, valid as long as the table; NULL: no memory. */
const char *top_text(struct top_table *table, struct strbuf *sb);
/* Only samples with this value of the label t->by from now on. 0 or -errno. */
int top_focus(struct top *t, const char *value);
/* Takes the last of them back; false: there was none. */
bool top_unfocus(struct top *t);
void top_fini(struct top *t);

/* --- top_process.c ---------------------------------------------------------------- */

bool top_is_process(const struct top *t);
/* Reads t->processes from the server; without them it has none. */
void top_processes_get(struct top *t);
void top_processes_fini(struct top_processes *ps);
/* Makes the items of t->table of its rows and t->processes. 0 or -ENOMEM. */
int top_processes_make(struct top *t);

/* --- top_screen.c ----------------------------------------------------------------- */

/* False: the terminal cannot be drawn on. */
bool top_screen_open(void);
void top_screen_close(void);
void top_screen_draw(struct top *t);
/* Handles all keys that were pressed and signals; t->leave: it was the last. */
void top_screen_keys(struct top *t);
/* Waits for a key or a signal. */
void top_screen_wait(struct top *t);
/* The signal that ends it; 0: none. */
int top_screen_signal(void);

#endif /* PROFILER_TOP_H */
