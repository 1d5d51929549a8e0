// SPDX-License-Identifier: Apache-2.0
/*
 * rows_read: the CFI of a file; see symbolize/rows/rows.h. It is found by section
 * headers. Without them .eh_frame is found as the run-time unwinder does, by
 * .eh_frame_hdr (LSB Core 10.6.2) and its program header. Of that only the
 * address of .eh_frame and the number of functions are used: its table of
 * addresses need not be correct.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/cfi.h"
#include "symbolize/elf/debugfile.h"
#include "symbolize/file.h"
#include "symbolize/rows/flow.h"
#include "symbolize/rows/gopclntab.h"

#define PE_OMIT 0xff

/* One file while it is read. */
struct rows_file {
	struct symbolizer_elf elf;
	struct symbolizer_rows_build b;
	struct symbolizer_rows_info info;
	bool any; /* there is CFI */
};

/* --- sections -------------------------------------------------------------- */

static int read_packed(struct rows_file *f, struct symbolizer_elf *e,
		       struct cfi_section *s, const Elf64_Shdr *sh)
{
	struct symbolizer_src mem;
	uint8_t *buf;
	size_t len;
	int err = symbolizer_elf_unpack(e, sh, &buf, &len);

	if (err == -ENOMEM)
		return err;
	if (err) {
		symbolizer_rows_note(
			&f->info, s->name, 0, sh->sh_offset,
			"compressed contents that cannot be unpacked");
		return 0;
	}
	symbolizer_src_mem(&mem, buf, len);
	s->src = &mem;
	s->offset = 0;
	s->size = len;
	s->packed = true;
	err = symbolizer_cfi_read(s, &f->b, &f->info);
	free(buf);
	return err;
}

/* Reads a section of 'e', the file or its debug file; 'name' is for messages. */
static int read_section(struct rows_file *f, struct symbolizer_elf *e,
			const Elf64_Shdr *sh, const char *name, bool eh)
{
	struct cfi_section s = {
		.src = e->src,
		.name = name,
		.offset = sh->sh_offset,
		.size = sh->sh_size,
		.vaddr = sh->sh_addr,
		.eh = eh,
	};
	char mark[4];

	f->any = true;
	if ((sh->sh_flags & SHF_COMPRESSED) ||
	    (!eh && !symbolizer_src_read(e->src, sh->sh_offset, mark, 4) &&
	     !memcmp(mark, "ZLIB", 4)))
		return read_packed(f, e, &s, sh);
	return symbolizer_cfi_read(&s, &f->b, &f->info);
}

static bool find_debug_frame(struct symbolizer_elf *e, Elf64_Shdr *sh)
{
	return symbolizer_elf_section(e, ".debug_frame", sh) ||
	       symbolizer_elf_section(e, ".zdebug_frame", sh);
}

/* Reads .debug_frame of the file, or else of its separate debug file. */
static int read_debug_frame(struct rows_file *f,
			    const struct symbolizer_ask *ask)
{
	struct symbolizer_debugfile *d;
	Elf64_Shdr sh;
	int err;

	if (find_debug_frame(&f->elf, &sh))
		return read_section(f, &f->elf, &sh, ".debug_frame", false);
	err = symbolizer_debugfile_open(&d, &f->elf, ask);
	if (err)
		return err == -ENOMEM ? err : 0;
	if (find_debug_frame(&d->elf, &sh))
		err = read_section(f, &d->elf, &sh, ".debug_frame (separate)",
				   false);
	symbolizer_debugfile_close(d);
	return err;
}

/* --- without section headers ------------------------------------------------ */

/* Reads the address and number of functions of .eh_frame from .eh_frame_hdr. */
static bool read_hdr(struct symbolizer_elf *e, const Elf64_Phdr *ph,
		     uint64_t *vaddr, uint64_t *functions)
{
	uint8_t h[4 + 8 + 8];
	struct cursor c = { h + 4, h + 4, false };
	size_t len = (size_t)MIN(ph->p_filesz, (uint64_t)sizeof(h));

	if (len < 4 || symbolizer_src_read(e->src, ph->p_offset, h, len) ||
	    h[0] != 1 || h[1] == PE_OMIT || h[2] == PE_OMIT)
		return false;
	c.end = h + len;
	if (!symbolizer_cfi_pointer(&c, h[1], ph->p_vaddr + 4, vaddr) ||
	    !symbolizer_cfi_pointer(&c, h[2], ph->p_vaddr + (uint64_t)(c.p - h),
				    functions))
		return false;
	return !c.bad && *functions;
}

