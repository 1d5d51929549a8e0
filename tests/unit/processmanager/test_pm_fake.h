/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process manager's tests share: a symbolizer that opens files of a
 * table on command, and short functions for the records of the three streams.
 * Process 'p' has start_boottime p * 1000 unless a test says otherwise.
 */
#ifndef TESTS_UNIT_TEST_PM_FAKE_H
#define TESTS_UNIT_TEST_PM_FAKE_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "processmanager/processmanager.h"

#define FAKE_MAX 4096

/* --- the symbolizer ------------------------------------------------------- */

struct symbolizer_file {
	struct symbolizer_ident ident;
	struct symbolizer_segment segment;
	char path[128];
	unsigned int version; /* of the file on the disk when it was opened */
};

/* One file of the fake disk. */
struct fake_disk {
	const char *path;
	uint8_t build_id; /* its first byte, of 20; 0: none */
	uint16_t file_id; /* its first two */
	uint64_t ino;
	int err;
	uint8_t content; /* the content hash, but for what is above */
	unsigned int version; /* changes with ctime */
	uint64_t size;
	uint32_t written; /* as in struct symbolizer_fresh */
};

struct fake_req {
	struct symbolizer_file *file; /* resolve; NULL: open */
	symbolizer_open_fn open_fn;
	symbolizer_resolve_fn resolve_fn;
	symbolizer_rows_fn rows_fn;
	void *arg;
	pid_t pid;
	uint64_t map_start;
	uint8_t build_id;
	uint64_t ino;
	char path[128];
	size_t n; /* of resolve */
	uint64_t at; /* of the first code */
	bool perf_map;
	bool canceled;
};

struct symbolizer {
	struct fake_disk disk[512];
	size_t ndisk;
	uint32_t gone[64]; /* pids whose root cannot be entered */
	size_t ngone;
	struct fake_req *queue[FAKE_MAX];
	size_t nqueue;
	size_t opens; /* requests ever */
	int roots; /* descriptors of roots, opened ever */
	struct symbolizer_go go; /* of all files */
	bool rooted; /* the last request had one */
	size_t held; /* files open now */
	pid_t last_pid;
	uint64_t last_map_start;
	struct symbolizer_file kernel, vdso;
};

static struct symbolizer fake;

static inline void fake_file(const char *path, uint8_t build_id,
			     uint16_t file_id, uint64_t ino)
{
	struct fake_disk d = { .path = path,
			       .build_id = build_id,
			       .file_id = file_id,
			       .ino = ino };

	fake.disk[fake.ndisk++] = d;
}

static inline struct fake_disk *fake_lookup(const char *path)
{
	size_t i;

	for (i = 0; i < fake.ndisk; i++) {
		if (!strcmp(fake.disk[i].path, path))
			return &fake.disk[i];
	}
	return NULL;
}

static inline bool fake_changed(const struct symbolizer_file *file);

static inline struct fake_req *fake_queue(void *arg)
{
	struct fake_req *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	assert_true(fake.nqueue < FAKE_MAX);
	r->arg = arg;
	fake.queue[fake.nqueue++] = r;
	return r;
}

int symbolizer_open(struct symbolizer *s, const struct symbolizer_open_req *req,
		    symbolizer_open_fn fn, void *arg)
{
	struct fake_req *r = fake_queue(arg);

	r->open_fn = fn;
	r->pid = req->pid;
	r->map_start = req->map_start;
	r->build_id = req->build_id_len ? req->build_id[0] : 0;
	r->ino = req->ino;
	r->perf_map = req->perf_map;
	snprintf(r->path, sizeof(r->path), "%s", req->path);
	s->opens++;
	s->rooted = req->root != NULL;
	if (req->root) {
		assert_int_equal(fcntl(req->root->fd, F_GETFD), 0);
		assert_int_equal(req->root->pid, 77);
	}
	s->last_pid = req->pid;
	s->last_map_start = req->map_start;
	return 0;
}

