// SPDX-License-Identifier: Apache-2.0
/* dir: see symbolize/cache/dir.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "symbolize/cache/dir.h"

/* What a file counts at least, so that many small ones have a bound too. */
#define DIR_FILE_MIN (16U << 10)
#define DIR_USED_S 3600 /* how old a file's time of use may be */
#define DIR_COPY 65536 /* bytes that are copied at once */
#define DIR_TMP ".tmp"
#define DIR_TMP_AGE_S 3600 /* nothing takes that long to write */

struct dir_file {
	struct hash_node node;
	TAILQ_ENTRY(dir_file) link; /* owner->files */
	struct dir_owner *owner;
	uint64_t bytes;
	int64_t used_s;
	char name[DIR_NAME_MAX];
};

struct dir_owner {
	TAILQ_ENTRY(dir_owner) link;
	uint32_t uid;
	uint64_t bytes;
	TAILQ_HEAD(dir_files, dir_file) files; /* used longest ago first */
};

/* --- files ---------------------------------------------------------------- */

static const char *const dir_kinds[] = {
	[ENTRY_ROWS] = "rows",
	[ENTRY_NAMES] = "names",
	[ENTRY_UNITS] = "units",
};

static bool dir_kind_ok(const char *kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(dir_kinds); i++)
		if (dir_kinds[i] && !strcmp(kind, dir_kinds[i]))
			return true;
	return false;
}

void dir_name(char name[DIR_NAME_MAX], const struct entry_id *id,
	      uint32_t owner)
{
	int n = snprintf(name, DIR_NAME_MAX, "%" PRIu32 "-", owner);

	for (size_t i = 0; i < sizeof(id->key); i++)
		n += snprintf(name + n, 3, "%02x", id->key[i]);
	snprintf(name + n, DIR_NAME_MAX - (size_t)n, ".%s",
		 dir_kinds[id->kind]);
}

/* Whether it is one of dir_name(), and of whom. */
static bool dir_name_parse(const char *name, uint32_t *owner)
{
	char kind[8];
	int end = 0;

	return sscanf(name, "%" SCNu32 "-%*32[0-9a-f].%7s%n", owner, kind,
		      &end) == 2 &&
	       !name[end] && end < DIR_NAME_MAX && dir_kind_ok(kind);
}

int dir_open(struct dir *d, const char *path, uint64_t max)
{
	struct stat st;
	int err = dirs_make_parents(path, 0755);

	memset(d, 0, sizeof(*d));
	d->fd = -1;
	d->max = max;
	TAILQ_INIT(&d->owners);
	if (!err && mkdir(path, 0700) && errno != EEXIST)
		err = -errno;
	if (!err)
		err = hash_init(&d->files, 0);
	if (err)
		return err;
	d->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d->fd < 0 || fstat(d->fd, &st))
		err = -errno;
	else if (st.st_uid != geteuid() || st.st_mode & 022)
		err = -EPERM;
	else if (faccessat(d->fd, ".", W_OK, AT_EACCESS))
		err = -errno;
	if (err)
		dir_close(d);
	return err;
}

static void dir_forget(struct dir *d, struct dir_file *f)
{
	struct dir_owner *o = f->owner;

	hash_remove(&d->files, &f->node);
	TAILQ_REMOVE(&o->files, f, link);
	o->bytes -= f->bytes;
	d->bytes -= f->bytes;
	free(f);
	if (!TAILQ_EMPTY(&o->files))
		return;
	TAILQ_REMOVE(&d->owners, o, link);
	free(o);
}