static int read_by_hdr(struct rows_file *f)
{
	const struct symbolizer_elf_load *l;
	struct cfi_section s = { .src = f->elf.src,
				 .name = ".eh_frame",
				 .eh = true };
	Elf64_Phdr ph;

	if (!symbolizer_elf_find_phdr(&f->elf, PT_GNU_EH_FRAME, &ph) ||
	    ph.p_filesz == 0)
		return 0;
	f->any = true;
	l = read_hdr(&f->elf, &ph, &s.vaddr, &s.functions)
		    ? symbolizer_elf_load(&f->elf, s.vaddr)
		    : NULL;
	if (!l) {
		symbolizer_rows_note(&f->info, ".eh_frame_hdr", 0, ph.p_offset,
				     "a header that leads nowhere");
		return 0;
	}
	s.offset = l->offset + (s.vaddr - l->vaddr);
	s.size = l->size - (s.vaddr - l->vaddr);
	return symbolizer_cfi_read(&s, &f->b, &f->info);
}

static int read_eh_frame(struct rows_file *f)
{
	Elf64_Shdr sh;
	int err;

	if (symbolizer_elf_section(&f->elf, ".eh_frame", &sh))
		err = read_section(f, &f->elf, &sh, ".eh_frame", true);
	else
		err = read_by_hdr(f);
	symbolizer_rows_fill(&f->b);
	return err;
}

/* Most of the file has no CFI: it is a C library's, say, and in a static program too. */
static int read_flow(struct rows_file *f)
{
	size_t before = f->b.n_raw;
	int err;

	symbolizer_rows_fill(&f->b);
	if (f->info.damage || symbolizer_rows_covers(&f->b) >= f->b.text / 2)
		return 0;
	err = symbolizer_elf_tables(&f->elf);
	if (!err)
		err = symbolizer_flow(&f->elf, &f->b);
	f->info.by_code = f->b.n_raw > before;
	f->any |= f->info.by_code;
	return err;
}

static int rows_read_all(struct rows_file *f, const struct symbolizer_ask *ask,
			 bool known)
{
	Elf64_Shdr sh;
	int err = read_eh_frame(f);

	/* Before .debug_frame, which has less about Go's functions. */
	if (!err)
		err = symbolizer_gopclntab_read(&f->elf, &f->b, &f->info,
						&f->any);
	symbolizer_rows_fill(&f->b);
	if (symbolizer_elf_section(&f->elf, ".text", &sh))
		f->b.text = sh.sh_size;
	if (!err)
		err = read_debug_frame(f, ask);
	symbolizer_rows_fill(&f->b);
	if (!err && known)
		err = symbolizer_rows_start(&f->elf, &f->b);
	if (!err && known)
		err = symbolizer_rows_known(&f->elf, &f->b);
	if (!err && known)
		err = read_flow(f);
	if (!err && !f->any)
		err = -ENODATA;
	return err;
}

/* Whatever it returns, rows_file_fini() follows. */
static int rows_file_init(struct rows_file *f, struct symbolizer_src *src)
{
	int err;

	memset(f, 0, sizeof(*f));
	err = symbolizer_elf_init(&f->elf, src);
	if (err)
		return err;
	if (f->elf.machine != ARCH_MACHINE || !f->elf.is64)
		return -ENOTSUP;
	symbolizer_rows_begin(&f->b, &f->elf);
	return 0;
}

static void rows_file_fini(struct rows_file *f)
{
	symbolizer_rows_build_fini(&f->b);
	symbolizer_elf_fini(&f->elf);
}

static int rows_read_file(struct symbolizer_rows **out,
			  struct symbolizer_src *src,
			  const struct symbolizer_ask *ask, bool known)
{
	struct rows_file f;
	int err = rows_file_init(&f, src);

	if (!err)
		err = rows_read_all(&f, ask, known);
	if (!err)
		err = symbolizer_rows_end(&f.b, &f.info, out);
	rows_file_fini(&f);
	return err;
}

int symbolizer_rows_functions(struct symbolizer_src *src,
			      symbolizer_rows_func_fn fn, void *arg)
{
	struct rows_file f;
	int err = rows_file_init(&f, src);

	f.b.bare = true;
	if (!err)
		err = read_eh_frame(&f);
	if (!err)
		err = read_debug_frame(&f, NULL);
	if (!err)
		err = f.any ? symbolizer_rows_each(&f.b, fn, arg) : -ENODATA;
	rows_file_fini(&f);
	return err;
}

int symbolizer_rows_read(struct symbolizer_rows **out,
			 struct symbolizer_src *src,
			 const struct symbolizer_ask *ask)
{
	return rows_read_file(out, src, ask, true);
}

int symbolizer_rows_read_tables(struct symbolizer_rows **out,
				struct symbolizer_src *src)
{
	return rows_read_file(out, src, NULL, false);
}

int symbolizer_file_rows(const struct symbolizer_file *f,
			 const struct symbolizer_ask *ask,
			 struct symbolizer_rows **out)
{
	struct symbolizer_src src;

	if (f->kallsyms)
		return -ENODATA;
	if (f->image)
		symbolizer_src_mem(&src, f->image, f->ident.size);
	else if (f->fd >= 0)
		symbolizer_src_fd(&src, f->fd, f->ident.size);
	else
		return -ENODATA;
	return symbolizer_rows_read(out, &src, ask);
}
