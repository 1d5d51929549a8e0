// SPDX-License-Identifier: Apache-2.0
/*
 * prog_opened FILE: prints the program of each process that opens the file, by
 * fanotify(7). Prints "watching" first.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/fanotify.h>
#include <unistd.h>

static void tell(int pid)
{
	char path[32], exe[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	printf("opened by %s\n", exe);
}

int main(int argc, char **argv)
{
	int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC, O_RDONLY);
	struct fanotify_event_metadata buf[64], *ev;
	ssize_t n;

	if (argc != 2 || fd < 0 ||
	    fanotify_mark(fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, argv[1])) {
		perror("prog_opened");
		return 1;
	}
	puts("watching");
	fflush(stdout);
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		for (ev = buf; FAN_EVENT_OK(ev, n);
		     ev = FAN_EVENT_NEXT(ev, n)) {
			tell(ev->pid);
			if (ev->fd >= 0)
				close(ev->fd);
		}
		fflush(stdout);
	}
	return 0;
}
