// SPDX-License-Identifier: Apache-2.0
/*
 * rows_known: code of C libraries that has no CFI but in which samples are taken,
 * recognized by its bytes (symbolize/arch.h). Only gaps are searched.
 */
#include <errno.h>

#include "base/base.h"
#include "symbolize/rows/rows.h"

#define KNOWN_INIT_MAX 128 /* bytes of .init; there are some 30 */
#define KNOWN_GAP_MAX 512 /* bytes of crtstuff; there are some 200 */

/*
 * _init() and _fini(), put together of crti.o and crtn.o. Each process begins
 * with a page fault there for each of its libraries.
 */
static int add_inits(struct symbolizer_elf *e, struct symbolizer_rows_build *b)
{
	static const struct {
		const char *section;
		int64_t tag;
	} inits[] = { { ".init", DT_INIT }, { ".fini", DT_FINI } };
	uint8_t code[KNOWN_INIT_MAX];
	Elf64_Shdr sh;
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(inits) && !err; i++)
		if (symbolizer_elf_section(e, inits[i].section, &sh) ||
		    symbolizer_elf_dynamic(e, inits[i].tag, &sh.sh_addr))
			err = arch_add_init(b, sh.sh_addr, code,
					    symbolizer_elf_code(e, sh.sh_addr,
								code,
								sizeof(code)));
	return err;
}

static int add_gap(struct symbolizer_elf *e, struct symbolizer_rows_build *b,
		   const struct symbolizer_rows_gap *gap)
{
	struct symbolizer_rule rule;
	uint8_t code[KNOWN_GAP_MAX];
	size_t len;

	if (gap->signal) {
		/* This system call never returns: samples have the address behind. */
		arch_rule_sigreturn(&rule);
		return symbolizer_rows_put_rule(b, gap->start, gap->start + 1,
						&rule);
	}
	len = (size_t)MIN(gap->end - gap->start, sizeof(code));
	len = symbolizer_elf_code(e, gap->start, code, len);
	return arch_add_gap(b, gap, code, len);
}

int symbolizer_rows_known(struct symbolizer_elf *e,
			  struct symbolizer_rows_build *b)
{
	struct symbolizer_rows_gap gap;
	int err = add_inits(e, b);

	for (size_t i = 0; i < b->n_first && !err; i++)
		if (symbolizer_rows_gap(b, i, &gap))
			err = add_gap(e, b, &gap);
	return err == -ENOMEM ? err : 0;
}
