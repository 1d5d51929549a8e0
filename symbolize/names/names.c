// SPDX-License-Identifier: Apache-2.0
/* names: see symbolize/names/names.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/names/names.h"

/* The best first. */
static const struct names_source *const sources[] = {
	&names_go,
	&names_symbols,
	&names_starts,
};

struct symbolizer_names {
	void *state[ARRAY_SIZE(sources)]; /* NULL: not in this file */
	bool damaged;
};

int symbolizer_names_open(struct symbolizer_names **np, struct names_context *c)
{
	struct symbolizer_names *n = calloc(1, sizeof(*n));
	struct symbolizer_elf e;
	int err;

	if (!n)
		return -ENOMEM;
	err = symbolizer_elf_init(&e, c->src);
	if (err)
		goto out;
	err = symbolizer_elf_tables(&e);
	c->elf = &e;
	for (size_t i = 0; i < ARRAY_SIZE(sources) && err != -ENOMEM; i++) {
		err = sources[i]->open(&n->state[i], c);
		n->damaged |= err && err != -ENODATA && err != -ENOMEM;
	}
	c->elf = NULL;
	n->damaged |= e.damaged;
	symbolizer_elf_fini(&e);
	err = err == -ENOMEM ? err : 0;
out:
	if (err) {
		symbolizer_names_close(n);
		return err;
	}
	*np = n;
	return 0;
}

void symbolizer_names_close(struct symbolizer_names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		if (n->state[i])
			sources[i]->close(n->state[i]);
	free(n);
}

size_t symbolizer_names_bytes(const struct symbolizer_names *n)
{
	size_t bytes = sizeof(*n);

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		if (n->state[i])
			bytes += sources[i]->bytes(n->state[i]);
	return bytes;
}

bool symbolizer_names_damaged(const struct symbolizer_names *n)
{
	return n->damaged;
}

int symbolizer_names_find(struct symbolizer_names *n, struct names_context *c,
			  uint64_t vaddr, struct names_found *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		int err;

		if (!n->state[i])
			continue;
		err = sources[i]->find(n->state[i], c, vaddr, out);
		if (err != -ENOENT)
			return err;
	}
	return -ENOENT;
}
