// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: symbol tables that are not in the file itself. The first byte
 * chooses what the rest is: the section .gnu_debugdata as it is, the file that is
 * compressed in it, or the separate debug file. The file around it is always the
 * same, and has a segment of code. All names of the index are read.
 */
#include <errno.h>
#include <lzma.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "symbolize/names/index.h"

#define CODE (1U << 20) /* bytes of the segment */
#define SECTION_NAMES "\0.shstrtab\0.gnu_debugdata\0.gnu_debuglink"
#define LINK "debug\0\0\0crc"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
};

/* A file with these contents of .gnu_debugdata. */
struct shell {
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	Elf64_Shdr sh[4];
	char names[sizeof(SECTION_NAMES)];
	char link[sizeof(LINK) - 1];
	uint8_t packed[];
};

static Elf64_Shdr section(uint32_t name, size_t at, size_t size)
{
	return (Elf64_Shdr){
		.sh_name = name,
		.sh_type = SHT_PROGBITS,
		.sh_offset = at,
		.sh_size = size,
	};
}

static struct shell *wrap(const uint8_t *packed, size_t size)
{
	struct shell *s = calloc(1, sizeof(*s) + size);

	if (!s)
		abort();
	memcpy(s->eh.e_ident, ELFMAG, SELFMAG);
	s->eh.e_ident[EI_CLASS] = ELFCLASS64;
	s->eh.e_ident[EI_DATA] = ELFDATA2LSB;
	s->eh.e_type = ET_DYN;
	s->eh.e_machine = EM_X86_64;
	s->eh.e_phoff = offsetof(struct shell, ph);
	s->eh.e_phentsize = sizeof(s->ph);
	s->eh.e_phnum = 1;
	s->eh.e_shoff = offsetof(struct shell, sh);
	s->eh.e_shentsize = sizeof(s->sh[0]);
	s->eh.e_shnum = ARRAY_SIZE(s->sh);
	s->eh.e_shstrndx = 1;
	s->ph = (Elf64_Phdr){ .p_type = PT_LOAD,
			      .p_flags = PF_R | PF_X,
			      .p_filesz = CODE,
			      .p_memsz = CODE };
	s->sh[1] = section(1, offsetof(struct shell, names), sizeof(s->names));
	s->sh[2] = section(11, offsetof(struct shell, packed), size);
	s->sh[3] = section(26, offsetof(struct shell, link), sizeof(s->link));
	memcpy(s->names, SECTION_NAMES, sizeof(s->names));
	memcpy(s->link, LINK, sizeof(s->link));
	memcpy(s->packed, packed, size);
	return s;
}

static int on_ask(void *arg, const char *basename, const uint8_t *build_id,
		  size_t len, uint32_t crc, bool has_crc)
{
	const struct input *in = arg;
	int fd = memfd_create("debug", MFD_CLOEXEC);

	if (!basename || strcmp(basename, "debug") != 0 || len || !has_crc)
		abort();
	if (fd < 0 || write(fd, in->data, in->size) != (ssize_t)in->size)
		abort();
	return fd;
}

/* Ranges ascend and do not overlap, and are in the segment. */
static void walk(struct symbolizer_index *x, struct symbolizer_elf *e)
{
	struct symbolizer_range range;
	char name[4096];
	uint64_t end = 0;

	for (uint64_t at = 0; at < CODE; at++) {
		if (!symbolizer_index_find(x, at, &range)) {
			at |= 15;
			continue;
		}
		if (at < range.start || at - range.start >= range.size ||
		    range.start < end || range.size > CODE - range.start)
			abort();
		end = range.start + range.size;
		/* Names of other files have been read already. */
		if (symbolizer_index_name(x, e->src, &range, name,
					  sizeof(name)) <= 0)
			abort();
		symbolizer_index_source(&range);
		at = end - 1;
	}
}

static void index_of(const struct shell *s, size_t packed, struct input *debug)
{
	const struct symbolizer_ask ask = { .file = on_ask, .arg = debug };
	struct symbolizer_index *x;
	struct symbolizer_src src;
	struct symbolizer_elf e;

	symbolizer_src_mem(&src, s, sizeof(*s) + packed);
	if (symbolizer_elf_init(&e, &src) || symbolizer_elf_tables(&e))
		abort();
	if (!symbolizer_index_new(&x, &e, debug->data ? &ask : NULL)) {
		walk(x, &e);
		symbolizer_index_free(x);
	}
	symbolizer_elf_fini(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input debug = { 0 };
	size_t cap, packed = 0;
	struct shell *s;
	uint8_t *out;

	if (size < 2)
		return 0;
	cap = lzma_stream_buffer_bound(size);
	out = malloc(cap);
	if (!out)
		abort();
	if (data[0] % 3 == 0) {
		packed = size - 1;
		memcpy(out, data + 1, packed);
	} else if (data[0] % 3 == 1) {
		if (lzma_easy_buffer_encode(0, LZMA_CHECK_NONE, NULL, data + 1,
					    size - 1, out, &packed,
					    cap) != LZMA_OK)
			abort();
	} else {
		debug = (struct input){ data + 1, size - 1 };
	}
	s = wrap(out, packed);
	index_of(s, packed, &debug);
	free(s);
	free(out);
	return 0;
}
