// SPDX-License-Identifier: Apache-2.0
/* notify: see profiler/tracing/notify.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/tracing/notify.h"

/* An agent reads its socket so often. */
#define NOTIFY_SEND_MS 20

/* Freed when libuv has closed the handle. */
struct notify_clock {
	uv_timer_t timer;
	struct pm *pm;
};

static void notify_on_clock_closed(uv_handle_t *h)
{
	free(h->data);
}

static void notify_count(struct notify *n, int err)
{
	if (err == -EPERM || err == -EACCES)
		n->stats.denied++;
	else if (err == -EBUSY)
		n->stats.busy++;
	else
		n->stats.failed++;
}

static void notify_on_connected(void *arg, const struct abi_key *key, int err,
				int fd)
{
	struct pm_image_info info;
	struct notify *n = arg;
	struct pm_image *img;

	if (err) {
		notify_count(n, err);
		return;
	}
	/* It may have executed another program since. */
	img = pm_newest(n->pm, key);
	if (img)
		pm_image_info(img, &info);
	if (!img || info.key.exec_id != key->exec_id || info.exited) {
		close(fd);
		n->stats.failed++;
		return;
	}
	n->stats.connected += !pm_apm_connected(n->pm, img, fd);
}

static void notify_on_timer(uv_timer_t *timer)
{
	struct notify_clock *c = timer->data;

	pm_apm_send(c->pm);
	if (!pm_apm_waiting(c->pm))
		uv_timer_stop(timer);
}

int notify_init(struct notify *n, uv_loop_t *loop, struct pm *pm)
{
	const struct connector_opts opts = {
		.loop = loop,
		.done = notify_on_connected,
		.arg = n,
	};
	struct notify_clock *c = calloc(1, sizeof(*c));
	int err = c ? connector_new(&n->connector, &opts) : -ENOMEM;

	if (!err)
		err = uv_timer_init(loop, &c->timer);
	if (err) {
		connector_free(n->connector);
		n->connector = NULL;
		free(c);
		return err;
	}
	uv_unref((uv_handle_t *)&c->timer);
	c->timer.data = c;
	c->pm = pm;
	n->clock = c;
	n->permitted = connector_permitted();
	n->pm = pm;
	return 0;
}

void notify_fini(struct notify *n)
{
	if (!n->pm)
		return;
	connector_free(n->connector);
	uv_close((uv_handle_t *)&n->clock->timer, notify_on_clock_closed);
	memset(n, 0, sizeof(*n));
}

void notify_agent(struct notify *n, struct pm_image *img, uint32_t uid,
		  const char *path)
{
	struct pm_image_info info;
	int err;

	if (!n->pm || uid == UINT32_MAX || pm_apm_listens(img))
		return;
	pm_image_info(img, &info);
	err = connector_ask(n->connector, &info.key, uid, path);
	n->stats.asked += !err;
	if (err)
		notify_count(n, err);
}

void notify_tick(struct notify *n)
{
	if (!n->pm || !pm_apm_waiting(n->pm) ||
	    uv_is_active((uv_handle_t *)&n->clock->timer))
		return;
	pm_apm_send(n->pm);
	uv_timer_start(&n->clock->timer, notify_on_timer, NOTIFY_SEND_MS,
		       NOTIFY_SEND_MS);
}

bool notify_busy(const struct notify *n)
{
	return n->pm && pm_apm_any(n->pm);
}
