// SPDX-License-Identifier: Apache-2.0
/* What profd requires of the host and of its user, and its messages. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/privilege.h"

/* Magic number and version, on a machine of this byte order. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BTF_HEADER "\x9f\xeb\x01"
#else
#define BTF_HEADER "\xeb\x9f\x01"
#endif

#define ROOT "pid:[4026531836]"
#define ALL \
	"cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog,cap_dac_read_search=ep"

static char dir[] = "/tmp/test_privilege.XXXXXX";
static char pid_ns[64], sysctl[64], proc[64], kernel_btf[64], no_btf[64];

/* A host of this release, BTF or not, in this pid namespace, with these. */
static int check(const char *release, const char *btf, const char *ns,
		 const char *text, char *msg, size_t len)
{
	struct privilege_host host = { release, NULL, pid_ns, sysctl, "/proc" };
	cap_t caps = cap_from_text(text);
	int err;

	host.btf = !strcmp(btf, "/")	   ? kernel_btf
		   : !strcmp(btf, "empty") ? no_btf
					   : btf;
	assert_non_null(caps);
	unlink(pid_ns);
	assert_int_equal(symlink(ns, pid_ns), 0);
	err = privilege_check(&host, caps, msg, len);
	cap_free(caps);
	return err;
}

static void what_is_missing_is_named(void **state)
{
	static const struct {
		const char *release, *btf, *ns, *caps;
		int err;
		const char *msg;
	} cases[] = {
		{ "6.1.0-13-amd64", "/", ROOT, ALL, 0, "" },
		{ "6.18.44", "/", ROOT, ALL, 0, "" },
		{ "10.0", "/", ROOT, ALL, 0, "" },
		{ "6.1", "/", ROOT, "cap_sys_admin=ep", 0, "" },
		{ "6.1", "/", ROOT, "cap_bpf,cap_perfmon=ep", 0, "" },
		{ "5.10.0-28-amd64", "/", ROOT, ALL, -ENOSYS,
		  "kernel 5.10 is too old: profd needs 6.1 or newer, "
		  "or --source perf" },
		{ "6.0.19", "/", ROOT, ALL, -ENOSYS,
		  "kernel 6.0 is too old: profd needs 6.1 or newer, or "
		  "--source perf" },
		{ "6.1", "/nonexistent/btf", ROOT, ALL, -ENOSYS,
		  "/nonexistent/btf: No such file or directory: profd needs a "
		  "kernel with BTF (CONFIG_DEBUG_INFO_BTF=y) and sysfs at "
		  "/sys, or --source perf" },
		{ "6.1", "empty", ROOT, ALL, -ENOSYS, NULL },
		{ "6.1", "/", "pid:[4026532000]", ALL, -ENOTSUP,
		  "inside a pid namespace: profd must run in the host's "
		  "(docker run --pid=host, hostPID: true)" },
		{ "6.1", "/", ROOT, "cap_perfmon,cap_syslog=ep", -EPERM,
		  "not permitted: missing CAP_BPF, CAP_SYS_PTRACE, "
		  "CAP_DAC_READ_SEARCH (run as root or see profd(8))" },
		{ "6.1", "/", ROOT, "cap_bpf=p", -EPERM,
		  "not permitted: missing CAP_BPF, CAP_PERFMON, "
		  "CAP_SYS_PTRACE, CAP_SYSLOG, CAP_DAC_READ_SEARCH "
		  "(run as root or see profd(8))" },
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char msg[256] = "";

		assert_int_equal(check(cases[i].release, cases[i].btf,
				       cases[i].ns, cases[i].caps, msg,
				       sizeof(msg)),
				 cases[i].err);
		if (cases[i].msg)
			assert_string_equal(msg, cases[i].msg);
		else
			assert_non_null(strstr(msg, "/empty: is no BTF: "));
	}
}