int symbolizer_map_root_open(pid_t pid, uint64_t process_start,
			     struct symbolizer_map_root *out)
{
	fake.roots++;
	*out = (struct symbolizer_map_root){ open("/", O_PATH), 77, 0 };
	return out->fd < 0 ? -errno : 0;
}

int symbolizer_resolve(struct symbolizer *s, struct symbolizer_file *file,
		       const uint64_t *offsets, size_t n,
		       symbolizer_resolve_fn fn, void *arg)
{
	struct fake_req *r = fake_queue(arg);

	assert_ptr_equal(s, &fake);
	r->resolve_fn = fn;
	r->file = file;
	r->n = n;
	return 0;
}

int symbolizer_resolve_code(struct symbolizer *s, struct symbolizer_file *file,
			    const struct symbolizer_code *codes, size_t n,
			    symbolizer_resolve_fn fn, void *arg)
{
	assert_int_equal(symbolizer_resolve(s, file, NULL, n, fn, arg), 0);
	fake.queue[fake.nqueue - 1]->at = codes[0].at;
	return 0;
}

/* The disk's file, or, if that was replaced since, the one that was there. */
void symbolizer_refresh(struct symbolizer_file *file,
			struct symbolizer_fresh *out)
{
	const struct fake_disk *d = fake_lookup(file->path);

	*out = (struct symbolizer_fresh){ .size = file->ident.size };
	out->unlinked = d->err || d->ino != file->ident.ino;
	if (out->unlinked)
		return;
	file->ident.size = out->size = d->size;
	out->written = d->written;
}

struct symbolizer_rows {
	char path[128]; /* of their file */
	struct symbolizer_go go;
};

int symbolizer_rows(struct symbolizer *s, struct symbolizer_file *file,
		    symbolizer_rows_fn fn, void *arg)
{
	struct fake_req *r = fake_queue(arg);

	r->rows_fn = fn;
	r->file = file;
	return 0;
}

int symbolizer_code_rows(struct symbolizer *s, struct symbolizer_file *file,
			 uint64_t at, symbolizer_rows_fn fn, void *arg)
{
	assert_int_equal(symbolizer_rows(s, file, fn, arg), 0);
	fake.queue[fake.nqueue - 1]->at = at;
	return 0;
}

void symbolizer_hurry(struct symbolizer *s, struct symbolizer_file *file)
{
}

void symbolizer_hurry_open(struct symbolizer *s, uint64_t dev, uint64_t ino)
{
}

void symbolizer_rows_free(struct symbolizer_rows *rows)
{
	free(rows);
}

int symbolizer_rows_by_hand(struct symbolizer *s, const uint8_t *id, size_t len,
			    struct symbolizer_rows *rows)
{
	symbolizer_rows_free(rows);
	return 0;
}

struct symbolizer_file *symbolizer_kernel(struct symbolizer *s)
{
	return &s->kernel;
}

struct symbolizer_file *symbolizer_vdso(struct symbolizer *s)
{
	return &s->vdso;
}

void symbolizer_rows_info(const struct symbolizer_rows *rows,
			  struct symbolizer_rows_info *out)
{
	memset(out, 0, sizeof(*out));
	out->go = rows->go;
}

const char *symbolizer_quarantine(const struct symbolizer *s,
				  const struct symbolizer_ident *id)
{
	return NULL;
}

uint64_t symbolizer_symbol_bytes(const struct symbolizer_file *file)
{
	return 0;
}

bool symbolizer_changed(const struct symbolizer_file *file)
{
	return fake_changed(file);
}

const struct symbolizer_ident *
symbolizer_ident(const struct symbolizer_file *file)
{
	return &file->ident;
}

/* The content of all files, if a test sets it. */
static int fake_content = -1;

int symbolizer_file_dup(const struct symbolizer_file *file)
{
	return fake_content < 0 ? -EBADF
				: fcntl(fake_content, F_DUPFD_CLOEXEC, 3);
}

