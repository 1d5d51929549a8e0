// SPDX-License-Identifier: Apache-2.0
/*
 * cgroup: parses the path of a control group. No standard defines these names;
 * they are what container engines and systemd write:
 *
 *	docker      /docker/ID, docker-ID.scope
 *	containerd  cri-containerd-ID.scope, ...:cri-containerd:ID, nerdctl-ID.scope
 *	cri-o       crio-ID.scope, /crio-ID
 *	podman      libpod-ID.scope, /libpod_parent/libpod-ID
 *	kubernetes  .../podUID/ID, ...-podUID.slice/ENGINE-ID.scope
 *	lxc         /lxc/NAME, /lxc.payload.NAME, /lxc.payload/NAME
 *	nspawn      systemd-nspawn@NAME.service, machine-NAME.scope
 *
 * ID is 64 hexadecimal digits. Of nested containers the innermost counts. The
 * path is the same in a hierarchy of version 1 and of version 2.
 */
#include <stdbool.h>
#include <string.h>

#include "base/base.h"
#include "processmanager/processmanager.h"

#define CGROUP_ID_LEN 64
#define CGROUP_UID_LEN 36 /* 8-4-4-4-12 */
#define CGROUP_UID_BARE 32 /* of a static pod: a hash */

/* The prefix of an id shows its engine. */
static const struct {
	const char *prefix;
	const char *engine; /* NULL: the engine's own monitor */
} cgroup_prefixes[] = {
	{ "docker-", "docker" },
	{ "cri-containerd-", "containerd" },
	{ "cri-containerd:", "containerd" },
	{ "nerdctl-", "containerd" },
	{ "crio-conmon-", NULL },
	{ "crio-", "cri-o" },
	{ "libpod-conmon-", NULL },
	{ "libpod-", "podman" },
};

/* Arbitrary names, recognized by a prefix, or by their parent directory. */
static const struct {
	const char *parent; /* or NULL */
	const char *prefix;
	const char *suffix;
	const char *engine;
} cgroup_names[] = {
	{ "lxc", "", "", "lxc" },
	{ "lxc.payload", "", "", "lxc" },
	{ NULL, "lxc.payload.", "", "lxc" },
	{ NULL, "systemd-nspawn@", ".service", "nspawn" },
	{ NULL, "machine-", ".scope", "nspawn" },
};

static const char *const cgroup_units[] = {
	".service", ".scope", ".socket", ".mount", ".swap",
};

static bool cgroup_is(struct pm_part p, const char *s)
{
	return p.len == strlen(s) && !memcmp(p.s, s, p.len);
}

static bool cgroup_begins(struct pm_part p, const char *s)
{
	size_t n = strlen(s);

	return p.len > n && !memcmp(p.s, s, n);
}

static bool cgroup_ends(struct pm_part p, const char *s)
{
	size_t n = strlen(s);

	return p.len > n && !memcmp(p.s + p.len - n, s, n);
}

static bool cgroup_is_hex(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!(s[i] >= '0' && s[i] <= '9') &&
		    !(s[i] >= 'a' && s[i] <= 'f'))
			return false;
	return true;
}

/* A container id at the end of a component, and its engine. */
static bool cgroup_id(struct pm_part c, struct pm_part before,
		      struct pm_cgroup *out)
{
	const char *engine = cgroup_is(before, "docker") ? "docker" : NULL;
	struct pm_part head;
	size_t i;

	if (cgroup_ends(c, ".scope"))
		c.len -= strlen(".scope");
	if (c.len < CGROUP_ID_LEN ||
	    !cgroup_is_hex(c.s + c.len - CGROUP_ID_LEN, CGROUP_ID_LEN))
		return false;
	head = (struct pm_part){ c.s, c.len - CGROUP_ID_LEN };
	if (head.len && !strchr("-:", head.s[head.len - 1]))
		return false;
	for (i = 0; i < ARRAY_SIZE(cgroup_prefixes); i++) {
		if (!cgroup_is(head, cgroup_prefixes[i].prefix) &&
		    !cgroup_ends(head, cgroup_prefixes[i].prefix))
			continue;
		engine = cgroup_prefixes[i].engine;
		if (!engine)
			return false;
		break;
	}
	out->engine = engine;
	out->container.s = c.s + head.len;
	out->container.len = CGROUP_ID_LEN;
	return true;
}

static bool cgroup_name(struct pm_part c, struct pm_part before,
			struct pm_cgroup *out)
{
	size_t i, cut;

	for (i = 0; i < ARRAY_SIZE(cgroup_names); i++) {
		const char *prefix = cgroup_names[i].prefix;
		const char *suffix = cgroup_names[i].suffix;

		if (cgroup_names[i].parent &&
		    !cgroup_is(before, cgroup_names[i].parent))
			continue;
		cut = strlen(prefix) + strlen(suffix);
		if (c.len <= cut || (*prefix && !cgroup_begins(c, prefix)) ||
		    (*suffix && !cgroup_ends(c, suffix)))
			continue;
		out->engine = cgroup_names[i].engine;
		out->container.s = c.s + strlen(prefix);
		out->container.len = c.len - cut;
		return true;
	}
	return false;
}

static bool cgroup_is_uid(const char *s)
{
	size_t i;

	for (i = 0; i < CGROUP_UID_LEN; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? s[i] != '-' && s[i] != '_'
			 : !cgroup_is_hex(s + i, 1))
			return false;
	}
	return true;
}

/* "podUID", alone or after the quality of service, with or without ".slice". */
static void cgroup_pod(struct pm_part c, struct pm_cgroup *out)
{
	size_t want[] = { CGROUP_UID_LEN, CGROUP_UID_BARE };
	const char *uid;
	size_t i;

	if (cgroup_ends(c, ".slice"))
		c.len -= strlen(".slice");
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		if (c.len < want[i] + 3)
			continue;
		uid = c.s + c.len - want[i];
		if (memcmp(uid - 3, "pod", 3) ||
		    (c.len > want[i] + 3 && uid[-4] != '-'))
			continue;
		if (want[i] == CGROUP_UID_LEN ? !cgroup_is_uid(uid)
					      : !cgroup_is_hex(uid, want[i]))
			continue;
		out->pod = (struct pm_part){ uid, want[i] };
		return;
	}
}

static void cgroup_component(struct pm_part c, struct pm_part before,
			     struct pm_cgroup *out)
{
	const char *colon = memchr(c.s, ':', c.len);
	size_t i;

	if (!cgroup_id(c, before, out))
		cgroup_name(c, before, out);
	/* SLICE:PREFIX:ID, runc's name for systemd, written without systemd */
	cgroup_pod((struct pm_part){ c.s,
				     colon ? (size_t)(colon - c.s) : c.len },
		   out);
	for (i = 0; i < ARRAY_SIZE(cgroup_units); i++)
		if (cgroup_ends(c, cgroup_units[i]))
			out->unit = c;
}

void pm_cgroup_parse(const char *path, size_t len, struct pm_cgroup *out)
{
	struct pm_part c, before = { "", 0 };
	const char *end = path + len, *slash;

	memset(out, 0, sizeof(*out));
	while (path < end) {
		slash = memchr(path, '/', end - path);
		c.s = path;
		c.len = (slash ? slash : end) - path;
		path = slash ? slash + 1 : end;
		if (!c.len)
			continue;
		cgroup_component(c, before, out);
		before = c;
	}
}
