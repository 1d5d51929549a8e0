// SPDX-License-Identifier: Apache-2.0
/* Control group paths, as container engines and systemd really write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "processmanager/processmanager.h"

#define ID "3f1b6e0c9d2a47580e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f"
#define ID2 "aaaaaaaa9d2a47580e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f"
#define UID "c0ffee00-1234-4abc-8def-0123456789ab"
#define UID_ "c0ffee00_1234_4abc_8def_0123456789ab"
#define UID32 "0123456789abcdef0123456789abcdef"

static const struct {
	const char *path, *engine, *container, *pod, *unit;
} cases[] = {
	{ "/", NULL, "", "", "" },
	{ "", NULL, "", "", "" },
	{ "/init.scope", NULL, "", "", "init.scope" },
	{ "/system.slice/cron.service", NULL, "", "", "cron.service" },
	{ "/user.slice/user-1000.slice/session-3.scope", NULL, "", "",
	  "session-3.scope" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/gpg.service",
	  NULL, "", "", "gpg.service" },
	{ "/docker/" ID, "docker", ID, "", "" },
	{ "/system.slice/docker-" ID ".scope", "docker", ID, "",
	  "docker-" ID ".scope" },
	{ "/docker/" ID "/system.slice/nginx.service", "docker", ID, "",
	  "nginx.service" },
	/* nested */
	{ "/docker/" ID "/docker/" ID2, "docker", ID2, "", "" },
	{ "/kubepods/burstable/pod" UID "/" ID, NULL, ID, UID, "" },
	{ "/kubepods/pod" UID "/" ID, NULL, ID, UID, "" },
	{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_
	  ".slice/cri-containerd-" ID ".scope",
	  "containerd", ID, UID_, "cri-containerd-" ID ".scope" },
	{ "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_
	  ".slice/cri-containerd-" ID ".scope",
	  "containerd", ID, UID_, "cri-containerd-" ID ".scope" },
	{ "/kubepods.slice/kubepods-pod" UID32 ".slice/crio-" ID ".scope",
	  "cri-o", ID, UID32, "crio-" ID ".scope" },
	{ "/system.slice/containerd.service/kubepods-burstable-pod" UID_
	  ".slice:cri-containerd:" ID,
	  "containerd", ID, UID_, "containerd.service" },
	{ "/kubepods/besteffort/pod" UID "/crio-" ID, "cri-o", ID, UID, "" },
	{ "/system.slice/nerdctl-" ID ".scope", "containerd", ID, "",
	  "nerdctl-" ID ".scope" },
	{ "/machine.slice/libpod-" ID ".scope/container", "podman", ID, "",
	  "libpod-" ID ".scope" },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
	  ".scope",
	  "podman", ID, "", "libpod-" ID ".scope" },
	{ "/libpod_parent/libpod-" ID, "podman", ID, "", "" },
	/* the engine's own process beside the container */
	{ "/machine.slice/libpod-conmon-" ID ".scope", NULL, "", "",
	  "libpod-conmon-" ID ".scope" },
	{ "/kubepods.slice/crio-conmon-" ID ".scope", NULL, "", "",
	  "crio-conmon-" ID ".scope" },
	{ "/lxc/web", "lxc", "web", "", "" },
	{ "/lxc.payload.web", "lxc", "web", "", "" },
	{ "/lxc.payload/web/init.scope", "lxc", "web", "", "init.scope" },
	{ "/lxc.monitor.web", NULL, "", "", "" },
	{ "/machine.slice/systemd-nspawn@deb.service/payload", "nspawn", "deb",
	  "", "systemd-nspawn@deb.service" },
	{ "/machine.slice/machine-deb.scope", "nspawn", "deb", "",
	  "machine-deb.scope" },
	/* nearly */
	{ "/x" ID, NULL, "", "", "" },
	{ "/docker/" ID "0", NULL, "", "", "" },
	{ "/docker/A" ID, NULL, "", "", "" },
	{ "/podcast/tripod" UID, NULL, "", "", "" },
	{ "/.service/.scope/lxc", NULL, "", "", "" },
	{ "//docker//" ID "//", "docker", ID, "", "" },
	{ "relative/docker/" ID, "docker", ID, "", "" },
};

static void assert_part(struct pm_part p, const char *want, const char *path)
{
	if (p.len == strlen(want) && (!p.len || !memcmp(p.s, want, p.len)))
		return;
	fail_msg("%s: \"%.*s\", not \"%s\"", path, (int)p.len, p.s, want);
}

static void paths_tell_who_is_in_them(void **state)
{
	struct pm_cgroup c;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *p = cases[i].path;

		pm_cgroup_parse(p, strlen(p), &c);
		assert_part(c.container, cases[i].container, p);
		assert_part(c.pod, cases[i].pod, p);
		assert_part(c.unit, cases[i].unit, p);
		if (cases[i].engine)
			assert_string_equal(c.engine, cases[i].engine);
		else
			assert_null(c.engine);
	}
}

/* Without a terminator: bytes after the end are not read. */
static void a_path_ends_where_it_is_said_to(void **state)
{
	const char path[] = "/lxc/web/init.scope";
	struct pm_cgroup c;

	pm_cgroup_parse(path, strlen("/lxc/we"), &c);
	assert_part(c.container, "we", path);
	assert_part(c.unit, "", path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_tell_who_is_in_them),
		cmocka_unit_test(a_path_ends_where_it_is_said_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
