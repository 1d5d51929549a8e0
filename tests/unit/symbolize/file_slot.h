/* SPDX-License-Identifier: Apache-2.0 */
/* file_slot: the slot of a file of the test, for which tests/unit/files.h is included. */
#ifndef TESTS_UNIT_SYMBOLIZE_FILE_SLOT_H
#define TESTS_UNIT_SYMBOLIZE_FILE_SLOT_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/elf/slot.h"

static inline void file_slot(const char *name, struct symbolizer_slot *slot)
{
	static struct symbolizer_src src;
	struct symbolizer_elf e;
	char path[256];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	symbolizer_src_fd(&src, fd, (uint64_t)st.st_size);
	assert_int_equal(symbolizer_elf_init(&e, &src), 0);
	assert_int_equal(symbolizer_slot_find(&e, slot), 0);
	assert_true(symbolizer_slot_valid(slot));
	symbolizer_elf_fini(&e);
	close(fd);
}

#endif /* TESTS_UNIT_SYMBOLIZE_FILE_SLOT_H */
