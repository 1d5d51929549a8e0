// SPDX-License-Identifier: Apache-2.0
/*
 * windows: the rows of a window, and its images. An image without a row, because its
 * process was dropped or the catalog is rebuilt, gets one of the labels of its
 * samples.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/catalog/internal.h"

#define CATALOG_SKIPPED "processes without samples and without a row"

void catalog_windows_name(char name[CATALOG_NAME_MAX],
			  const struct store_window *w)
{
	store_window_path(w, (enum store_kind)w->format, name);
}

int catalog_windows_begin(struct catalog_db *db,
			  const struct catalog_window_row *w, int64_t *id)
{
	struct catalog_bind b = catalog_bind(db, CATALOG_WINDOW_ADD);
	char name[CATALOG_NAME_MAX];
	int err;

	catalog_windows_name(name, w->file);
	catalog_bind_str(&b, 1, name);
	catalog_bind_int(&b, 2, w->boot);
	catalog_bind_int(&b, 3, w->begin_ns);
	catalog_bind_int(&b, 4, w->end_ns);
	if (w->begin_boot_ns)
		catalog_bind_int(&b, 5, w->begin_boot_ns);
	catalog_bind_int(&b, 6, store_window_bytes(w->file));
	catalog_bind_int(&b, 7,
			 w->file->times_bytes + w->file->wait_times_bytes);
	catalog_bind_int(&b, 8, w->samples);
	if (w->run)
		catalog_bind_int(&b, 9, w->run);
	err = catalog_bind_run(&b, CATALOG_WINDOW_ADD, NULL);
	*id = !err && sqlite3_changes(db->sql)
		      ? sqlite3_last_insert_rowid(db->sql)
		      : 0;
	return err;
}

/* --- images by their labels ------------------------------------------------------ */

static int windows_add_process(struct catalog_db *db,
			       const struct catalog_window_row *w,
			       const struct catalog_labels *l,
			       const struct abi_key *key, int64_t *row)
{
	struct catalog_bind b;
	int64_t entry;
	int err = catalog_texts_word(db, l->entry, &entry);

	if (err)
		return err;
	b = catalog_bind(db, CATALOG_PROCESS_LABELS);
	catalog_bind_signed(&b, 1, w->boot);
	catalog_bind_int(&b, 2, key->tgid);
	catalog_bind_int(&b, 3, key->start_boottime);
	if (key->start_boottime && w->begin_boot_ns)
		catalog_bind_int(&b, 4,
				 key->start_boottime + w->begin_ns -
					 w->begin_boot_ns);
	catalog_bind_int(&b, 5, w->end_ns);
	if (entry) {
		catalog_bind_signed(&b, 6, entry);
		catalog_bind_int(&b, 7, l->entry_pid);
	}
	err = catalog_bind_run(&b, CATALOG_PROCESS_LABELS, NULL);
	*row = sqlite3_last_insert_rowid(db->sql);
	return err;
}

static int windows_process_row(struct catalog_db *db,
			       const struct catalog_window_row *w,
			       const struct catalog_labels *l,
			       const struct abi_key *key, int64_t *row)
{
	int err = catalog_rows_find(db, w->boot, key, row);
	struct catalog_bind b;

	if (err)
		return err;
	if (!*row)
		return windows_add_process(db, w, l, key, row);
	b = catalog_bind(db, CATALOG_PROCESS_AGAIN);
	catalog_bind_signed(&b, 1, *row);
	catalog_bind_int(&b, 2, w->end_ns);
	return catalog_bind_run(&b, CATALOG_PROCESS_AGAIN, NULL);
}

static int windows_image_row(struct catalog_db *db,
			     const struct catalog_window_row *w,
			     int64_t process, const struct catalog_labels *l,
			     const struct abi_key *key, int64_t *row)
{
	const struct catalog_program what = {
		.comm = l->comm,
		.exe = l->exe,
		.cgroup = l->cgroup,
		.uid = -1,
		.gid = -1,
		.seen_ns = w->end_ns,
	};
	const struct catalog_program_row none = { 0 };
	struct catalog_bind b = catalog_bind(db, CATALOG_IMAGE_FIND);
	int64_t program;
	int err;

	*row = 0;
	catalog_bind_signed(&b, 1, process);
	catalog_bind_int(&b, 2, key->exec_id);
	err = catalog_bind_run(&b, CATALOG_IMAGE_FIND, row);
	if (err || *row)
		return err;
	err = catalog_texts_program(db, &what, &none, &program);
	if (err)
		return err;
	b = catalog_bind(db, CATALOG_IMAGE_ADD);
	catalog_bind_signed(&b, 1, process);
	catalog_bind_int(&b, 2, key->exec_id);
	catalog_bind_signed(&b, 5, program);
	catalog_bind_int(&b, 7, 0);
	catalog_bind_int(&b, 8, 0);
	catalog_bind_str(&b, 9, l->service);
	err = catalog_bind_run(&b, CATALOG_IMAGE_ADD, NULL);
	*row = sqlite3_last_insert_rowid(db->sql);
	return err;
}

