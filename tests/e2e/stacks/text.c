// SPDX-License-Identifier: Apache-2.0
/*
 * text: runs code in memory that it has put in place of its own pages of the file.
 *
 *     text HOW MS
 *
 * HOW: "over", a copy by MAP_FIXED; "moved", a copy by mremap(2), which the kernel does
 * not report; "other", by MAP_FIXED, code that differs from the file's in each
 * instruction. It prints "ready" once the memory is there, then runs for so many
 * milliseconds of CPU time.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/e2e/frame.h"

#define PAGE 4096UL
#define PAGES 4UL

/* Pages of their own, which have nothing but this. */
__attribute__((noinline, section(".text_moved"), aligned(PAGE))) static uint32_t
text_inner(uint32_t x)
{
	WITH_FRAME;
	__asm__ volatile(".set i, 0x01010101\n"
			 ".rept 2600\n"
			 "addl $i, %0\n"
			 ".set i, i + 0x101\n"
			 ".endr\n"
			 ".set i, 0\n"
			 : "+r"(x));
	return x;
}

__attribute__((noinline)) static uint32_t text_outer(uint32_t x)
{
	WITH_FRAME;
	return text_inner(x) + 1;
}

/* Other numbers are added, so it runs all the same: addl imm32 has these bytes. */
static void text_change(uint8_t *code, size_t len)
{
	for (size_t i = 0; i + 6 <= len; i++)
		if (code[i] == 0x81 && (code[i + 1] & 0xf8) == 0xc0) {
			code[i + 2] ^= 0x55;
			i += 5;
		} else if (code[i] == 0x05) {
			code[i + 1] ^= 0x55;
			i += 4;
		}
}

static int text_replace(const char *how)
{
	uint8_t *at = (uint8_t *)((uintptr_t)text_inner & -PAGE);
	size_t len = PAGES * PAGE;
	uint8_t *copy = mmap(NULL, len, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		return -1;
	memcpy(copy, at, len);
	if (!strcmp(how, "other"))
		text_change(copy, len);
	if (!strcmp(how, "moved"))
		return mprotect(copy, len, PROT_READ | PROT_EXEC) ||
				       mremap(copy, len, len,
					      MREMAP_MAYMOVE | MREMAP_FIXED,
					      at) != at
			       ? -1
			       : 0;
	if (mmap(at, len, PROT_READ | PROT_WRITE | PROT_EXEC,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
		return -1;
	memcpy(at, copy, len);
	return mprotect(at, len, PROT_READ | PROT_EXEC);
}

int main(int argc, char **argv)
{
	clock_t end;
	uint32_t x = 1;

	if (argc < 3 || text_replace(argv[1]))
		return 1;
	puts("ready");
	fflush(stdout);
	end = clock() + atol(argv[2]) * (CLOCKS_PER_SEC / 1000);
	while (clock() < end)
		for (int i = 0; i < 1000; i++)
			x = text_outer(x);
	return x == 42;
}
