/* SPDX-License-Identifier: Apache-2.0 */
/* Parses lines of the ledger. Included once per test program. */
#ifndef TESTS_UNIT_TEST_REPORTER_LEDGER_H
#define TESTS_UNIT_TEST_REPORTER_LEDGER_H

#include "tests/unit/reporter/test_reporter_client.h"

#include <jansson.h>

#include "reporter/ledger/ledger.h"

/* The i-th line of a text, as an object; NULL behind the last. */
static inline json_t *line_at(const char *text, size_t i)
{
	const char *end;
	json_error_t err;
	json_t *o;

	for (;; text = end + 1, i--) {
		end = strchr(text, '\n');
		if (!end)
			return NULL;
		if (!i)
			break;
	}
	o = json_loadb(text, end - text, JSON_REJECT_DUPLICATES, &err);
	if (!o)
		fail_msg("%s: %s", err.text, text);
	return o;
}

static inline size_t count_lines(const char *text)
{
	size_t n = 0;

	while ((text = strchr(text, '\n'))) {
		text++;
		n++;
	}
	return n;
}

static inline const char *str(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "(none)";
}

static inline json_int_t num(const json_t *o, const char *key)
{
	assert_true(json_is_integer(json_object_get(o, key)));
	return json_integer_value(json_object_get(o, key));
}

static inline struct pm_image make(uint32_t pid, enum pm_end end)
{
	struct pm_image img = image(pid, pid, EXE_A);

	img.process.pid = pid;
	img.process.ppid = 1;
	img.process.end = end;
	img.process.start = 5 * SEC;
	snprintf(img.process.process_id, sizeof(img.process.process_id),
		 "%u-abc", pid);
	return img;
}

static inline void read_table(struct strbuf *sb)
{
	struct ledger_table *table = ledger_table_new(NULL, true, 100);

	assert_non_null(table);
	while (ledger_table_read(table, 1, sb))
		;
	ledger_table_free(table);
}

#endif /* TESTS_UNIT_TEST_REPORTER_LEDGER_H */
