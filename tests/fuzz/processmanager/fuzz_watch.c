// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzzes the decoding of watched events: the first two bytes are the name's index among all,
 * so that most inputs have one; the rest are the record. The kernel writes records, but
 * their texts are of processes.
 */
#include <stdlib.h>
#include <string.h>

#include "processmanager/watch/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every byte that an event may show. */
static size_t watch_touch(const struct watch_event *e)
{
	size_t n = strlen(e->comm) + strlen(e->category) + strlen(e->fd.path) +
		   strlen(e->fd.src) + strlen(e->fd.dst) +
		   strlen(e->fd.protocol) + strlen(e->fd.role);

	if (e->fd.file > strlen(e->fd.path) ||
	    e->n_attributes > WATCH_ATTRIBUTES_MAX ||
	    (e->fd.kind && !*e->fd.kind) || !watch_name(e->name))
		abort();
	for (size_t i = 0; i < e->n_attributes; i++)
		n += strlen(e->attributes[i].key) +
		     (e->attributes[i].type == WATCH_STRING
			      ? strlen(e->attributes[i].s)
			      : 0);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static volatile size_t sum;
	struct watch_event e;
	uint16_t name;
	void *record;

	if (size < sizeof(name))
		return 0;
	memcpy(&name, data, sizeof(name));
	size -= sizeof(name);
	/* Exactly as long: a read past the end is seen. */
	record = malloc(size ?: 1);
	if (!record)
		return 0;
	memcpy(record, data + sizeof(name), size);
	if (size >= sizeof(struct abi_watch_head))
		((struct abi_watch_head *)record)->name =
			name % ABI_WATCH_ALL_NAMES;
	if (!watch_decode(record, size, &e)) {
		if (watch_decode_name(record, size) != (int)e.name)
			abort();
		sum += watch_touch(&e);
	} else if (watch_decode_name(record, size) >= 0) {
		abort();
	}
	free(record);
	return 0;
}
