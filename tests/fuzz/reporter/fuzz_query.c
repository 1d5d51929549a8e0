// SPDX-License-Identifier: Apache-2.0
/*
 * Two profiles from anywhere, with byte FF between them: they are added, the second also
 * subtracted, with options of the first byte, of which two bits are the kind, and
 * written in each way.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reporter/query/query.h"
#include "reporter/reporter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_all(struct reporter_query *q, uint8_t how)
{
	static const char *const by[] = { "function", "line", "file", "comm" };
	struct reporter_query_table t = {
		.by = by[how % 4],
		.cum = how & 4,
		.least = how & 8 ? 0.005 : 0,
		.top = how & 16 ? 3 : 0,
		.width = how & 32 ? 20 : 0,
		.json = how & 64,
	};
	struct strbuf out = STRBUF_INIT;
	int fd = memfd_create("out", MFD_CLOEXEC);

	if (fd < 0 || reporter_query_table(q, &t, &out) ||
	    reporter_query_tree(q, &t, &out))
		__builtin_trap();
	for (int f = REPORTER_QUERY_PPROF; f <= REPORTER_QUERY_FIREFOX; f++)
		if (reporter_query_write(q, fd, (enum reporter_query_format)f,
					 REPORTER_RAW))
			__builtin_trap();
	strbuf_fini(&out);
	close(fd);
}

/* As many names as the id has bytes; every fourth image is not known. */
static int ancestors(void *arg, const char *image, const char *const **names,
		     size_t *n)
{
	static const char *const line[] = { "make", "a;b\"\\\x1b", "", "[sh]" };

	*names = line;
	*n = strlen(image) % 4;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reporter_query_terms terms = { 0 };
	struct reporter_query_opts opts = { .terms = &terms };
	struct reporter_query *q;
	const char *what = NULL, *want;
	const uint8_t *second;
	uint8_t how = size ? *data : 0;
	int err;

	if (!size)
		return 0;
	second = memchr(data + 1, 0xff, size - 1);
	opts.drop_marks = how & 1;
	opts.kind = (enum reporter_query_kind)(how >> 3 & 3);
	opts.without = how & 32 ? 1 : 0;
	opts.prefix = how & 64 ? "p_" : NULL;
	opts.expand = how & 2;
	opts.nroots = how & 128 ? 2 : 0;
	opts.roots[0] = "comm";
	opts.roots[1] = REPORTER_QUERY_TREE;
	opts.ancestors = how & 16 ? ancestors : NULL;
	if (how & 64 &&
	    reporter_query_terms_parse(&terms, "not-comm", "c*", &want))
		__builtin_trap();
	if (reporter_query_new(&q, &opts))
		return 0;
	err = reporter_query_add(
		q, data + 1, second ? (size_t)(second - data - 1) : size - 1,
		false, &what);
	if (!err && second)
		err = reporter_query_add(q, second + 1,
					 size - (size_t)(second + 1 - data),
					 how & 4, &what);
	if (err && !what)
		__builtin_trap();
	if (!err)
		err = reporter_query_end(q);
	if (!err && how & 32)
		reporter_query_normalize(q);
	if (!err && !reporter_query_select(q, NULL))
		write_all(q, how);
	reporter_query_free(q);
	reporter_query_terms_fini(&terms);
	return 0;
}
