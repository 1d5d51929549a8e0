// SPDX-License-Identifier: Apache-2.0
/*
 * prog_flip VICTIM MINE: maps code of VICTIM, and at once the same amount of MINE at
 * its address, so that a lookup of the first finds the second. Runs for ten seconds.
 * Prints "flipped".
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES 4096

static void *map(const char *path, void *at)
{
	int fd = open(path, O_RDONLY);
	void *p = mmap(at, BYTES, PROT_READ | PROT_EXEC,
		       MAP_PRIVATE | (at ? MAP_FIXED : 0), fd, 0);

	if (fd < 0 || p == MAP_FAILED) {
		perror(path);
		exit(1);
	}
	close(fd);
	return p;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	map(argv[2], map(argv[1], NULL));
	puts("flipped");
	fflush(stdout);
	sleep(10);
	return 0;
}