/* No file of these tests has a tracer. */
const struct symbolizer_slot *
symbolizer_slot(const struct symbolizer_file *file)
{
	static const struct symbolizer_slot none;

	return &none;
}

const struct symbolizer_segment *
symbolizer_segments(const struct symbolizer_file *file, size_t *np)
{
	*np = 1;
	return &file->segment;
}

void symbolizer_close(struct symbolizer *s, struct symbolizer_file *file)
{
	size_t i;

	for (i = 0; i < s->nqueue; i++) {
		if (s->queue[i]->file == file)
			s->queue[i]->canceled = true;
	}
	s->held--;
	free(file);
}

static inline bool fake_changed(const struct symbolizer_file *file)
{
	const struct fake_disk *d = fake_lookup(file->path);

	return d && d->version != file->version;
}

static inline int fake_open_result(const struct fake_req *r,
				   const struct fake_disk *d)
{
	size_t i;

	for (i = 0; i < fake.ngone; i++) {
		if ((uint32_t)r->pid == fake.gone[i])
			return -ENOENT;
	}
	if (!d)
		return -ENOENT;
	if (d->err)
		return d->err;
	if (r->build_id ? r->build_id != d->build_id
			: r->ino && r->ino != d->ino)
		return -ESTALE;
	return 0;
}

static inline void fake_open_now(struct fake_req *r)
{
	const struct fake_disk *d = fake_lookup(r->path);
	struct symbolizer_file *f;
	int err = fake_open_result(r, d);

	if (err) {
		r->open_fn(r->arg, err, NULL);
		return;
	}
	f = calloc(1, sizeof(*f));
	assert_non_null(f);
	f->ident.build_id[0] = d->build_id;
	f->ident.build_id_len = d->build_id ? 20 : 0;
	memcpy(f->ident.file_id, &d->file_id, sizeof(d->file_id));
	f->ident.content[0] = d->content;
	f->ident.dev = 1;
	f->ident.ino = d->ino;
	f->ident.size = d->size;
	f->version = d->version;
	f->segment.vaddr = 0x400000;
	f->segment.size = 0x1000;
	snprintf(f->path, sizeof(f->path), "%s", d->path);
	fake.held++;
	r->open_fn(r->arg, 0, f);
}

static inline void fake_resolve_now(struct fake_req *r)
{
	struct symbolizer_function function = { .file = "" };
	struct symbolizer_symbol *syms;

	if (r->canceled) {
		r->resolve_fn(r->arg, -ECANCELED, NULL, 0);
		return;
	}
	syms = calloc(r->n + 1, sizeof(*syms));
	assert_non_null(syms);
	function.name = function.system_name = r->file->path;
	for (size_t i = 0; i < r->n; i++) {
		syms[i].functions = &function;
		syms[i].nfunctions = 1;
	}
	r->resolve_fn(r->arg, 0, syms, r->n);
	free(syms);
}

static inline void fake_rows_now(struct fake_req *r)
{
	struct symbolizer_rows *rows;

	if (r->canceled) {
		r->rows_fn(r->arg, -ECANCELED, NULL);
		return;
	}
	rows = calloc(1, sizeof(*rows));
	assert_non_null(rows);
	memcpy(rows->path, r->file->path, sizeof(rows->path));
	rows->go = fake.go;
	r->rows_fn(r->arg, 0, rows);
}

/* Answers the first request. */
static inline void fake_turn(void)
{
	struct fake_req *r = fake.queue[0];

	memmove(fake.queue, fake.queue + 1,
		--fake.nqueue * sizeof(*fake.queue));
	if (r->open_fn)
		fake_open_now(r);
	else if (r->rows_fn)
		fake_rows_now(r);
	else
		fake_resolve_now(r);
	free(r);
}

/* Answers all requests, also those made meanwhile. */
static inline void fake_run(void)
{
	while (fake.nqueue)
		fake_turn();
}

/* --- one manager and its input -------------------------------------------- */

static struct pm *pm;
static struct abi_key wants[64];
static size_t nwants;

