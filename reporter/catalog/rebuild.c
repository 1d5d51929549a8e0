// SPDX-License-Identifier: Apache-2.0
/*
 * rebuild: makes the catalog agree with the windows on disk, in the background. Rows
 * of windows that are gone are removed. Windows without rows, of an earlier version, or
 * because profd was killed or the catalog was lost, are read, the newest first, one at
 * a time with a pause: they have their images by the labels of samples.
 *
 * Before that, a catalog of an earlier version is converted.
 *
 * A window of this profd is left to its own job until that has tried to write its rows,
 * or for some minutes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "reporter/catalog/internal.h"
#include "reporter/catalog/profile_labels.h"
#include "reporter/edit/edit.h"

#define REBUILD_BYTES (64 << 20) /* of a file */
#define REBUILD_OWN_S 300

/* --- what is missing, and what is too much --------------------------------------- */

/* Removes the rows of windows without a file. */
static int rebuild_stale(struct catalog_db *db, int dirfd)
{
	sqlite3_stmt *s = db->statements[CATALOG_WINDOW_NEXT];
	char file[CATALOG_NAME_MAX];
	struct stat st;
	int64_t id = 0;
	int rc, err = 0;

	while (!err) {
		sqlite3_bind_int64(s, 1, id);
		rc = sqlite3_step(s);
		if (rc != SQLITE_ROW) {
			err = catalog_db_errno(db, rc);
			break;
		}
		id = sqlite3_column_int64(s, 0);
		snprintf(file, sizeof(file), "%s",
			 (const char *)sqlite3_column_text(s, 1));
		sqlite3_reset(s);
		if (fstatat(dirfd, file, &st, AT_SYMLINK_NOFOLLOW) &&
		    errno == ENOENT)
			err = catalog_windows_remove(db, file);
	}
	sqlite3_reset(s);
	return err;
}

static int rebuild_has(struct catalog_db *db, const struct store_window *w,
		       bool *has)
{
	struct catalog_bind b = catalog_bind(db, CATALOG_WINDOW_FIND);
	char name[CATALOG_NAME_MAX];
	int64_t id = 0;
	int err;

	catalog_windows_name(name, w);
	catalog_bind_str(&b, 1, name);
	err = catalog_bind_run(&b, CATALOG_WINDOW_FIND, &id);
	*has = id != 0;
	return err;
}

/* Its own job adds it. */
static bool rebuild_is_own(const struct catalog *c,
			   const struct store_window *w)
{
	int64_t end = w->begin_ns + (int64_t)w->duration_ns;
	int64_t second = (int64_t)CLOCK_NSEC_PER_SEC;

	return w->begin_ns > c->tried_ns && end > c->run.start_ns + second &&
	       end > (time(NULL) - REBUILD_OWN_S) * second;
}

static int rebuild_missing(struct catalog *c)
{
	struct store_list *list = &c->missing;
	size_t i, n = 0;
	bool has;
	int err;

	store_list_free(list);
	err = store_list(list, c->dir, INT64_MIN, INT64_MAX);
	for (i = 0; !err && i < list->n; i++) {
		err = rebuild_has(&c->db, &list->windows[i], &has);
		if (!has && !rebuild_is_own(c, &list->windows[i]))
			list->windows[n++] = list->windows[i];
	}
	list->n = n;
	return err;
}

