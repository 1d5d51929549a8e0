/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake disk and a symbolizer that opens its files on command,
 * with a given error; and memory that runs out at a given
 * allocation, where the program is linked with the allocator wrapped.
 */
#ifndef TESTS_FUZZ_PROCESSMANAGER_PM_FILES_H
#define TESTS_FUZZ_PROCESSMANAGER_PM_FILES_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/symbolize.h"

/* stdlib's assert() would be gone with NDEBUG. */
#define must(holds)                                                        \
	do {                                                               \
		if (!(holds)) {                                            \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#holds);                                   \
			abort();                                           \
		}                                                          \
	} while (0)

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);

static struct {
	unsigned int left; /* so many succeed, the next does not; 0: all do */
	bool failed;
} memory;

static bool memory_ends(void)
{
	if (!memory.left || --memory.left)
		return false;
	memory.failed = true;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return memory_ends() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return memory_ends() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return memory_ends() ? NULL : __real_realloc(p, size);
}

/* --- the disk ------------------------------------------------------------- */

/* Files of one class are the same: by build id, or byte by byte. */
enum file_class {
	CLASS_A = 1,
	CLASS_B,
	CLASS_C,
	CLASS_D,
	CLASS_ANON,
	CLASS_VDSO,
};

#define FILE_EXES 2 /* the first so many are executables */
#define FILE_VDSO 8 /* and the last is mapped by the kernel */

static const struct file {
	const char *path;
	enum file_class class;
	uint8_t build_id; /* its first byte; 0: none */
	bool told; /* the kernel knows the build id */
	uint64_t ino;
} files[] = {
	{ "/bin/a", CLASS_A, 1, true, 11 },
	{ "/bin/b", CLASS_B, 2, true, 12 },
	{ "/lib/c.so", CLASS_C, 3, true, 13 },
	{ "/copy/c.so", CLASS_C, 3, true, 14 },
	{ "/late/c.so", CLASS_C, 3, false, 15 },
	{ "/lib/d.so", CLASS_D, 0, false, 16 },
	{ "/copy/d.so", CLASS_D, 0, false, 17 },
	{ "//anon", CLASS_ANON, 0, false, 0 },
	{ "[vdso]", CLASS_VDSO, 0, false, 0 },
};

static const struct file *file_of(const char *path)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		if (!strcmp(files[i].path, path))
			return &files[i];
	return NULL;
}

/* --- the symbolizer ------------------------------------------------------- */

struct symbolizer_file {
	struct symbolizer_ident ident;
	struct symbolizer_segment segment;
};

struct request {
	struct request *next;
	symbolizer_open_fn open; /* one of the three */
	symbolizer_resolve_fn names;
	symbolizer_rows_fn rows;
	void *arg;
	const struct file *on_disk;
	uint8_t build_id;
	uint64_t ino;
	struct symbolizer_file *file;
	bool cancelled;
};

struct symbolizer {
	struct request *first, **last;
	size_t n;
	size_t held; /* files that the manager holds */
	struct symbolizer_file kernel, vdso;
};

static struct symbolizer symbolizer;

static struct request *request_new(struct symbolizer *s, void *arg)
{
	struct request *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->arg = arg;
	*s->last = r;
	s->last = &r->next;
	s->n++;
	return r;
}

int symbolizer_open(struct symbolizer *s, const struct symbolizer_open_req *req,
		    symbolizer_open_fn fn, void *arg)
{
	struct request *r = request_new(s, arg);

	if (!r)
		return -ENOMEM;
	must(req->map_start <= req->map_end);
	r->open = fn;
	r->on_disk = file_of(req->path);
	r->build_id = req->build_id_len ? req->build_id[0] : 0;
	r->ino = req->ino;
	return 0;
}

int symbolizer_resolve(struct symbolizer *s, struct symbolizer_file *file,
		       const uint64_t *offsets, size_t n,
		       symbolizer_resolve_fn fn, void *arg)
{
	struct request *r = request_new(s, arg);

	if (!r)
		return -ENOMEM;
	r->names = fn;
	r->file = file;
	return 0;
}

int symbolizer_resolve_code(struct symbolizer *s, struct symbolizer_file *file,
			    const struct symbolizer_code *codes, size_t n,
			    symbolizer_resolve_fn fn, void *arg)
{
	return symbolizer_resolve(s, file, NULL, n, fn, arg);
}

int symbolizer_map_root_open(pid_t pid, uint64_t process_start,
			     struct symbolizer_map_root *out)
{
	return -ESRCH;
}

/* What became of it: each time something else. */
void symbolizer_refresh(struct symbolizer_file *file,
			struct symbolizer_fresh *out)
{
	uint32_t n = (uint32_t)++file->ident.size;

	*out = (struct symbolizer_fresh){ n, n / 3, n / 5, n % 7 == 0 };
}

int symbolizer_rows(struct symbolizer *s, struct symbolizer_file *file,
		    symbolizer_rows_fn fn, void *arg)
{
	struct request *r = request_new(s, arg);

	if (!r)
		return -ENOMEM;
	r->rows = fn;
	r->file = file;
	return 0;
}

int symbolizer_code_rows(struct symbolizer *s, struct symbolizer_file *file,
			 uint64_t at, symbolizer_rows_fn fn, void *arg)
{
	return symbolizer_rows(s, file, fn, arg);
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

int symbolizer_rows_by_hand(struct symbolizer *s, const uint8_t *build_id,
			    size_t len, struct symbolizer_rows *rows)
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
	return false;
}

int symbolizer_file_dup(const struct symbolizer_file *file)
{
	return -EBADF;
}

const struct symbolizer_ident *
symbolizer_ident(const struct symbolizer_file *file)
{
	return &file->ident;
}

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
	struct request *r;

	for (r = s->first; r; r = r->next)
		if (r->file == file)
			r->cancelled = true;
	must(s->held);
	s->held--;
	free(file);
}

static struct symbolizer_file *open_file(const struct request *r, int *err)
{
	const struct file *d = r->on_disk;
	struct symbolizer_file *f;

	if (!d)
		*err = -ENOENT;
	else if (r->build_id ? r->build_id != d->build_id
			     : r->ino && r->ino != d->ino)
		*err = -ESTALE;
	if (*err)
		return NULL;
	f = __real_calloc(1, sizeof(*f));
	must(f);
	f->ident.build_id[0] = d->build_id;
	f->ident.build_id_len = d->build_id ? SYMBOLIZER_BUILD_ID_MAX : 0;
	f->ident.file_id[0] = d->class;
	f->ident.ino = d->ino;
	f->segment.size = 0x1000;
	symbolizer.held++;
	return f;
}

/* Answers the oldest request, with an error if 'err' is one. */
static void symbolizer_answer(int err)
{
	static const struct symbolizer_symbol none;
	struct symbolizer_file *file = NULL;
	struct request *r = symbolizer.first;

	if (!r)
		return;
	symbolizer.first = r->next;
	if (!r->next)
		symbolizer.last = &symbolizer.first;
	symbolizer.n--;
	if (r->cancelled)
		err = -ECANCELED;
	if (r->open && !err)
		file = open_file(r, &err);
	if (r->open)
		r->open(r->arg, err, file);
	else if (r->names)
		r->names(r->arg, err, err ? NULL : &none, !err);
	else
		r->rows(r->arg, err, err ? NULL : __real_malloc(1));
	free(r);
}

#endif /* TESTS_FUZZ_PROCESSMANAGER_PM_FILES_H */
