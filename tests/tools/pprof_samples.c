// SPDX-License-Identifier: Apache-2.0
/*
 * pprof_samples FILE: one line a sample, as samples() in lib.sh describes them; without
 * go tool pprof, which takes ten times as long. Exit status 1 and no line if the
 * strict checker refuses the file.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/base.h"
#include "tests/unit/pprof_check.h"

typedef Perftools__Profiles__Profile Profile;
typedef Perftools__Profiles__Sample Sample;

static const char *const labels[] = { "pid", "tid",	"comm", "thread",
				      "exe", "process", "image" };

static void print_label(const Profile *p, const Sample *s, const char *key)
{
	const char *text = pprof_label(p, s, key);
	int64_t num;

	putchar_unlocked('\t');
	if (text) {
		fputs_unlocked(text, stdout);
		return;
	}
	num = pprof_label_num(p, s, key);
	if (num >= 0)
		printf("%" PRId64, num);
}

/* The functions of a location, the innermost inlined one first. */
static void print_location(const Profile *p,
			   const Perftools__Profiles__Location *l)
{
	const char *file = "", *name;
	size_t i = 0;

	if (l->mapping_id)
		file = p->string_table[p->mapping[l->mapping_id - 1]->filename];
	do {
		name = "";
		if (i < l->n_line)
			name = p->string_table
				       [p->function[l->line[i]->function_id - 1]
						->name];
		if (i)
			putchar_unlocked(';');
		fputs_unlocked(name, stdout);
		putchar_unlocked('@');
		fputs_unlocked(file, stdout);
	} while (++i < l->n_line);
}

static void print_sample(const Profile *p, const Sample *s)
{
	printf("%" PRId64 "\t%" PRId64, s->value[0], s->value[1]);
	for (size_t i = 0; i < ARRAY_SIZE(labels); i++)
		print_label(p, s, labels[i]);
	for (size_t i = 0; i < s->n_location_id; i++) {
		putchar_unlocked(i ? ';' : '\t');
		print_location(p, p->location[s->location_id[i] - 1]);
	}
	putchar_unlocked('\n');
}

int main(int argc, char **argv)
{
	const char *wrong = argc == 2 ? pprof_check_file(argv[1]) : "usage";
	const Profile *p = pprof_checked();

	if (wrong) {
		fprintf(stderr, "%s: %s\n", argv[argc - 1], wrong);
		return 1;
	}
	for (size_t i = 0; i < p->n_sample; i++)
		print_sample(p, p->sample[i]);
	pprof_check_end();
	return ferror(stdout) || fflush(stdout);
}
