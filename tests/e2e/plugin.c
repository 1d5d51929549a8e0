// SPDX-License-Identifier: Apache-2.0
/* A library to be loaded by dlopen in the middle of a run: see prog_spin.c. */
#include <stdint.h>

#include "tests/e2e/frame.h"

void plugin_spin(uint64_t n);

__attribute__((noinline, noclone)) void plugin_spin(uint64_t n)
{
	WITH_FRAME;
	while (n--)
		__asm__ volatile("" : "+r"(n));
}
