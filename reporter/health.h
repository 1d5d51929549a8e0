/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health: whether profd does what it is for, as /healthz and /status say it.
 * Failing: it cannot sample, write or answer. Degraded: it does, but something is
 * missing in what it shows, which any local user may bring about: so nobody is to
 * end it for that.
 */
#ifndef REPORTER_HEALTH_H
#define REPORTER_HEALTH_H

#include "reporter/internal.h"

#define HEALTH_REASONS_MAX 32

struct reporter_health {
	size_t n; /* those beyond the last one are left out */
	struct health_reason {
		bool failing;
		char text[256];
	} reasons[HEALTH_REASONS_MAX];
};

enum health_state {
	HEALTH_OK,
	HEALTH_DEGRADED,
	HEALTH_FAILING,
};

/* As of now. What can be told without waiting for a disk. */
enum health_state health_collect(struct reporter *r,
				 struct reporter_health *out);
/* "ok", "degraded", "failing" */
const char *health_word(enum health_state state);
/* The reasons of that state, joined. */
void health_text(const struct reporter_health *h, enum health_state state,
		 struct strbuf *sb);

/* A window of the archive was written, or could not be; in the order of ends. */
void health_written(struct reporter *r, int err);
/* A window went to a worker, or came back. */
void health_job(struct reporter *r, bool done);

#endif /* REPORTER_HEALTH_H */
