/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: what a control group's path tells of who is in it. There is no
 * standard for these names but what container engines and systemd write:
 *
 *	docker      /docker/ID, docker-ID.scope
 *	containerd  cri-containerd-ID.scope, ...:cri-containerd:ID, nerdctl-ID.scope
 *	cri-o       crio-ID.scope, /crio-ID
 *	podman      libpod-ID.scope, /libpod_parent/libpod-ID
 *	kubernetes  .../podUID/ID, ...-podUID.slice/ENGINE-ID.scope
 *	lxc         /lxc/NAME, /lxc.payload.NAME, /lxc.payload/NAME
 *	nspawn      systemd-nspawn@NAME.service, machine-NAME.scope
 *
 * ID is 64 hexadecimal digits. The innermost wins: a container in a container
 * is where its processes are. The path is the same in a hierarchy of version 1
 * and of version 2.
 */
#ifndef PROCESSMANAGER_CGROUP_H
#define PROCESSMANAGER_CGROUP_H

#include <stddef.h>

/* A piece of the path that was asked about; len 0: there is none. */
struct pm_cgroup_part {
	const char *s;
	size_t len;
};

struct pm_cgroup {
	const char *engine; /* "docker" ...; NULL: no container, or not known */
	struct pm_cgroup_part container; /* id or name */
	struct pm_cgroup_part pod; /* uid, as written: '-' or '_' in it */
	struct pm_cgroup_part unit; /* innermost systemd unit, but slices */
};

/* 'path' need not be NUL-terminated and must stay while *out is used. */
void pm_cgroup_parse(const char *path, size_t len, struct pm_cgroup *out);

#endif /* PROCESSMANAGER_CGROUP_H */
