// SPDX-License-Identifier: Apache-2.0
/*
 * rows: processes, images and changes. Most processes are written once, when they have ended:
 * an INSERT is tried first, and the row updated if there is one.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "reporter/catalog/internal.h"
#include "reporter/ledger/ledger.h"

static const char *const row_states[] = {
	[PM_ALIVE] = "alive",
	[PM_EXITED] = "exited",
	[PM_REAPED] = "reaped",
	[PM_VANISHED] = "vanished",
};

static const char *const row_accounts[] = {
	[PM_CPU_NOW] = "now",
	[PM_CPU_PROVISIONAL] = "provisional",
	[PM_CPU_EXACT] = "exact",
};

bool catalog_id_parse(const char *id, struct abi_key *key)
{
	char *end;

	*key = (struct abi_key){ 0 };
	if (*id < '0' || *id > '9')
		return false;
	key->tgid = (uint32_t)strtoul(id, &end, 10);
	if (*end != '-' || !isxdigit((unsigned char)end[1]))
		return false;
	key->start_boottime = strtoull(end + 1, &end, 16);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		key->exec_id = strtoull(end + 1, &end, 10);
	return !*end;
}

int catalog_rows_find(struct catalog_db *db, int64_t boot,
		      const struct abi_key *key, int64_t *row)
{
	struct catalog_bind b = catalog_bind(db, CATALOG_PROCESS_FIND);

	*row = 0;
	catalog_bind_signed(&b, 1, boot);
	catalog_bind_int(&b, 2, key->tgid);
	catalog_bind_int(&b, 3, key->start_boottime);
	return catalog_bind_run(&b, CATALOG_PROCESS_FIND, row);
}

/* Its parent, and the row of that, into the database. */
static int rows_parent(struct catalog_db *db, const char *parent)
{
	struct abi_key key;

	if (!catalog_id_parse(parent, &key)) {
		db->parent_row = 0;
		db->parent = key;
		return 0;
	}
	if (db->parent_row && key.tgid == db->parent.tgid &&
	    key.start_boottime == db->parent.start_boottime)
		return 0;
	db->parent = key;
	return catalog_rows_find(db, db->boot, &key, &db->parent_row);
}

/* A time of CLOCK_BOOTTIME as wall time. */
static void rows_time(struct catalog_bind *b, int at,
		      const struct catalog_process *p, uint64_t time)
{
	if (time)
		catalog_bind_int(b, at, time + p->wall);
}

static void rows_word(struct catalog_bind *b, int at, const char *word)
{
	int64_t id;

	if (catalog_texts_word(b->db, word, &id))
		b->failed = true;
	else if (id)
		catalog_bind_signed(b, at, id);
}

static void rows_account(struct catalog_bind *b,
			 const struct catalog_process *p, unsigned int freq_hz)
{
	const struct pm_process_info *i = &p->info;
	double expected = (double)i->cpu_ns * freq_hz / CLOCK_NSEC_PER_SEC;

	catalog_bind_int(b, 16, i->samples);
	if (i->cpu != PM_CPU_NONE) {
		rows_word(b, 17, row_accounts[i->cpu]);
		catalog_bind_int(b, 18, i->cpu_ns);
	}
	if (i->cpu == PM_CPU_EXACT || i->cpu == PM_CPU_NOW) {
		catalog_bind_int(b, 19, i->user_ns);
		catalog_bind_int(b, 20, i->system_ns);
	}
	/* Not of a process that ran before the sampling began. */
	if (i->cpu != PM_CPU_NONE && !i->before && i->cpu_ns)
		catalog_bind_real(b, 21, i->samples / expected);
	if (i->maxrss)
		catalog_bind_int(b, 22, i->maxrss);
	if (i->minflt || i->majflt) {
		catalog_bind_int(b, 23, i->minflt);
		catalog_bind_int(b, 24, i->majflt);
	}
}

