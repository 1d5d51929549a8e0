// SPDX-License-Identifier: Apache-2.0
/*
 * rows: processes, images and changes. Most processes are written once, when they have ended:
 * an INSERT is tried first, and the row updated if there is one.
 */
#include <errno.h>
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

int catalog_rows_find(struct catalog_db *db, const char *process, int64_t *row)
{
	struct catalog_bind b = catalog_bind(db, CATALOG_PROCESS_FIND);

	*row = 0;
	catalog_bind_int(&b, 1, db->boot);
	catalog_bind_str(&b, 2, process);
	return catalog_bind_run(&b, CATALOG_PROCESS_FIND, row);
}

static int rows_parent(struct catalog_db *db, const char *parent)
{
	int err;

	if (!*parent) {
		db->parent_row = 0;
		db->parent[0] = '\0';
		return 0;
	}
	if (db->parent_row && !strcmp(db->parent, parent))
		return 0;
	err = catalog_rows_find(db, parent, &db->parent_row);
	snprintf(db->parent, sizeof(db->parent), "%s", parent);
	return err;
}

/* A time of CLOCK_BOOTTIME as wall time. */
static void rows_time(struct catalog_bind *b, int at,
		      const struct catalog_process *p, uint64_t time)
{
	if (time)
		catalog_bind_int(b, at, time + p->wall);
}

static void rows_account(struct catalog_bind *b,
			 const struct catalog_process *p, unsigned int freq_hz)
{
	const struct pm_process_info *i = &p->info;
	double expected = (double)i->cpu_ns * freq_hz / CLOCK_NSEC_PER_SEC;

	catalog_bind_int(b, 16, i->samples);
	if (i->cpu != PM_CPU_NONE) {
		catalog_bind_str(b, 17, row_accounts[i->cpu]);
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

static void rows_end(struct catalog_bind *b, const struct catalog_process *p)
{
	const struct pm_process_info *i = &p->info;

	if (i->end == PM_ALIVE)
		return;
	rows_time(b, 25, p, i->exit ? i->exit : p->seen);
	rows_time(b, 26, p, i->reap);
	if (i->end == PM_VANISHED || i->wait_status == PM_STATUS_UNKNOWN)
		return;
	if (WIFEXITED(i->wait_status)) {
		catalog_bind_int(b, 27, WEXITSTATUS(i->wait_status));
		return;
	}
	catalog_bind_int(b, 28, WTERMSIG(i->wait_status));
	catalog_bind_int(b, 29, !!WCOREDUMP(i->wait_status));
}

/* The parameters are those of CATALOG_PROCESS_ADD and of the updates. */
static void rows_bind(struct catalog_bind *b, const struct catalog_process *p,
		      unsigned int freq_hz)
{
	const struct pm_process_info *i = &p->info;

	catalog_bind_int(b, 1, b->db->boot);
	catalog_bind_str(b, 2, i->process_id);
	catalog_bind_int(b, 3, i->pid);
	catalog_bind_int(b, 4, i->ppid);
	catalog_bind_str(b, 5, i->parent_id);
	if (b->db->parent_row)
		catalog_bind_int(b, 6, b->db->parent_row);
	rows_time(b, 7, p, i->start);
	catalog_bind_int(b, 8, i->start);
	rows_time(b, 9, p, p->seen);
	catalog_bind_str(b, 10, row_states[i->end]);
	catalog_bind_int(b, 11, i->sid);
	catalog_bind_int(b, 12, i->pgid);
	catalog_bind_str(b, 13, ledger_entry(i->leader_type));
	if (ledger_entry(i->leader_type))
		catalog_bind_int(b, 14, i->leader);
	catalog_bind_int(b, 15, i->kthread);
	rows_account(b, p, freq_hz);
	rows_end(b, p);
	if (p->nimages)
		catalog_bind_int(b, 30, p->images[0].uid);
}

static int rows_process(struct catalog_db *db, const struct catalog_process *p,
			unsigned int freq_hz, int64_t *row)
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
	rows_bind(&b, p, freq_hz);
	err = catalog_bind_run(&b, CATALOG_PROCESS_ADD, NULL);
	if (err)
		return err;
	*row = sqlite3_last_insert_rowid(db->sql);
	if (sqlite3_changes(db->sql))
		return 0;
	*row = 0;
	b = catalog_bind(db, update);
	rows_bind(&b, p, freq_hz);
	return catalog_bind_run(&b, update, row);
}

/* --- images --------------------------------------------------------------------- */

static void rows_cgroup(struct catalog_bind *b, const char *cgroup)
{
	struct pm_cgroup in;

	if (!cgroup)
		return;
	pm_cgroup_parse(cgroup, strlen(cgroup), &in);
	catalog_bind_str(b, 12, cgroup);
	catalog_bind_text(b, 13, in.container.s, in.container.len);
	catalog_bind_str(b, 14, in.engine);
	catalog_bind_text(b, 15, in.pod.s, in.pod.len);
	catalog_bind_text(b, 16, in.unit.s, in.unit.len);
}

static void rows_bind_image(struct catalog_bind *b,
			    const struct catalog_process *p,
			    const struct catalog_image *i, int64_t process)
{
	bool cut;

	catalog_bind_int(b, 1, process);
	catalog_bind_str(b, 2, i->image);
	rows_time(b, 3, p, i->start);
	rows_time(b, 4, p, i->end);
	catalog_bind_str(b, 5, i->comm);
	catalog_bind_str(b, 6, i->exe);
	cut = catalog_bind_args(b, 7, i->args, i->args_len);
	catalog_bind_int(b, 8, cut || i->args_cut);
	catalog_bind_str(b, 9, i->cwd);
	catalog_bind_int(b, 10, i->uid);
	catalog_bind_int(b, 11, i->gid);
	rows_cgroup(b, i->cgroup);
	catalog_bind_str(b, 17, i->build_id);
	catalog_bind_int(b, 18, i->samples);
}

static int rows_image(struct catalog_db *db, const struct catalog_process *p,
		      const struct catalog_image *i, int64_t process)
{
	struct catalog_bind b = catalog_bind(db, CATALOG_IMAGE_ADD);
	int err;

	rows_bind_image(&b, p, i, process);
	err = catalog_bind_run(&b, CATALOG_IMAGE_ADD, NULL);
	if (err || sqlite3_changes(db->sql))
		return err;
	b = catalog_bind(db, CATALOG_IMAGE_SEEN);
	rows_bind_image(&b, p, i, process);
	return catalog_bind_run(&b, CATALOG_IMAGE_SEEN, NULL);
}

int catalog_rows_write(struct catalog_db *db, const struct catalog_batch *batch,
		       unsigned int freq_hz)
{
	const struct catalog_process *p;
	int64_t row;
	int err = 0;
	size_t i;

	if (batch->vanish)
		err = catalog_db_run(db, CATALOG_PROCESS_VANISH, NULL);
	STAILQ_FOREACH(p, &batch->processes, entry) {
		if (!err)
			err = rows_process(db, p, freq_hz, &row);
		for (i = p->nimages; !err && i-- > 0;)
			err = rows_image(db, p, &p->images[i], row);
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
