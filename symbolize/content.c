// SPDX-License-Identifier: Apache-2.0
/*
 * content: a hash of what unwind tables and names are made from. Anyone can
 * choose a build id, and the file id covers only the head, the tail and the
 * length: a program that was changed in the middle keeps both.
 *
 * Of a small file all bytes are hashed, of a large one its headers, symbols,
 * debug and unwind information, stubs, and what Go has for its stack traces. Its
 * other code is left out: only a few instructions in gaps of the unwind
 * information are ever read. A large file without sections is not hashed, since
 * nothing tells where all this is.
 */
#include <errno.h>
#include <nettle/sha2.h>
#include <string.h>

#include "symbolize/file.h"
#include "symbolize/rows/gopclntab.h"

#define CONTENT_SMALL (4ULL << 20)
#define CONTENT_MAX (32ULL << 20)
#define CONTENT_PIECE (64 << 10)

struct content {
	struct symbolizer_src *src;
	struct sha256_ctx sha;
	uint64_t left; /* bytes that may still be read */
	uint8_t piece[CONTENT_PIECE];
};

static int content_add(struct content *c, uint64_t off, uint64_t size)
{
	const uint64_t range[] = { off, size };
	size_t len;
	int err = 0;

	if (size > c->left)
		return -EFBIG;
	c->left -= size;
	sha256_update(&c->sha, sizeof(range), (const uint8_t *)range);
	for (; size && !err; off += len, size -= len) {
		len = (size_t)MIN(size, (uint64_t)sizeof(c->piece));
		err = symbolizer_src_read(c->src, off, c->piece, len);
		if (!err)
			sha256_update(&c->sha, len, c->piece);
	}
	return err;
}

/* Up to the end of the file, which a damaged one may exceed. */
static int add_clipped(struct content *c, uint64_t off, uint64_t size)
{
	off = MIN(off, c->src->size);
	return content_add(c, off, MIN(size, c->src->size - off));
}

static bool wanted_type(uint32_t type)
{
	static const uint32_t types[] = {
		SHT_SYMTAB, SHT_DYNSYM,	 SHT_STRTAB, SHT_RELA,
		SHT_REL,    SHT_DYNAMIC, SHT_NOTE,   ARCH_SHT_UNWIND,
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i] == type)
			return true;
	return false;
}

static const char *const wanted_names[] = {
	".eh_frame",	  ".eh_frame_hdr",     ".go.buildinfo", ".plt",
	".plt.sec",	  ".plt.got",	       ".init",		".fini",
	".gnu_debuglink", ".gnu_debugaltlink",
};

/* DWARF, with .debug_frame, and MiniDebugInfo. */
static bool section_is_debug(struct symbolizer_elf *e, const Elf64_Shdr *names,
			     const Elf64_Shdr *sh)
{
	static const char *const prefixes[] = { ".debug_", ".zdebug_",
						".gnu_debugdata" };
	char name[32];

	if (sh->sh_type == SHT_NOBITS ||
	    symbolizer_elf_name(e, names, sh, name, sizeof(name)) <= 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static int add_sections(struct content *c, struct symbolizer_elf *e)
{
	Elf64_Shdr sh, names;
	bool named = symbolizer_elf_names(e, &names);
	int err = 0;

	for (uint32_t i = 1; i < e->shnum && !err; i++) {
		err = symbolizer_elf_shdr(e, i, &sh);
		if (!err && (wanted_type(sh.sh_type) ||
			     (named && section_is_debug(e, &names, &sh))))
			err = add_clipped(c, sh.sh_offset, sh.sh_size);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wanted_names) && !err; i++)
		if (symbolizer_elf_section(e, wanted_names[i], &sh) &&
		    !wanted_type(sh.sh_type))
			err = add_clipped(c, sh.sh_offset, sh.sh_size);
	return err;
}

/*
 * Go's table, and the data of its functions, up to the end of their segment: that
 * is all that names_go and rows read of them. In Go 1.16 and 1.17 these are
 * anywhere.
 */
static int content_add_go(struct content *c, struct symbolizer_elf *e)
{
	const struct symbolizer_elf_load *l;
	uint64_t start, end, data, data_end;
	struct gopclntab g;
	const char *damage;
	int err = 0;

	if (!symbolizer_gopclntab_find(&g, e, &damage) || damage)
		return 0;
	if (g.format->names_at && !g.format->gofunc_at)
		return -EFBIG;
	start = g.off;
	end = g.off + g.size;
	symbolizer_gopclntab_module(&g);
	sha256_update(&c->sha, sizeof(g.text), (const uint8_t *)&g.text);
	sha256_update(&c->sha, sizeof(g.gofunc), (const uint8_t *)&g.gofunc);
	l = g.gofunc ? symbolizer_elf_load(e, g.gofunc) : NULL;
	if (l) {
		data = l->offset + (g.gofunc - l->vaddr);
		data_end = l->offset + l->size;
		if (data <= end && start <= data_end) {
			start = MIN(start, data);
			end = MAX(end, data_end);
		} else {
			err = add_clipped(c, data, data_end - data);
		}
	}
	return err ? err : add_clipped(c, start, end - start);
}

static int add_large(struct content *c)
{
	struct symbolizer_elf e;
	int err = symbolizer_elf_init(&e, c->src);

	if (err)
		return err;
	if (e.shnum < 2)
		err = -EFBIG;
	if (!err)
		err = add_clipped(c, 0, sizeof(Elf64_Ehdr));
	if (!err)
		err = add_clipped(c, e.phoff, e.phnum * sizeof(Elf64_Phdr));
	if (!err)
		err = add_clipped(c, e.shoff, e.shnum * sizeof(Elf64_Shdr));
	if (!err)
		err = add_sections(c, &e);
	if (!err)
		err = content_add_go(c, &e);
	symbolizer_elf_fini(&e);
	return err;
}

static void content_finish(struct sha256_ctx *sha, uint8_t *out)
{
	uint8_t digest[SHA256_DIGEST_SIZE];

	sha256_digest(sha, sizeof(digest), digest);
	memcpy(out, digest, SYMBOLIZER_FILE_ID_LEN);
}

int symbolizer_content(struct symbolizer_src *src, uint8_t *out)
{
	struct content c = { .src = src, .left = CONTENT_MAX };
	int err;

	sha256_init(&c.sha);
	err = src->size <= CONTENT_SMALL ? content_add(&c, 0, src->size)
					 : add_large(&c);
	if (!err)
		content_finish(&c.sha, out);
	return err;
}

void symbolizer_content_owned(struct symbolizer_ident *id,
			      const uint8_t *content, uint32_t owner)
{
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, sizeof(owner), (const uint8_t *)&owner);
	sha256_update(&sha, SYMBOLIZER_FILE_ID_LEN, content);
	content_finish(&sha, id->content);
}

void symbolizer_content_alone(struct symbolizer_ident *id,
			      const struct symbolizer_own *own)
{
	const uint64_t v[] = {
		id->dev,
		id->ino,
		id->size,
		(uint64_t)id->mtime_ns,
		(uint64_t)id->ctime_ns,
		own->in,
		own->dev,
		own->ino,
	};
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, sizeof(v), (const uint8_t *)v);
	content_finish(&sha, id->content);
}
