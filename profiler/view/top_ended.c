// SPDX-License-Identifier: Apache-2.0
/*
 * top_ended: see profiler/view/top_ended.h. A thread reads the stream of events, so
 * that profd never waits for a client that draws, and keeps the latest ends.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "profiler/cmd/client.h"
#include "profiler/cmd/lines.h"
#include "profiler/view/top_ended.h"

#define TOP_ENDED_MAX 4096 /* processes that are kept */

struct top_ended {
	const struct options *o;
	pthread_t thread;
	int wake; /* an eventfd: the thread has to end */
	struct lines lines; /* of the thread */
	pthread_mutex_t lock; /* of what follows */
	bool stop;
	struct top_process items[TOP_ENDED_MAX]; /* a ring */
	size_t n; /* all that there were */
};

static bool top_event_is_end(const json_t *o)
{
	const json_t *events = json_object_get(o, "events");
	const char *word;

	for (size_t i = 0; i < json_array_size(events); i++) {
		word = json_string_value(json_array_get(events, i));
		if (word && !strcmp(word, "end"))
			return true;
	}
	return false;
}

static bool top_ended_line(void *arg, json_t *o)
{
	struct top_ended *e = arg;
	struct top_process p, *old;

	if (!top_event_is_end(o))
		return true;
	if (!top_process_read(&p, o))
		return false;
	pthread_mutex_lock(&e->lock);
	old = &e->items[e->n++ % TOP_ENDED_MAX];
	free(old->command);
	*old = p;
	pthread_mutex_unlock(&e->lock);
	return true;
}

static bool top_ended_body(void *arg, const void *data, size_t len)
{
	struct top_ended *e = arg;

	return lines_body(&e->lines, data, len);
}

static bool top_ended_stops(void *arg)
{
	struct top_ended *e = arg;
	bool stop;

	pthread_mutex_lock(&e->lock);
	stop = e->stop;
	pthread_mutex_unlock(&e->lock);
	return stop;
}

/* Without an answer there are no ended processes. */
static void *top_ended_run(void *arg)
{
	struct top_ended *e = arg;
	struct client_request req = {
		.path = "/api/events?follow=1&type=end",
		.endless = true,
		.body = top_ended_body,
		.input_fd = e->wake,
		.input = top_ended_stops,
		.arg = e,
	};
	char msg[768];

	cmd_use_server(e->o, &req);
	client_get(&req, msg, sizeof(msg));
	lines_end(&e->lines);
	return NULL;
}

/* Signals are for the thread that waits for keys. */
static int top_ended_start(struct top_ended *e)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&e->thread, NULL, top_ended_run, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

struct top_ended *top_ended_new(const struct options *o)
{
	struct top_ended *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->o = o;
	e->lines = (struct lines){ .line = top_ended_line,
				   .arg = e,
				   .events = true };
	pthread_mutex_init(&e->lock, NULL);
	e->wake = eventfd(0, EFD_CLOEXEC);
	if (e->wake >= 0 && !top_ended_start(e))
		return e;
	if (e->wake >= 0)
		close(e->wake);
	pthread_mutex_destroy(&e->lock);
	free(e);
	return NULL;
}

void top_ended_free(struct top_ended *e)
{
	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	e->stop = true;
	pthread_mutex_unlock(&e->lock);
	eventfd_write(e->wake, 1);
	pthread_join(e->thread, NULL);
	close(e->wake);
	pthread_mutex_destroy(&e->lock);
	for (size_t i = 0; i < TOP_ENDED_MAX; i++)
		free(e->items[i].command);
	free(e);
}

void top_ended_add(struct top_ended *e, struct top_processes *ps)
{
	size_t n;

	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	n = MIN(e->n, (size_t)TOP_ENDED_MAX);
	for (size_t i = 0; i < n; i++) {
		struct top_process p = e->items[i];

		p.command = strdup(p.command);
		if (!p.command || VECTOR_ROOM(ps->items, ps->n, ps->cap)) {
			free(p.command);
			break;
		}
		ps->items[ps->n++] = p;
	}
	pthread_mutex_unlock(&e->lock);
}
