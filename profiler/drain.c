// SPDX-License-Identifier: Apache-2.0
/*
 * drain: see profiler/drain.h. A single record does not wake the loop: the
 * kernel side does that when a ring is half full. So an idle host has one short
 * wake-up a second.
 */
#include "base/base.h"
#include "profiler/drain.h"

#define DRAIN_TICK_IDLE_MS 1000
/* For the first samples, and for the end. */
#define DRAIN_TICK_FAST_MS 10
#define DRAIN_FAST_NS (500 * CLOCK_NSEC_PER_MSEC)
/* After files were executed or mapped, more are expected for this long. */
#define DRAIN_OFTEN_NS (2 * CLOCK_NSEC_PER_SEC)
#define DRAIN_SOON_MS 1

static void drain_timer(uv_timer_t *timer);

static bool drain_runs(const struct drain *d)
{
	return d->handles && uv_is_active((const uv_handle_t *)&d->timer);
}

bool drain_idle(const struct drain *d)
{
	return drain_runs(d) &&
	       uv_timer_get_repeat(&d->timer) == DRAIN_TICK_IDLE_MS;
}

static uint64_t drain_interval(const struct drain *d, uint64_t now)
{
	if (now < d->fast_until)
		return DRAIN_TICK_FAST_MS;
	if (now < d->often_until || d->busy(d->arg, now))
		return DRAIN_OFTEN_MS;
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

/* After the other handles of the loop. */
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

static void drain_by(struct drain *d, uint64_t now, enum source_urgency urgency)
{
	uint64_t pause = DRAIN_OFTEN_MS * CLOCK_NSEC_PER_MSEC;

	if (urgency == SOURCE_LATER ||
	    (urgency == SOURCE_DUE && now - d->drained < pause))
		return;
	d->drained = now;
	d->now(d->arg);
}

/* The next drain is less than a second away and sets the interval after it. */
static void drain_often(struct drain *d)
{
	if (uv_timer_get_repeat(&d->timer) > DRAIN_OFTEN_MS)
		drain_set_interval(d, DRAIN_OFTEN_MS);
}

void drain_asked(struct drain *d)
{
	if (!drain_runs(d))
		return;
	drain_by(d, clock_boottime_ns(), SOURCE_DUE);
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

static void drain_wake(uv_poll_t *poll, int status, int events)
{
	struct drain_wake *w = container_of(poll, struct drain_wake, poll);
	uint64_t now = clock_boottime_ns();
	struct drain *d = poll->data;

	if (status < 0) {
		/* Readable for ever; the timer reads all rings. */
		uv_poll_stop(poll);
		log_warn("cannot wait for %s: %s; read by the clock alone",
			 w->from.what, uv_strerror(status));
		return;
	}
	drain_by(d, now,
		 w->from.readable ? w->from.readable(d->state) : SOURCE_NOW);
	if (w->from.often) {
		drain_active(d, now);
		drain_often(d);
	}
}

static int drain_wake_start(struct drain *d, const struct source_poll *from)
{
	struct drain_wake *w = &d->wakes[d->nwakes];
	int err = uv_poll_init(d->loop, &w->poll, from->fd);

	if (err)
		return err;
	w->from = *from;
	w->poll.data = d;
	d->nwakes++;
	d->handles++;
	return uv_poll_start(&w->poll, UV_READABLE, drain_wake);
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
	d->state = source->state;
	d->fast_until = begin + DRAIN_FAST_NS;
	n = source->row->polls(source->state, polls);
	for (i = 0; !err && i < n; i++)
		err = drain_wake_start(d, &polls[i]);
	return err ? err
		   : uv_timer_start(&d->timer, drain_timer, DRAIN_TICK_FAST_MS,
				    DRAIN_TICK_FAST_MS);
}

int drain_add(struct drain *d, const struct source_poll *from)
{
	return drain_wake_start(d, from);
}

static void drain_on_closed(uv_handle_t *handle)
{
	((struct drain *)handle->data)->handles--;
}

void drain_close(struct drain *d)
{
	size_t i;

	if (!d->handles)
		return;
	uv_close((uv_handle_t *)&d->timer, drain_on_closed);
	for (i = 0; i < d->nwakes; i++)
		uv_close((uv_handle_t *)&d->wakes[i].poll, drain_on_closed);
	/* Before the caller frees their memory they must be closed. */
	while (d->handles)
		uv_run(d->loop, UV_RUN_ONCE);
}
