// SPDX-License-Identifier: Apache-2.0
/*
 * opener_inode: the device, inode and generation that the kernel reports for
 * mappings of a file: see symbolize/opener.h. On overlayfs and btrfs they
 * differ from those of stat(2), and between kernels. So the opener maps the
 * file and reads what the kernel reports for that mapping, from the source that
 * the numbers to be compared are from. The contents of the file are not read.
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "symbolize/opener.h"

#define INODE_RING 8192 /* bytes; a record has at most some 4,200 */

struct inode {
	uint64_t dev, ino, generation;
};

/* A PERF_RECORD_MMAP2 up to what is before the path. */
struct inode_record {
	struct perf_event_header head;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, generation;
};

static int inode_event(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1,
		.mmap_data = 1,
		.mmap2 = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1,
			    PERF_FLAG_FD_CLOEXEC);
}

/* The ring was just created, so no record wraps around its end. */
static bool inode_in_ring(const struct perf_event_mmap_page *ring,
			  const void *addr, struct inode *out)
{
	const char *data = (const char *)ring + sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);
	struct inode_record r;
	uint64_t at;

	for (at = 0; at + sizeof(r) <= MIN(head, INODE_RING);
	     at += MAX(r.head.size, sizeof(r.head))) {
		memcpy(&r, data + at, sizeof(r));
		if (r.head.type != PERF_RECORD_MMAP2 ||
		    r.head.misc & PERF_RECORD_MISC_MMAP_BUILD_ID ||
		    r.addr != (uintptr_t)addr)
			continue;
		*out = (struct inode){ makedev(r.maj, r.min), r.ino,
				       r.generation };
		return true;
	}
	return false;
}

static bool inode_in_maps(const void *addr, struct inode *out)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned int maj, min;
	char *line = NULL;
	bool found = false;
	uint64_t start;
	size_t cap = 0;

	while (f && !found && getline(&line, &cap, f) > 0) {
		found = sscanf(line, "%" SCNx64 "-%*x %*s %*x %x:%x %" SCNu64,
			       &start, &maj, &min, &out->ino) == 4 &&
			start == (uintptr_t)addr;
		out->dev = makedev(maj, min);
	}
	free(line);
	if (f)
		fclose(f);
	return found;
}

/* A request that was made from /proc has no generation. */
static bool inode_same(const struct inode *i,
		       const struct symbolizer_open_req *req)
{
	return i->dev == req->dev && i->ino == req->ino &&
	       (!req->generation || i->generation == req->generation);
}

bool opener_inode_is(int fd, const struct symbolizer_open_req *req)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *ring = MAP_FAILED, *map;
	int event = inode_event();
	struct inode inode;
	bool same = false;

	if (event >= 0)
		ring = mmap(NULL, page + INODE_RING, PROT_READ | PROT_WRITE,
			    MAP_SHARED, event, 0);
	map = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		goto out;
	same = ring != MAP_FAILED && inode_in_ring(ring, map, &inode) &&
	       inode_same(&inode, req);
	if (!same && !req->generation && inode_in_maps(map, &inode))
		same = inode_same(&inode, req);
	munmap(map, page);
out:
	if (ring != MAP_FAILED)
		munmap(ring, page + INODE_RING);
	if (event >= 0)
		close(event);
	return same;
}
