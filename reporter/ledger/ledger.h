/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger: processes, their events, and executables as JSON, one object a line,
 * for /processes, /api/events and /executables. Keys are those of the labels of
 * profiles where there is one, but in events those of OpenTelemetry
 * (ledger_names.c); unknown values are left out.
 */
#ifndef REPORTER_LEDGER_H
#define REPORTER_LEDGER_H

#include <jansson.h>

#include "base/base.h"
#include "processmanager/processmanager.h"
#include "processmanager/watch/watch.h"

/* The name of a QUARK_ELT_, the way a process was started; NULL: unknown. */
const char *ledger_entry(uint32_t leader_type);

/*
 * A JSON string of 'len' bytes that a process may control: each that is not UTF-8
 * becomes U+FFFD. NULL: out of memory.
 */
json_t *ledger_text(const char *s, size_t len);
/* Appends 'o' as a line and drops the reference. -ENOMEM sets sb->failed. */
void ledger_dump(json_t *o, struct strbuf *sb);

/*
 * A snapshot of the keys of all processes, to be written piece by piece, one line
 * each with its images, with the data of that time. Includes exited processes
 * if 'all'; a process that was removed meanwhile, or exited unless 'all', is left
 * out. 'pm' must outlive it. NULL: out of memory.
 */
struct ledger_table;
struct ledger_table *ledger_table_new(struct pm *pm, bool all,
				      unsigned int freq_hz);
void ledger_table_free(struct ledger_table *t);
/*
 * Appends the lines of at most 'max' processes. False: those were the last.
 * -ENOMEM sets sb->failed.
 */
bool ledger_table_read(struct ledger_table *t, unsigned int max,
		       struct strbuf *sb);

/* --- events ------------------------------------------------------------------ */

#define LEDGER_NAME_MAX 64
/* The name of a member in events; 'buf' is room for it. */
const char *ledger_name(const char *key, char buf[LEDGER_NAME_MAX]);
/* Appends the line of an event given with those keys; null is left out. 0 or -ENOMEM. */
int ledger_event_of(json_t *row, struct strbuf *sb);

/* The bit of a type of events; 0: there is none. */
uint64_t ledger_type(const char *word, size_t len);
/* Type number 'i'; NULL: there are not so many. */
const char *ledger_type_word(size_t i);

/* What all events have; 0 and NULL: it is left out. */
struct ledger_head {
	uint64_t id;
	const char *host;
};

/*
 * A copy of all data of a process that has ended, given its newest image: one
 * block of '*size' bytes, to be freed by vault_give(). NULL: out of memory.
 */
struct ledger_ended;
struct ledger_ended *ledger_ended_new(const struct pm_image *last,
				      struct vault *vault, size_t *size);
/* Appends its line: that of the process, as an event "end". */
void ledger_ended(const struct ledger_ended *ended,
		  const struct ledger_head *head, unsigned int freq_hz,
		  struct strbuf *sb);
/* Appends the line of an event. */
void ledger_event(const struct quark_event *ev, const struct ledger_head *head,
		  struct strbuf *sb);

/* By what events are chosen. */
struct ledger_what {
	uint64_t types, time; /* CLOCK_BOOTTIME */
	uint32_t pid; /* 0: of no process */
	char process[40];
	const char *comm;
};
void ledger_what_event(const struct quark_event *ev, struct ledger_what *out);
void ledger_what_ended(const struct ledger_ended *ended,
		       struct ledger_what *out);

struct ledger_filter {
	uint64_t types; /* 0: all */
	uint64_t from, to; /* CLOCK_BOOTTIME; 'to' 0: no end */
	/* Of an event of a process. NULL: all. */
	bool (*wanted)(void *arg, const struct ledger_what *what);
	void *arg;
};

/*
 * Appends the line of a watched event. 'of' is its process now; NULL: there is none, or
 * it is not known.
 */
void ledger_watched(const struct watch_event *e, const struct pm_image *of,
		    struct strbuf *sb);

/* Appends the line of an executable. */
void ledger_executable(const struct pm_exe *exe, struct strbuf *sb);

/*
 * A ring of the latest events and ended processes in order, numbered from 'first'. It
 * has limits of number and of bytes; the latter is higher while readers are
 * behind. 'host' is borrowed.
 */
struct ledger_events;

struct ledger_events *ledger_events_new(unsigned int freq_hz, const char *host,
					uint64_t first);
void ledger_events_free(struct ledger_events *l);
/* Copies what the line needs. 0 or -ENOMEM, here too: */
int ledger_events_add(struct ledger_events *l, const struct quark_event *ev);
int ledger_events_add_ended(struct ledger_events *l,
			    const struct pm_image *last);
/* The lowest number that a reader still needs; UINT64_MAX: no reader. */
void ledger_events_need(struct ledger_events *l, uint64_t at);
/* The numbers of the oldest event in the ring, and of the next to come. */
uint64_t ledger_events_first(const struct ledger_events *l);
uint64_t ledger_events_next(const struct ledger_events *l);
/* CLOCK_BOOTTIME from which on the ring has all events. */
uint64_t ledger_events_since(const struct ledger_events *l);
/*
 * Appends the lines of events from number '*at' on, about 'max' bytes at most,
 * and moves '*at' behind them. For events that are no longer in the ring there
 * is one line with their number, or without one if they were of another ring.
 * 'f' NULL: all events.
 */
void ledger_events_read(struct ledger_events *l, uint64_t *at, size_t max,
			const struct ledger_filter *f, struct strbuf *sb);

#endif /* REPORTER_LEDGER_H */