static int rebuild_list(struct catalog *c)
{
	struct catalog_db *db = &c->db;
	int dirfd, err = catalog_db_run(db, CATALOG_BEGIN, NULL);

	if (err)
		return err;
	dirfd = open(c->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	err = dirfd < 0 ? -errno : rebuild_stale(db, dirfd);
	if (!err)
		err = rebuild_missing(c);
	if (!err)
		err = catalog_db_run(db, CATALOG_COMMIT, NULL);
	if (err && !sqlite3_get_autocommit(db->sql))
		catalog_db_run(db, CATALOG_ROLLBACK, NULL);
	if (dirfd >= 0)
		close(dirfd);
	return err;
}

/* --- a window ------------------------------------------------------------------------ */

static int rebuild_read(const struct store_window *w, int dirfd,
			struct catalog_profile *p)
{
	const char *what;
	uint8_t *data;
	size_t len;
	int err, fd = store_window_open(w, dirfd, (enum store_kind)w->format);

	memset(p, 0, sizeof(*p));
	if (fd < 0)
		return fd;
	err = w->bytes > REBUILD_BYTES ? -EFBIG
				       : edit_read(fd, &data, &len, &what);
	close(fd);
	if (err)
		return err;
	err = catalog_profile_parse(p, data, len);
	free(data);
	return err;
}

/* The boot, and when it began in boot time: of the side file. */
static bool rebuild_times(const struct store_window *w, int dirfd,
			  struct store_times_info *info)
{
	struct store_times *t = NULL;
	uint8_t *data = NULL;
	ssize_t n = -1;
	int fd = -1;

	memset(info, 0, sizeof(*info));
	if (w->times_bytes && w->times_bytes <= REBUILD_BYTES)
		fd = store_window_open(w, dirfd, STORE_TIMES);
	if (fd >= 0)
		data = malloc(w->times_bytes);
	if (data)
		n = read(fd, data, w->times_bytes);
	if (n > 0 && !store_times_read(&t, data, n))
		*info = *store_times_info(t);
	store_times_free(t);
	free(data);
	if (fd >= 0)
		close(fd);
	return info->boot_ns != 0;
}

static int rebuild_rows(struct catalog_db *db, const struct store_window *w,
			const struct catalog_profile *p,
			const struct store_times_info *info)
{
	struct catalog_window_row row = {
		.file = w,
		.begin_ns = p->time_ns ? p->time_ns : w->begin_ns,
		.begin_boot_ns = info->boot_ns,
		.samples = p->samples,
	};
	struct catalog_labels l;
	int64_t id = 0;
	size_t i;
	int err = catalog_db_boot(db, info->boot_id, &row.boot);

	row.end_ns =
		row.begin_ns +
		(p->duration_ns > 0 ? p->duration_ns : (int64_t)w->duration_ns);
	if (!err)
		err = catalog_windows_begin(db, &row, &id);
	for (i = 0; !err && id && i < p->nimages; i++) {
		const struct catalog_profile_image *img = p->images[i];

		l = (struct catalog_labels){
			.process = strtab_str(&p->strings, img->process),
			.image = strtab_str(&p->strings, img->image),
			.comm = strtab_str(&p->strings, img->comm),
			.exe = strtab_str(&p->strings, img->exe),
			.cgroup = strtab_str(&p->strings, img->cgroup),
			.service = strtab_str(&p->strings, img->service),
			.entry = strtab_str(&p->strings, img->entry),
			.pid = img->pid,
			.entry_pid = img->entry_pid,
			.samples = img->samples,
			.cpu_ns = img->cpu_ns,
		};
		if (*l.process && *l.image)
			err = catalog_windows_image(db, id, &row, &l);
	}
	if (!err && id && p->comments.len)
		err = catalog_windows_losses(db, id, p->comments.data,
					     p->comments.len);
	return err;
}

static int rebuild_write(struct catalog *c, const struct store_window *w,
			 const struct catalog_profile *p,
			 const struct store_times_info *info)
{
	struct catalog_db *db = &c->db;
	int err;

	if (!db->sql || db->converting || catalog_db_stalled(db))
		return -EAGAIN;
	err = catalog_db_run(db, CATALOG_BEGIN, NULL);
	if (err)
		return err;
	err = rebuild_rows(db, w, p, info);
	if (!err)
		err = catalog_texts_flush(db);
	if (!err)
		err = catalog_db_run(db, CATALOG_COMMIT, NULL);
	if (err && !sqlite3_get_autocommit(db->sql))
		catalog_db_run(db, CATALOG_ROLLBACK, NULL);
	if (err)
		catalog_texts_forget(db);
	return err;
}

/* It cannot be read, today or later; one of these has a row without images. */
static bool rebuild_is_damaged(int err)
{
	return err == -EBADMSG || err == -EFBIG || err == -EINVAL ||
	       err == -EIO;
}

static int rebuild_window(struct catalog *c, const struct store_window *w,
			  uint64_t *rebuilt)
{
	int dirfd =
		open(c->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct store_times_info info;
	struct catalog_profile p;
	int err;

	if (dirfd < 0)
		return -errno;
	err = rebuild_read(w, dirfd, &p);
	rebuild_times(w, dirfd, &info);
	close(dirfd);
	pthread_mutex_lock(&c->writer);
	catalog_db_check(&c->db, c->dir);
	if (!err || rebuild_is_damaged(err)) {
		err = rebuild_write(c, w, &p, &info);
		*rebuilt += !err;
	}
	/* Retention has removed it. */
	if (err == -ENOENT)
		err = 0;
	c->db.fresh |= err != 0;
	pthread_mutex_unlock(&c->writer);
	catalog_profile_fini(&p);
	return err;
}

/* A catalog of version 3 is copied first. After an error, with the next window. */
static int rebuild_convert(struct catalog *c)
{
	struct catalog_db *db = &c->db;
	uint64_t bytes, wal_bytes;
	int err = catalog_db_stalled(db) ? -EAGAIN : catalog_convert_step(db);

	catalog_db_checkpoint(db, &bytes, &wal_bytes);
	if (err == -EBADMSG)
		catalog_db_set_aside(db, c->dir);
	return err;
}

void catalog_rebuild_step(struct catalog *c)
{
	struct store_list *list = &c->missing;
	uint64_t rebuilt = 0;
	bool fresh, converting;
	int err = 0;

	pthread_mutex_lock(&c->writer);
	converting = c->db.sql && c->db.converting;
	if (converting)
		err = rebuild_convert(c);
	fresh = !converting && c->db.sql && c->db.fresh;
	if (fresh)
		err = rebuild_list(c);
	if (fresh && !err)
		c->db.fresh = false;
	pthread_mutex_unlock(&c->writer);
	if (!converting && !fresh && list->n)
		err = rebuild_window(c, &list->windows[--list->n], &rebuilt);
	if (err || !list->n)
		store_list_free(list);
	pthread_mutex_lock(&c->mutex);
	c->stats.catalog_missing = list->n;
	c->stats.catalog_rebuilt += rebuilt;
	c->rebuild = list->n > 0 || (converting && !err);
	pthread_mutex_unlock(&c->mutex);
}
