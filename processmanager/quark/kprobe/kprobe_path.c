// SPDX-License-Identifier: Apache-2.0
/*
 * kprobe_path: a probe can read names and numbers, but cannot follow mounts. A
 * file's mount id and its names up to the file system's root become a path by
 * /proc/self/mountinfo (proc(5)), and a cgroup's id becomes a path by a file handle
 * (cgroup ids are never reused).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "processmanager/quark/kprobe/kprobe.h"

#define FILEID_KERNFS 0xfe /* linux/exportfs.h */
#define CGROUPS_MAX 4096 /* cached; then all are dropped */

struct mount_entry {
	uint32_t id;
	char *root, *point;
};

struct cgroup_entry {
	struct hash_node node;
	char path[];
};

struct kprobe_paths {
	int fd; /* of mountinfo: poll(2) reports changes */
	struct mount_entry *mounts;
	size_t n, cap;
	/*
	 * Memory or pids are in a hierarchy of version 1, whose path records may
	 * need: the unified hierarchy's id is not sufficient.
	 */
	bool hybrid;
	int cgroupfd; /* the unified hierarchy's mount, or -1 */
	char *cgroup_point;
	struct hash cgroups;
};

static void forget_mounts(struct kprobe_paths *p)
{
	size_t i;

	for (i = 0; i < p->n; i++) {
		free(p->mounts[i].root);
		free(p->mounts[i].point);
	}
	p->n = 0;
}

static void forget_cgroups(struct kprobe_paths *p)
{
	struct hash_node *n, *tmp;
	size_t i;

	hash_for_each(&p->cgroups, i, n, tmp)
		free(container_of(n, struct cgroup_entry, node));
	hash_fini(&p->cgroups);
	memset(&p->cgroups, 0, sizeof(p->cgroups));
}

/* Sets cgroup_point and cgroupfd, or neither. */
static void open_cgroups(struct kprobe_paths *p, const char *point)
{
	p->cgroup_point = strdup(point);
	if (p->cgroup_point)
		p->cgroupfd = open(point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->cgroupfd >= 0)
		return;
	free(p->cgroup_point);
	p->cgroup_point = NULL;
}

static int add_mount(struct kprobe_paths *p, char *line)
{
	char *save, *w, *word[5];
	struct mount_entry *m;
	size_t i;

	for (i = 0, w = strtok_r(line, " \n", &save); w && i < 5;
	     w = strtok_r(NULL, " \n", &save))
		word[i++] = w;
	if (i < 5)
		return 0;
	if (VECTOR_ROOM(p->mounts, p->n, p->cap))
		return -ENOMEM;
	for (i = 3; i < 5; i++)
		procfs_unescape(word[i], strlen(word[i]) + 1, word[i],
				strlen(word[i]));
	while (w && strcmp(w, "-"))
		w = strtok_r(NULL, " \n", &save);
	w = strtok_r(NULL, " \n", &save);
	if (w && !strcmp(w, "cgroup2") && p->cgroupfd < 0)
		open_cgroups(p, word[4]);
	m = &p->mounts[p->n];
	m->id = strtoul(word[0], NULL, 10);
	m->root = strdup(word[3]);
	m->point = strdup(word[4]);
	if (m->root && m->point) {
		p->n++;
		return 0;
	}
	free(m->root);
	free(m->point);
	return -ENOMEM;
}

/* Only the lines of version 1 contain controllers. */
static bool is_hybrid(void)
{
	char *line = NULL, list[256];
	bool hybrid = false;
	size_t size = 0;
	FILE *f = fopen("/proc/self/cgroup", "re");

	while (f && !hybrid && getline(&line, &size, f) > 0)
		hybrid = sscanf(line, "%*u:%255[^:]:", list) == 1 &&
			 (strstr(list, "memory") || strstr(list, "pids"));
	free(line);
	if (f)
		fclose(f);
	return hybrid;
}

static void kprobe_path_read_mounts(struct kprobe_paths *p)
{
	size_t size = 0;
	char *line = NULL;
	FILE *f = fopen("/proc/self/mountinfo", "re");

	p->hybrid = is_hybrid();
	forget_mounts(p);
	while (f && getline(&line, &size, f) > 0)
		if (add_mount(p, line))
			break;
	free(line);
	if (f)
		fclose(f);
}