/* Namespaces of a container's have other numbers than the first, which are fixed. */
static void skip_if_contained(void)
{
	static const char *const first[] = { "pid:[4026531836]",
					     "user:[4026531837]" };
	static const char *const ns[] = { "/proc/self/ns/pid",
					  "/proc/self/ns/user" };
	char link[64];
	ssize_t n;

	for (size_t i = 0; i < ARRAY_SIZE(ns); i++) {
		n = readlink(ns[i], link, sizeof(link) - 1);
		if (n < 0)
			continue;
		link[n] = '\0';
		if (!strcmp(link, first[i]))
			continue;
		puts("# this place forbids profd: it is a container");
		skip();
	}
}

static void this_host_will_do(void **state)
{
	char msg[256] = "";
	cap_t caps;

	skip_if_contained();
	caps = cap_from_text(ALL);
	assert_int_equal(privilege_check(&privilege_this_host, caps, msg,
					 sizeof(msg)),
			 0);
	assert_string_equal(msg, "");
	cap_free(caps);
}

static void what_it_can_do_without_is_told(void **state)
{
	const char *s;
	cap_t caps;

	skip_if_contained();
	caps = cap_from_text("cap_bpf,cap_perfmon,cap_sys_ptrace=ep");
	s = privilege_degraded(&privilege_this_host, caps, 0);
	assert_non_null(s);
	assert_memory_equal(s, "CAP_SYSLOG: ", 12);
	s = privilege_degraded(&privilege_this_host, caps, 1);
	assert_non_null(s);
	assert_memory_equal(s, "CAP_DAC_READ_SEARCH: ", 21);
	assert_null(privilege_degraded(&privilege_this_host, caps, 2));
	cap_free(caps);
	caps = cap_from_text(ALL);
	assert_null(privilege_degraded(&privilege_this_host, caps, 0));
	cap_free(caps);
}

/* Of a /proc that has these files; "" when nothing is missing. */
static const char *without(const char *files)
{
	struct privilege_host host = privilege_this_host;
	char cmd[256];
	cap_t caps = cap_from_text(ALL);
	const char *s;

	snprintf(cmd, sizeof(cmd),
		 "cd %s && rm -rf proc && mkdir -p proc/self proc/2 && "
		 "cd proc && touch /dev/null %s",
		 dir, files);
	assert_int_equal(system(cmd), 0);
	snprintf(proc, sizeof(proc), "%s/proc", dir);
	host.proc = proc;
	s = privilege_degraded(&host, caps, 0);
	assert_null(s ? privilege_degraded(&host, caps, 1) : NULL);
	cap_free(caps);
	return s ? s : "";
}

/* What is missing first explains what else is. */
static void what_proc_does_not_show_is_told(void **state)
{
	assert_string_equal(without("self/stat stat 2/stat"), "");
	assert_memory_equal(without("self/stat stat"), "/proc: others'", 14);
	assert_memory_equal(without("self/stat 2/stat"),
			    "/proc: mounted for processes only", 33);
	assert_memory_equal(without(""), "/proc: it is not mounted", 24);
}

/* Without /proc BPF finds the namespace, or it is unknown. */
static void the_pid_namespace_without_proc(void **state)
{
	struct privilege_host host = { "6.1", kernel_btf, "/nonexistent",
				       sysctl, "/proc" };
	char msg[256] = "";
	cap_t caps;
	int err;

	skip_if_contained();
	caps = cap_from_text(ALL);
	err = privilege_check(&host, caps, msg, sizeof(msg));
	if (geteuid()) {
		assert_int_equal(err, -ENOENT);
		assert_string_equal(msg,
				    "/nonexistent: No such file or directory");
	} else {
		assert_int_equal(err, 0);
	}
	cap_free(caps);
}