void dir_close(struct dir *d)
{
	struct dir_owner *o;

	while ((o = TAILQ_FIRST(&d->owners)))
		dir_forget(d, TAILQ_FIRST(&o->files));
	hash_fini(&d->files);
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

/* A file that is not used for a while is removed first. */
static void dir_touch(int fd, const struct stat *st)
{
	struct timespec now[2] = { { .tv_nsec = UTIME_OMIT },
				   { .tv_nsec = UTIME_NOW } };

	if (time(NULL) - st->st_mtim.tv_sec > DIR_USED_S)
		futimens(fd, now);
}

int dir_open_file(const struct dir *d, const char *name, uint64_t max,
		  uint64_t *size)
{
	int fd = openat(d->fd, name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int err = 0;

	if (fd < 0)
		return errno == ELOOP || errno == ENXIO ? -EBADMSG : -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
		 st.st_size < (off_t)sizeof(struct entry_head) ||
		 (uint64_t)st.st_size > max)
		err = -EBADMSG;
	if (err) {
		close(fd);
		return err;
	}
	*size = (uint64_t)st.st_size;
	dir_touch(fd, &st);
	return fd;
}

int dir_read_part(int fd, uint64_t at, void *bytes, size_t len)
{
	size_t got = 0;
	ssize_t n;

	while (got < len) {
		n = pread(fd, (uint8_t *)bytes + got, len - got,
			  (off_t)(at + got));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EBADMSG;
		got += (size_t)n;
	}
	return 0;
}

int dir_read(const struct dir *d, const char *name, uint8_t **bytes,
	     size_t *len)
{
	uint64_t size;
	int fd = dir_open_file(d, name, ENTRY_BYTES_MAX, &size), err;

	if (fd < 0)
		return fd;
	*len = (size_t)size;
	*bytes = malloc(*len);
	err = *bytes ? dir_read_part(fd, 0, *bytes, *len) : -ENOMEM;
	if (err)
		free(*bytes);
	close(fd);
	return err;
}

struct dir_stamp dir_stamp(const struct dir *d, const char *name)
{
	struct dir_stamp stamp = { 0 };
	struct stat st;

	if (fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return stamp;
	stamp.ino = st.st_ino;
	stamp.size = (uint64_t)st.st_size;
	stamp.mtime_s = st.st_mtim.tv_sec;
	return stamp;
}

void dir_remove(const struct dir *d, const char *name)
{
	unlinkat(d->fd, name, 0);
}

/* --- the budget ----------------------------------------------------------- */

static struct dir_owner *dir_owner_of(struct dir *d, uint32_t uid)
{
	struct dir_owner *o;

	TAILQ_FOREACH(o, &d->owners, link)
		if (o->uid == uid)
			return o;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->uid = uid;
	TAILQ_INIT(&o->files);
	TAILQ_INSERT_TAIL(&d->owners, o, link);
	return o;
}

/* By time of use; most are the newest. */
static void dir_insert(struct dir_owner *o, struct dir_file *f)
{
	struct dir_file *at = TAILQ_LAST(&o->files, dir_files);

	while (at && at->used_s > f->used_s)
		at = TAILQ_PREV(at, dir_files, link);
	if (at)
		TAILQ_INSERT_AFTER(&o->files, at, f, link);
	else
		TAILQ_INSERT_HEAD(&o->files, f, link);
}

static void dir_add(struct dir *d, const char *name, uint32_t uid,
		    uint64_t bytes, int64_t used_s)
{
	uint64_t hash = hash_bytes(name, strlen(name));
	struct dir_owner *o;
	struct dir_file *f;

	HASH_FIND(f, &d->files, hash, node, !strcmp(f->name, name));
	if (f)
		dir_forget(d, f);
	f = calloc(1, sizeof(*f));
	o = f ? dir_owner_of(d, uid) : NULL;
	if (!o) {
		free(f);
		return;
	}
	f->owner = o;
	f->bytes = MAX(bytes, (uint64_t)DIR_FILE_MIN);
	f->used_s = used_s;
	snprintf(f->name, sizeof(f->name), "%s", name);
	hash_insert(&d->files, &f->node, hash);
	dir_insert(o, f);
	o->bytes += f->bytes;
	d->bytes += f->bytes;
}

/* A file that is there at the start. */
struct dir_old {
	uint64_t bytes;
	int64_t used_s;
	uint32_t owner;
	char name[DIR_NAME_MAX];
};

struct dir_olds {
	struct dir_old *v;
	size_t n, cap;
};

static int cmp_old(const void *a, const void *b)
{
	const struct dir_old *x = a, *y = b;

	return x->used_s < y->used_s ? -1 : x->used_s > y->used_s;
}

/*
 * Another profd may use the directory and be writing a temporary file: it stays until
 * nobody can be, unless the clock was set.
 */
static void dir_found(struct dir *d, int fd, const char *name,
		      struct dir_olds *olds)
{
	bool tmp = !strncmp(name, DIR_TMP, strlen(DIR_TMP));
	struct dir_old *o;
	struct stat st;
	uint32_t uid;

	if ((!tmp && !dir_name_parse(name, &uid)) ||
	    fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	if (tmp) {
		if (time(NULL) - st.st_mtim.tv_sec > DIR_TMP_AGE_S)
			dir_remove(d, name);
		return;
	}
	if (VECTOR_ROOM(olds->v, olds->n, olds->cap))
		return;
	o = &olds->v[olds->n++];
	o->bytes = (uint64_t)st.st_size;
	o->used_s = st.st_mtim.tv_sec;
	o->owner = uid;
	strcpy(o->name, name); /* dir_name_parse() checked its length */
}

/* Adds them in the order of their use: dir_insert() takes each at the end. */
static void dir_scan(struct dir *d)
{
	int fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *all = fd < 0 ? NULL : fdopendir(fd);
	struct dir_olds olds = { 0 };
	struct dirent *e;

	d->scanned = true;
	while (all && (e = readdir(all)))
		dir_found(d, fd, e->d_name, &olds);
	if (all)
		closedir(all);
	else if (fd >= 0)
		close(fd);
	if (olds.n)
		qsort(olds.v, olds.n, sizeof(*olds.v), cmp_old);
	for (size_t i = 0; i < olds.n; i++)
		dir_add(d, olds.v[i].name, olds.v[i].owner, olds.v[i].bytes,
			olds.v[i].used_s);
	free(olds.v);
}

/* The owner that loses a file. */
static struct dir_owner *dir_loser(struct dir *d)
{
	struct dir_owner *o, *most = NULL;

	TAILQ_FOREACH(o, &d->owners, link)
		if ((o->uid || o->bytes > d->max / 2) &&
		    (!most || o->bytes > most->bytes))
			most = o;
	return most ? most : TAILQ_FIRST(&d->owners);
}

/* Whether it was used since; then it is moved. */
static bool dir_used(struct dir *d, struct dir_file *f)
{
	struct stat st;

	if (fstatat(d->fd, f->name, &st, AT_SYMLINK_NOFOLLOW) ||
	    st.st_mtim.tv_sec <= f->used_s)
		return false;
	f->used_s = st.st_mtim.tv_sec;
	TAILQ_REMOVE(&f->owner->files, f, link);
	dir_insert(f->owner, f);
	return true;
}

static void dir_cut(struct dir *d)
{
	struct dir_file *f;

	while (d->bytes > d->max) {
		f = TAILQ_FIRST(&dir_loser(d)->files);
		if (dir_used(d, f))
			continue;
		dir_remove(d, f->name);
		dir_forget(d, f);
		d->evicted++;
	}
}

/* --- writing -------------------------------------------------------------- */

static int dir_write_bytes(int fd, const uint8_t *p, size_t len)
{
	ssize_t done;

	for (; len; len -= (size_t)done) {
		done = write(fd, p, len);
		if (done < 0 && errno == EINTR)
			done = 0;
		else if (done <= 0)
			return done ? -errno : -ENOSPC;
		p += done;
	}
	return 0;
}

static int dir_write_part(int fd, const struct dir_part *part)
{
	uint8_t bytes[DIR_COPY];
	uint64_t at = part->at;
	size_t len;
	int err = 0;

	if (part->p || !part->len)
		return dir_write_bytes(fd, part->p, part->len);
	for (size_t left = part->len; left && !err; left -= len, at += len) {
		len = MIN(left, sizeof(bytes));
		err = dir_read_part(part->fd, at, bytes, len);
		if (!err)
			err = dir_write_bytes(fd, bytes, len);
	}
	return err;
}

static int dir_write_all(int fd, const struct entry_head *head,
			 const void *witness, const struct dir_part *payload,
			 size_t n)
{
	int err = dir_write_bytes(fd, (const void *)head, sizeof(*head));

	if (!err)
		err = dir_write_bytes(fd, witness, head->witness_len);
	for (size_t i = 0; i < n && !err; i++)
		err = dir_write_part(fd, &payload[i]);
	return err;
}

int dir_write(struct dir *d, const char *name, uint32_t owner,
	      const struct entry_head *head, const void *witness,
	      const struct dir_part *payload, size_t n)
{
	char tmp[32];
	int fd, err;

	if (!d->scanned)
		dir_scan(d);
	/* Another profd may use the directory, too. */
	snprintf(tmp, sizeof(tmp), DIR_TMP "%d", (int)getpid());
	dir_remove(d, tmp);
	fd = openat(d->fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = dir_write_all(fd, head, witness, payload, n);
	if (close(fd) && !err)
		err = -errno;
	if (!err && renameat(d->fd, tmp, d->fd, name))
		err = -errno;
	if (err) {
		dir_remove(d, tmp);
		return err;
	}
	if (head->kind != ENTRY_KNOWN)
		dir_add(d, name, owner, head->size, time(NULL));
	dir_cut(d);
	return 0;
}
