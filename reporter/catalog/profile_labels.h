/* SPDX-License-Identifier: Apache-2.0 */
/* profile_labels: what a profile of the archive says about the images in it. */
#ifndef REPORTER_CATALOG_PROFILE_LABELS_H
#define REPORTER_CATALOG_PROFILE_LABELS_H

#include "base/base.h"

struct catalog_profile_image {
	struct hash_node node; /* by the string of its label 'image' */
	uint64_t label;
	uint32_t process, image, comm, exe, cgroup, service,
		entry; /* strings */
	uint32_t pid, entry_pid;
	uint64_t samples, cpu_ns;
};

struct catalog_profile {
	struct strtab strings;
	struct catalog_profile_image **images;
	size_t nimages, cap;
	int64_t time_ns, duration_ns;
	uint64_t samples;
	struct strbuf comments; /* with their NUL */
	/* While it is read. */
	struct arena arena;
	struct hash by_label;
};

/*
 * Reads the profile (data, len), not compressed. Samples without the labels
 * 'process' and 'image' are counted in 'samples' only. 0, -EBADMSG, -EFBIG, -ENOMEM;
 * to be freed in any case.
 */
int catalog_profile_parse(struct catalog_profile *p, const void *data,
			  size_t len);
void catalog_profile_fini(struct catalog_profile *p);

#endif /* REPORTER_CATALOG_PROFILE_LABELS_H */