/* When it was reaped and when its row was made is counted from its end. */
static void rows_end(struct catalog_bind *b, const struct catalog_process *p)
{
	const struct pm_process_info *i = &p->info;
	uint64_t end = i->exit ? i->exit : p->seen;

	if (i->end == PM_ALIVE) {
		rows_time(b, 9, p, p->seen);
		return;
	}
	catalog_bind_signed(b, 9, (int64_t)(p->seen - end));
	rows_time(b, 25, p, end);
	if (i->reap)
		catalog_bind_signed(b, 26, (int64_t)(i->reap - end));
	if (i->end == PM_VANISHED || i->wait_status == PM_STATUS_UNKNOWN)
		return;
	if (WIFEXITED(i->wait_status)) {
		catalog_bind_int(b, 27, WEXITSTATUS(i->wait_status));
		return;
	}
	catalog_bind_int(b, 28, WTERMSIG(i->wait_status));
	catalog_bind_int(b, 29, !!WCOREDUMP(i->wait_status));
}

/* The id of its parent is that of the parent's row, if the child's row has that. */
static void rows_bind_parent(struct catalog_bind *b,
			     enum catalog_statement which)
{
	const struct catalog_db *db = b->db;

	if (db->parent_row)
		catalog_bind_signed(b, 6, db->parent_row);
	if (!db->parent.tgid ||
	    (db->parent_row && which != CATALOG_PROCESS_SEEN))
		return;
	catalog_bind_int(b, 5, db->parent.tgid);
	catalog_bind_int(b, 2, db->parent.start_boottime);
}

/* The parameters are those of CATALOG_PROCESS_ADD and of the updates. */
static void rows_bind(struct catalog_bind *b, const struct catalog_process *p,
		      enum catalog_statement which, unsigned int freq_hz)
{
	const struct pm_process_info *i = &p->info;

	catalog_bind_signed(b, 1, b->db->boot);
	catalog_bind_int(b, 3, i->pid);
	catalog_bind_int(b, 4, i->ppid);
	rows_bind_parent(b, which);
	rows_time(b, 7, p, i->start);
	catalog_bind_int(b, 8, i->start);
	rows_word(b, 10, row_states[i->end]);
	catalog_bind_int(b, 11, i->sid);
	catalog_bind_int(b, 12, i->pgid);
	rows_word(b, 13, ledger_entry(i->leader_type));
	if (ledger_entry(i->leader_type))
		catalog_bind_int(b, 14, i->leader);
	catalog_bind_int(b, 15, i->kthread);
	rows_account(b, p, freq_hz);
	rows_end(b, p);
	if (p->nimages)
		catalog_bind_int(b, 30, p->images[0].uid);
}

/* '*added': it had no row, and no images. */
static int rows_process(struct catalog_db *db, const struct catalog_process *p,
			unsigned int freq_hz, int64_t *row, bool *added)
{
	/* A row of an earlier run may have an end. */
	enum catalog_statement update = p->update && p->info.end == PM_ALIVE
						? CATALOG_PROCESS_SEEN
						: CATALOG_PROCESS_END;
	int err = rows_parent(db, p->info.parent_id);
	struct catalog_bind b;

	if (err)
		return err;
	b = catalog_bind(db, CATALOG_PROCESS_ADD);
	rows_bind(&b, p, CATALOG_PROCESS_ADD, freq_hz);
	err = catalog_bind_run(&b, CATALOG_PROCESS_ADD, NULL);
	if (err)
		return err;
	*row = sqlite3_last_insert_rowid(db->sql);
	*added = sqlite3_changes(db->sql) != 0;
	if (*added)
		return 0;
	*row = 0;
	b = catalog_bind(db, update);
	rows_bind(&b, p, update, freq_hz);
	return catalog_bind_run(&b, update, row);
}

/* --- images --------------------------------------------------------------------- */

