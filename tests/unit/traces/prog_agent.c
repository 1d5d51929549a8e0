// SPDX-License-Identifier: Apache-2.0
/*
 * prog_agent: plays one of Elastic's APM agents, for test_apm.sh: it has the storage of its
 * process, and a thread reads the agent's socket, as often as agents do. It burns CPU time
 * now and then in a first trace until it is registered, and then for a while in a second one, which
 * has as many different stacks as there are functions to recurse into. What it was told of
 * the second one is printed at the end:
 *
 *	registered DELAY_MS; messages N; samples N; stacks N; wrong N
 *
 *	prog_agent SOCKET SECONDS [HOW]
 *
 * The seconds are of CPU time. HOW "slow": the socket is read once a second. "again": it is
 * closed for a second when registered, and bound again. "none": there is no socket.
 * "off": it does not wait until it is registered. "brief": it ends then. If it is "slow" there
 * is no first trace, so that all that is lost is of the second. The second trace's id is 14
 * bytes of 0, between 0xbb and the first letter of HOW.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define STACKS_MAX 65536

struct record {
	uint16_t minor;
	uint8_t valid, present, flags;
	uint8_t trace_id[16], span_id[8], transaction_id[8];
} __attribute__((packed));

EXPORTED __thread struct record *elastic_apm_profiling_correlation_tls_v1;
EXPORTED void *elastic_apm_profiling_correlation_process_storage_v1;

static const struct record first = {
	1, 1, 1, 1, { 0xaa, [15] = 1 }, { 0xa1, [7] = 1 }, { 0xa2, [7] = 1 },
};
static const struct record no_trace = { .minor = 1, .valid = 1 };
static struct record second = {
	1, 1, 1, 1, { 0xbb }, { 0xb1, [7] = 2 }, { 0xb2, [7] = 2 },
};

static const char *path, *how = "";
static volatile int registered; /* how often */
static volatile int over;

/* What the thread was told; of the second trace. */
static unsigned long messages, samples, wrong, delay_ms;
static uint8_t stacks[STACKS_MAX][16];
static unsigned int nstacks;

static double now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* --- the storage ---------------------------------------------------------------- */

static uint8_t storage[8192];

static void put_storage(void)
{
	const char *texts[] = { "shop", "prod", path };
	uint8_t *p = storage;
	uint16_t minor = 1;

	p = mempcpy(p, &minor, sizeof(minor));
	for (size_t i = 0; i < 3; i++) {
		uint32_t len = (uint32_t)strlen(texts[i]);

		p = mempcpy(p, &len, sizeof(len));
		p = mempcpy(p, texts[i], len);
	}
	__atomic_store_n(&elastic_apm_profiling_correlation_process_storage_v1,
			 storage, __ATOMIC_RELEASE);
}

/* --- the socket ------------------------------------------------------------------ */

static int bind_socket(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)))
		exit(2);
	return fd;
}

static void on_stack(const uint8_t *m)
{
	uint16_t count;
	unsigned int i;

	if (!memcmp(m + 4, first.trace_id, 16) &&
	    !memcmp(m + 20, first.transaction_id, 8))
		return;
	if (memcmp(m + 4, second.trace_id, 16) ||
	    memcmp(m + 20, second.transaction_id, 8)) {
		wrong++;
		return;
	}
	memcpy(&count, m + 44, sizeof(count));
	messages++;
	samples += count;
	for (i = 0; i < nstacks && memcmp(stacks[i], m + 28, 16); i++)
		;
	if (i == nstacks && nstacks < STACKS_MAX)
		memcpy(stacks[nstacks++], m + 28, 16);
}

static void on_message(const uint8_t *m, ssize_t len)
{
	uint16_t type, minor;
	uint32_t delay, host;

	memcpy(&type, m, 2);
	memcpy(&minor, m + 2, 2);
	if (type == 2 && minor == 1 && len >= 12) {
		memcpy(&delay, m + 4, 4);
		memcpy(&host, m + 8, 4);
		wrong += len != 12 + (ssize_t)host;
		delay_ms = delay;
		registered++;
	} else if (type == 1 && minor == 1 && len == 46 && registered) {
		on_stack(m);
	} else {
		wrong++;
	}
}

/* For so many seconds messages may come after the work. */
static double linger(void)
{
	return !strcmp(how, "brief") ? 0 : !strcmp(how, "off") ? 2 : 6;
}

/* Reads on for as long. */
static void *agent(void *arg)
{
	int fd = bind_socket(), was = 0;
	uint8_t m[1024];
	double end = 0;
	ssize_t len;

	put_storage();
	while (!end || now(CLOCK_MONOTONIC) < end) {
		usleep(strcmp(how, "slow") ? 20000 : 1000000);
		while ((len = recv(fd, m, sizeof(m), 0)) > 0)
			on_message(m, len);
		if (!strcmp(how, "again") && registered == 1 && !was++) {
			close(fd);
			sleep(1);
			fd = bind_socket();
		}
		if (over && !end)
			end = now(CLOCK_MONOTONIC) + linger();
	}
	return NULL;
}

/* --- the load --------------------------------------------------------------------- */

#define BURN(name, next)                                          \
	__attribute__((noinline)) void name(unsigned int depth)   \
	{                                                         \
		for (volatile unsigned int i = 0; i < 20000; i++) \
			;                                         \
		if (depth)                                        \
			next(depth - 1);                          \
		__asm__ volatile("");                             \
	}

void burn_a(unsigned int depth);
BURN(burn_d, burn_a)
BURN(burn_c, burn_d)
BURN(burn_b, burn_c)
BURN(burn_a, burn_b)

static void work(const struct record *r, double cpu)
{
	double end = now(CLOCK_THREAD_CPUTIME_ID) + cpu;

	*(const struct record *volatile
		  *)&elastic_apm_profiling_correlation_tls_v1 = r;
	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		burn_a(40);
	*(const struct record *volatile
		  *)&elastic_apm_profiling_correlation_tls_v1 = NULL;
}

int main(int argc, char **argv)
{
	double begin = now(CLOCK_MONOTONIC);
	int wanted = 1;
	pthread_t t;

	if (argc < 3)
		return 2;
	path = argv[1];
	if (argc > 3)
		how = argv[3];
	second.trace_id[15] = (uint8_t)how[0];
	wanted += !strcmp(how, "again");
	if (strcmp(how, "none"))
		pthread_create(&t, NULL, agent, NULL);
	else
		put_storage();
	wanted -= !strcmp(how, "none") || !strcmp(how, "off");
	while (registered < wanted && now(CLOCK_MONOTONIC) - begin < 30) {
		work(strcmp(how, "slow") ? &first : &no_trace, 0.05);
		usleep(100000);
	}
	work(&second, atof(argv[2]));
	over = 1;
	if (strcmp(how, "none"))
		pthread_join(t, NULL);
	printf("registered %lu; messages %lu; samples %lu; stacks %u; wrong %lu\n",
	       registered ? delay_ms : 0, messages, samples, nstacks, wrong);
	return 0;
}
