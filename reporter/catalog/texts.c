// SPDX-License-Identifier: Apache-2.0
/*
 * texts: names, paths and arguments have a row each, and images have their numbers. A
 * build repeats them: what an image is, but for its process and its times, is one of
 * few rows of table 'program', and a process that forked has the arguments of its
 * parent.
 *
 * The numbers of recent texts are kept in memory, so that most need no statement.
 * Arguments are found there only: an index of them would be as large as they are. So
 * they may be there twice. Those that images share are of one program: that they have
 * lost their last image is then found by the index of programs.
 *
 * Local users choose these texts. A row is removed with the last image that has it
 * (keep.c), and each user has a limit of bytes, above which its new texts are left out
 * and counted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/catalog/internal.h"

static void texts_cache_clear(struct catalog_cache *cache)
{
	for (size_t i = 0; i < ARRAY_SIZE(cache->slots); i++)
		free(cache->slots[i].s);
	memset(cache, 0, sizeof(*cache));
}

void catalog_texts_forget(struct catalog_db *db)
{
	texts_cache_clear(&db->words);
	texts_cache_clear(&db->texts);
	texts_cache_clear(&db->args);
	texts_cache_clear(&db->cgroups);
	memset(db->programs, 0, sizeof(db->programs));
	memset(db->uses, 0, sizeof(db->uses));
}

/* The place of the text. */
static struct catalog_slot *texts_slot(struct catalog_cache *cache,
				       const char *s, size_t len)
{
	return &cache->slots[hash_bytes(s, len) % ARRAY_SIZE(cache->slots)];
}

static bool texts_slot_has(const struct catalog_slot *slot, const char *s,
			   size_t len)
{
	return slot->s && slot->len == len && !memcmp(slot->s, s, len);
}

/* Without memory it is looked up again. */
static void texts_slot_set(struct catalog_slot *slot, const char *s, size_t len,
			   int64_t id)
{
	char *copy = len <= CATALOG_CACHED ? malloc(len) : NULL;

	if (!copy)
		return;
	free(slot->s);
	memcpy(copy, s, len);
	*slot = (struct catalog_slot){ .s = copy, .len = len, .id = id };
}

static int texts_find(struct catalog_db *db, enum catalog_statement which,
		      const char *s, size_t len, int64_t *id)
{
	struct catalog_bind b = catalog_bind(db, which);

	*id = 0;
	catalog_bind_text(&b, 1, s, len);
	return catalog_bind_run(&b, which, id);
}

/* --- what a user takes ------------------------------------------------------------- */

#define TEXTS_ROW 16 /* bytes beside the text, as in the triggers of schema.c */

static int texts_use_flush(struct catalog_db *db, struct catalog_use *u)
{
	struct catalog_bind b = catalog_bind(db, CATALOG_USE_SET);

	if (!u->known || !u->changed)
		return 0;
	catalog_bind_signed(&b, 1, u->uid);
	catalog_bind_signed(&b, 2, u->bytes);
	u->changed = false;
	return catalog_bind_run(&b, CATALOG_USE_SET, NULL);
}

int catalog_texts_flush(struct catalog_db *db)
{
	int err = 0;

	for (size_t i = 0; i < CATALOG_USES && !err; i++)
		err = texts_use_flush(db, &db->uses[i]);
	return err;
}

/* Its place; another user's may have to be written. */
static int texts_use(struct catalog_db *db, int64_t uid,
		     struct catalog_use **use)
{
	struct catalog_use *u = &db->uses[(uint64_t)uid % CATALOG_USES];
	struct catalog_bind b;
	int err;

	*use = u;
	if (u->known && u->uid == uid)
		return 0;
	err = texts_use_flush(db, u);
	if (err)
		return err;
	*u = (struct catalog_use){ .uid = uid };
	b = catalog_bind(db, CATALOG_USE_FIND);
	catalog_bind_signed(&b, 1, uid);
	err = catalog_bind_run(&b, CATALOG_USE_FIND, &u->bytes);
	u->known = !err;
	return err;
}

/* Adds a row, 's' of which has 'len' bytes, if there is room for it. */
static int texts_add(struct catalog_bind *b, enum catalog_statement which,
		     int64_t uid, size_t len, int64_t *id)
{
	struct catalog_db *db = b->db;
	struct catalog_use *use;
	int err = texts_use(db, uid, &use);

	*id = 0;
	if (!err && use->bytes + (int64_t)len > (int64_t)db->texts_limit) {
		db->texts_skipped++;
		strbuf_fini(&b->text);
		return 0;
	}
	catalog_bind_signed(b, 2, uid);
	if (err)
		b->failed = true;
	err = catalog_bind_run(b, which, NULL);
	if (err)
		return err;
	*id = sqlite3_last_insert_rowid(db->sql);
	use->bytes += (int64_t)len + TEXTS_ROW;
	use->changed = true;
	return 0;
}

