// SPDX-License-Identifier: Apache-2.0
/*
 * copy: executable memory that holds a copy of a file's code, at the place of that code.
 * Programs replace their code by such copies to have it in large pages (node
 * --use-largepages, iodlr, ClickHouse, PHP). To the kernel it is memory without a file.
 *
 * Memory is a copy if it has the file's bytes at three places: in the first, the middle and
 * the last page that one segment of the file and the mapping share. Bytes that are all
 * equal, as padding is, do not count. The place in the file is that of the mapping that it
 * has replaced, or follows from the mapping below it; or the segment begins where the
 * memory does. Nothing else is compared, so no other file can be found by chance.
 *
 * The process may hold the locks that a read of its memory takes: see patience.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "processmanager/internal.h"

#define COPY_BYTES 64
#define COPY_PLACES 3
#define COPY_PAGE 4096ULL
/* Pages that are read to find bytes that are not all equal. */
#define COPY_SEEK 8
/* Candidates for the place in the file: one of the mapping, and of segments. */
#define COPY_OFFSETS 4
/* The pause after a comparison, doubled with each that failed. */
#define COPY_PAUSE (100 * CLOCK_NSEC_PER_MSEC)
#define COPY_TRIES_MAX 6
/* As for other files of the process that do not answer. */
#define COPY_UNREAD_NS (60 * CLOCK_NSEC_PER_SEC)

struct copy_place {
	uint64_t pgoff; /* in the file, of the mapping's begin */
	uint64_t from, len; /* bytes of the mapping that the segment has */
};

struct copy_job {
	struct patience_job job;
	int fd; /* of the file */
	uint32_t tgid;
	uint64_t start; /* of the mapping */
	struct copy_place places[COPY_OFFSETS];
	size_t n;
	size_t found; /* out: the place that is equal, or n */
	bool has_stat; /* out: */
	struct procfs_stat stat;
};

static bool copy_is_plain(const uint8_t *b)
{
	return !memcmp(b, b + 1, COPY_BYTES - 1);
}

/* At one place: from 'at' on, page by page in the direction of 'step'. */
static bool copy_equal_at(int mem, const struct copy_job *j,
			  const struct copy_place *p, uint64_t at, int64_t step)
{
	uint8_t file[COPY_BYTES], here[COPY_BYTES];

	for (int i = 0; i < COPY_SEEK; i++, at += (uint64_t)step) {
		/* Unsigned: also false below the begin. */
		if (at - p->from > p->len - COPY_BYTES)
			return false;
		if (pread(j->fd, file, sizeof(file), (off_t)(p->pgoff + at)) !=
		    sizeof(file))
			return false;
		if (copy_is_plain(file))
			continue;
		return pread(mem, here, sizeof(here), (off_t)(j->start + at)) ==
			       sizeof(here) &&
		       !memcmp(file, here, sizeof(file));
	}
	return false;
}

static bool copy_equal(int mem, const struct copy_job *j,
		       const struct copy_place *p)
{
	uint64_t last = p->from + p->len - COPY_BYTES;
	uint64_t middle = p->from + (p->len - COPY_BYTES) / 2;
	int64_t page = (int64_t)COPY_PAGE;

	if (p->len < COPY_PLACES * COPY_BYTES)
		return false;
	/* One page of code: its places are the bytes themselves. */
	if (p->len <= COPY_PAGE)
		page = COPY_BYTES;
	return copy_equal_at(mem, j, p, p->from, page) &&
	       copy_equal_at(mem, j, p, middle, page) &&
	       copy_equal_at(mem, j, p, last, -page);
}

/* In the thread. Read last, the start proves that the pid was not reused. */
static void copy_run(struct patience_job *job)
{
	struct copy_job *j = container_of(job, struct copy_job, job);
	char path[32];
	int mem;

	snprintf(path, sizeof(path), "/proc/%u/mem", j->tgid);
	mem = open(path, O_RDONLY | O_CLOEXEC);
	if (mem < 0)
		return;
	for (size_t i = 0; i < j->n && j->found == j->n; i++)
		if (copy_equal(mem, j, &j->places[i]))
			j->found = i;
	close(mem);
	j->has_stat = procfs_stat(j->tgid, &j->stat);
}

