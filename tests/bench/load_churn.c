// SPDX-License-Identifier: Apache-2.0
/*
 * load_churn DIR LIB MS: one process that stays while everything else in it changes:
 * every MS milliseconds it loads a copy of LIB under a new name, runs it, unloads it
 * and deletes the file; makes code in memory at a new address; and runs it in a thread
 * with a new name. Until killed.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void copy(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	struct stat st;

	if (in < 0 || out < 0 || fstat(in, &st) ||
	    sendfile(out, in, NULL, (size_t)st.st_size) != st.st_size)
		die(to);
	close(in);
	close(out);
}

static void load_and_spin(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW);
	void *sym = lib ? dlsym(lib, "plugin_spin") : NULL;
	void (*spin)(uint64_t);

	if (!sym) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	memcpy(&spin, &sym, sizeof(spin));
	spin(1000000);
	dlclose(lib);
}

/* mov rcx, rdi; dec rcx; jnz; ret */
static const unsigned char countdown[] = { 0x48, 0x89, 0xf9, 0x48, 0xff,
					   0xc9, 0x75, 0xfb, 0xc3 };

/* A thread of a JIT compiler. The address was never used before. */
static void *make_and_spin(void *arg)
{
	static uintptr_t at = 0x200000000000;
	void (*spin)(uint64_t);
	char name[16];
	void *code;

	at += 1UL << 16;
	snprintf(name, sizeof(name), "turn-%ld", *(long *)arg);
	prctl(PR_SET_NAME, name);
	code = mmap((void *)at, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		die("mmap");
	memcpy(code, countdown, sizeof(countdown));
	if (mprotect(code, 4096, PROT_READ | PROT_EXEC))
		die("mprotect");
	memcpy(&spin, &code, sizeof(spin));
	spin(1000000);
	munmap(code, 4096);
	return NULL;
}

int main(int argc, char **argv)
{
	struct timespec pause;
	char path[4096];
	pthread_t t;
	long turn, ms;

	if (argc < 4)
		return 2;
	ms = atol(argv[3]);
	pause.tv_sec = ms / 1000;
	pause.tv_nsec = ms % 1000 * 1000000;
	for (turn = 0;; turn++) {
		snprintf(path, sizeof(path), "%s/lib%ld.so", argv[1], turn);
		copy(argv[2], path);
		load_and_spin(path);
		unlink(path);
		if (pthread_create(&t, NULL, make_and_spin, &turn))
			die("pthread_create");
		pthread_join(t, NULL);
		nanosleep(&pause, NULL);
	}
}
