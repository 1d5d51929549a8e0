// SPDX-License-Identifier: Apache-2.0
/* child: the program that profd executes as its children, which is profd itself. */
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "symbolize/internal.h"

static int child_opener(int argc, char **argv)
{
	return argc == 2 ? opener_main() : 2;
}

static int child_fetch(int argc, char **argv)
{
	return argc == 2 ? fetch_main() : 2;
}

/* By the first argument. */
static const struct {
	const char *word;
	int (*run)(int argc, char **argv);
} children[] = {
	{ SYMBOLIZER_WORKER, worker_main },
	{ SYMBOLIZER_OPENER, child_opener },
	{ SYMBOLIZER_FETCH, child_fetch },
};

/* Its index, or the number of all. */
static size_t child_find(int argc, char **argv)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(children) &&
	       (argc < 2 || strcmp(argv[1], children[i].word) != 0))
		i++;
	return i;
}

bool symbolizer_worker_wanted(int argc, char **argv)
{
	return child_find(argc, argv) < ARRAY_SIZE(children);
}

int symbolizer_worker_main(int argc, char **argv)
{
	size_t i = child_find(argc, argv);

	return i < ARRAY_SIZE(children) ? children[i].run(argc, argv) : 2;
}

/* Without /proc it is found by the name that it was executed by. */
const char *symbolizer_program(void)
{
	const char *name = (const char *)getauxval(AT_EXECFN);

	return access("/proc/self/exe", X_OK) && name ? name : "/proc/self/exe";
}
