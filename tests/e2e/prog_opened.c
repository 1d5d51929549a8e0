// SPDX-License-Identifier: Apache-2.0
/*
 * prog_opened FILE...: prints the name of each file whenever somebody opens it,
 * by inotify(7). Prints "watching" first.
 */
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#define FILES_MAX 64

int main(int argc, char **argv)
{
	char buf[4096] __attribute__((aligned(8)));
	const struct inotify_event *ev;
	const char *names[FILES_MAX] = { NULL };
	int fd = inotify_init1(IN_CLOEXEC), wd;
	ssize_t n;

	for (int i = 1; i < argc; i++) {
		wd = inotify_add_watch(fd, argv[i], IN_OPEN);
		if (wd < 0 || wd >= FILES_MAX) {
			perror(argv[i]);
			return 1;
		}
		names[wd] = argv[i];
	}
	puts("watching");
	fflush(stdout);
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		for (char *p = buf; p < buf + n; p += sizeof(*ev) + ev->len) {
			ev = (const void *)p;
			if (ev->wd >= 0 && ev->wd < FILES_MAX && names[ev->wd])
				puts(names[ev->wd]);
		}
		fflush(stdout);
	}
	return 0;
}
