// SPDX-License-Identifier: Apache-2.0
/*
 * What the manual pages promise of the library as it is installed: the examples
 * compile and follow a live shell, the archive and the shared library export
 * what is documented and nothing else.
 */
#include "tests/bpf/test_quark.h"

static char dir[] = "/tmp/quark-manual-XXXXXX";

/* A shell with B, the build directory, and T, one to write to. */
static int shell(const char *script)
{
	const char *build = getenv("B");

	CHECK(setenv("B", build ? build : "build", 1) == 0);
	CHECK(setenv("T", dir, 1) == 0);
	return system(script);
}

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	return shell("rm -rf \"$T\"");
}

/* The programs of quark(7), one file each. */
static const char extract[] =
	"awk -v t=\"$T\" '/^\\.Bd -literal/ { n++; on = 1; next }"
	" /^\\.Ed/ { on = 0 }"
	" on { gsub(/\\\\e/, \"\\\\\"); print >(t \"/example\" n \".c\") }'"
	" processmanager/quark/quark.7 && test -s \"$T\"/example2.c";

static const char compile[] =
	"for n in 1 2; do"
	" gcc -Wall -Werror -Iprocessmanager/quark -o \"$T/static$n\""
	"  \"$T/example$n.c\" \"$B/libquark.a\" -lbpf -lelf -lz &&"
	" gcc -Wall -Werror -Iprocessmanager/quark -o \"$T/shared$n\""
	"  \"$T/example$n.c\" \"$B/libquark.so.0\" || exit 1; done";

static void test_examples_compile(void **state)
{
	assert_int_equal(shell(extract), 0);
	assert_int_equal(shell(compile), 0);
}

/* Runs until the life of a shell with a name of its own shows up. */
static const char follow[] =
	"LD_LIBRARY_PATH=$B timeout 30 \"$T/$P\" >\"$T/$P.out\" & p=$!;"
	" cp /bin/true \"$T/true-$P\";"
	" for i in $(seq 200); do"
	"  sh -c \"'$T/true-$P' an-argument; exit 0\"; sleep 0.1;"
	"  grep -q \"COMM.*true-$P\" \"$T/$P.out\" && break; done;"
	" sleep 0.5; kill $p; wait $p 2>/dev/null;"
	" grep -A2 -B3 \"COMM.*true-$P\" \"$T/$P.out\" |"
	"  grep -q '(FORK+EXEC+EXIT)' &&"
	" grep -q 'an-argument' \"$T/$P.out\"";

static void test_examples_follow(void **state)
{
	static const char *const programs[] = { "static1", "shared1", "static2",
						"shared2" };
	size_t i;

	for (i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		setenv("P", programs[i], 1);
		assert_int_equal(shell(follow), 0);
	}
}

static const char exported[] =
	"sed -n 's/^[[:space:]]*\\(quark_[a-z0-9_]*\\);/\\1/p'"
	"  processmanager/quark/libquark.map | sort >\"$T/map\";"
	" nm -D --defined-only \"$B/libquark.so.0\" |"
	"  awk '$2 == \"T\" { sub(/@.*/, \"\", $3); print $3 }' |"
	"  sort >\"$T/so\";"
	" nm -g --defined-only \"$B/libquark.a\" |"
	"  awk 'NF == 3 { print $3 }' | sort >\"$T/a\";"
	" cmp \"$T/map\" \"$T/so\" && cmp \"$T/map\" \"$T/a\"";

static const char documented[] =
	"for f in $(cat \"$T/map\"); do"
	" grep -qE \"^\\.Fn $f( |$)\" processmanager/quark/*.3 &&"
	" grep -qE \"(^|[ *])$f\\(\" processmanager/quark/quark.h ||"
	" { echo \"# $f\"; exit 1; }; done";

static void test_exports(void **state)
{
	assert_int_equal(shell(exported), 0);
	assert_int_equal(shell(documented), 0);
}

static void test_header(void **state)
{
	/* Alone, strictly, and for a C++ program. */
	assert_int_equal(shell("gcc -std=c11 -pedantic -Wall -Wextra -Werror"
			       " -fsyntax-only -x c"
			       " processmanager/quark/quark.h"),
			 0);
	assert_int_equal(shell("g++ -std=c++11 -Wall -Wextra -Werror"
			       " -fsyntax-only -x c++"
			       " processmanager/quark/quark.h"),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples_compile),
		cmocka_unit_test(test_examples_follow),
		cmocka_unit_test(test_exports),
		cmocka_unit_test(test_header),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
