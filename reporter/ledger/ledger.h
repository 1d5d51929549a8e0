/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger: processes and their events as JSON, one object a line, for
 * /processes and /events. Keys are those of a profile's labels where there is
 * one; what is not known is left out.
 */
#ifndef REPORTER_LEDGER_H
#define REPORTER_LEDGER_H

#include <jansson.h>

#include "base/base.h"
#include "processmanager/processmanager.h"

/* How a process came into the system, by a QUARK_ELT_; NULL: not known. */
const char *ledger_entry(uint32_t leader_type);

/*
 * Bytes that a watched process chose, as a JSON string; what is not UTF-8 becomes
 * U+FFFD. 's' goes on to a NUL at or behind its end. NULL without memory.
 */
json_t *ledger_text(const char *s, size_t len);

/*
 * The processes that there are when it is made, one line each with its images;
 * 'all': with those who are dead and not forgotten yet. They are read piece by
 * piece, each as it is then; who was forgotten meanwhile, or unless 'all' has ended, is
 * left out. The manager
 * has to stay. NULL without memory.
 */
struct ledger_table;
struct ledger_table *ledger_table_new(struct pm *pm, bool all,
				      unsigned int freq_hz);
void ledger_table_free(struct ledger_table *t);
/*
 * Lines of 'max' processes at most. False: those were the last. Without memory
 * sb->failed is set.
 */
bool ledger_table_read(struct ledger_table *t, unsigned int max,
		       struct strbuf *sb);

/*
 * All of a process that is over, before it is forgotten: its newest image's, in one
 * block of '*size' bytes that stands for itself, for vault_give(). NULL without
 * memory.
 */
struct ledger_life;
struct ledger_life *ledger_life_new(const struct pm_image *last,
				    struct vault *vault, size_t *size);
/* Its line is a process's, and that of an event, "end". */
void ledger_life(const struct ledger_life *life, unsigned int freq_hz,
		 struct strbuf *sb);

/* One executable, one line. */
void ledger_executable(const struct pm_exe *exe, struct strbuf *sb);

/* One event, one line. */
void ledger_event(const struct quark_event *ev, struct strbuf *sb);

/*
 * The last events and lives that came, in order, each with a number of its own from 1;
 * the oldest go when there are too many, or too many bytes of them: more are
 * kept for readers who are behind.
 */
struct ledger_events;

struct ledger_events *ledger_events_new(unsigned int freq_hz);
void ledger_events_free(struct ledger_events *l);
/* What its line needs is copied. 0 or -ENOMEM, here too: */
int ledger_events_add(struct ledger_events *l, const struct quark_event *ev);
int ledger_events_add_life(struct ledger_events *l,
			   const struct pm_image *last);
/* Nobody waits for events below this number; UINT64_MAX: for any. */
void ledger_events_need(struct ledger_events *l, uint64_t at);
/* Numbers: of the oldest event that is here, and what the next one gets. */
uint64_t ledger_events_first(const struct ledger_events *l);
uint64_t ledger_events_next(const struct ledger_events *l);
/*
 * Lines for the events from number '*at' on, about 'max' bytes at most; '*at'
 * moves behind them. Of those that went before they were read a line says how
 * many.
 */
void ledger_events_read(struct ledger_events *l, uint64_t *at, size_t max,
			struct strbuf *sb);

#endif /* REPORTER_LEDGER_H */
