// SPDX-License-Identifier: Apache-2.0
/*
 * calls: code as JIT compilers make it: jit_loop, with a frame pointer, calls jit_leaf all
 * the time. Both are in the process's perf map.
 *
 *     calls LEAF MS
 *
 * It runs for that CPU time, and sleeps for two seconds, in which the map can be read.
 *
 * LEAF: "frame", it has a usual frame; "moved", its frame pointer is moved after it was
 * set, as by HotSpot; "none", it has no frame.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LEAF_AT 0x200

static const struct {
	const char *name;
	uint8_t len;
	uint8_t code[32];
} leaves[] = {
	/* push %rbp; mov %rsp,%rbp; lea 1(%rdi),%eax; pop %rbp; ret */
	{ "frame", 9, { 0x55, 0x48, 0x89, 0xe5, 0x8d, 0x47, 0x01, 0x5d, 0xc3 } },
	/* sub $24,%rsp; mov %rbp,16(%rsp); mov %rsp,%rbp; add $16,%rbp;
	   lea 1(%rdi),%eax; add $16,%rsp; pop %rbp; ret */
	{ "moved", 25, { 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10,
			 0x48, 0x89, 0xe5, 0x48, 0x83, 0xc5, 0x10, 0x8d, 0x47,
			 0x01, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3 } },
	/* lea 1(%rdi),%eax; ret */
	{ "none", 4, { 0x8d, 0x47, 0x01, 0xc3 } },
};

/* push %rbp; mov %rsp,%rbp; push %r12; push %r12; mov %edi,%r12d; 1: call LEAF;
   dec %r12d; jnz 1b; pop %r12; pop %r12; pop %rbp; ret */
static const uint8_t loop[] = { 0x55, 0x48, 0x89, 0xe5, 0x41, 0x54, 0x41,
				0x54, 0x41, 0x89, 0xfc, 0xe8, 0,    0,
				0,    0,    0x41, 0xff, 0xcc, 0x75, 0xf6,
				0x41, 0x5c, 0x41, 0x5c, 0x5d, 0xc3 };
#define LOOP_CALL 12 /* the offset of the distance */

static void name_code(const uint8_t *code, size_t leaf_len)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	f = fopen(path, "w");
	if (!f)
		exit(1);
	fprintf(f, "%lx %zx jit_loop\n%lx %zx jit_leaf\n", (unsigned long)code,
		sizeof(loop), (unsigned long)(code + LEAF_AT), leaf_len);
	fclose(f);
}

int main(int argc, char **argv)
{
	int32_t distance = LEAF_AT - (LOOP_CALL + 4);
	uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	clock_t end;
	size_t i = 0;

	while (argc > 2 && i < 3 && strcmp(leaves[i].name, argv[1]))
		i++;
	if (argc < 3 || i == 3 || code == MAP_FAILED)
		return 1;
	memcpy(code, loop, sizeof(loop));
	memcpy(code + LOOP_CALL, &distance, sizeof(distance));
	memcpy(code + LEAF_AT, leaves[i].code, leaves[i].len);
	name_code(code, leaves[i].len);
	end = clock() + atol(argv[2]) * (CLOCKS_PER_SEC / 1000);
	while (clock() < end)
		((void (*)(int))(void *)code)(100000);
	sleep(2);
	return 0;
}
