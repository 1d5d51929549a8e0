/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apm: reports the stacks of a trace's samples to the Elastic APM agent of the process
 * (Elastic's universal profiling integration): a part of processmanager/processmanager.h.
 *
 * An agent reads datagrams from a unix socket, in the order of the host's bytes:
 *
 *	registration	u16 type 2; u16 minor 1; u32 delay_ms; u32 length, host.id
 *	stack		u16 type 1; u16 minor 1; trace_id[16]; transaction_id[8];
 *			stack_id[16]; u16 count
 *
 * The registration comes first: the agent then keeps ended transactions for delay_ms.
 * Its socket has room for ten datagrams. While it is full, and until the next
 * pm_apm_send(), the counts of equal stacks are summed. What the agent has not taken
 * within delay_ms is dropped and counted.
 *
 * All calls on the loop's thread; none waits.
 */
#ifndef PROCESSMANAGER_APM_H
#define PROCESSMANAGER_APM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pm;
struct pm_image;

#define PM_APM_AGENTS 256 /* in all; a user may have as many as are free */
#define PM_APM_WAITING 16384 /* stacks that wait, likewise; of an agent */
#define PM_APM_AGENT_WAITING 2048 /* ... this many at most */
#define PM_APM_BURST 10 /* datagrams of a pm_apm_send() to one agent */

/* Of the trace that the thread of a sample worked at. */
struct pm_trace_ids {
	uint8_t trace_id[16];
	uint8_t transaction_id[8]; /* of the trace in this process */
};

/*
 * The agent of this image listens at 'fd', a connected datagram socket, which is owned
 * from here on, also on error. It takes the place of an earlier one. 0; -EDQUOT, counted:
 * there are too many; or -ENOMEM.
 */
int pm_apm_connected(struct pm *pm, struct pm_image *img, int fd);
/* Whether one does: of this image, of any. */
bool pm_apm_listens(const struct pm_image *img);
bool pm_apm_any(const struct pm *pm);
/*
 * 'count' samples of this image, in this trace, have this stack. Returns the name of its
 * service ("": not known), which is valid as in pm_image_info; NULL: no agent listens.
 */
const char *pm_notify_apm(struct pm *pm, struct pm_image *img,
			  const struct pm_trace_ids *ids,
			  const uint8_t stack_id[16], uint16_t count);
/* Whether stacks wait; then pm_apm_send() should be called 50 times a second. */
bool pm_apm_waiting(const struct pm *pm);
void pm_apm_send(struct pm *pm);

#endif /* PROCESSMANAGER_APM_H */
