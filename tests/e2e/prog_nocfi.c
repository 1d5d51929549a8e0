// SPDX-License-Identifier: Apache-2.0
/*
 * prog_nocfi SECONDS: uses the CPU below a function in assembly, which has no unwind
 * information in the file and uses the frame pointer for something else: stacks can
 * be unwound through it only by rows written by hand.
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

void bare_middle(int64_t until);
void bare_leaf(int64_t until);

/*
 * bare_middle: the number after each instruction is its end, from the first byte of
 * the function.
 */
__asm__(".text\n"
	".globl bare_middle\n"
	".type bare_middle, @function\n"
	"bare_middle:\n"
	"	push %rbp\n" /* 1 */
	"	push %rbx\n" /* 2 */
	"	mov $0x1234, %rbp\n" /* 9 */
	"	sub $24, %rsp\n" /* 13 */
	"	call bare_leaf\n" /* 18 */
	"	add $24, %rsp\n" /* 22 */
	"	pop %rbx\n" /* 23 */
	"	pop %rbp\n" /* 24 */
	"	ret\n" /* 25 */
	".size bare_middle, .-bare_middle\n");

static int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

__attribute__((noinline, noclone)) void bare_leaf(int64_t until)
{
	volatile unsigned int n;

	while (cpu_ns() < until)
		for (n = 0; n < 1000000; n++)
			;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	bare_middle(cpu_ns() + atol(argv[1]) * 1000000000LL);
	return 0;
}
