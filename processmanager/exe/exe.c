// SPDX-License-Identifier: Apache-2.0
/*
 * exe: finds the executable of a mapping, without opening a file twice.
 *
 * One table of keys leads to the executables: (device, inode, generation,
 * path), as the kernel reports them for a mapping; build id, file id and
 * content hash together, once the file was read; and the short id. An inode can
 * be written to, so the first key is valid while the file is unchanged since it
 * was opened; otherwise it is another executable.
 *
 * Two files with the same content are two executables with a path each; the
 * later one refers to the first ("same"), whose file is read for both.
 *
 * An executable without references is kept for a while, with its file, so that
 * a program that is run again and again for a millisecond is opened once.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/internal.h"

/* Bytes of a file's name, of every file system. */
#define PM_NAME_MAX 255

enum pm_key_kind {
	PM_KEY_BUILD_ID,
	PM_KEY_CONTENT,
	PM_KEY_INODE,
	PM_KEY_SHORT_ID,
	PM_KEY_EXECUTED, /* struct quark_file_ident, known to the kernel side */
};

struct pm_exe_key {
	struct hash_node node; /* pm->exe_keys */
	LIST_ENTRY(pm_exe_key) next; /* of the same executable */
	struct pm_exe *exe;
	uint32_t kind; /* enum pm_key_kind */
	/*
	 * Has no generation, so the inode number is valid while it is mapped.
	 */
	bool weak;
	uint8_t bytes[56]; /* padded with zeroes */
};

static void pm_key_id(struct pm_exe_key *k, enum pm_key_kind kind,
		      const uint8_t *id, size_t len)
{
	memset(k, 0, sizeof(*k));
	k->kind = kind;
	memcpy(k->bytes, id, MIN(len, sizeof(k->bytes)));
}

static void pm_key_inode(struct pm_exe_key *k, const struct pm_map_event *ev,
			 size_t path_len)
{
	uint64_t v[4] = { ev->dev, ev->ino, ev->ino_generation,
			  hash_bytes(ev->path, path_len) };

	pm_key_id(k, PM_KEY_INODE, (const uint8_t *)v, sizeof(v));
	k->weak = ev->ino_generation == 0;
}

/* What is equal in two files that share rows and names. */
static void pm_key_content(struct pm_exe_key *k,
			   const struct symbolizer_ident *id)
{
	uint8_t *to = k->bytes;

	pm_key_id(k, PM_KEY_CONTENT, &id->build_id_len, 1);
	memcpy(to += 1, id->build_id, id->build_id_len);
	memcpy(to += sizeof(id->build_id), id->file_id, sizeof(id->file_id));
	memcpy(to += sizeof(id->file_id), id->content, sizeof(id->content));
}

static uint64_t pm_key_hash(const struct pm_exe_key *k)
{
	return hash_mix(hash_bytes(k->bytes, sizeof(k->bytes)), k->kind);
}

static struct pm_exe_key *pm_key_find(struct pm *pm, const struct pm_exe_key *k)
{
	struct pm_exe_key *found;

	HASH_FIND(found, &pm->exe_keys, pm_key_hash(k), node,
		  found->kind == k->kind &&
			  !memcmp(found->bytes, k->bytes, sizeof(k->bytes)));
	return found;
}

/* 0 or -ENOMEM, counted; without the key the file may be opened once more. */
static int pm_key_add(struct pm_exe *exe, const struct pm_exe_key *k)
{
	struct pm_exe_key *key = malloc(sizeof(*key));

	if (!key)
		return pm_nomem(exe->pm);
	*key = *k;
	key->exe = exe;
	LIST_INSERT_HEAD(&exe->keys, key, next);
	hash_insert(&exe->pm->exe_keys, &key->node, pm_key_hash(k));
	return 0;
}

static void pm_key_executed(struct pm_exe_key *k,
			    const struct quark_file_ident *ident)
{
	pm_key_id(k, PM_KEY_EXECUTED, (const uint8_t *)ident, sizeof(*ident));
}

static void pm_key_remove(struct pm_exe_key *key)
{
	struct pm *pm = key->exe->pm;
	struct quark_file_ident ident;

	LIST_REMOVE(key, next);
	hash_remove(&pm->exe_keys, &key->node);
	memcpy(&ident, key->bytes, sizeof(ident));
	if (key->kind == PM_KEY_EXECUTED) {
		pm_known_file(pm, &ident, false);
		if (key->exe->go.tls)
			pm_go_file(pm, &ident, NULL);
	}
	free(key);
}

