// SPDX-License-Identifier: Apache-2.0
/* A library to be loaded by dlopen in the middle of a run: see prog_spin.c. */
#include <stdint.h>

void plugin_spin(uint64_t n);

__attribute__((noinline, noclone)) void plugin_spin(uint64_t n)
{
	while (n--)
		__asm__ volatile("" : "+r"(n));
}
