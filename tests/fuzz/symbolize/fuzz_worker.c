// SPDX-License-Identifier: Apache-2.0
/*
 * Messages of the worker and to it, as the other side may forge them: through a
 * real socket, so that what the kernel makes of them is part of it. Bytes 0..2
 * say which addresses were asked for and whether a descriptor comes along; the
 * rest is the message, with its length put right in half of the cases.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "symbolize/context/context.h"
#include "symbolize/reader/worker_msg.h"

static struct worker_in in;

/* Reads every byte, so that the sanitizer sees those that are not there. */
static void touch(const char *s)
{
	if (s && strlen(s) > WORKER_TEXT_MAX)
		abort();
}

static void touch_function(const struct symbolizer_function *f)
{
	touch(f->name);
	touch(f->system_name);
	touch(f->file);
	if (!*f->name || !*f->system_name ||
	    strlen(f->file) > WORKER_SOURCE_MAX)
		abort();
}

static void read_names(const struct worker_names *a, uint64_t vaddr)
{
	struct worker_cursor c = { .p = (const uint8_t *)(a + 1),
				   .end = in.bytes + in.len };
	static uint8_t again[WORKER_NAME_MAX];
	struct symbolizer_symbol sym;

	for (uint32_t i = 0; i < a->n; i++) {
		if (!worker_name_next(&c, vaddr, &sym))
			return;
		if (sym.nfunctions > WORKER_FUNCTIONS_MAX)
			abort();
		for (size_t k = 0; k < sym.nfunctions; k++)
			touch_function(&sym.functions[k]);
		if (sym.nfunctions && vaddr - sym.start >= sym.size)
			abort();
		if (!worker_name_add(again, 0, sizeof(again), &sym))
			abort(); /* what came in goes out */
	}
}

static void read_all(uint64_t vaddr)
{
	const struct worker_question *q = worker_question(&in);
	const struct worker_names *names = worker_names(&in);
	const struct worker_ident *ident = worker_ident(&in);
	const struct worker_hello *hello = worker_hello(&in);
	const struct worker_rows *rows = worker_rows(&in);
	const struct worker_keep *keep = worker_keep(&in);
	const struct worker_context *context = worker_context(&in);
	const struct worker_ask *ask = worker_ask(&in);
	struct symbolizer_rows *table;
	uint8_t sum = 0;
	void *copy;

	for (uint32_t i = 0; q && i < q->n * 8; i++)
		sum += ((const uint8_t *)(q + 1))[i];
	for (uint32_t i = 0; ident && i < ident->n; i++)
		sum += ((const uint8_t *)(ident + 1))[i * 24];
	if (ident && (ident->build_id_len > SYMBOLIZER_BUILD_ID_MAX ||
		      ident->slot.model >= SYMBOLIZER_N_SLOTS))
		abort();
	if (hello)
		touch(hello->what);
	if (context && !symbolizer_context_valid(&context->context))
		abort();
	if (ask && (strchr(ask->name, '/') || strlen(ask->name) > 255))
		abort();
	worker_file(&in);
	worker_found(&in);
	if (keep && (in.fd < 0 || keep->bytes > WORKER_KEEP_MAX))
		abort();
	if (q && q->head.type == WORKER_FIND &&
	    strlen((const char *)(q + 1)) >= q->n * 8)
		abort();
	if (names)
		read_names(names, vaddr);
	if (rows && in.fd < 0 && !rows->a.err) {
		copy = malloc(rows->bytes);
		memcpy(copy, rows + 1, rows->bytes);
		if (!symbolizer_rows_adopt(copy, rows->bytes, NULL, NULL,
					   &table))
			symbolizer_rows_free(table);
		free(copy);
	}
	*(volatile uint8_t *)&sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t msg[WORKER_MSG_MAX];
	static int pair[2] = { -1, -1 };
	struct worker_head *head = (void *)msg;
	size_t len;

	if (pair[0] < 0 &&
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair))
		abort();
	if (size < 3 + sizeof(*head) || size - 3 > sizeof(msg))
		return 0;
	len = size - 3;
	memcpy(msg, data + 3, len);
	if (data[0] & 1)
		worker_send(pair[0], head,
			    (enum worker_type)(data[1] % (WORKER_CONTEXT + 1)),
			    len, head->job, data[0] & 2 ? pair[0] : -1);
	else if (send(pair[0], msg, len, 0) != (ssize_t)len)
		abort();
	if (!worker_recv(pair[1], &in))
		read_all(data[2]);
	worker_in_close(&in);
	return 0;
}
