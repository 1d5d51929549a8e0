/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer of process contexts as OpenTelemetry specifies them (OTEP 4719), for tests:
 * honest ones, and such as a hostile process could publish.
 */
#ifndef TESTS_UNIT_CONTEXT_H
#define TESTS_UNIT_CONTEXT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

struct context_header {
	char magic[8];
	uint32_t version, size;
	uint64_t published_ns, payload;
};

struct context_message {
	uint8_t b[1 << 18];
	size_t len;
};

static inline void context_varint(struct context_message *m, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		m->b[m->len++] = (uint8_t)(v | 0x80);
	m->b[m->len++] = (uint8_t)v;
}

static inline void context_bytes(struct context_message *m, unsigned int field,
				 const void *p, size_t len)
{
	context_varint(m, field << 3 | 2);
	context_varint(m, len);
	memcpy(m->b + m->len, p, len);
	m->len += len;
}

static inline void context_attribute(struct context_message *resource,
				     const char *key, const char *value)
{
	static struct context_message string, kv;

	string.len = kv.len = 0;
	context_bytes(&string, 1, value, strlen(value));
	context_bytes(&kv, 1, key, strlen(key));
	context_bytes(&kv, 2, string.b, string.len);
	context_bytes(resource, 1, kv.b, kv.len);
}

/* A header that is not published yet, in memory of the right name. NULL: errno. */
static inline struct context_header *context_map(int anonymous)
{
	int fd = anonymous ? -1 : memfd_create("OTEL_CTX", MFD_CLOEXEC);
	struct context_header *h;

	if (!anonymous && (fd < 0 || ftruncate(fd, sizeof(*h))))
		return NULL;
	h = mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | (anonymous ? MAP_ANONYMOUS : 0), fd, 0);
	if (!anonymous)
		close(fd);
	if (h == MAP_FAILED || madvise(h, sizeof(*h), MADV_DONTFORK))
		return NULL;
	if (anonymous &&
	    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, h, 4096, "OTEL_CTX"))
		return NULL;
	memcpy(h->magic, "OTEL_CTX", sizeof(h->magic));
	h->version = 2;
	return h;
}

/* As a writer does: 0, then what is new, then its time. */
static inline void context_publish(struct context_header *h,
				   const struct context_message *resource,
				   uint64_t time)
{
	static struct context_message m;
	volatile uint64_t *published = &h->published_ns;
	uint8_t *payload;

	m.len = 0;
	context_bytes(&m, 1, resource->b, resource->len);
	payload = malloc(m.len);
	if (!payload)
		_exit(1);
	memcpy(payload, m.b, m.len);
	*published = 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	h->payload = (uintptr_t)payload;
	h->size = (uint32_t)m.len;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	*published = time;
}

static inline void context_publish_service(struct context_header *h,
					   const char *service, uint64_t time)
{
	static struct context_message resource;

	resource.len = 0;
	context_attribute(&resource, "telemetry.sdk.language", "cpp");
	context_attribute(&resource, "service.name", service);
	context_attribute(&resource, "service.instance.id", "7f-3e");
	context_publish(h, &resource, time);
}

#endif /* TESTS_UNIT_CONTEXT_H */
