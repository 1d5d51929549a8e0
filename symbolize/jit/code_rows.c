// SPDX-License-Identifier: Apache-2.0
/*
 * code_rows: unwind rows from a jitdump, see symbolize/file.h. In a worker. Each
 * function has an .eh_frame of its own, which can only give rows for its own code:
 * what leads elsewhere is left out.
 */
#include <errno.h>
#include <stdlib.h>

#include "symbolize/jit/jit.h"
#include "symbolize/rows/cfi.h"

/* A table being made. */
struct code_rows {
	struct symbolizer_rows_build b;
	struct symbolizer_rows_info info;
	struct symbolizer_src *src;
	uint8_t *buf; /* JIT_FRAMES_MAX bytes */
	uint64_t bytes; /* read so far */
};

/* Adds the rows of one function. 0 or -ENOMEM. */
static int code_rows_add(struct code_rows *r, const struct jit_entry *e)
{
	struct symbolizer_src mem;
	struct cfi_section s = {
		.src = &mem,
		.name = "jitdump",
		.eh = true,
		.packed = true,
	};
	struct jit_frames f;

	if (jitdump_frames(r->src, e, &f) ||
	    r->bytes + f.size > JIT_FRAMES_ALL ||
	    symbolizer_src_read(r->src, f.offset, r->buf, f.size)) {
		symbolizer_rows_note(&r->info, s.name, 0, e->unwind,
				     "unwind information that cannot be read");
		return 0;
	}
	r->bytes += f.size;
	symbolizer_src_mem(&mem, r->buf, f.size);
	s.size = f.size;
	s.vaddr = f.addr;
	r->b.exec[0] =
		(struct symbolizer_elf_range){ e->start, e->start + e->size };
	r->b.n_exec = 1;
	r->b.text += e->size;
	return symbolizer_cfi_read(&s, &r->b, &r->info);
}

/* Addresses more than 4 GiB above the lowest have no rows. */
static int code_rows_all(struct code_rows *r, const struct jit_table *t,
			 const struct jit_live *live)
{
	const struct jit_entry *e;
	bool any = false;
	int err = 0;

	for (size_t i = 0; i < t->n && !err; i++) {
		e = &t->v[live[i].entry];
		if (live[i].hidden || !e->unwind)
			continue;
		if (!any)
			r->b.base = e->start & ~0xffffULL;
		any = true;
		err = code_rows_add(r, e);
	}
	return err;
}

int jit_table_rows(const struct jit_table *t, struct symbolizer_src *src,
		   uint64_t at, struct symbolizer_rows **out)
{
	struct code_rows r = { .src = src };
	struct jit_live *live = NULL;
	uint64_t from, until;
	int err = -ENOMEM;

	if (!t->unwinds)
		return -ENODATA;
	live = calloc(t->n + 1, sizeof(*live));
	r.buf = malloc(JIT_FRAMES_MAX);
	if (!live || !r.buf)
		goto out;
	err = jit_table_live(t, at, live, &from, &until);
	if (err)
		goto out;
	r.info.before = at - from;
	r.info.after = until - at;
	err = code_rows_all(&r, t, live);
	if (!err)
		err = symbolizer_rows_end(&r.b, &r.info, out);
out:
	symbolizer_rows_build_fini(&r.b);
	free(r.buf);
	free(live);
	return err;
}