int catalog_windows_image(struct catalog_db *db, int64_t window,
			  const struct catalog_window_row *w,
			  const struct catalog_labels *l)
{
	struct catalog_bind b;
	struct abi_key key;
	int64_t process, image, cgroup;
	int err;

	/* A damaged profile may say anything. */
	if (!catalog_id_parse(l->image, &key))
		return 0;
	err = windows_process_row(db, w, l, &key, &process);
	if (!err)
		err = windows_image_row(db, w, process, l, &key, &image);
	if (!err)
		err = catalog_texts_cgroup(db, l->cgroup, w->end_ns, &cgroup);
	if (err)
		return err;
	b = catalog_bind(db, CATALOG_WINDOW_IMAGE_ADD);
	catalog_bind_int(&b, 1, window);
	catalog_bind_int(&b, 2, image);
	catalog_bind_int(&b, 3, l->samples);
	catalog_bind_int(&b, 4, l->cpu_ns);
	catalog_bind_int(&b, 5, cgroup);
	return catalog_bind_run(&b, CATALOG_WINDOW_IMAGE_ADD, NULL);
}

/* --- losses ----------------------------------------------------------------------- */

/* "CAUSE: COUNT"; other comments have no number at their end. */
static int windows_loss(struct catalog_db *db, int64_t window, const char *text,
			size_t len)
{
	struct catalog_bind b;
	size_t digits = len;

	while (digits && text[digits - 1] >= '0' && text[digits - 1] <= '9')
		digits--;
	if (digits == len || len - digits > 18 || digits < 3 ||
	    memcmp(text + digits - 2, ": ", 2) != 0)
		return 0;
	b = catalog_bind(db, CATALOG_LOSS_ADD);
	catalog_bind_int(&b, 1, window);
	catalog_bind_text(&b, 2, text, digits - 2);
	catalog_bind_int(&b, 3, strtoull(text + digits, NULL, 10));
	return catalog_bind_run(&b, CATALOG_LOSS_ADD, NULL);
}

int catalog_windows_losses(struct catalog_db *db, int64_t window,
			   const char *comments, size_t len)
{
	size_t at, n;
	int err = 0;

	for (at = 0; !err && at < len; at += n + 1) {
		n = strnlen(comments + at, len - at);
		err = windows_loss(db, window, comments + at, n);
	}
	return err;
}

/* --- a window of this profd --------------------------------------------------------- */

static void windows_labels(const struct window *w,
			   const struct window_image *img,
			   struct catalog_labels *l)
{
	const struct strtab *s = &w->strings;

	*l = (struct catalog_labels){
		.process = strtab_str(s, img->process),
		.image = strtab_str(s, img->image),
		.comm = strtab_str(s, img->comm),
		.exe = strtab_str(s, img->exe),
		.cgroup = strtab_str(s, img->cgroup),
		.entry = strtab_str(s, img->entry),
		.service = strtab_str(s, img->service),
		.pid = img->tgid,
		.entry_pid = img->entry_pid,
	};
}

/* The columns of the CPU clock, in which all samples are. */
static uint32_t windows_column(const struct window *w)
{
	uint32_t i;

	for (i = 0; i < w->ncolumns; i++)
		if (w->opts.types[w->columns[i].event].periodic)
			return i;
	return 0;
}

struct windows_share {
	const struct window_image *image;
	uint64_t samples, cpu_ns;
};

static int windows_compare(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t)((const struct windows_share *)a)->image;
	uintptr_t y = (uintptr_t)((const struct windows_share *)b)->image;

	return (x > y) - (x < y);
}

/* The samples' images, in the order of memory; '*np' of them. NULL: no memory. */
static struct windows_share *windows_shares(const struct window *w, size_t *np)
{
	uint32_t column = windows_column(w);
	const struct window_sample *s;
	struct windows_share *shares;
	size_t n = 0;

