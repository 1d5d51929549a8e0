// SPDX-License-Identifier: Apache-2.0
/* mapsreader_main: the reader itself: see profiler/rescan/mapsreader.h. */
#include <errno.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/rescan/mapsreader_msg.h"

#define READER_SOCKET 0
#define READER_NICE (-10)

static uint64_t thread_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * CLOCK_NSEC_PER_SEC + ts.tv_nsec;
}

/* How often the thread gave up the CPU to wait. */
static long thread_waits(void)
{
	struct rusage ru;

	return getrusage(RUSAGE_THREAD, &ru) ? 0 : ru.ru_nvcsw;
}

/* All bytes, sent or received. */
static bool mapsreader_transfer(bool out, void *p, size_t len)
{
	char *at = p;
	ssize_t n;

	for (; len; at += n, len -= (size_t)n) {
		n = out ? write(READER_SOCKET, at, len)
			: read(READER_SOCKET, at, len);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			return false;
	}
	return true;
}

static size_t text_len(const struct pm_maps *m)
{
	const char *end = m->text;
	size_t i;

	for (i = 0; i < m->n; i++)
		end = MAX(end, m->maps[i].path + strlen(m->maps[i].path) + 1);
	return (size_t)(end - m->text);
}

static bool mapsreader_send_answer(struct mapsreader_answer *a,
				   struct pm_maps *m)
{
	size_t bytes = m->n * sizeof(*m->maps), i;
	bool ok;

	a->n = m->n;
	a->text_len = m->n ? text_len(m) : 0;
	a->begin = m->begin;
	if (bytes + a->text_len > MAPSREADER_BYTES)
		*a = (struct mapsreader_answer){ .err = -E2BIG,
						 .waited = a->waited,
						 .cpu_ns = a->cpu_ns,
						 .begin = a->begin,
						 .end = a->end };
	ok = mapsreader_transfer(true, a, sizeof(*a));
	if (!ok || a->err || !a->n)
		return ok;
	for (i = 0; i < m->n; i++)
		m->maps[i].path =
			(const char *)(uintptr_t)(m->maps[i].path - m->text);
	return mapsreader_transfer(true, m->maps, bytes) &&
	       mapsreader_transfer(true, m->text, a->text_len);
}

static bool serve_one(uint32_t tgid)
{
	uint64_t cpu = thread_ns(), begin = clock_boottime_ns();
	struct mapsreader_answer a = { 0 };
	long waits = thread_waits();
	struct pm_maps m;
	bool ok;

	a.err = pm_maps_read("/proc", tgid, &m);
	if (a.err)
		m.begin = begin;
	a.end = clock_boottime_ns();
	a.cpu_ns = thread_ns() - cpu;
	a.waited = thread_waits() != waits;
	ok = mapsreader_send_answer(&a, &m);
	pm_maps_fini(&m);
	return ok;
}

static bool mapsreader_serve(const struct mapsreader_question *q)
{
	struct mapsreader_answer later = { .err = -EAGAIN };
	uint64_t begin = clock_boottime_ns();
	bool ok = q->n <= MAPSREADER_BATCH;
	uint32_t i;

	for (i = 0; ok && i < q->n; i++) {
		if (i && clock_boottime_ns() - begin > q->slice_ns)
			ok = mapsreader_transfer(true, &later, sizeof(later));
		else
			ok = serve_one(q->tgids[i]);
	}
	return ok;
}

/*
 * The reader ends with profd. It ignores signals to the process group, since
 * profd needs it until its own end. It leaves no core and cannot be traced.
 */
static int mapsreader_confine(void)
{
	const struct rlimit none = { 0, 0 };

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (close_range(1, ~0U, 0) || chdir("/") ||
	    prctl(PR_SET_NAME, "profd-maps", 0, 0, 0) ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) ||
	    setrlimit(RLIMIT_CORE, &none))
		return -errno;
	/* The pump waits for its readings. Without CAP_SYS_NICE this fails. */
	if (getpriority(PRIO_PROCESS, 0) > READER_NICE)
		setpriority(PRIO_PROCESS, 0, READER_NICE);
	return 0;
}

bool mapsreader_wanted(int argc, char **argv)
{
	return argc == 2 && !strcmp(argv[1], MAPSREADER_COMMAND);
}

int mapsreader_main(void)
{
	struct mapsreader_question q;

	if (mapsreader_confine())
		return 1;
	while (mapsreader_transfer(false, &q, sizeof(q)) &&
	       mapsreader_serve(&q))
		;
	/* Without profd's exit handlers. */
	_exit(0);
}
