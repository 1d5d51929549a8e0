// SPDX-License-Identifier: Apache-2.0
/*
 * libswap_NAME.so: libraries that differ in their names only, to be loaded in turn at
 * one address: see prog_swap.c.
 */
#include <stdint.h>

#include "tests/e2e/frame.h"

#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)

void PASTE(swap_, NAME)(uint64_t n);

__attribute__((noinline, noclone)) void PASTE(swap_, NAME)(uint64_t n)
{
	WITH_FRAME;
	while (n--)
		__asm__ volatile("" : "+r"(n));
}