/* 'had' is its row, if it has one. */
static int rows_image_write(struct catalog_db *db,
			    const struct catalog_process *p,
			    const struct catalog_image *i, int64_t process,
			    uint64_t exec,
			    const struct catalog_program_row *had)
{
	const struct catalog_program what = {
		.comm = i->comm,
		.exe = i->exe,
		.cwd = i->cwd,
		.build_id = i->build_id,
		.cgroup = i->cgroup,
		.uid = i->uid,
		.gid = i->gid,
		.seen_ns = (int64_t)p->seen + p->wall,
	};
	enum catalog_statement which =
		had->id ? CATALOG_IMAGE_SEEN : CATALOG_IMAGE_ADD;
	int64_t program = 0, args = 0;
	struct catalog_bind b;
	bool moves, cut = false;
	int err = catalog_texts_program(db, &what, had, &program);

	/* Arguments of another program are not shared with this one. */
	if (had->args && !i->args_len)
		program = had->id;
	moves = had->id && had->id != program;
	if (!err && (!had->args || moves))
		err = catalog_texts_args(db, i->uid, program, i->args,
					 i->args_len, &args, &cut);
	if (err)
		return err;
	b = catalog_bind(db, which);
	catalog_bind_signed(&b, 1, process);
	catalog_bind_int(&b, 2, exec);
	rows_time(&b, 3, p, i->start);
	rows_time(&b, 4, p, i->end);
	catalog_bind_signed(&b, 5, program);
	if (args)
		catalog_bind_signed(&b, 6, args);
	catalog_bind_int(&b, 7, cut || i->args_cut);
	catalog_bind_int(&b, 8, i->samples);
	catalog_bind_str(&b, 9, i->service);
	err = catalog_bind_run(&b, which, NULL);
	return !err && moves ? catalog_texts_loose(db, had) : err;
}

static int rows_image(struct catalog_db *db, const struct catalog_process *p,
		      const struct catalog_image *i, int64_t process,
		      bool added)
{
	struct catalog_program_row had = { 0 };
	struct abi_key key;
	int err = 0;

	if (!i->image || !catalog_id_parse(i->image, &key))
		return -EINVAL;
	if (!added)
		err = catalog_texts_had(db, process, key.exec_id, &had);
	return err ? err
		   : rows_image_write(db, p, i, process, key.exec_id, &had);
}

int catalog_rows_write(struct catalog_db *db, const struct catalog_batch *batch,
		       unsigned int freq_hz)
{
	const struct catalog_process *p;
	int64_t row;
	bool added = false;
	int err = 0;
	size_t i;

	if (batch->vanish)
		err = catalog_db_run(db, CATALOG_PROCESS_VANISH, NULL);
	STAILQ_FOREACH(p, &batch->processes, entry) {
		if (!err)
			err = rows_process(db, p, freq_hz, &row, &added);
		for (i = p->nimages; !err && i-- > 0;)
			err = rows_image(db, p, &p->images[i], row, added);
		/* A row that breaks a rule of the tables is left out. */
		if (err == -EINVAL)
			err = 0;
		if (err)
			return err;
	}
	return err;
}

/* --- changes ---------------------------------------------------------------------- */

int catalog_rows_changes(struct catalog_db *db,
			 const struct catalog_batch *batch)
{
	const struct catalog_change *c;
	struct catalog_bind b;
	int err = 0;

	STAILQ_FOREACH(c, &batch->changes, entry) {
		b = catalog_bind(db, CATALOG_CHANGE_ADD);
		catalog_bind_int(&b, 1, db->boot);
		catalog_bind_int(&b, 2, c->time + c->wall);
		catalog_bind_int(&b, 3, c->time);
		catalog_bind_str(&b, 4, c->kind);
		catalog_bind_str(&b, 5, c->process);
		catalog_bind_str(&b, 6, c->image);
		catalog_bind_str(&b, 7, c->comm);
		if (c->ids) {
			catalog_bind_int(&b, 8, c->uid);
			catalog_bind_int(&b, 9, c->gid);
		}
		catalog_bind_str(&b, 10, c->cgroup);
		catalog_bind_str(&b, 11, c->detail);
		err = catalog_bind_run(&b, CATALOG_CHANGE_ADD, NULL);
		if (err)
			break;
	}
	return err;
}
