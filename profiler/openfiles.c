// SPDX-License-Identifier: Apache-2.0
/* openfiles: see profiler/openfiles.h. */
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/openfiles.h"

/* Rings, maps and programs of many CPUs, and the most clients. */
#define OPENFILES_OTHERS 4096
/* What is always open; for each CPU a clock, its program, a stream, a ring. */
#define OPENFILES_LEAST 77
#define OPENFILES_CPU 4
/* Three for each of four opening threads; clients; the file of a window. */
#define OPENFILES_SPARE 32

void openfiles_raise(unsigned int wanted)
{
	struct rlimit rl;
	rlim_t need = (rlim_t)wanted + OPENFILES_OTHERS;

	if (getrlimit(RLIMIT_NOFILE, &rl) || rl.rlim_cur >= need)
		return;
	/* Not to the hard limit: that may be a thousand million. */
	rl.rlim_cur = MIN(rl.rlim_max, need);
	setrlimit(RLIMIT_NOFILE, &rl);
}

unsigned int openfiles_least(void)
{
	int ncpus = cpus_number();
	unsigned int least = OPENFILES_LEAST + OPENFILES_CPU * MAX(ncpus, 1);
	struct rlimit rl;

	return getrlimit(RLIMIT_NOFILE, &rl) || rl.rlim_cur >= least ? 0
								     : least;
}

static unsigned int files_open(unsigned int limit)
{
	unsigned int fd, n = 0;

	for (fd = 0; fd < limit; fd++)
		n += fcntl((int)fd, F_GETFD) >= 0;
	return n;
}

unsigned int openfiles_budget(unsigned int wanted)
{
	unsigned int limit, open, room;
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) ||
	    rl.rlim_cur >= (rlim_t)wanted + OPENFILES_OTHERS)
		return wanted;
	limit = (unsigned int)rl.rlim_cur;
	open = files_open(limit);
	room = limit > open ? limit - open : 0;
	room -= MIN(room / 2, OPENFILES_SPARE);
	return MAX(1, MIN(wanted, room));
}