static const struct mount_entry *find_mount(struct kprobe_paths *p, uint32_t id)
{
	struct pollfd pfd = { .fd = p->fd, .events = POLLPRI };
	size_t i;

	if (poll(&pfd, 1, 0) > 0)
		kprobe_path_read_mounts(p);
	for (i = 0; i < p->n; i++)
		if (p->mounts[i].id == id)
			return &p->mounts[i];
	return NULL;
}

struct kprobe_paths *kprobe_paths_new(void)
{
	struct kprobe_paths *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->cgroupfd = -1;
	p->fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (p->fd < 0) {
		free(p);
		return NULL;
	}
	kprobe_path_read_mounts(p);
	return p;
}

void kprobe_paths_free(struct kprobe_paths *p)
{
	if (!p)
		return;
	forget_mounts(p);
	if (p->cgroups.buckets)
		forget_cgroups(p);
	if (p->fd >= 0)
		close(p->fd);
	if (p->cgroupfd >= 0)
		close(p->cgroupfd);
	free(p->cgroup_point);
	free(p->mounts);
	free(p);
}

static bool is_root(const struct quark_span *name)
{
	return name->len == 1 && name->p[0] == '/';
}

bool kprobe_path(struct kprobe_paths *p, uint32_t mnt,
		 const struct quark_span *names, size_t n, struct strbuf *out)
{
	size_t start = out->len, depth, i, skip;
	const struct mount_entry *m;
	const char *inner;

	for (depth = 0; depth < n && !is_root(&names[depth]); depth++)
		if (!names[depth].len)
			return false;
	m = depth < n ? find_mount(p, mnt) : NULL;
	if (!m)
		return false;
	if (strcmp(m->point, "/"))
		strbuf_puts(out, m->point);
	skip = out->len;
	for (i = depth; i-- > 0;) {
		strbuf_add(out, "/", 1);
		strbuf_add(out, names[i].p, names[i].len);
	}
	if (!strbuf_str(out))
		return false;
	/* A bind mount contains only what is below the bound directory. */
	inner = out->data + skip;
	i = strcmp(m->root, "/") ? strlen(m->root) : 0;
	if (i && (out->len - skip < i || memcmp(inner, m->root, i) ||
		  (inner[i] && inner[i] != '/'))) {
		out->len = start;
		out->data[start] = '\0';
		return false;
	}
	memmove(out->data + skip, inner + i, out->len - skip - i + 1);
	out->len -= i;
	if (out->len == start)
		strbuf_add(out, "/", 1);
	return true;
}

/* --- cgroups ---------------------------------------------------------------- */

static bool cgroup_by_handle(const struct kprobe_paths *p, uint64_t id,
			     char *path, size_t size)
{
	struct {
		struct file_handle h;
		uint64_t id;
	} handle = { .h = { .handle_bytes = sizeof(id),
			    .handle_type = FILEID_KERNFS } };
	size_t skip = strlen(p->cgroup_point);
	char name[64];
	ssize_t n;
	int fd;

	memcpy(handle.h.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(p->cgroupfd, &handle.h, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return false;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = readlink(name, path, size - 1);
	close(fd);
	if (n < (ssize_t)skip || memcmp(path, p->cgroup_point, skip))
		return false;
	path[n] = '\0';
	memmove(path, path + skip, n - skip + 1);
	if (!*path)
		strcpy(path, "/");
	return true;
}

const char *kprobe_cgroup(struct kprobe_paths *p, uint64_t id)
{
	char path[ABI_QUARK_PATH_MAX];
	struct cgroup_entry *e;
	struct hash_node *n;

	if (p->cgroups.count > CGROUPS_MAX)
		forget_cgroups(p);
	if (!p->cgroups.buckets && hash_init(&p->cgroups, 0))
		return NULL;
	n = hash_first(&p->cgroups, id);
	if (n)
		return container_of(n, struct cgroup_entry, node)->path;
	if (p->cgroupfd < 0 || p->hybrid || !id ||
	    !cgroup_by_handle(p, id, path, sizeof(path)))
		return NULL;
	e = malloc(sizeof(*e) + strlen(path) + 1);
	if (!e)
		return NULL;
	strcpy(e->path, path);
	hash_insert(&p->cgroups, &e->node, id);
	return e->path;
}
