// SPDX-License-Identifier: Apache-2.0
/* wake: see profiler/source/wake.h. */
#include "base/base.h"
#include "profiler/source/wake.h"

static void wake_event(uv_poll_t *poll, int status, int events)
{
	struct wake *w = container_of(poll, struct wake, poll);

	if (status >= 0) {
		w->readable(w->arg);
		return;
	}
	/* It would come again at once, for ever. */
	uv_poll_stop(poll);
	log_warn("cannot wait for %s: %s; read by the clock alone", w->what,
		 uv_strerror(status));
}

int wake_start(struct wake *w, uv_loop_t *loop, int fd)
{
	int err = uv_poll_init(loop, &w->poll, fd);

	if (err)
		return err;
	w->poll.data = w;
	w->open = true;
	return uv_poll_start(&w->poll, UV_READABLE, wake_event);
}

void wake_close(struct wake *w, uv_close_cb closed)
{
	if (w->open)
		uv_close((uv_handle_t *)&w->poll, closed);
	w->open = false;
}
