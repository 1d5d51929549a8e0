// SPDX-License-Identifier: Apache-2.0
/* prog_memfd PROGRAM ARGS...: executes a copy of PROGRAM that has no path. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
	int in, out;
	struct stat st;

	if (argc < 2)
		return 2;
	in = open(argv[1], O_RDONLY | O_CLOEXEC);
	out = memfd_create("hidden", MFD_CLOEXEC);
	if (in < 0 || out < 0 || fstat(in, &st) ||
	    sendfile(out, in, NULL, (size_t)st.st_size) != st.st_size) {
		perror(argv[1]);
		return 1;
	}
	fexecve(out, argv + 1, environ);
	perror("fexecve");
	return 1;
}
