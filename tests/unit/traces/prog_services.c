// SPDX-License-Identifier: Apache-2.0
/*
 * prog_services: processes that publish what service they are, each in its own way, for
 * test_services.sh. Each burns some CPU time now and then, for SECONDS of the clock, in a
 * function with the name of its way.
 *
 *	prog_services SECONDS [WAY]	without: all
 *
 * Exit status 77: this kernel has no names of anonymous memory.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/traces/context.h"

static const char *program, *seconds;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

#define PAUSE_US 50000

__attribute__((noinline)) static void burn(double until)
{
	while (now() < until) {
		for (volatile unsigned int i = 0; i < 2000000; i++)
			;
		usleep(PAUSE_US);
	}
}

static struct context_header *map(int anonymous)
{
	struct context_header *h = context_map(anonymous);

	if (!h)
		_exit(errno == EINVAL ? 77 : 1);
	return h;
}

#define WAY(name) __attribute__((noinline)) static void way_##name(double end)

WAY(memfd)
{
	context_publish_service(map(0), "by-memfd", 1);
	burn(end);
}

WAY(prctl)
{
	context_publish_service(map(1), "by-prctl", 1);
	burn(end);
}

WAY(environ)
{
	burn(end);
}

/* Its context goes before its environment. */
WAY(both)
{
	context_publish_service(map(0), "by-context", 1);
	burn(end);
}

/* Looked at after a second, and after ten more. */
WAY(change)
{
	struct context_header *h = map(0);

	context_publish_service(h, "before", 1);
	burn(now() + 5);
	context_publish_service(h, "after", 2);
	burn(end);
}

/* It does not have its parent's mapping. */
WAY(child)
{
	burn(end);
	_exit(0);
}

WAY(parent)
{
	context_publish_service(map(0), "parent", 1);
	if (!fork())
		way_child(end);
	burn(end);
}

/* The next image is none of that service. */
WAY(exec)
{
	char rest[32];

	context_publish_service(map(0), "old-image", 1);
	burn(now() + 9);
	snprintf(rest, sizeof(rest), "%.1f", end - now());
	execl(program, program, rest, "newimage", NULL);
	_exit(1);
}

WAY(newimage)
{
	burn(end);
}

WAY(wild)
{
	struct context_header *h = map(0);

	context_publish_service(h, "wild", 1);
	h->payload = 0x7ff000000000;
	h->published_ns = 2;
	burn(end);
}

WAY(huge)
{
	struct context_header *h = map(0);

	context_publish_service(h, "huge", 1);
	h->size = UINT32_MAX;
	h->published_ns = 2;
	burn(end);
}

WAY(writing)
{
	struct context_header *h = map(0);

	context_publish_service(h, "writing", 1);
	h->published_ns = 0;
	burn(end);
}

WAY(utf8)
{
	context_publish_service(map(0), "bad\xff\xc0\xaf", 1);
	burn(end);
}

WAY(many)
{
	static struct context_message resource;

	for (int i = 0; i < 10000; i++)
		context_attribute(&resource, "", "");
	context_attribute(&resource, "service.name", "many");
	context_publish(map(0), &resource, 1);
	burn(end);
}

/* Another one all the time: each look finds a new one, or none. */
WAY(flood)
{
	struct context_header *h = map(0);

	h->size = 0;
	h->payload = (uintptr_t)h;
	for (volatile uint64_t i = 1; now() < end; i++) {
		h->published_ns = 0;
		h->published_ns = i;
		if (i % 100000 == 0)
			usleep(PAUSE_US / 5);
	}
}

/* X(name, its environment) */
#define WAYS(X)                                                              \
	X(memfd, NULL)                                                       \
	X(prctl, NULL)                                                       \
	X(environ, "OTEL_RESOURCE_ATTRIBUTES=a=b,service.name=by%20environ") \
	X(both, "OTEL_SERVICE_NAME=not-this")                                \
	X(change, NULL)                                                      \
	X(parent, NULL)                                                      \
	X(exec, NULL)                                                        \
	X(newimage, NULL)                                                    \
	X(wild, "OTEL_SERVICE_NAME=wild-environ")                            \
	X(huge, NULL)                                                        \
	X(writing, NULL)                                                     \
	X(utf8, NULL)                                                        \
	X(many, NULL)                                                        \
	X(flood, NULL)

static const struct {
	const char *name, *env;
	void (*run)(double end);
} ways[] = {
#define X(name, env) { #name, env, way_##name },
	WAYS(X)
#undef X
};

#define N_WAYS (sizeof(ways) / sizeof(*ways))

static int one(const char *name)
{
	double end = now() + atof(seconds);

	for (size_t i = 0; i < N_WAYS; i++) {
		if (strcmp(ways[i].name, name))
			continue;
		ways[i].run(end);
		while (wait(NULL) > 0)
			;
		return 0;
	}
	return 2;
}

/* By exec, so that each has its own environment. */
static void start(size_t i)
{
	char *const argv[] = { (char *)program, (char *)seconds,
			       (char *)ways[i].name, NULL };
	char *const envp[] = { (char *)"A=b", (char *)ways[i].env, NULL };

	if (fork())
		return;
	execve(program, argv, envp);
	_exit(1);
}

int main(int argc, char **argv)
{
	int status, worst = 0;

	if (argc < 2)
		return 2;
	program = argv[0];
	seconds = argv[1];
	if (argc > 2)
		return one(argv[2]);
	for (size_t i = 0; i < N_WAYS; i++)
		if (strcmp(ways[i].name, "newimage"))
			start(i);
	while (wait(&status) > 0)
		if (status)
			worst = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	return worst;
}