	shares = calloc(w->samples.count + 1, sizeof(*shares));
	if (!shares)
		return NULL;
	STAILQ_FOREACH(s, &w->sample_list, entry) {
		shares[n].image = s->image;
		shares[n].samples = s->values[column];
		if (column + 1 < w->ncolumns)
			shares[n].cpu_ns = s->values[column + 1];
		n++;
	}
	qsort(shares, n, sizeof(*shares), windows_compare);
	*np = n;
	return shares;
}

static int windows_images(struct catalog_db *db, const struct window *w,
			  int64_t id, const struct catalog_window_row *row)
{
	size_t i, next, n = 0;
	struct windows_share *shares = windows_shares(w, &n);
	struct catalog_labels l;
	int err = shares ? 0 : -ENOMEM;

	for (i = 0; !err && i < n; i = next) {
		windows_labels(w, shares[i].image, &l);
		for (next = i; next < n; next++) {
			if (shares[next].image != shares[i].image)
				break;
			l.samples += shares[next].samples;
			l.cpu_ns += shares[next].cpu_ns;
		}
		err = catalog_windows_image(db, id, row, &l);
	}
	free(shares);
	return err;
}

static int windows_skipped(struct catalog_db *db, int64_t id, uint64_t n)
{
	struct catalog_bind b = catalog_bind(db, CATALOG_LOSS_ADD);

	catalog_bind_int(&b, 1, id);
	catalog_bind_str(&b, 2, CATALOG_SKIPPED);
	catalog_bind_int(&b, 3, n);
	return catalog_bind_run(&b, CATALOG_LOSS_ADD, NULL);
}

static int windows_rest(struct catalog_db *db, int64_t id,
			const struct catalog_rest *rest)
{
	const struct catalog_rest_program *p;
	struct catalog_bind b;
	int err = 0;

	for (size_t i = 0; i < rest->n && !err; i++) {
		p = &rest->programs[i];
		b = catalog_bind(db, CATALOG_REST_ADD);
		catalog_bind_int(&b, 1, id);
		/* -1: several users. */
		sqlite3_bind_int64(
			b.s, 2,
			p->uid == CATALOG_REST_USERS ? -1 : (int64_t)p->uid);
		sqlite3_bind_text(b.s, 3, "", 0, SQLITE_STATIC);
		catalog_bind_str(&b, 3, p->comm);
		sqlite3_bind_text(b.s, 4, "", 0, SQLITE_STATIC);
		catalog_bind_str(&b, 4, p->exe);
		catalog_bind_int(&b, 5, p->count);
		catalog_bind_int(&b, 6, p->failed);
		catalog_bind_int(&b, 7, p->cpu_ns);
		err = catalog_bind_run(&b, CATALOG_REST_ADD, NULL);
	}
	if (!err && rest->count)
		err = windows_skipped(db, id, rest->count);
	return err;
}

int catalog_windows_add(struct catalog_db *db, const struct catalog_window *w,
			const struct catalog_rest *rest)
{
	const struct catalog_window_row row = {
		.file = w->file,
		.boot = db->boot,
		.run = db->run,
		.begin_ns = w->begin_ns,
		.end_ns = w->begin_ns + (int64_t)w->duration_ns,
		.begin_boot_ns = w->begin_boot_ns,
		.samples = w->tables->nsamples,
	};
	int64_t id;
	int err = catalog_windows_begin(db, &row, &id);

	if (!err && id)
		err = windows_images(db, w->tables, id, &row);
	if (!err && id)
		err = catalog_windows_losses(db, id, w->comments,
					     w->comments_len);
	if (!err && id)
		err = windows_rest(db, id, rest);
	return err;
}

int catalog_windows_remove(struct catalog_db *db, const char *file)
{
	static const enum catalog_statement drops[] = {
		CATALOG_WINDOW_DROP_IMAGES,
		CATALOG_WINDOW_DROP_LOSSES,
		CATALOG_WINDOW_DROP_REST,
		CATALOG_WINDOW_DROP,
	};
	struct catalog_bind b = catalog_bind(db, CATALOG_WINDOW_FIND);
	int64_t id = 0;
	size_t i;
	int err;

	catalog_bind_str(&b, 1, file);
	err = catalog_bind_run(&b, CATALOG_WINDOW_FIND, &id);
	for (i = 0; !err && id && i < ARRAY_SIZE(drops); i++) {
		b = catalog_bind(db, drops[i]);
		catalog_bind_int(&b, 1, id);
		err = catalog_bind_run(&b, drops[i], NULL);
	}
	return err;
}
