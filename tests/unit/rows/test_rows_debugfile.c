// SPDX-License-Identifier: Apache-2.0
/* Separate debug files: what is asked for, and what is taken of the answers. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "symbolize/elf/debugfile.h"
#include "tests/unit/rows/test_rows.h"

#define ID "\x01\x02\x03\x04\x05\x06\x07\x08"
#define OTHER_ID "\x01\x02\x03\x04\x05\x06\x07\x09"

/* What there is, and what was asked. */
struct shelf {
	const struct bytes *by_id, *by_name; /* NULL: none */
	int asked_id, asked_name;
	uint8_t id[64];
	size_t id_len;
	char name[64];
	uint32_t crc;
};

static int give(const struct bytes *b)
{
	int fd;

	if (!b)
		return -ENOENT;
	fd = memfd_create("debug", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, b->b, b->n), b->n);
	return fd;
}

static int on_ask(void *arg, const char *basename, const uint8_t *build_id,
		  size_t len, uint32_t crc, bool has_crc)
{
	struct shelf *s = arg;

	if (len) {
		assert_null(basename);
		assert_false(has_crc);
		s->asked_id++;
		memcpy(s->id, build_id, len);
		s->id_len = len;
		return give(s->by_id);
	}
	assert_non_null(basename);
	assert_true(has_crc);
	assert_null(strchr(basename, '/'));
	s->asked_name++;
	snprintf(s->name, sizeof(s->name), "%s", basename);
	s->crc = crc;
	return give(s->by_name);
}

static void put_id(struct bytes *o, const char *id)
{
	put4(o, 4);
	put4(o, 8);
	put4(o, NT_GNU_BUILD_ID);
	put(o, "GNU", 4);
	put(o, id, 8);
}

static void put_link(struct bytes *o, const char *name, uint32_t crc)
{
	put(o, name, strlen(name) + 1);
	while (o->n % 4)
		put1(o, 0);
	put4(o, crc);
}

/* A file with a function at 0x100 in its .eh_frame, and these, if not NULL. */
static void make_program(struct bytes *f, const char *id, const char *link)
{
	struct bytes eh = { 0 }, note = { 0 }, to = { 0 };
	struct section s[3] = { { ".eh_frame", EH, SHF_ALLOC, &eh } };
	size_t n = 1;

	put_fde(&eh, usual_cie(&eh), 0x100, 0x10, C(""));
	if (id) {
		put_id(&note, id);
		s[n++] = (struct section){ ".note.gnu.build-id", 0, 0, &note };
	}
	if (link) {
		put_link(&to, link, 0xfeedbeef);
		s[n++] = (struct section){ ".gnu_debuglink", 0, 0, &to };
	}
	make_file(f, s, n, false);
	free(eh.b);
	free(note.b);
	free(to.b);
}

/* Packed as before there was a standard for it. */
static void pack_old(struct bytes *out, const struct bytes *in)
{
	uint8_t buf[4096];
	uLongf len = sizeof(buf);

	put(out, C("ZLIB\0\0\0\0\0\0"));
	put1(out, (uint8_t)(in->n >> 8));
	put1(out, (uint8_t)in->n);
	assert_int_equal(compress(buf, &len, in->b, in->n), Z_OK);
	put(out, buf, len);
}

/* Its debug file: a function at 0x100, one at 0x200, of frames of 0x20. */
static void make_debug(struct bytes *f, const char *id, bool packed)
{
	struct bytes debug = { 0 }, z = { 0 }, note = { 0 };
	struct section s[2] = { { ".debug_frame", 0, 0, &debug },
				{ ".note.gnu.build-id", 0, 0, &note } };
	size_t cie = put_cie(&debug, false, "", NULL, 0, C(USUAL));

	put_debug_fde(&debug, cie, 0x100, 0x10, C("\x0e\x20"));
	put_debug_fde(&debug, cie, 0x200, 0x10, C("\x0e\x20"));
	if (packed) {
		pack_old(&z, &debug);
		s[0] = (struct section){ ".zdebug_frame", 0, 0, &z };
	}
	if (id)
		put_id(&note, id);
	make_file(f, s, id ? 2 : 1, false);
	free(debug.b);
	free(z.b);
	free(note.b);
}

static struct symbolizer_rows *rows_with(const struct bytes *f,
					 struct shelf *shelf)
{
	struct symbolizer_ask ask = { .file = on_ask, .arg = shelf };
	struct symbolizer_rows *rows;
	struct symbolizer_src src;

	symbolizer_src_mem(&src, f->b, f->n);
	assert_int_equal(symbolizer_rows_read(&rows, &src, &ask), 0);
	return rows;
}

static void expect_rows(const struct bytes *f, struct shelf *shelf, bool more)
{
	struct symbolizer_rows *rows = rows_with(f, shelf);

	assert_null(info_of(rows).damage);
	/* What the file says itself stands. */
	assert_string_equal(rule_at(rows, 0x100), "r7+8");
	assert_string_equal(rule_at(rows, 0x200), more ? "r7+32" : "gap");
	symbolizer_rows_free(rows);
}

static void by_build_id(void **state)
{
	struct bytes f = { 0 }, d = { 0 };
	struct shelf shelf = { .by_id = &d };

	make_program(&f, ID, "name.debug");
	make_debug(&d, ID, false);
	expect_rows(&f, &shelf, true);
	assert_int_equal(shelf.id_len, 8);
	assert_memory_equal(shelf.id, ID, 8);
	assert_int_equal(shelf.asked_name, 0);
	free(f.b);
	free(d.b);
}