/* --- numbers ----------------------------------------------------------------------- */

static int texts_id(struct catalog_db *db, int64_t uid, const char *s,
		    int64_t *id)
{
	size_t len = s ? strlen(s) : 0;
	struct catalog_slot *slot;
	struct catalog_bind b;
	size_t bytes;
	int err;

	*id = 0;
	if (!len)
		return 0;
	slot = texts_slot(&db->texts, s, len);
	if (texts_slot_has(slot, s, len)) {
		*id = slot->id;
		return 0;
	}
	err = texts_find(db, CATALOG_TEXT_FIND, s, len, id);
	if (!err && !*id) {
		b = catalog_bind(db, CATALOG_TEXT_ADD);
		bytes = catalog_bind_text(&b, 1, s, len);
		err = texts_add(&b, CATALOG_TEXT_ADD, uid, bytes, id);
	}
	if (!err && *id)
		texts_slot_set(slot, s, len, *id);
	return err;
}

int catalog_texts_word(struct catalog_db *db, const char *s, int64_t *id)
{
	size_t len = s ? strlen(s) : 0;
	struct catalog_slot *slot;
	struct catalog_bind b;
	int err;

	*id = 0;
	if (!len)
		return 0;
	slot = texts_slot(&db->words, s, len);
	if (texts_slot_has(slot, s, len)) {
		*id = slot->id;
		return 0;
	}
	err = texts_find(db, CATALOG_WORD_FIND, s, len, id);
	if (!err && !*id) {
		b = catalog_bind(db, CATALOG_WORD_ADD);
		catalog_bind_text(&b, 1, s, len);
		err = catalog_bind_run(&b, CATALOG_WORD_ADD, NULL);
		if (!err && sqlite3_changes(db->sql))
			*id = sqlite3_last_insert_rowid(db->sql);
	}
	if (!err && *id)
		texts_slot_set(slot, s, len, *id);
	return err;
}

int catalog_texts_args(struct catalog_db *db, int64_t uid, int64_t program,
		       const char *args, size_t len, int64_t *id, bool *cut)
{
	struct catalog_slot *slot;
	struct catalog_bind b;
	int err;

	*id = 0;
	*cut = false;
	if (!args || !len)
		return 0;
	slot = texts_slot(&db->args, args, len);
	if (texts_slot_has(slot, args, len) && slot->program == program) {
		*id = slot->id;
		*cut = slot->cut;
		return 0;
	}
	b = catalog_bind(db, CATALOG_ARGS_ADD);
	*cut = catalog_bind_args(&b, 1, args, len);
	err = texts_add(&b, CATALOG_ARGS_ADD, uid, b.text.len, id);
	*cut |= !*id;
	if (err || !*id)
		return err;
	texts_slot_set(slot, args, len, *id);
	if (slot->id == *id) {
		slot->program = program;
		slot->cut = *cut;
	}
	return 0;
}

int catalog_texts_cgroup(struct catalog_db *db, const char *path,
			 int64_t seen_ns, int64_t *id)
{
	size_t len = path ? strlen(path) : 0;
	struct catalog_bind b;
	struct pm_cgroup in;
	int err;

	*id = 0;
	if (!len)
		return 0;
	pm_cgroup_parse(path, len, &in);
	b = catalog_bind(db, CATALOG_CGROUP_SEEN);
	catalog_bind_text(&b, 1, path, len);
	catalog_bind_signed(&b, 2, seen_ns);
	catalog_bind_text(&b, 3, in.container.s, in.container.len);
	catalog_bind_str(&b, 4, in.engine);
	catalog_bind_text(&b, 5, in.pod.s, in.pod.len);
	catalog_bind_text(&b, 6, in.unit.s, in.unit.len);
	err = catalog_bind_run(&b, CATALOG_CGROUP_SEEN, id);
	if (!err && *id)
		texts_slot_set(texts_slot(&db->cgroups, path, len), path, len,
			       *id);
	return err;
}

/* A group that images have is not forgotten: when it was seen does not matter. */
static int texts_cgroup(struct catalog_db *db, const char *path,
			int64_t seen_ns, int64_t *id)
{
	size_t len = path ? strlen(path) : 0;
	const struct catalog_slot *slot;

	*id = 0;
	if (!len)
		return 0;
	slot = texts_slot(&db->cgroups, path, len);
	if (!texts_slot_has(slot, path, len))
		return catalog_texts_cgroup(db, path, seen_ns, id);
	*id = slot->id;
	return 0;
}

