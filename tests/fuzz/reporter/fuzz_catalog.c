// SPDX-License-Identifier: Apache-2.0
/* The images of a profile, as the catalog is rebuilt from it. */
#include <string.h>

#include "reporter/catalog/profile_labels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct catalog_profile_image *img;
	struct catalog_profile p;
	size_t i;

	if (!catalog_profile_parse(&p, data, size)) {
		for (i = 0; i < p.nimages; i++) {
			img = p.images[i];
			if (!strtab_str(&p.strings, img->process) ||
			    !strtab_str(&p.strings, img->image) ||
			    !strtab_str(&p.strings, img->comm) ||
			    !strtab_str(&p.strings, img->exe) ||
			    !strtab_str(&p.strings, img->cgroup) ||
			    !strtab_str(&p.strings, img->entry))
				__builtin_trap();
		}
		if (p.comments.len && p.comments.data[p.comments.len - 1])
			__builtin_trap();
	}
	catalog_profile_fini(&p);
	return 0;
}