static void by_name_and_checksum(void **state)
{
	static const char *const ids[] = { NULL, ID };
	struct bytes f = { 0 }, d = { 0 };

	for (int program = 0; program < 2; program++) {
		for (int debug = 0; debug < 2; debug++) {
			struct shelf shelf = { .by_name = &d };

			make_program(&f, ids[program], "name.debug");
			make_debug(&d, ids[debug], true);
			expect_rows(&f, &shelf, true);
			assert_int_equal(shelf.asked_id, program);
			assert_string_equal(shelf.name, "name.debug");
			assert_int_equal(shelf.crc, 0xfeedbeef);
		}
	}
	free(f.b);
	free(d.b);
}

static void of_another_build_none_is_taken(void **state)
{
	struct bytes f = { 0 }, d = { 0 }, none = { 0 };
	struct shelf shelf = { .by_id = &d, .by_name = &d };

	make_program(&f, ID, "name.debug");
	make_debug(&d, OTHER_ID, false);
	expect_rows(&f, &shelf, false);
	assert_int_equal(shelf.asked_id, 1);
	assert_int_equal(shelf.asked_name, 1);
	/* What lies there by build id has to say it. */
	make_debug(&none, NULL, false);
	shelf = (struct shelf){ .by_id = &none };
	expect_rows(&f, &shelf, false);
	/* Of another machine, or no ELF at all. */
	make_debug(&d, ID, false);
	d.b[offsetof(Elf64_Ehdr, e_machine)] = EM_AARCH64;
	shelf = (struct shelf){ .by_id = &d };
	expect_rows(&f, &shelf, false);
	d.b[0] = 0;
	expect_rows(&f, &shelf, false);
	free(f.b);
	free(d.b);
	free(none.b);
}

/* As of a library that prelink(8) moved. */
static void of_other_addresses_none_is_taken(void **state)
{
	struct bytes f = { 0 }, d = { 0 };
	struct shelf shelf = { .by_id = &d, .by_name = &d };
	Elf64_Phdr ph;

	make_program(&f, ID, "name.debug");
	make_debug(&d, ID, false);
	memcpy(&ph, d.b + sizeof(Elf64_Ehdr), sizeof(ph));
	ph.p_vaddr += 0x1000;
	memcpy(d.b + sizeof(Elf64_Ehdr), &ph, sizeof(ph));
	expect_rows(&f, &shelf, false);
	/* Its segment is only in the program headers, as in most debug files. */
	ph.p_filesz = 0;
	memcpy(d.b + sizeof(Elf64_Ehdr), &ph, sizeof(ph));
	expect_rows(&f, &shelf, false);
	ph.p_vaddr -= 0x1000;
	memcpy(d.b + sizeof(Elf64_Ehdr), &ph, sizeof(ph));
	expect_rows(&f, &shelf, true);
	free(f.b);
	free(d.b);
}

static void a_name_has_no_directories(void **state)
{
	static const struct {
		const char *link, *asked; /* NULL: nothing is */
	} names[] = {
		{ "/etc/x/../shadow", "shadow" },
		{ "../../a.debug", "a.debug" },
		{ "dir/", NULL },
		{ "a/..", NULL },
		{ ".", NULL },
		{ "", NULL },
	};
	struct bytes f = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct shelf shelf = { 0 };

		make_program(&f, NULL, names[i].link);
		expect_rows(&f, &shelf, false);
		assert_int_equal(shelf.asked_name, names[i].asked != NULL);
		if (names[i].asked)
			assert_string_equal(shelf.name, names[i].asked);
	}
	free(f.b);
}

static void a_link_that_is_cut_off_is_none(void **state)
{
	struct bytes f = { 0 }, link = { 0 }, eh = { 0 };
	struct section s[] = { { ".eh_frame", EH, SHF_ALLOC, &eh },
			       { ".gnu_debuglink", 0, 0, &link } };
	struct shelf shelf = { 0 };

	put_fde(&eh, usual_cie(&eh), 0x100, 0x10, C(""));
	put_link(&link, "name.debug", 1);
	for (size_t n = link.n; n-- > 1;) {
		link.n = n;
		make_file(&f, s, 2, false);
		expect_rows(&f, &shelf, false);
	}
	assert_int_equal(shelf.asked_name, 0);
	free(f.b);
	free(eh.b);
	free(link.b);
}

static void damage_in_it_is_told_apart(void **state)
{
	struct bytes f = { 0 }, d = { 0 };
	struct shelf shelf = { .by_id = &d };
	struct symbolizer_rows *rows;

	make_program(&f, ID, NULL);
	make_debug(&d, ID, false);
	d.b[sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr) + 2] = 1;
	rows = rows_with(&f, &shelf);
	assert_non_null(info_of(rows).damage);
	assert_string_equal(info_of(rows).section, ".debug_frame (separate)");
	assert_string_equal(rule_at(rows, 0x100), "r7+8");
	symbolizer_rows_free(rows);
	free(f.b);
	free(d.b);
}

static void every_descriptor_is_closed(void **state)
{
	int first = dup(0), last;

	close(first);
	by_build_id(NULL);
	by_name_and_checksum(NULL);
	of_another_build_none_is_taken(NULL);
	last = dup(0);
	close(last);
	assert_int_equal(first, last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_build_id),
		cmocka_unit_test(by_name_and_checksum),
		cmocka_unit_test(of_another_build_none_is_taken),
		cmocka_unit_test(of_other_addresses_none_is_taken),
		cmocka_unit_test(a_name_has_no_directories),
		cmocka_unit_test(a_link_that_is_cut_off_is_none),
		cmocka_unit_test(damage_in_it_is_told_apart),
		cmocka_unit_test(every_descriptor_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
