// SPDX-License-Identifier: Apache-2.0
/*
 * What is read of a process that publishes its context, or has the storage of an agent:
 * children of this program publish, honestly or not, and are read from outside; and what
 * its environment says.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/tracing/environ.h"
#include "profiler/tracing/published.h"
#include "tests/unit/traces/context.h"

/* --- children --------------------------------------------------------------- */

struct child {
	pid_t pid;
	int to, from;
};

/* Does 'way', says so, and does it again for each byte that it gets, with the next 'n'. */
static struct child child_new(void (*way)(int n))
{
	struct child c;
	int to[2], from[2];
	char byte;

	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	c = (struct child){ fork(), to[1], from[0] };
	if (!c.pid) {
		/* Also if a check fails. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(to[1]);
		for (int n = 0;; n++) {
			way(n);
			if (write(from[1], "", 1) != 1 ||
			    read(to[0], &byte, 1) != 1)
				_exit(0);
		}
	}
	close(to[0]);
	close(from[1]);
	assert_int_equal(read(c.from, &byte, 1), 1);
	return c;
}

static void child_next(const struct child *c)
{
	char byte;

	assert_int_equal(write(c->to, "", 1), 1);
	assert_int_equal(read(c->from, &byte, 1), 1);
}

static void child_end(const struct child *c)
{
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->to);
	close(c->from);
}

static struct published look_at(const struct child *c)
{
	struct published p = { .key.tgid = (uint32_t)c->pid };
	struct procfs_stat st;

	assert_true(procfs_stat((uint32_t)c->pid, &st));
	p.key.start_boottime = st.start;
	return p;
}

static struct context_header *header(int anonymous)
{
	static struct context_header *h;

	if (!h)
		h = context_map(anonymous);
	if (!h)
		_exit(1);
	return h;
}

/* --- honest ones ------------------------------------------------------------ */

static bool has(const struct published *p, const char *text)
{
	return p->payload && memmem(p->payload, p->size, text, strlen(text));
}

static void way_changes(int n)
{
	if (n != 1)
		context_publish_service(header(0), n ? "after" : "before",
					(uint64_t)n + 1);
}

static void a_context_is_read_when_it_is_new(void **state)
{
	struct child c = child_new(way_changes);
	struct published p = look_at(&c);
	uint64_t before = clock_boottime_ns();

	published_read(&p);
	assert_int_equal(p.found, PUBLISHED_NEW);
	assert_true(has(&p, "before"));
	assert_int_equal(p.published_ns, 1);
	assert_true(p.read_at > before);
	free(p.payload);
	child_next(&c);
	published_read(&p);
	assert_int_equal(p.found, PUBLISHED_SAME);
	assert_null(p.payload);
	child_next(&c);
	published_read(&p);
	assert_int_equal(p.found, PUBLISHED_NEW);
	assert_true(has(&p, "after"));
	free(p.payload);
	child_end(&c);
}

static void way_moves(int n)
{
	struct context_header *h = context_map(0);
	static struct context_header *old;

	if (!h)
		_exit(1);
	if (old)
		munmap(old, sizeof(*old));
	old = h;
	context_publish_service(h, n ? "second" : "first", (uint64_t)n + 1);
}

static void a_context_that_moves_is_found_again(void **state)
{
	struct child c = child_new(way_moves);
	struct published p = look_at(&c);
	uint64_t first;

	published_read(&p);
	assert_int_equal(p.found, PUBLISHED_NEW);
	free(p.payload);
	first = p.mapping;
	child_next(&c);
	published_read(&p);
	assert_int_equal(p.found, PUBLISHED_NEW);
	assert_true(has(&p, "second"));
	assert_true(p.mapping != first);
	free(p.payload);
	child_end(&c);
}

/* Written over in place, again and again: odd times have 'a', even ones 'b'. */
static void way_writes_over(int n)
{
	volatile uint64_t *published = &header(0)->published_ns;
	static uint8_t payload[256];

	header(0)->payload = (uintptr_t)payload;
	header(0)->size = sizeof(payload);
	for (uint64_t time = 1;; time++) {
		*published = 0;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		memset(payload, time % 2 ? 'a' : 'b', sizeof(payload));
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		*published = time;
		if (!n)
			return;
		for (volatile unsigned int i = 0; i < 5000; i++)
			;
	}
}

static void what_is_read_is_of_one_time(void **state)
{
	struct child c = child_new(way_writes_over);
	struct published p = look_at(&c);
	uint64_t last = 0;
	unsigned int n = 0;

	assert_int_equal(write(c.to, "", 1), 1);
	/* It runs beside this program only at times. */
	while (n < 500) {
		p.published_ns = 0;
		published_read(&p);
		for (uint32_t i = 0; i < p.size; i++)
			assert_int_equal(((uint8_t *)p.payload)[i],
					 p.published_ns % 2 ? 'a' : 'b');
		n += p.found == PUBLISHED_NEW && p.published_ns != last;
		last = p.published_ns;
		free(p.payload);
	}
	child_end(&c);
}

static void way_silent(int n)
{
}

static void a_process_may_have_none(void **state)
{
	struct child c = child_new(way_silent);
	struct published p = look_at(&c);

	published_read(&p);
	assert_int_equal(p.found, PUBLISHED_NONE);
	child_end(&c);
	published_read(&p);
	assert_int_equal(p.found, PUBLISHED_GONE);
}

static void a_child_of_fork_does_not_have_it(void **state)
{
	struct context_header *h = context_map(0);
	struct published p;
	struct child c;

	assert_non_null(h);
	context_publish_service(h, "parent", 1);
	c = child_new(way_silent);
	p = look_at(&c);
	published_read(&p);
	assert_int_equal(p.found, PUBLISHED_NONE);
	child_end(&c);
	free((void *)(uintptr_t)h->payload);
	munmap(h, sizeof(*h));
}

/* The pid is that of another process than the one that was meant. */
static void another_process_is_not_read(void **state)
{
	struct child c = child_new(way_changes);
	struct published p = look_at(&c);

	p.key.start_boottime -= CLOCK_NSEC_PER_SEC;
	p.environ = true;
	published_read(&p);
	assert_int_equal(p.found, PUBLISHED_GONE);
	assert_string_equal(p.names.service, "");
	child_end(&c);
}

/* --- others ----------------------------------------------------------------- */

enum {
	LIE_POINTER,
	LIE_KERNEL,
	LIE_SIZE,
	LIE_VERSION,
	LIE_WRITING,
};

static void way_lies(int n)
{
	struct context_header *h = header(0);

	context_publish_service(h, "x", (uint64_t)n + 1);
	if (n == LIE_POINTER)
		h->payload = 0x7ff000000000;
	if (n == LIE_KERNEL)
		h->payload = 0xffffffff81000000;
	if (n == LIE_SIZE)
		h->size = UINT32_MAX;
	h->version = n == LIE_VERSION ? 7 : 2;
	if (n == LIE_WRITING)
		h->published_ns = 0;
}

static void a_context_that_lies_is_not_read(void **state)
{
	struct child c = child_new(way_lies);
	struct published p = look_at(&c);

	for (int lie = LIE_POINTER; lie < LIE_WRITING; lie++) {
		published_read(&p);
		assert_int_equal(p.found, PUBLISHED_INVALID);
		assert_null(p.payload);
		child_next(&c);
	}
	published_read(&p);
	assert_int_equal(p.found, PUBLISHED_WRITING);
	assert_null(p.payload);
	/* And an honest one afterwards. */
	child_next(&c);
	published_read(&p);
	assert_int_equal(p.found, PUBLISHED_NEW);
	free(p.payload);
	child_end(&c);
}

/* --- storages ------------------------------------------------------------------ */

static uint8_t record[64 << 10];
static size_t record_len;
static const uint8_t *stored; /* the pointer, at the same address in a child */

static void put(const void *p, size_t len)
{
	memcpy(record + record_len, p, len);
	record_len += len;
}

static void put_text(const char *s)
{
	uint32_t len = (uint32_t)strlen(s);

	put(&len, sizeof(len));
	put(s, len);
}

/* By the layout, field by field. */
static void put_storage(uint16_t minor, const char *service, const char *path)
{
	record_len = 0;
	put(&minor, sizeof(minor));
	put_text(service);
	put_text("prod");
	put_text(path);
}

static struct tracing_storage parsed;

static int parse_storage(size_t len)
{
	uint8_t *exact = malloc(len ? len : 1);
	int err;

	memcpy(exact, record, len);
	err = tracing_storage_parse(exact, len, &parsed);
	free(exact);
	return err;
}

static void a_storage_names_a_service_and_a_socket(void **state)
{
	put_storage(1, "shop", "/tmp/agent");
	assert_int_equal(parse_storage(record_len), 0);
	assert_string_equal(parsed.names.service, "shop");
	assert_string_equal(parsed.names.environment, "prod");
	assert_string_equal(parsed.socket, "/tmp/agent");
	/* What is behind it is not its own. */
	assert_int_equal(parse_storage(record_len + 100), 0);
	assert_string_equal(parsed.socket, "/tmp/agent");
	for (size_t len = 0; len < record_len; len++) {
		assert_int_equal(parse_storage(len), -EINVAL);
		assert_string_equal(parsed.names.service, "");
		assert_string_equal(parsed.socket, "");
	}
	put_storage(0, "shop", "/tmp/agent");
	assert_int_equal(parse_storage(record_len), -EINVAL);
}

static void a_storage_may_be_anything(void **state)
{
	char text[TRACING_SOCKET_MAX + 2];
	uint32_t len = UINT32_MAX;

	put_storage(1, "sh\nop", "tmp/agent");
	assert_int_equal(parse_storage(record_len), 0);
	assert_string_equal(parsed.names.service, "");
	assert_string_equal(parsed.names.environment, "prod");
	assert_string_equal(parsed.socket, "");
	memset(text, '/', sizeof(text));
	text[TRACING_SOCKET_MAX - 1] = '\0';
	put_storage(1, "", text);
	assert_int_equal(parse_storage(record_len), 0);
	assert_string_equal(parsed.socket, text);
	text[TRACING_SOCKET_MAX - 1] = '/';
	text[TRACING_SOCKET_MAX] = '\0';
	put_storage(1, "", text);
	assert_int_equal(parse_storage(record_len), 0);
	assert_string_equal(parsed.socket, "");
	/* A name that goes on behind a NUL. */
	put_storage(1, "", "/tmp/agent");
	record[record_len - 3] = '\0';
	assert_int_equal(parse_storage(record_len), 0);
	assert_string_equal(parsed.socket, "");
	memcpy(record + 2, &len, sizeof(len));
	assert_int_equal(parse_storage(record_len), -EINVAL);
}

/* 0: not ready; 1: at the end of its memory; then pointers that lead nowhere. */
static void way_stores(int n)
{
	static const uint64_t wild[] = { 1, INT64_MAX, UINT64_MAX, 4096 };
	size_t page = 4096;
	uint8_t *p;

	if (n == 1) {
		put_storage(1, "shop", "/tmp/agent");
		p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED || munmap(p + page, page))
			_exit(1);
		stored = memcpy(p + page - record_len, record, record_len);
	} else if (n > 1) {
		memcpy(&stored, &wild[n - 2], sizeof(stored));
	}
}

static void a_storage_is_read_where_the_pointer_leads(void **state)
{
	struct child c = child_new(way_stores);
	struct published p = look_at(&c);

	p.storage = (uint64_t)(uintptr_t)&stored;
	published_read(&p);
	assert_int_equal(p.found, PUBLISHED_NONE);
	assert_null(p.stored);
	child_next(&c);
	published_read(&p);
	assert_non_null(p.stored);
	assert_string_equal(p.stored->names.service, "shop");
	assert_string_equal(p.stored->socket, "/tmp/agent");
	assert_int_equal(p.uid, getuid());
	free(p.stored);
	for (int i = 0; i < 4; i++) {
		child_next(&c);
		published_read(&p);
		assert_null(p.stored);
		assert_int_equal(p.uid, UINT32_MAX);
	}
	p.storage = UINT64_MAX;
	published_read(&p);
	assert_null(p.stored);
	child_end(&c);
}

/* --- environments ------------------------------------------------------------- */

static struct symbolizer_context parse(const char *text, size_t len)
{
	struct symbolizer_context c;

