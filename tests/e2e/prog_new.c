/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prog_new RATE SECONDS MS DIR: executes RATE new files a second. Each is this program
 * with another build id, in DIR, uses MS milliseconds of CPU time some functions deep,
 * and is deleted as soon as it has ended, like the programs of configure scripts.
 * Prints how many there were.
 *
 * prog_new MS: one of them.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEEP __attribute__((noinline, noclone))

int new_inner(int64_t until);
int new_outer(int64_t until);

static int64_t now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

DEEP int new_inner(int64_t until)
{
	volatile int n = 0;

	while (now(CLOCK_PROCESS_CPUTIME_ID) < until)
		for (int i = 0; i < 20000; i++)
			n++;
	return n;
}

DEEP int new_outer(int64_t until)
{
	return new_inner(until) + 1;
}

static char *image;
static size_t size;

static void load(void)
{
	struct stat st;
	int fd = open("/proc/self/exe", O_RDONLY);

	if (fd < 0 || fstat(fd, &st))
		exit(1);
	size = st.st_size;
	image = malloc(size);
	if (!image || read(fd, image, size) != (ssize_t)size)
		exit(1);
	close(fd);
}

/* The description of the GNU build id's note. */
static char *build_id(void)
{
	static const char note[] = { 4, 0, 0, 0, 20,  0,   0,	0,
				     3, 0, 0, 0, 'G', 'N', 'U', 0 };
	size_t i;

	for (i = 0; i + sizeof(note) + 20 <= size; i++)
		if (!memcmp(image + i, note, sizeof(note)))
			return image + i + sizeof(note);
	exit(1);
}

static void one(const char *dir, const char *ms, char *id, unsigned int n)
{
	char path[4096];
	pid_t pid;
	int fd;

	snprintf(path, sizeof(path), "%s/new%d-%u", dir, (int)getpid(), n);
	memcpy(id, &n, sizeof(n));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	if (fd < 0 || write(fd, image, size) != (ssize_t)size)
		exit(1);
	close(fd);
	pid = fork();
	if (!pid) {
		execl(path, path, ms, NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	unlink(path);
}

int main(int argc, char **argv)
{
	int64_t begin, end, due;
	unsigned int n = 0;
	double rate;
	char *id;

	if (argc == 2)
		return new_outer(atof(argv[1]) * 1e6) == 0;
	if (argc != 5)
		return 2;
	load();
	id = build_id();
	memset(id, getpid() & 0xff, 20);
	rate = atof(argv[1]);
	begin = now(CLOCK_MONOTONIC);
	end = begin + atof(argv[2]) * 1e9;
	while ((due = begin + n / rate * 1e9) < end) {
		int64_t wait = due - now(CLOCK_MONOTONIC);
		struct timespec ts = { 0, wait };

		if (now(CLOCK_MONOTONIC) >= end)
			break;
		if (wait > 0 && wait < 1000000000)
			nanosleep(&ts, NULL);
		one(argv[4], argv[3], id, n++);
	}
	printf("%u\n", n);
	return 0;
}
