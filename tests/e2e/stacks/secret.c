// SPDX-License-Identifier: Apache-2.0
/*
 * secret: reads 32 bytes, keeps them on its stack, in registers and below the
 * stack pointer, and spins. Nobody else gets them: no argument, no environment.
 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define N __attribute__((noinline))

N static void st_spin(const uint64_t *words)
{
	__asm__ volatile("mov (%0), %%rbx\n\t"
			 "mov 8(%0), %%r12\n\t"
			 "mov 16(%0), %%r13\n\t"
			 "mov 24(%0), %%r14\n\t"
			 "mov %%rbx, -64(%%rsp)\n"
			 "1:\tinc %%r15\n\t"
			 "jmp 1b"
			 :
			 : "r"(words)
			 : "rbx", "r12", "r13", "r14", "r15", "memory");
}

int main(void)
{
	char secret[32];
	uint64_t words[4];
	size_t n = 0;
	ssize_t got;

	while (n < sizeof(secret)) {
		got = read(0, secret + n, sizeof(secret) - n);
		if (got <= 0)
			return 1;
		n += (size_t)got;
	}
	memcpy(words, secret, sizeof(words));
	st_spin(words);
	return secret[0];
}
