// SPDX-License-Identifier: Apache-2.0
/*
 * A profile from anywhere, compressed or not: it is read, every second location gets
 * new lines, it is written and read again.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reporter/edit/edit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct reporter_function functions[] = {
	{ .name = "inner", .system_name = "_Z5innerv", .file = "a.c" },
	{ .name = "out\377er", .system_name = "", .file = "", .start_line = 7 },
};
static const struct reporter_line lines[] = {
	{ &functions[0], 12 },
	{ &functions[1], 0 },
};

static void read_all(const struct reporter_profile *p)
{
	static struct reporter_profile_mapping m;
	struct reporter_profile_location l;
	char text[16];
	size_t i;

	for (i = 0; i < reporter_profile_mappings(p); i++) {
		reporter_profile_mapping(p, i, &m);
		if (strlen(m.path) >= sizeof(m.path))
			__builtin_trap();
	}
	for (i = 0; i < reporter_profile_locations(p); i++) {
		reporter_profile_location(p, i, &l);
		if (l.mapping != REPORTER_PROFILE_NONE &&
		    l.mapping >= reporter_profile_mappings(p))
			__builtin_trap();
	}
	for (i = 0; reporter_profile_comment(p, i, text, sizeof(text)); i++)
		;
}

static void write_and_read(struct reporter_profile *p)
{
	struct reporter_profile_location l;
	struct reporter_profile *again;
	int fd = memfd_create("profile", MFD_CLOEXEC);
	const char *what = NULL;
	size_t i;

	for (i = 0; i < reporter_profile_locations(p); i += 2)
		if (reporter_profile_set(p, i, lines, 1 + i / 2 % 2))
			__builtin_trap();
	if (fd < 0 || reporter_profile_write(p, fd, REPORTER_RAW))
		__builtin_trap();
	lseek(fd, 0, SEEK_SET);
	if (reporter_profile_read(fd, &again, &what))
		__builtin_trap();
	if (reporter_profile_locations(again) != reporter_profile_locations(p))
		__builtin_trap();
	for (i = 0; i < reporter_profile_locations(again); i += 2) {
		reporter_profile_location(again, i, &l);
		if (!l.named || !l.lined)
			__builtin_trap();
	}
	reporter_profile_free(again);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *in = malloc(size + 1), *raw;
	struct reporter_profile *p;
	const char *what = NULL;
	size_t len;

	if (!in)
		return 0;
	memcpy(in, data, size);
	if (edit_unpack(in, size, &raw, &len, &what))
		return 0;
	if (reporter_profile_parse(raw, len, &p, &what)) {
		if (!what)
			__builtin_trap();
		return 0;
	}
	read_all(p);
	write_and_read(p);
	reporter_profile_free(p);
	return 0;
}
