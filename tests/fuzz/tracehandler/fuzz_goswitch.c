// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: two stacks and a goroutine of any bytes, and functions of each kind that
 * change stacks. The input is the registers, the goroutine, and the stacks, half each.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tracehandler/unwind/walk.h"

#define TEXT 0x10000
#define KINDS \
	(SYMBOLIZER_SWITCH_MAX + 1) /* and functions that change nothing */
#define FRAMES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Functions of 256 bytes, without a frame at first. */
static struct symbolizer_rows *make_rows(void)
{
	struct symbolizer_rows_error error;
	struct symbolizer_rows *rows;
	struct strbuf out = { 0 };
	static const char *const words[] = {
#define X(name, word) (word),
		SYMBOLIZER_SWITCHES(X)
#undef X
			"c-8",
	};

	for (unsigned int i = 0; i < KINDS; i++)
		strbuf_printf(&out, "%x rsp+8 u %s\n%x rsp+32 c-16 %s\n",
			      TEXT + 256 * i, words[i], TEXT + 256 * i + 4,
			      words[i]);
	strbuf_printf(&out, "%x end\n", TEXT + 256 * KINDS);
	if (symbolizer_rows_parse(out.data, out.len, &rows, &error))
		abort();
	strbuf_fini(&out);
	return rows;
}

static void find(void *arg, uint64_t pc, struct trace_code *out)
{
	if (pc - TEXT >= 256 * KINDS)
		return;
	out->state = TRACE_CODE_HERE;
	out->start = TEXT;
	out->end = TEXT + 256 * KINDS;
	out->rows = arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct symbolizer_rows *rows;
	struct abi_regs regs;
	struct abi_go go;
	struct trace_stack s = { .regs = &regs };
	uint64_t pcs[FRAMES];
	enum trace_end why;
	size_t n;

	if (size < sizeof(regs) + sizeof(go))
		return 0;
	if (!rows)
		rows = make_rows();
	memcpy(&regs, data, sizeof(regs));
	memcpy(&go, data + sizeof(regs), sizeof(go));
	data += sizeof(regs) + sizeof(go);
	size -= sizeof(regs) + sizeof(go);
	s.go = go.state < ABI_GO_MAX ? &go : NULL;
	s.here.bytes = data;
	s.here.size = (uint32_t)(size / 2);
	s.here.start = regs.gpr[ABI_REG_SP] & ~0xffULL;
	s.left.bytes = data + size / 2;
	s.left.size = (uint32_t)(size / 2);
	s.left.start = (go.end - size / 2) & ~0xffULL;
	n = trace_walk(&s, NULL, find, rows, pcs, FRAMES, &why);
	if (n == 0 || n > FRAMES || pcs[0] != regs.ip || why >= TRACE_END_MAX ||
	    (why == TRACE_END_DEPTH && n != FRAMES))
		abort();
	return 0;
}
