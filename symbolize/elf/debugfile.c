// SPDX-License-Identifier: Apache-2.0
/* debugfile: see symbolize/elf/debugfile.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "symbolize/elf/debugfile.h"

#define DEBUG_ID_MAX 64 /* bytes of a build id; they have 8, 16 or 20 */
#define DEBUG_NAME_MAX 256

/* The debug file that a file names. */
struct clue {
	uint8_t id[DEBUG_ID_MAX];
	size_t id_len;
	char name[DEBUG_NAME_MAX];
	uint32_t crc;
	bool link; /* name and crc are set */
};

/* .gnu_debuglink: a string, zeros to a multiple of 4, and the CRC. */
static void read_link(struct symbolizer_elf *e, struct clue *c)
{
	uint64_t limit, at;
	Elf64_Shdr sh;
	char *slash;
	int len;

	if (!symbolizer_elf_section(e, ".gnu_debuglink", &sh) ||
	    __builtin_add_overflow(sh.sh_offset, sh.sh_size, &limit))
		return;
	len = symbolizer_src_string(e->src, sh.sh_offset, limit, c->name,
				    sizeof(c->name));
	if (len <= 0 || len == sizeof(c->name) - 1)
		return;
	at = ((uint64_t)len + 4) & ~3ULL;
	if (at + 4 > sh.sh_size ||
	    symbolizer_src_read(e->src, sh.sh_offset + at, &c->crc, 4))
		return;
	/* Only a name may be asked for, not a path. */
	slash = strrchr(c->name, '/');
	if (slash)
		memmove(c->name, slash + 1, strlen(slash));
	c->link = *c->name && strcmp(c->name, ".") != 0 &&
		  strcmp(c->name, "..") != 0;
}

/* 'must': an absent id is not the same. */
static bool same_id(struct symbolizer_elf *e, const struct clue *c, bool must)
{
	uint8_t id[DEBUG_ID_MAX];
	size_t len = symbolizer_elf_build_id(e, id, sizeof(id));

	if (!len || !c->id_len)
		return !must;
	return len == c->id_len && !memcmp(id, c->id, len);
}

/* Where the code of a file begins, also if only its program headers say so; or 0. */
static uint64_t code_start(const struct symbolizer_elf *e)
{
	uint64_t start = e->absent.size ? e->absent.vaddr : UINT64_MAX;

	for (size_t i = 0; i < e->n_loads; i++)
		if (e->loads[i].exec)
			start = MIN(start, e->loads[i].vaddr);
	return start == UINT64_MAX ? 0 : start;
}

/* prelink(8) moves a library, but neither its debug file nor its build id. */
static bool same_place(const struct symbolizer_elf *a,
		       const struct symbolizer_elf *b)
{
	uint64_t at = code_start(a), bt = code_start(b);

	if (a->type == ET_REL || b->type == ET_REL)
		return a->type == b->type && symbolizer_elf_same_places(a, b);
	return !at || !bt || at == bt;
}

/* Opens 'fd', or closes it. */
static int accept_fd(struct symbolizer_debugfile **dp, int fd,
		     const struct symbolizer_elf *e, const struct clue *c,
		     bool by_id)
{
	struct symbolizer_debugfile *d = calloc(1, sizeof(*d));
	off_t size = lseek(fd, 0, SEEK_END); /* fstat() is not allowed */
	int err;

	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	d->fd = fd;
	symbolizer_src_fd(&d->src, fd, size < 0 ? 0 : (uint64_t)size);
	err = symbolizer_elf_init_any(&d->elf, &d->src);
	if (!err && (d->elf.machine != e->machine || d->elf.is64 != e->is64 ||
		     !same_id(&d->elf, c, by_id) || !same_place(&d->elf, e)))
		err = -ENOENT;
	if (err) {
		symbolizer_debugfile_close(d);
		return err == -ENOMEM ? err : -ENOENT;
	}
	*dp = d;
	return 0;
}

int symbolizer_debugfile_open(struct symbolizer_debugfile **dp,
			      struct symbolizer_elf *e,
			      const struct symbolizer_ask *ask)
{
	int fd = -ENOENT, err = -ENOENT;
	struct clue c = { 0 };

	if (!ask)
		return -ENOENT;
	c.id_len = symbolizer_elf_build_id(e, c.id, sizeof(c.id));
	if (c.id_len) {
		fd = ask->file(ask->arg, NULL, c.id, c.id_len, 0, false);
		if (fd >= 0)
			err = accept_fd(dp, fd, e, &c, true);
	}
	if (err != -ENOENT)
		return err;
	read_link(e, &c);
	if (!c.link)
		return -ENOENT;
	fd = ask->file(ask->arg, c.name, NULL, 0, c.crc, true);
	return fd < 0 ? -ENOENT : accept_fd(dp, fd, e, &c, false);
}

void symbolizer_debugfile_close(struct symbolizer_debugfile *d)
{
	if (!d)
		return;
	symbolizer_elf_fini(&d->elf);
	close(d->fd);
	free(d);
}