static void copy_free(struct copy_job *j)
{
	close(j->fd);
	free(j);
}

static void copy_release(struct patience_job *job)
{
	copy_free(container_of(job, struct copy_job, job));
}

/* The place, if the mapping then lies in the segment's pages. */
static void copy_add(struct copy_job *j, const struct symbolizer_segment *seg,
		     const struct pm_map *map, uint64_t pgoff)
{
	uint64_t len = map->end - map->start;
	uint64_t first = seg->offset & -COPY_PAGE;
	uint64_t end = seg->offset + seg->size, from;

	if (j->n == COPY_OFFSETS || pgoff < first || pgoff >= end ||
	    len > ((end + COPY_PAGE - 1) & -COPY_PAGE) - pgoff)
		return;
	from = MAX(seg->offset, pgoff) - pgoff;
	for (size_t i = 0; i < j->n; i++)
		if (j->places[i].pgoff == pgoff)
			return;
	j->places[j->n++] = (struct copy_place){
		.pgoff = pgoff,
		.from = from,
		.len = MIN(len, end - pgoff) - from,
	};
}

/* NULL: it cannot be one, or not now. */
static struct copy_job *copy_job_new(const struct pm_proc *proc,
				     const struct pm_map *map)
{
	const struct pm_exe *root = pm_exe_root(map->exe);
	struct copy_job *j = calloc(1, sizeof(*j));
	const struct symbolizer_segment *seg = root->segments;

	if (!j)
		return NULL;
	j->job.run = copy_run;
	j->job.release = copy_release;
	j->tgid = proc->tgid;
	j->start = map->start;
	for (size_t i = 0; i < root->nsegments; i++)
		copy_add(j, &seg[i], map, map->pgoff);
	for (size_t i = 0; i < root->nsegments; i++)
		copy_add(j, &seg[i], map, seg[i].offset & -COPY_PAGE);
	j->found = j->n;
	j->fd = j->n ? symbolizer_file_dup(root->file) : -1;
	if (j->fd >= 0)
		return j;
	free(j);
	return NULL;
}

static bool copy_compare(struct pm *pm, struct pm_proc *proc,
			 struct pm_map *map)
{
	struct copy_job *j = copy_job_new(proc, map);
	bool equal;
	size_t at;
	int err;

	if (!j)
		return false;
	err = patience_run(&pm->patience, &j->job, &at);
	if (err == -ETIMEDOUT) {
		pm->stats.unread++;
		proc->unread_until = clock_boottime_ns() + COPY_UNREAD_NS;
		return false;
	}
	equal = !err && j->found < j->n && j->has_stat &&
		j->stat.start == procfs_tick_of(proc->start_boottime);
	if (equal) {
		map->pgoff = j->places[j->found].pgoff;
		map->text = PM_TEXT_COPY;
		pm->stats.copies++;
	}
	copy_free(j);
	return equal;
}

bool pm_copy_check(struct pm *pm, struct pm_image *img, struct pm_mm *mm,
		   struct pm_map *map)
{
	const struct pm_exe *root = pm_exe_root(map->exe);
	struct pm_proc *proc = img->proc;

	if (root->opening || pm->now < mm->copy_at || proc->exited ||
	    img != proc->images || clock_boottime_ns() < proc->unread_until)
		return false;
	if (!root->file) {
		mm->copy_at = pm->now + COPY_PAUSE;
		pm_exe_open(pm_exe_root(map->exe));
		return false;
	}
	if (copy_compare(pm, proc, map)) {
		mm->copy_tries = 0;
		return true;
	}
	mm->copy_at = pm->now + (COPY_PAUSE << mm->copy_tries);
	mm->copy_tries = MIN(mm->copy_tries + 1, COPY_TRIES_MAX);
	return false;
}