struct pm_exe *pm_exe_root(const struct pm_exe *exe)
{
	while (exe->same)
		exe = exe->same;
	return (struct pm_exe *)exe;
}

struct pm_exe *pm_exe_shown(const struct pm_exe *exe)
{
	struct pm_exe *root = pm_exe_root(exe);

	return root->path == exe->path ? root : (struct pm_exe *)exe;
}

struct pm_exe *pm_exe_new(struct pm *pm, enum pm_exe_kind kind,
			  struct pm_str *path)
{
	struct pm_exe *exe = path ? calloc(1, sizeof(*exe)) : NULL;

	if (!exe) {
		pm_str_put(pm, path);
		pm_nomem(pm);
		return NULL;
	}
	exe->path = path;
	exe->pm = pm;
	exe->kind = kind;
	exe->refs = 1;
	exe->serial = ++pm->serial;
	exe->rows = exe->names = PM_EXE_NOT_ASKED;
	TAILQ_INIT(&exe->reqs);
	TAILQ_INSERT_TAIL(&pm->exes, exe, all);
	pm->stats.exes++;
	return exe;
}

static void pm_exe_free(struct pm_exe *exe)
{
	struct pm *pm = exe->pm;
	struct pm_exe *same = exe->same;

	pm_exe_close(exe);
	while (!LIST_EMPTY(&exe->keys))
		pm_key_remove(LIST_FIRST(&exe->keys));
	TAILQ_REMOVE(&pm->exes, exe, all);
	pm_str_put(pm, exe->path);
	if (exe->user)
		pm_user_give(pm, exe->user, PM_SHARE_EXES, 1);
	free(exe->segments);
	pm_code_free(exe);
	free(exe);
	pm->stats.exes--;
	pm_exe_put(same);
}

struct pm_exe *pm_exe_get(struct pm_exe *exe)
{
	if (!exe->refs++) {
		TAILQ_REMOVE(&exe->pm->idle, exe, idle);
		exe->pm->nidle--;
	}
	return exe;
}

static void pm_exe_drop_idle(struct pm *pm, uint32_t keep)
{
	struct pm_exe *exe;

	while (pm->nidle > keep) {
		exe = TAILQ_FIRST(&pm->idle);
		TAILQ_REMOVE(&pm->idle, exe, idle);
		pm->nidle--;
		pm_exe_free(exe);
	}
}

void pm_exe_mapped(struct pm_exe *exe, int64_t n)
{
	if (exe)
		pm_code_mapped(exe, n);
	for (; exe; exe = exe->same) {
		exe->mapped += n;
		if (exe->mapped)
			continue;
		exe->unmapped_at = exe->pm->now;
		pm_release_later(exe);
	}
}

void pm_exe_put(struct pm_exe *exe)
{
	if (!exe || --exe->refs)
		return;
	if (LIST_EMPTY(&exe->keys)) { /* no lookup would find it again */
		pm_exe_free(exe);
		return;
	}
	TAILQ_INSERT_TAIL(&exe->pm->idle, exe, idle);
	exe->pm->nidle++;
	pm_exe_drop_idle(exe->pm, PM_IDLE_EXES);
}

size_t pm_exe_path_len(const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path), tail = sizeof(deleted) - 1;

	if (len > tail && !memcmp(path + len - tail, deleted, tail))
		return len - tail;
	return len;
}

/*
 * Executable memory without a file: the kernel's "//anon", "[heap]" and
 * "anon_inode:x", and the nameless files of shared memory and of large pages. A memfd is
 * a file.
 * Files without an inode number, which FUSE may report, cannot be told apart.
 */
static bool pm_path_is_anon(const struct pm_map_event *ev)
{
	if (ev->build_id_len)
		return false;
	return ev->path[0] != '/' || !ev->ino ||
	       !strncmp(ev->path, "/SYSV", 5) ||
	       !strncmp(ev->path, "/dev/zero", 9) ||
	       !strcmp(ev->path, "/anon_hugepage (deleted)");
}

