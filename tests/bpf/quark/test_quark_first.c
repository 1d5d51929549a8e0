// SPDX-License-Identifier: Apache-2.0
/*
 * The host's first process is in the cache, also where the kernel hides it from BPF
 * programs, the task iterator included.
 */
#include "tests/bpf/quark/test_quark.h"

static void read_proc(const char *name, char *buf, size_t size)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/1/%s", name);
	f = fopen(path, "re");
	CHECK(f);
	buf[fread(buf, 1, size - 1, f)] = '\0';
	fclose(f);
}

static void body(void)
{
	const struct quark_process *p, *child;
	struct quark_process_iter it;
	unsigned long long start;
	struct quark_queue qq;
	char text[4096];
	int n = 0;

	open_raw(&qq, 1 << 20);
	p = quark_process_lookup(&qq, 1);
	CHECK(p);
	read_proc("comm", text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	CHECK_STR(p->comm, text);
	read_proc("cmdline", text, sizeof(text));
	CHECK_STR(p->cmdline, text);
	read_proc("stat", text, sizeof(text));
	CHECK(sscanf(strrchr(text, ')'),
		     ") %*c %*u %*u %*u %*u %*d %*u %*u %*u %*u %*u %*u %*u"
		     " %*d %*d %*d %*d %*d %*d %llu",
		     &start) == 1);
	CHECK_INT(p->key.start_boottime / (1000000000 / sysconf(_SC_CLK_TCK)),
		  start);
	/* To the nanosecond, or its children would be another's. */
	quark_process_iter_init(&it, &qq);
	while ((child = quark_process_iter_next(&it))) {
		if (child->proc_ppid != 1)
			continue;
		n++;
		CHECK_INT(child->parent_key.start_boottime,
			  p->key.start_boottime);
	}
	CHECK(n > 0);
	quark_queue_close(&qq);
}

static void the_first_process(void **state)
{
	in_child(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
