/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of executables share: requests for names, two processes. */
#ifndef TESTS_UNIT_TEST_PM_ASK_H
#define TESTS_UNIT_TEST_PM_ASK_H

#include "tests/unit/processmanager/test_pm_fake.h"

/* The last answer to pm_exe_name(). */
static int answers, answer_err;
static char answer[128];

static inline void on_names(void *arg, int err, void *const *tags,
			    const struct symbolizer_symbol *syms, size_t n)
{
	answers++;
	answer_err = err;
	answer[0] = '\0';
	if (!err && n)
		snprintf(answer, sizeof(answer), "%s",
			 syms[0].functions[0].name);
}

/* ... and to pm_exe_rows(). */
static inline void on_rows(void *arg, int err, struct symbolizer_rows *rows)
{
	answers++;
	answer_err = err;
	assert_int_equal(!err, !!rows);
	snprintf(answer, sizeof(answer), "%s", rows ? rows->path : "");
	symbolizer_rows_free(rows);
}

/* A request for one name, sent off. */
static inline int ask_name(struct pm_exe *exe)
{
	int err = pm_exe_name(exe, 0x10, NULL, on_names, NULL);

	pm_names_send(pm);
	return err;
}

static inline int ask(struct pm_exe *exe)
{
	answers = 0;
	answer_err = 1;
	return ask_name(exe);
}

/* Requests a name, and waits for that of the file that answered. */
static inline const char *name_of(struct pm_exe *exe)
{
	assert_int_equal(ask(exe), 0);
	assert_int_equal(answers, 0); /* never from inside */
	fake_run();
	pm_forget(pm, 0);
	assert_int_equal(answers, 1);
	return answer_err ? strerror(-answer_err) : answer;
}

static inline struct pm_exe_info exe_info(const struct pm_exe *exe)
{
	struct pm_exe_info info;

	pm_exe_info(exe, &info);
	return info;
}

/* Processes 5 and 6, children of 4. */
static inline int two_processes(void **state)
{
	if (setup(state))
		return -1;
	do_walk(4, 1, "/sbin/init", 7000);
	do_walk(5, 4, "/bin/a", 7000);
	do_walk(6, 4, "/bin/b", 7000);
	return 0;
}

/* Maps, by inode as a record without a build id does. */
static inline void map_inode(uint32_t pid, uint64_t start, const char *path,
			     uint64_t ino, uint64_t generation)
{
	struct pm_map_event ev = map_of(start, start + 0x1000, path, 0);

	ev.tgid = pid;
	ev.time = 8000;
	ev.dev = 1;
	ev.ino = ino;
	ev.ino_generation = generation;
	assert_int_equal(pm_map_event(pm, &ev), 0);
}

#endif /* TESTS_UNIT_TEST_PM_ASK_H */