bool pm_exe_is_bare(const struct pm_exe *exe)
{
	const struct pm_exe *root = pm_exe_root(exe);
	int err = root->open_error;

	if (exe->kind != PM_EXE_FILE || root->opened || exe->jitdump)
		return false;
	/* A memfd that may not be opened is hardly ever an ELF file. */
	return err == -ENOEXEC || (err && !strncmp(exe->path->s, "/memfd:", 7));
}

/* In the user's share; where that is used up, only the last component. */
static struct pm_str *pm_exe_path(struct pm *pm, uint32_t uid, const char *path,
				  size_t len)
{
	char name[PM_NAME_MAX + 1], part[sizeof(name) + 4];
	const char *slash;
	struct pm_str *str;
	bool cut = false;

	str = pm_str_new_of(pm, uid, path, len, 0, &cut);
	if (!cut)
		return str;
	slash = memrchr(path, '/', len);
	slash = slash ? slash + 1 : path;
	len = MIN((size_t)(path + len - slash), PM_NAME_MAX);
	memcpy(name, slash, len);
	name[len] = '\0';
	len = snprintf(part, sizeof(part), ".../%s", name);
	return pm_str_new_of(pm, uid, part, len, SIZE_MAX, &cut);
}

/* A new executable of the key; returns as pm_exe_of(). */
static int pm_exe_make(struct pm *pm, const struct pm_map_event *ev, size_t len,
		       const struct pm_exe_key *k, uint32_t uid,
		       struct pm_exe **exep)
{
	struct pm_user *u = pm_user_of(pm, uid);
	struct pm_exe *exe;

	if (!u)
		return pm_nomem(pm);
	if (!pm_user_may(pm, u, PM_SHARE_EXES, 1)) {
		pm_user_give(pm, u, PM_SHARE_EXES, 0);
		pm->stats.exes_refused++;
		pm_limited(pm, uid, PM_LIMIT_MAPS, 1);
		return -EDQUOT;
	}
	pm_user_take(pm, u, PM_SHARE_EXES, 1);
	exe = pm_exe_new(pm, PM_EXE_FILE, pm_exe_path(pm, uid, ev->path, len));
	if (!exe) {
		pm_user_give(pm, u, PM_SHARE_EXES, 1);
		return -ENOMEM;
	}
	exe->user = u;
	exe->jitdump = pm_code_is_dump(ev->path);
	if (k->kind == PM_KEY_BUILD_ID) {
		exe->ident.build_id_len = ev->build_id_len;
		memcpy(exe->ident.build_id, ev->build_id, ev->build_id_len);
	} else {
		exe->dev = ev->dev;
		exe->ino = ev->ino;
		exe->generation = ev->ino_generation;
	}
	pm_key_add(exe, k);
	*exep = exe;
	return 0;
}

/*
 * The open file, if it is this inode, whose number then cannot be another
 * file's; or NULL.
 */
static const struct symbolizer_file *pm_exe_pinned(const struct pm_exe *exe,
						   uint64_t dev, uint64_t ino)
{
	const struct symbolizer_file *file = pm_exe_root(exe)->file;
	const struct symbolizer_ident *id =
		file ? symbolizer_ident(file) : NULL;

	return id && id->dev == dev && id->ino == ino ? file : NULL;
}

/*
 * It was read once, and may have been written to since: cp(1) over a program
 * leaves its inode and generation. Without its open file that cannot be known.
 */
static bool pm_exe_changed(struct pm_exe *exe)
{
	const struct symbolizer_file *file = exe->file;

	if (!exe->ino || exe->opening || !(exe->opened || exe->same))
		return false;
	if (!file)
		file = pm_exe_pinned(exe, exe->file_dev, exe->file_ino);
	if (!file || symbolizer_changed(file))
		return true;
	if (exe->file)
		pm_exe_touch(exe);
	return false;
}

void pm_exe_unpinned(struct pm_exe *exe)
{
	struct pm_exe_key *key, *next;

	for (key = LIST_FIRST(&exe->keys); key; key = next) {
		next = LIST_NEXT(key, next);
		if (key->kind == PM_KEY_EXECUTED)
			pm_key_remove(key);
	}
}

