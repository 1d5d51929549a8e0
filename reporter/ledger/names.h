/* SPDX-License-Identifier: Apache-2.0 */
/* names: for clients, the keys of events as those of processes. */
#ifndef REPORTER_LEDGER_NAMES_H
#define REPORTER_LEDGER_NAMES_H

#include <jansson.h>

/* A copy of an event of /api/events with the keys of /processes; NULL: no memory. */
json_t *reporter_event_plain(json_t *event);

#endif /* REPORTER_LEDGER_NAMES_H */