static void a_refusal_names_the_capability(void **state)
{
	cap_t before = cap_get_proc(), none = cap_get_proc();
	char msg[256];

	/* Effective ones only: they can be taken back afterwards. */
	assert_int_equal(cap_clear_flag(none, CAP_EFFECTIVE), 0);
	assert_int_equal(cap_set_proc(none), 0);
	privilege_explain("BPF program", msg, sizeof(msg));
	assert_int_equal(cap_set_proc(before), 0);
	assert_string_equal(msg, "BPF program: not permitted: missing CAP_BPF, "
				 "CAP_PERFMON, CAP_SYS_PTRACE, CAP_SYSLOG, "
				 "CAP_DAC_READ_SEARCH "
				 "(run as root or see profd(8))");
	cap_free(before);
	cap_free(none);
}

/* Of this host, with that in kernel.perf_event_paranoid. */
static int check_perf(const char *ns, const char *text, const char *paranoid,
		      bool whole, char *msg, size_t len)
{
	struct privilege_host host = { "6.1", "/", pid_ns, sysctl, "/proc" };
	cap_t caps = cap_from_text(text);
	FILE *f;
	int err;

	unlink(pid_ns);
	assert_int_equal(symlink(ns, pid_ns), 0);
	unlink(sysctl);
	if (paranoid) {
		f = fopen(sysctl, "w");
		assert_non_null(f);
		fprintf(f, "%s\n", paranoid);
		fclose(f);
	}
	err = privilege_check_perf(&host, caps, whole, msg, len);
	cap_free(caps);
	return err;
}

static void who_may_use_perf_events(void **state)
{
	static const struct {
		const char *ns, *caps, *paranoid;
		bool whole;
		int err;
	} cases[] = {
		{ ROOT, "cap_perfmon=ep", "2", true, 0 },
		{ ROOT, "cap_sys_admin=ep", "4", true, 0 },
		{ ROOT, "=", "0", true, 0 },
		{ ROOT, "=", "-1", true, 0 },
		{ ROOT, "=", "1", true, -EPERM },
		{ ROOT, "cap_bpf=ep", "2", true, -EPERM },
		{ "pid:[4026532000]", "cap_perfmon=ep", "2", true, -ENOTSUP },
		{ "pid:[4026532000]", "=", "2", false, 0 },
		{ ROOT, "=", "2", false, 0 },
		{ ROOT, "=", "3", false, 0 }, /* the kernel refuses */
		{ ROOT, "cap_perfmon=ep", NULL, false, -ENOSYS },
	};
	char msg[512];
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(check_perf(cases[i].ns, cases[i].caps,
					    cases[i].paranoid, cases[i].whole,
					    msg, sizeof(msg)),
				 cases[i].err);
	check_perf(ROOT, "=", "3", true, msg, sizeof(msg));
	assert_string_equal(msg, "perf events of the whole host: not permitted:"
				 " missing CAP_PERFMON, and "
				 "kernel.perf_event_paranoid is 3, not 0 (run "
				 "as root, or record a command or processes of "
				 "your own)");
	privilege_explain_perf("perf_event_open", msg, sizeof(msg));
	assert_memory_equal(msg,
			    "perf_event_open: not permitted: "
			    "kernel.perf_event_paranoid is ",
			    62);
}

static int put_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return -1;
	fputs(text, f);
	return fclose(f);
}

static int make_dir(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(pid_ns, sizeof(pid_ns), "%s/pid", dir);
	snprintf(sysctl, sizeof(sysctl), "%s/sysctl", dir);
	snprintf(kernel_btf, sizeof(kernel_btf), "%s/btf", dir);
	snprintf(no_btf, sizeof(no_btf), "%s/empty", dir);
	return put_file(kernel_btf, BTF_HEADER) || put_file(no_btf, "");
}

static int remove_dir(void **state)
{
	char cmd[64];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_missing_is_named),
		cmocka_unit_test(this_host_will_do),
		cmocka_unit_test(what_it_can_do_without_is_told),
		cmocka_unit_test(what_proc_does_not_show_is_told),
		cmocka_unit_test(the_pid_namespace_without_proc),
		cmocka_unit_test(a_refusal_names_the_capability),
		cmocka_unit_test(who_may_use_perf_events),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
