// SPDX-License-Identifier: Apache-2.0
/* Any bytes as rules: parsed and matched, or refused with line and column. */
#include <stdlib.h>

#include "processmanager/quark/rules.c"
#include "processmanager/quark/rules_parse.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct quark_process p = { .pid = 1,
				   .comm = "a",
				   .exe = (char *)"/a/bc/bd" };
	const struct quark_event ev = { .process = &p };
	struct quark_ruleset rs;
	char err[128] = "";

	quark_ruleset_init(&rs);
	if (!quark_ruleset_parse_text(&rs, (const char *)data, size, err,
				      sizeof(err))) {
		p.poison_tag = quark_ruleset_poison(&rs, &ev);
		quark_ruleset_match(&rs, &ev);
	} else if (!err[0] || rs.n_rules) {
		abort();
	}
	quark_ruleset_clear(&rs);
	return 0;
}