static inline void on_want(void *arg, const struct pm_want *want)
{
	assert_true(nwants < ARRAY_SIZE(wants));
	wants[nwants++] = want->key;
}

static inline int setup_files(unsigned int open_files)
{
	struct pm_opts opts = { .symbolizer = &fake,
				.open_files = open_files,
				.want_maps = on_want };

	memset(&fake, 0, sizeof(fake));
	nwants = 0;
	return pm_new(&pm, &opts);
}

static inline int setup(void **state)
{
	return setup_files(0);
}

/* After each test nothing may be left. */
static inline int teardown(void **state)
{
	pm_free(pm);
	fake_run();
	assert_int_equal(fake.held, 0);
	return 0;
}

static inline struct pm_stats stats(void)
{
	struct pm_stats s;

	pm_get_stats(pm, &s);
	return s;
}

static inline uint64_t born(uint32_t pid)
{
	return (uint64_t)pid * 1000;
}

static inline struct quark_process qp_of(uint32_t pid, uint64_t exec_id)
{
	struct quark_process qp;

	memset(&qp, 0, sizeof(qp));
	qp.pid = pid;
	qp.key.pid = pid;
	qp.key.start_boottime = born(pid);
	qp.key.exec_id = exec_id;
	return qp;
}

static inline int feed(uint64_t kind, struct quark_process *qp, uint64_t time,
		       uint64_t clone_flags)
{
	struct quark_event ev;

	memset(&ev, 0, sizeof(ev));
	ev.events = kind;
	ev.process = qp;
	ev.boottime = time;
	ev.clone_flags = clone_flags;
	ev.group_dead = kind == QUARK_EV_EXIT;
	return pm_event(pm, &ev);
}

static inline void do_fork_flags(uint32_t parent, uint64_t id, uint32_t child,
				 uint64_t time, uint64_t flags)
{
	struct quark_process qp = qp_of(child, id);

	qp.proc_ppid = parent;
	qp.parent_key = qp.key;
	qp.parent_key.pid = parent;
	qp.parent_key.start_boottime = born(parent);
	assert_int_equal(feed(QUARK_EV_FORK, &qp, time, flags), 0);
}

static inline void do_fork(uint32_t parent, uint64_t id, uint32_t child,
			   uint64_t time)
{
	do_fork_flags(parent, id, child, time, 17);
}

static inline void do_exec(uint32_t pid, uint64_t id, uint64_t time,
			   const char *exe)
{
	struct quark_process qp = qp_of(pid, id);

	qp.exe = (char *)exe;
	snprintf(qp.comm, sizeof(qp.comm), "%.15s", strrchr(exe, '/') + 1);
	assert_int_equal(feed(QUARK_EV_EXEC, &qp, time, 0), 0);
}

static inline void do_exit(uint32_t pid, uint64_t id, uint64_t time)
{
	struct quark_process qp = qp_of(pid, id);

	assert_int_equal(feed(QUARK_EV_EXIT, &qp, time, 0), 0);
}

static inline void do_reap(uint32_t pid, uint64_t id, uint64_t time)
{
	struct quark_process qp = qp_of(pid, id);

	assert_int_equal(feed(QUARK_EV_REAP, &qp, time, 0), 0);
}

/* A process of the scan, without mappings. */
static inline void do_walk(uint32_t pid, uint32_t ppid, const char *exe,
			   uint64_t time)
{
	struct quark_process qp = qp_of(pid, 0);

	qp.proc_ppid = ppid;
	qp.exe = (char *)exe;
	snprintf(qp.comm, sizeof(qp.comm), "%.15s", strrchr(exe, '/') + 1);
	assert_int_equal(pm_scan_process(pm, &qp, time), 0);
}

static inline void do_comm(uint32_t pid, uint64_t time)
{
	struct pm_map_event ev;

	memset(&ev, 0, sizeof(ev));
	ev.kind = PM_MAP_EXEC;
	ev.tgid = pid;
	ev.time = time;
	assert_int_equal(pm_map_event(pm, &ev), 0);
}

