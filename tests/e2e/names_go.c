// SPDX-License-Identifier: Apache-2.0
/*
 * names_go FILE N SEED: what .gopclntab has for N random addresses of Go's text, as
 * lines "ADDRESS NAME\tFILE\tLINE\tSTART_LINE\tNAME\t...", innermost function first;
 * "ADDRESS none" between functions; "ADDRESS code" if that address has other bytes
 * than the linker's padding. First "text ADDRESS", where Go's text starts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "symbolize/names/go_table.h"
#include "symbolize/names/source.h"

#define PADDING 0xcc /* int3 */

struct dump {
	struct symbolizer_src src;
	struct symbolizer_elf e;
	struct names_context c;
	struct arena arena;
	void *state;
};

static void dump_one(struct dump *d, uint64_t at)
{
	struct names_found f;
	uint8_t byte = PADDING;
	int err;

	arena_init(&d->arena);
	err = names_go.find(d->state, &d->c, at, &f);
	printf("%llx ", (unsigned long long)at);
	if (err) {
		symbolizer_elf_code(&d->e, at, &byte, 1);
		printf("%s", err != -ENOENT    ? strerror(-err)
			     : byte == PADDING ? "none"
					       : "code");
	} else if (at < f.start || at - f.start >= f.size) {
		printf("outside its range");
	}
	for (size_t i = 0; i < f.n && !err; i++)
		printf("%s%s\t%s\t%u\t%u", i ? "\t" : "", f.functions[i].name,
		       f.functions[i].file, f.functions[i].line,
		       f.functions[i].start_line);
	printf("\n");
	arena_fini(&d->arena);
}

static int dump_open(struct dump *d, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	symbolizer_src_fd(&d->src, fd, (uint64_t)st.st_size);
	d->c = (struct names_context){ .src = &d->src, .arena = &d->arena };
	err = symbolizer_elf_init(&d->e, &d->src);
	if (err)
		return err;
	d->c.elf = &d->e;
	return names_go.open(&d->state, &d->c);
}

int main(int argc, char **argv)
{
	static struct dump d;
	const struct gopclntab *g;
	uint64_t seed, text;
	int err;

	if (argc != 4)
		return 2;
	err = dump_open(&d, argv[1]);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	g = &((struct go_table *)d.state)->g;
	text = g->format->pc_size == 8 ? 0 : g->text;
	seed = strtoull(argv[3], NULL, 10);
	printf("text %llx\n", (unsigned long long)(text + g->first));
	for (long i = 0; i < atol(argv[2]); i++) {
		/* Knuth, MMIX. */
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		dump_one(&d,
			 text + g->first + (seed >> 16) % (g->end - g->first));
	}
	names_go.close(d.state);
	symbolizer_elf_fini(&d.e);
	return 0;
}