static int texts_program(struct catalog_db *db,
			 const int64_t key[CATALOG_PROGRAM_KEY], int64_t *id)
{
	static const enum catalog_statement ways[] = {
		CATALOG_PROGRAM_FIND,
		CATALOG_PROGRAM_ADD,
	};
	const size_t size = CATALOG_PROGRAM_KEY * sizeof(*key);
	struct catalog_known_program *known =
		&db->programs[hash_bytes(key, size) % CATALOG_SLOTS];
	struct catalog_bind b;
	int err = 0;

	*id = known->id;
	if (known->id && !memcmp(known->key, key, size))
		return 0;
	*id = 0;
	for (size_t i = 0; i < ARRAY_SIZE(ways) && !err && !*id; i++) {
		b = catalog_bind(db, ways[i]);
		for (int at = 0; at < CATALOG_PROGRAM_KEY; at++)
			catalog_bind_signed(&b, 1 + at, key[at]);
		err = catalog_bind_run(&b, ways[i], id);
		if (!err && ways[i] == CATALOG_PROGRAM_ADD)
			*id = sqlite3_last_insert_rowid(db->sql);
	}
	if (err)
		return err;
	memcpy(known->key, key, size);
	known->id = *id;
	return 0;
}

int catalog_texts_program(struct catalog_db *db,
			  const struct catalog_program *p,
			  const struct catalog_program_row *had, int64_t *id)
{
	int64_t key[CATALOG_PROGRAM_KEY] = { [5] = p->uid, [6] = p->gid };
	const char *const texts[] = { p->comm, p->exe, p->cwd, p->build_id };
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(texts) && !err; i++)
		err = texts_id(db, p->uid, texts[i], &key[i]);
	if (!err)
		err = texts_cgroup(db, p->cgroup, p->seen_ns, &key[4]);
	for (size_t i = 0; i < ARRAY_SIZE(had->kept) && had->id; i++)
		if (!key[1 + i])
			key[1 + i] = had->kept[i];
	return err ? err : texts_program(db, key, id);
}

int catalog_texts_had(struct catalog_db *db, int64_t process, uint64_t exec,
		      struct catalog_program_row *had)
{
	struct catalog_bind b = catalog_bind(db, CATALOG_IMAGE_PROGRAM);
	int rc;

	memset(had, 0, sizeof(*had));
	catalog_bind_signed(&b, 1, process);
	catalog_bind_int(&b, 2, exec);
	rc = sqlite3_step(b.s);
	if (rc == SQLITE_ROW) {
		had->id = sqlite3_column_int64(b.s, 0);
		for (size_t i = 0; i < ARRAY_SIZE(had->kept); i++)
			had->kept[i] = sqlite3_column_int64(b.s, 1 + (int)i);
		had->args = sqlite3_column_int64(b.s, 5);
	}
	sqlite3_reset(b.s);
	return catalog_db_errno(db, rc);
}

int catalog_texts_loose(struct catalog_db *db,
			const struct catalog_program_row *had)
{
	struct catalog_bind b = catalog_bind(db, CATALOG_PROGRAM_LOOSE);
	int err;

	db->loose = true;
	catalog_bind_signed(&b, 1, had->id);
	err = catalog_bind_run(&b, CATALOG_PROGRAM_LOOSE, NULL);
	if (err || !had->args)
		return err;
	b = catalog_bind(db, CATALOG_ARGS_LOOSE);
	catalog_bind_signed(&b, 1, had->args);
	catalog_bind_signed(&b, 2, had->id);
	return catalog_bind_run(&b, CATALOG_ARGS_LOOSE, NULL);
}

int catalog_texts_collect(struct catalog_db *db)
{
	static const enum catalog_statement steps[] = {
		CATALOG_LOOSE_ARGS,	  CATALOG_LOOSE_USED,
		CATALOG_LOOSE_TEXTS,	  CATALOG_LOOSE_PROGRAMS,
		CATALOG_LOOSE_DROP,	  CATALOG_LOOSE_CLEAR,
		CATALOG_LOOSE_CLEAR_ARGS, CATALOG_LOOSE_CLEAR_TEXTS,
		CATALOG_USE_OLD,
	};
	int err = catalog_texts_flush(db);

	for (size_t i = 0; i < ARRAY_SIZE(steps) && !err; i++)
		err = catalog_db_run(db, steps[i], NULL);
	db->loose = false;
	/* Numbers of removed rows are given again. */
	catalog_texts_forget(db);
	return err;
}
