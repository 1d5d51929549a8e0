/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health: the state of profd, for /healthz and /status. Failing: it cannot
 * sample, write or answer. Degraded: it works, but its data is incomplete; any
 * local user can cause that, so it is no reason to restart profd.
 */
#ifndef REPORTER_HEALTH_H
#define REPORTER_HEALTH_H

#include "reporter/internal.h"

#define HEALTH_REASONS_MAX 32

struct reporter_health {
	size_t n; /* further reasons are left out */
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

/* The current state. Does not wait for a disk. */
enum health_state health_collect(struct reporter *r,
				 struct reporter_health *out);
/* "ok", "degraded", "failing" */
const char *health_word(enum health_state state);
/* Appends all reasons, those why it fails first, separated by "; ". */
void health_text(const struct reporter_health *h, struct strbuf *sb);

#endif /* REPORTER_HEALTH_H */