	tracing_environ_parse(text, len, &c);
	return c;
}

#define PARSE(text) parse(text, sizeof(text))

static void an_environment_names_its_service(void **state)
{
	struct symbolizer_context c;

	c = PARSE("PATH=/bin\0OTEL_SERVICE_NAME=a b\0X=y");
	assert_string_equal(c.service, "a b");
	c = PARSE("OTEL_RESOURCE_ATTRIBUTES= service.name = a%20b%2Cc ,k=v,"
		  "service.instance.id=7,deployment.environment.name=prod");
	assert_string_equal(c.service, "a b,c");
	assert_string_equal(c.instance, "7");
	assert_string_equal(c.environment, "prod");
	c = PARSE("OTEL_SERVICE_NAME=one\0"
		  "OTEL_RESOURCE_ATTRIBUTES=service.name=two");
	assert_string_equal(c.service, "one");
	c = PARSE("OTEL_SERVICE_NAME=\0"
		  "OTEL_RESOURCE_ATTRIBUTES=service.name=two");
	assert_string_equal(c.service, "two");
}

static void an_environment_may_be_anything(void **state)
{
	static const char cut[] = "A=b\0OTEL_SERVICE_NAME=abc";
	char many[300] = "OTEL_SERVICE_NAME=";
	struct symbolizer_context c;

	c = PARSE("XOTEL_SERVICE_NAME=x\0OTEL_SERVICE_NAME\0"
		  "OTEL_RESOURCE_ATTRIBUTES=service.name=%FF");
	assert_string_equal(c.service, "");
	c = PARSE("OTEL_RESOURCE_ATTRIBUTES=service.name=%4,=,%");
	assert_string_equal(c.service, "%4");
	/* Its end is missing. */
	c = parse(cut, sizeof(cut) - 1);
	assert_string_equal(c.service, "");
	memset(many + strlen(many), 'x', SYMBOLIZER_CONTEXT_NAME_MAX + 1);
	c = parse(many, sizeof(many));
	assert_string_equal(c.service, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_context_is_read_when_it_is_new),
		cmocka_unit_test(a_context_that_moves_is_found_again),
		cmocka_unit_test(what_is_read_is_of_one_time),
		cmocka_unit_test(a_process_may_have_none),
		cmocka_unit_test(a_child_of_fork_does_not_have_it),
		cmocka_unit_test(another_process_is_not_read),
		cmocka_unit_test(a_context_that_lies_is_not_read),
		cmocka_unit_test(a_storage_names_a_service_and_a_socket),
		cmocka_unit_test(a_storage_may_be_anything),
		cmocka_unit_test(a_storage_is_read_where_the_pointer_leads),
		cmocka_unit_test(an_environment_names_its_service),
		cmocka_unit_test(an_environment_may_be_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