/* A file has a number: that of the disk, or any. */
static inline uint64_t fake_ino(const char *path)
{
	for (size_t i = 0; i < fake.ndisk; i++)
		if (!strcmp(fake.disk[i].path, path))
			return fake.disk[i].ino;
	return path[0] == '/' && path[1] != '/' ? 999 : 0;
}

/* With a build id it has no inode number, as in the kernel's records. */
static inline struct pm_map_event map_of(uint64_t start, uint64_t end,
					 const char *path, uint8_t build_id)
{
	struct pm_map_event ev;

	memset(&ev, 0, sizeof(ev));
	ev.kind = PM_MAP_MMAP;
	ev.start = start;
	ev.end = end;
	ev.path = path;
	ev.build_id[0] = build_id;
	ev.build_id_len = build_id ? 20 : 0;
	ev.ino = build_id ? 0 : fake_ino(path);
	return ev;
}

static inline void do_mmap(uint32_t pid, uint64_t time, uint64_t start,
			   uint64_t end, const char *path, uint8_t build_id)
{
	struct pm_map_event ev = map_of(start, end, path, build_id);

	ev.tgid = pid;
	ev.time = time;
	assert_int_equal(pm_map_event(pm, &ev), 0);
}

static inline void do_lost(uint64_t time)
{
	struct pm_map_event ev;

	memset(&ev, 0, sizeof(ev));
	ev.kind = PM_MAP_LOST;
	ev.time = time;
	assert_int_equal(pm_map_event(pm, &ev), 0);
}

static inline int do_maps(uint32_t pid, uint64_t begin, uint64_t end,
			  struct pm_map_event *maps, size_t n)
{
	struct pm_maps m;

	memset(&m, 0, sizeof(m));
	m.tgid = pid;
	m.begin = begin;
	m.end = end;
	m.maps = maps;
	m.n = n;
	return pm_scan_maps(pm, &m);
}

static inline struct pm_image *image_at(uint32_t pid, uint64_t id,
					uint64_t time)
{
	struct abi_key key = { born(pid), id, pid, 0 };
	struct pm_image *img = pm_image_get(pm, &key, time);

	assert_non_null(img);
	return img;
}

static inline struct pm_image_info info_at(uint32_t pid, uint64_t id,
					   uint64_t time)
{
	struct pm_image_info info;

	pm_image_info(image_at(pid, id, time), &info);
	return info;
}

/* What a sample finds: the file's name, "none" or "lost". */
static inline const char *found(uint32_t pid, uint64_t id, uint64_t time,
				uint64_t addr)
{
	struct pm_mapping m;
	struct pm_exe_info info;

	switch (pm_image_find(pm, image_at(pid, id, time), time, addr, &m)) {
	case PM_FOUND:
		assert_true(m.start <= addr && addr < m.end);
		pm_exe_info(m.exe, &info);
		return info.base;
	case PM_NOT_MAPPED:
		return "none";
	case PM_LOST:
		return "lost";
	}
	return "?";
}

/* The executable there; there must be one. */
static inline struct pm_exe *exe_at(uint32_t pid, uint64_t id, uint64_t addr)
{
	struct pm_mapping m;

	assert_int_equal(pm_image_find(pm, image_at(pid, id, 0), UINT64_MAX,
				       addr, &m),
			 PM_FOUND);
	return m.exe;
}

/* A whole exec, in the kernel's order, ending at 'time'. */
static inline void do_whole_exec(uint32_t pid, uint64_t id, uint64_t time,
				 const char *exe, uint8_t build_id)
{
	do_comm(pid, time - 3);
	do_mmap(pid, time - 2, 0x1000, 0x2000, exe, build_id);
	do_mmap(pid, time - 1, 0x7000, 0x8000, "/lib/ld.so", 9);
	do_exec(pid, id, time, exe);
}

#endif /* TESTS_UNIT_TEST_PM_FAKE_H */