int pm_exe_of(struct pm *pm, const struct pm_map_event *ev,
	      const struct pm_proc *proc, struct pm_exe **exep)
{
	bool vdso = !strcmp(ev->path, "[vdso]");
	struct pm_exe_key k, *found;
	struct pm_exe *exe = NULL;
	size_t len;
	int err = 0;

	if (vdso || pm_path_is_anon(ev)) {
		*exep = pm_exe_get(vdso ? pm->vdso : pm->anon);
		return 0;
	}
	len = pm_exe_path_len(ev->path);
	if (ev->build_id_len)
		pm_key_id(&k, PM_KEY_BUILD_ID, ev->build_id, ev->build_id_len);
	else
		pm_key_inode(&k, ev, len);
	found = pm_key_find(pm, &k);
	if (found && ((found->weak && !found->exe->mapped &&
		       !pm_exe_pinned(found->exe, ev->dev, ev->ino)) ||
		      pm_exe_changed(found->exe) ||
		      pm_early_changed(pm, ev, found->exe))) {
		pm_key_remove(found);
		found = NULL;
	}
	if (found)
		exe = pm_exe_get(found->exe);
	else
		err = pm_exe_make(pm, ev, len, &k, pm_proc_uid(proc), &exe);
	if (err)
		return err;
	exe->via.tgid = proc->tgid;
	exe->via.start_boottime = proc->start_boottime;
	exe->via.start = ev->start;
	exe->via.end = ev->end;
	exe->via.uid = pm_proc_uid(proc);
	if (!exe->jitdump && !pm_early_adopt(exe, ev) && !exe->opened &&
	    !exe->same)
		pm_exe_open(exe);
	*exep = exe;
	return 0;
}

void pm_exe_know(struct pm_exe *exe, const struct quark_file_ident *ident)
{
	struct pm_exe *root = pm_exe_root(exe);
	struct pm_exe_key k;

	if (!pm_exe_pinned(root, ident->dev, ident->ino))
		return;
	pm_key_executed(&k, ident);
	if (!pm_key_find(exe->pm, &k) && pm_key_add(root, &k))
		return;
	pm_known_file(exe->pm, ident, true);
	if (root->go.tls)
		pm_go_file(exe->pm, ident, &root->go);
}

void pm_exe_set_go(struct pm_exe *exe, const struct symbolizer_go *go)
{
	struct quark_file_ident ident;
	const struct pm_exe_key *key;

	exe->go = *go;
	if (!go->tls)
		return;
	LIST_FOREACH(key, &exe->keys, next) {
		if (key->kind != PM_KEY_EXECUTED)
			continue;
		memcpy(&ident, key->bytes, sizeof(ident));
		pm_go_file(exe->pm, &ident, go);
	}
}

bool pm_exe_knows(struct pm *pm, const struct quark_file_ident *ident)
{
	struct pm_exe_key k;

	pm_key_executed(&k, ident);
	return pm_key_find(pm, &k);
}

bool pm_exe_knows_other(const struct pm_exe *exe,
			const struct quark_file_ident *ident)
{
	struct quark_file_ident known;
	const struct pm_exe_key *key;
	bool other = false;

	LIST_FOREACH(key, &pm_exe_root(exe)->keys, next) {
		if (key->kind != PM_KEY_EXECUTED)
			continue;
		memcpy(&known, key->bytes, sizeof(known));
		if (known.dev != ident->dev || known.ino != ident->ino)
			continue;
		if (known.ctime_ns == ident->ctime_ns &&
		    known.size == ident->size)
			return false;
		other = true;
	}
	return other;
}

static void pm_key_short_id(struct pm_exe_key *k, uint64_t short_id)
{
	pm_key_id(k, PM_KEY_SHORT_ID, (const uint8_t *)&short_id,
		  sizeof(short_id));
}

/* Without memory it has none. */
static void pm_exe_give_short_id(struct pm_exe *exe,
				 const struct symbolizer_ident *id)
{
	struct pm_exe_key k;
	uint64_t v;

	memcpy(&v, id->file_id, sizeof(v));
	v = be64toh(v);
	for (v += !v;; v += v == UINT64_MAX ? 2 : 1) {
		pm_key_short_id(&k, v);
		if (!pm_key_find(exe->pm, &k))
			break;
		exe->pm->stats.short_id_clashes++;
	}
	if (!pm_key_add(exe, &k))
		exe->short_id = v;
}

struct pm_exe *pm_exe_by_short_id(struct pm *pm, uint64_t short_id)
{
	struct pm_exe_key k, *found;

	pm_key_short_id(&k, short_id);
	found = pm_key_find(pm, &k);
	return found ? found->exe : NULL;
}

