// SPDX-License-Identifier: Apache-2.0
/* minidebug: see symbolize/names/minidebug.h. */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "symbolize/elf/packed.h"
#include "symbolize/names/minidebug.h"

/* Limits: the section and its contents. A browser's symbols have 40 MiB. */
#define MINI_PACKED_MAX (32ULL << 20)
#define MINI_BYTES_MAX (64U << 20)

int symbolizer_minidebug_open(struct symbolizer_minidebug **mp,
			      struct symbolizer_elf *e)
{
	struct symbolizer_minidebug *m;
	Elf64_Shdr sh;
	size_t len;
	int err;

	if (!symbolizer_elf_section(e, ".gnu_debugdata", &sh))
		return -ENODATA;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	err = sh.sh_size > MINI_PACKED_MAX ? -EFBIG : 0;
	if (!err)
		err = symbolizer_packed_read(e->src, sh.sh_offset, sh.sh_size,
					     MINI_BYTES_MAX, &m->bytes, &len);
	if (err == -ENODATA)
		err = -EINVAL;
	if (!err) {
		symbolizer_src_mem(&m->src, m->bytes, len);
		err = symbolizer_elf_init(&m->elf, &m->src);
	}
	if (!err && (m->elf.machine != e->machine || m->elf.is64 != e->is64))
		err = -EINVAL;
	if (!err)
		err = symbolizer_elf_tables(&m->elf);
	if (err)
		symbolizer_minidebug_close(m);
	else
		*mp = m;
	return err;
}

void symbolizer_minidebug_close(struct symbolizer_minidebug *m)
{
	if (!m)
		return;
	symbolizer_elf_fini(&m->elf);
	free(m->bytes);
	free(m);
}
