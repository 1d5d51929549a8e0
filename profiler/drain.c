// SPDX-License-Identifier: Apache-2.0
/*
 * drain: see profiler/drain.h. Nothing wakes the loop for a single record: the kernel
 * side is quiet until a ring is half full. So an idle host pays one short wake-up a
 * second.
 */
#include "base/base.h"
#include "profiler/drain.h"

#define DRAIN_TICK_MS 100
#define DRAIN_TICK_IDLE_MS 1000
/* The first samples are shown soon, and the end is not waited for. */
#define DRAIN_TICK_FAST_MS 10
#define DRAIN_FAST_NS (500 * CLOCK_NSEC_PER_MSEC)
/* Where files are executed and mapped, more are expected for so long. */
#define DRAIN_OFTEN_NS (2 * CLOCK_NSEC_PER_SEC)
#define DRAIN_SOON_MS 1

static void drain_timer(uv_timer_t *timer);

static bool drain_runs(const struct drain *d)
{
	return d->open && uv_is_active((const uv_handle_t *)&d->timer);
}

static uint64_t drain_interval(const struct drain *d, uint64_t now)
{
	if (now < d->fast_until)
		return DRAIN_TICK_FAST_MS;
	if (now < d->often_until || d->busy(d->arg, now))
		return DRAIN_TICK_MS;
	return DRAIN_TICK_IDLE_MS;
}

static void drain_set_interval(struct drain *d, uint64_t ms)
{
	if (drain_runs(d) && ms != uv_timer_get_repeat(&d->timer))
		uv_timer_start(&d->timer, drain_timer,
			       d->soon ? DRAIN_SOON_MS : ms, ms);
}

static void drain_timer(uv_timer_t *timer)
{
	struct drain *d = timer->data;
	uint64_t now = clock_boottime_ns();

	d->soon = false;
	d->drained = now;
	d->tick(d->arg);
	drain_set_interval(d, drain_interval(d, now));
}

/* What is left is read soon, but not before the rest of the loop. */
void drain_soon(struct drain *d)
{
	if (!drain_runs(d))
		return;
	d->soon = true;
	uv_timer_start(&d->timer, drain_timer, DRAIN_SOON_MS,
		       uv_timer_get_repeat(&d->timer));
}

void drain_active(struct drain *d, uint64_t now)
{
	d->often_until = now + DRAIN_OFTEN_NS;
}

static void drain_now(struct drain *d, uint64_t now)
{
	d->drained = now;
	d->now(d->arg);
}

/* As often as the timer does it when it runs often. */
static void drain_due(struct drain *d, uint64_t now)
{
	if (now - d->drained >= DRAIN_TICK_MS * CLOCK_NSEC_PER_MSEC)
		drain_now(d, now);
}

/* The next drain is not a second away; it decides on the ones after it. */
static void drain_often(struct drain *d)
{
	if (uv_timer_get_repeat(&d->timer) > DRAIN_TICK_MS)
		drain_set_interval(d, DRAIN_TICK_MS);
}

void drain_asked(struct drain *d)
{
	if (!drain_runs(d))
		return;
	drain_due(d, clock_boottime_ns());
	drain_often(d);
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
	uint64_t now = clock_boottime_ns();
	enum source_urgency urgency = SOURCE_NOW;

	if (w->poll.readable)
		urgency = w->poll.readable(d->state);
	if (urgency == SOURCE_NOW)
		drain_now(d, now);
	else if (urgency == SOURCE_DUE)
		drain_due(d, now);
	if (w->poll.often) {
		drain_active(d, now);
		drain_often(d);
	}
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
