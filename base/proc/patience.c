// SPDX-License-Identifier: Apache-2.0
/* patience: see base/proc/patience.h. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

#define STACK_SIZE (256 * 1024)
/* The interval of checks, and how many may find the thread asleep. */
#define LOOK_NS (20 * CLOCK_NSEC_PER_MSEC)
#define LOOKS_ASLEEP 5
/* How many in all: a thread that gets no CPU is not asleep. */
#define LOOKS_MAX 50

struct patience_thread {
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	pthread_t id;
	pid_t tid; /* 0: not running yet */
	struct patience_job *job; /* NULL: idle */
	bool abandoned;
	/* Of patience_poll(): the progress that it saw, and since when. */
	size_t was;
	uint64_t since; /* clock_awake_ns() */
};

static size_t abandoned;

size_t patience_abandoned(void)
{
	return __atomic_load_n(&abandoned, __ATOMIC_ACQUIRE);
}

void patience_step(struct patience_job *job)
{
	__atomic_fetch_add(&job->at, 1, __ATOMIC_RELAXED);
}

static void patience_thread_free(struct patience_thread *t)
{
	pthread_cond_destroy(&t->work);
	pthread_cond_destroy(&t->done);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* Called with the lock. True: it was abandoned; then the lock is not held. */
static bool patience_thread_run(struct patience_thread *t)
{
	struct patience_job *job = t->job;

	pthread_mutex_unlock(&t->lock);
	job->run(job);
	pthread_mutex_lock(&t->lock);
	t->job = NULL;
	if (!t->abandoned) {
		pthread_cond_signal(&t->done);
		return false;
	}
	pthread_mutex_unlock(&t->lock);
	job->release(job);
	patience_thread_free(t);
	__atomic_fetch_sub(&abandoned, 1, __ATOMIC_RELEASE);
	return true;
}

static void *patience_thread_main(void *arg)
{
	struct patience_thread *t = arg;

	pthread_mutex_lock(&t->lock);
	t->tid = gettid();
	pthread_cond_signal(&t->done);
	for (;;) {
		while (!t->job && !t->abandoned)
			pthread_cond_wait(&t->work, &t->lock);
		if (!t->job)
			break;
		if (patience_thread_run(t))
			return NULL;
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static int patience_create(struct patience_thread *t)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&t->id, &attr, patience_thread_main, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

static int patience_thread_new(struct patience_thread **out)
{
	struct patience_thread *t = calloc(1, sizeof(*t));
	pthread_condattr_t attr;
	int err;

	if (!t)
		return -ENOMEM;
	pthread_mutex_init(&t->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->work, &attr);
	pthread_cond_init(&t->done, &attr);
	pthread_condattr_destroy(&attr);
	err = patience_create(t);
	if (err) {
		patience_thread_free(t);
		return err;
	}
	pthread_mutex_lock(&t->lock);
	while (!t->tid)
		pthread_cond_wait(&t->done, &t->lock);
	pthread_mutex_unlock(&t->lock);
	*out = t;
	return 0;
}

static int patience_start(struct patience *p)
{
	if ((!p->thread || p->spare) &&
	    patience_abandoned() + p->spare >= PATIENCE_ABANDONED_MAX)
		return -EAGAIN;
	return p->thread ? 0 : patience_thread_new(&p->thread);
}

pid_t patience_tid(struct patience *p)
{
	int err = patience_start(p);

	return err ? err : p->thread->tid;
}

/* Whether the thread sleeps in its call, or that is not known. */
static bool patience_asleep(pid_t tid)
{
	char path[64], text[1024], *state;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	procfs_read(AT_FDCWD, path, text, sizeof(text));
	state = strstr(text, "\nState:\t");
	return !state || state[8] != 'R';
}

/* Called with the lock. Waits for the next check; true: the job is done. */
static bool patience_wait_look(struct patience_thread *t)
{
	struct timespec ts;
	int err = 0;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_nsec += LOOK_NS;
	if (ts.tv_nsec >= (long)CLOCK_NSEC_PER_SEC) {
		ts.tv_nsec -= CLOCK_NSEC_PER_SEC;
		ts.tv_sec++;
	}
	while (t->job && !err)
		err = pthread_cond_timedwait(&t->done, &t->lock, &ts);
	return !t->job;
}

/* Called with the lock. False: the job has to be abandoned. */
static bool patience_wait(struct patience_thread *t)
{
	int looks = 0, sleeps = 0;
	size_t was = 0, at;

	while (!patience_wait_look(t)) {
		at = __atomic_load_n(&t->job->at, __ATOMIC_RELAXED);
		if (at != was)
			looks = sleeps = 0;
		was = at;
		sleeps += patience_asleep(t->tid);
		if (sleeps >= LOOKS_ASLEEP || ++looks >= LOOKS_MAX)
			return false;
	}
	return true;
}

/* Called with the lock, with a job. */
static void patience_give_up(struct patience *p)
{
	struct patience_thread *t = p->thread;

	t->abandoned = true;
	__atomic_fetch_add(&abandoned, 1, __ATOMIC_RELAXED);
	pthread_detach(t->id);
	p->thread = NULL;
}

/* Called with the lock. */
static void patience_give(struct patience_thread *t, struct patience_job *job)
{
	job->at = 0;
	t->job = job;
	t->was = 0;
	t->since = clock_awake_ns();
	pthread_cond_signal(&t->work);
}

int patience_run(struct patience *p, struct patience_job *job, size_t *at)
{
	struct patience_thread *t;
	int err = patience_start(p);

	if (err)
		return err;
	t = p->thread;
	pthread_mutex_lock(&t->lock);
	patience_give(t, job);
	if (!patience_wait(t)) {
		*at = __atomic_load_n(&job->at, __ATOMIC_RELAXED);
		patience_give_up(p);
		err = -ETIMEDOUT;
	}
	pthread_mutex_unlock(&t->lock);
	return err;
}

int patience_begin(struct patience *p, struct patience_job *job)
{
	int err = patience_start(p);

	if (err)
		return err;
	pthread_mutex_lock(&p->thread->lock);
	patience_give(p->thread, job);
	pthread_mutex_unlock(&p->thread->lock);
	return 0;
}

/* Called with the lock, with a job. */
static bool patience_expired(struct patience_thread *t)
{
	size_t at = __atomic_load_n(&t->job->at, __ATOMIC_RELAXED);
	uint64_t now = clock_awake_ns();

	if (at != t->was) {
		t->was = at;
		t->since = now;
	}
	return now - t->since >= LOOKS_MAX * LOOK_NS ||
	       (now - t->since >= LOOKS_ASLEEP * LOOK_NS &&
		patience_asleep(t->tid));
}

int patience_poll(struct patience *p, size_t *at)
{
	struct patience_thread *t = p->thread;
	int err = 0;

	pthread_mutex_lock(&t->lock);
	if (t->job)
		err = patience_expired(t) ? -ETIMEDOUT : -EINPROGRESS;
	if (err == -ETIMEDOUT) {
		*at = __atomic_load_n(&t->job->at, __ATOMIC_RELAXED);
		patience_give_up(p);
	}
	pthread_mutex_unlock(&t->lock);
	return err;
}

bool patience_abandon(struct patience *p)
{
	struct patience_thread *t = p->thread;
	bool done;

	pthread_mutex_lock(&t->lock);
	done = !t->job;
	if (!done)
		patience_give_up(p);
	pthread_mutex_unlock(&t->lock);
	return done;
}

void patience_fini(struct patience *p)
{
	struct patience_thread *t = p->thread;

	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->abandoned = true;
	pthread_cond_signal(&t->work);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->id, NULL);
	patience_thread_free(t);
	p->thread = NULL;
}
