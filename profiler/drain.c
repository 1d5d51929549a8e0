// SPDX-License-Identifier: Apache-2.0
/*
 * drain: see profiler/drain.h. Nothing wakes the loop for a single record: the kernel
 * side is quiet until a ring is half full. So a host pays ten short wake-ups a second,
 * whatever happens on it.
 */
#include "base/base.h"
#include "profiler/drain.h"

#define DRAIN_TICK_MS 100
/* The first samples are shown soon, and the end is not waited for. */
#define DRAIN_TICK_FAST_MS 10
#define DRAIN_FAST_NS (500 * CLOCK_NSEC_PER_MSEC)
#define DRAIN_SOON_MS 1

static void drain_timer(uv_timer_t *timer)
{
	struct drain *d = timer->data;
	uint64_t now = clock_boottime_ns();

	d->tick(d->arg);
	if (now >= d->fast_until)
		uv_timer_set_repeat(timer, DRAIN_TICK_MS);
}

/* What is left is read soon, but not before the rest of the loop. */
void drain_soon(struct drain *d)
{
	if (d->open && uv_is_active((uv_handle_t *)&d->timer))
		uv_timer_start(&d->timer, drain_timer, DRAIN_SOON_MS,
			       uv_timer_get_repeat(&d->timer));
}

void drain_hurry(struct drain *d)
{
	d->fast_until = UINT64_MAX;
	uv_timer_set_repeat(&d->timer, DRAIN_TICK_FAST_MS);
	uv_timer_again(&d->timer);
}

void drain_stop(struct drain *d)
{
	uv_timer_stop(&d->timer);
}

static void drain_readable(void *arg)
{
	struct drain_wake *w = arg;
	struct drain *d = w->drain;

	if (!w->poll.readable || w->poll.readable(d->state))
		d->now(d->arg);
}

static int drain_wake(struct drain *d, const struct source_poll *poll)
{
	struct drain_wake *w = &d->wakes[d->nwakes++];
	int err;

	w->poll = *poll;
	w->drain = d;
	w->wake.what = poll->what;
	w->wake.readable = drain_readable;
	w->wake.arg = w;
	err = wake_start(&w->wake, d->loop, poll->fd);
	d->handles += w->wake.open;
	return err;
}

int drain_start(struct drain *d, uint64_t begin,
		const struct source_run *source)
{
	struct source_poll polls[SOURCE_POLLS_MAX];
	int err = uv_timer_init(d->loop, &d->timer);
	size_t i, n;

	if (err)
		return err;
	d->timer.data = d;
	d->handles++;
	d->open = true;
	d->state = source->state;
	d->fast_until = begin + DRAIN_FAST_NS;
	n = source->row->polls(source->state, polls);
	for (i = 0; !err && i < n; i++)
		err = drain_wake(d, &polls[i]);
	return err ? err
		   : uv_timer_start(&d->timer, drain_timer, DRAIN_TICK_FAST_MS,
				    DRAIN_TICK_FAST_MS);
}

static void drain_timer_closed(uv_handle_t *handle)
{
	((struct drain *)handle->data)->handles--;
}

static void drain_wake_closed(uv_handle_t *handle)
{
	const struct wake *w = handle->data;

	((struct drain_wake *)w->arg)->drain->handles--;
}

void drain_close(struct drain *d)
{
	size_t i;

	if (!d->open)
		return;
	uv_close((uv_handle_t *)&d->timer, drain_timer_closed);
	for (i = 0; i < d->nwakes; i++)
		wake_close(&d->wakes[i].wake, drain_wake_closed);
	/* Their memory is the caller's: they must be closed before it goes. */
	while (d->handles)
		uv_run(d->loop, UV_RUN_ONCE);
	d->open = false;
}
