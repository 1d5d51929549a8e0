// SPDX-License-Identifier: Apache-2.0
/* patience: see base/proc/patience.h. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

#define STACK_SIZE (256 * 1024)
/* The thread is looked at so often; it was given up after so many looks asleep. */
#define LOOK_NS (20 * CLOCK_NSEC_PER_MSEC)
#define LOOKS_ASLEEP 5
/* A thread that gets no CPU is not asleep; yet it is waited for no longer. */
#define LOOKS_MAX 50

struct patience_thread {
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	pthread_t id;
	pid_t tid; /* 0: it has not begun */
	struct patience_job *job; /* NULL: nothing to do */
	bool abandoned;
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

static void thread_free(struct patience_thread *t)
{
	pthread_cond_destroy(&t->work);
	pthread_cond_destroy(&t->done);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* With the lock, and without it again. True: nobody waits for it any more. */
static bool run_job(struct patience_thread *t)
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
	thread_free(t);
	__atomic_fetch_sub(&abandoned, 1, __ATOMIC_RELEASE);
	return true;
}

static void *thread_main(void *arg)
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
		if (run_job(t))
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
	err = pthread_create(&t->id, &attr, thread_main, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

static int thread_new(struct patience_thread **out)
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
		thread_free(t);
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
	if (p->thread)
		return 0;
	if (patience_abandoned() >= PATIENCE_ABANDONED_MAX)
		return -EAGAIN;
	return thread_new(&p->thread);
}

pid_t patience_tid(struct patience *p)
{
	int err = patience_start(p);

	return err ? err : p->thread->tid;
}

/* Asleep in its call, or nothing is known. False: it works, or waits for a CPU. */
static bool patience_asleep(pid_t tid)
{
	char path[64], text[1024], *state;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	f = fopen(path, "re");
	if (!f)
		return true;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	state = strstr(text, "\nState:\t");
	return !state || state[8] != 'R';
}

/* With the lock. Whether the job was done. */
static bool wait_look(struct patience_thread *t)
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

/* With the lock. Whether the job was done before patience was over. */
static bool wait_done(struct patience_thread *t)
{
	int looks = 0, sleeps = 0;
	size_t was = 0, at;

	while (!wait_look(t)) {
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

int patience_run(struct patience *p, struct patience_job *job, size_t *at)
{
	struct patience_thread *t;
	int err = patience_start(p);

	if (err)
		return err;
	t = p->thread;
	job->at = 0;
	pthread_mutex_lock(&t->lock);
	t->job = job;
	pthread_cond_signal(&t->work);
	if (!wait_done(t)) {
		*at = __atomic_load_n(&job->at, __ATOMIC_RELAXED);
		t->abandoned = true;
		__atomic_fetch_add(&abandoned, 1, __ATOMIC_RELAXED);
		pthread_detach(t->id);
		p->thread = NULL;
		err = -ETIMEDOUT;
	}
	pthread_mutex_unlock(&t->lock);
	return err;
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
	thread_free(t);
	p->thread = NULL;
}