struct pm_exe *pm_exe_next(struct pm *pm, const struct pm_exe *exe)
{
	struct pm_exe *next =
		exe ? TAILQ_NEXT(exe, all) : TAILQ_FIRST(&pm->exes);

	while (next && (next->kind != PM_EXE_FILE || next->same))
		next = TAILQ_NEXT(next, all);
	return next;
}

struct pm_exe *pm_exe_identify(struct pm_exe *exe,
			       const struct symbolizer_ident *id)
{
	struct pm_exe_key k, *found;
	struct pm_exe *root;

	pm_key_content(&k, id);
	found = pm_key_find(exe->pm, &k);
	root = found ? pm_exe_root(found->exe) : exe;
	if (!found)
		pm_key_add(exe, &k);
	if (root != exe)
		return root;
	pm_exe_give_short_id(exe, id);
	return NULL;
}

static const char *pm_exe_base(const struct pm_exe *exe)
{
	const char *slash = strrchr(exe->path->s, '/');

	return slash && exe->kind == PM_EXE_FILE ? slash + 1 : exe->path->s;
}

void pm_exe_info(const struct pm_exe *exe, struct pm_exe_info *out)
{
	const struct pm_exe *root = pm_exe_root(exe);

	memset(out, 0, sizeof(*out));
	out->serial = exe->serial;
	out->kind = exe->kind;
	out->path = exe->path->s;
	out->base = pm_exe_base(exe);
	out->ident = root->ident;
	out->opened = root->opened;
	out->open_error = root->open_error;
	out->held = root->file;
	out->mapped = root->mapped;
	out->short_id = root->short_id;
	out->rows = root->rows;
	out->names = root->names;
	out->rows_bytes = root->rows_bytes;
	if (root->file)
		out->symbol_bytes = symbolizer_symbol_bytes(root->file);
	memcpy(out->sources, root->sources, sizeof(out->sources));
	if (!pm_exe_opens(root) && root->file) {
		out->ident = *symbolizer_ident(root->file);
		out->opened = true;
	}
}

const char *pm_exe_quarantine(const struct pm_exe *exe)
{
	return symbolizer_quarantine(exe->pm->opts.symbolizer,
				     &pm_exe_root(exe)->ident);
}

const struct symbolizer_segment *pm_exe_segments(const struct pm_exe *exe,
						 size_t *np)
{
	const struct pm_exe *root = pm_exe_root(exe);

	if (root->kind != PM_EXE_FILE && root->file)
		return symbolizer_segments(root->file, np);
	*np = root->nsegments;
	return root->segments;
}

const struct symbolizer_slot *pm_exe_slot(const struct pm_exe *exe)
{
	const struct pm_exe *root = pm_exe_root(exe);

	return root->slot.model == SYMBOLIZER_SLOT_NONE ? NULL : &root->slot;
}

uint64_t pm_tracers(const struct pm *pm)
{
	return pm->stats.tracers;
}

struct pm_exe *pm_exe_kernel(struct pm *pm)
{
	return pm->kernel;
}

struct pm_exe *pm_exe_vsyscall(struct pm *pm)
{
	return pm->vsyscall;
}

static struct pm_exe *pm_exe_single(struct pm *pm, enum pm_exe_kind kind,
				    const char *path)
{
	return pm_exe_new(pm, kind, pm_str_new(pm, path, strlen(path)));
}

int pm_exe_init(struct pm *pm)
{
	pm->kernel = pm_exe_single(pm, PM_EXE_KERNEL, "[kernel.kallsyms]");
	pm->vdso = pm_exe_single(pm, PM_EXE_VDSO, "[vdso]");
	pm->vsyscall = pm_exe_single(pm, PM_EXE_VSYSCALL, "[vsyscall]");
	pm->anon = pm_exe_single(pm, PM_EXE_ANON, "[anon]");
	if (!pm->kernel || !pm->vdso || !pm->vsyscall || !pm->anon)
		return -ENOMEM;
	pm->kernel->file = symbolizer_kernel(pm->opts.symbolizer);
	pm->vdso->file = symbolizer_vdso(pm->opts.symbolizer);
	return 0;
}

void pm_exe_fini(struct pm *pm)
{
	pm_exe_put(pm->kernel);
	pm_exe_put(pm->vdso);
	pm_exe_put(pm->vsyscall);
	pm_exe_put(pm->anon);
	pm_exe_drop_idle(pm, 0);
}
