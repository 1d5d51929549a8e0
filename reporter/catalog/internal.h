/* SPDX-License-Identifier: Apache-2.0 */
/* internal: what the files of the catalog share. */
#ifndef REPORTER_CATALOG_INTERNAL_H
#define REPORTER_CATALOG_INTERNAL_H

#include <pthread.h>
#include <sqlite3.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/base.h"
#include "reporter/catalog/budget.h"
#include "reporter/catalog/catalog.h"
#include "reporter/catalog/rest.h"
#include "reporter/catalog/schema.h"

/* --- batches: rows in memory ------------------------------------------------ */

/* Copies; times are CLOCK_BOOTTIME, 0: not known. */
struct catalog_image {
	const char *image, *comm, *exe, *cwd, *cgroup; /* NULL: not known */
	const char *args; /* NUL-separated */
	size_t args_len;
	const char *build_id; /* hex */
	const char *service;
	uint64_t start, end, samples;
	uint32_t uid, gid;
	bool args_cut;
};

struct catalog_process {
	STAILQ_ENTRY(catalog_process) entry;
	struct pm_process_info info;
	bool update; /* it has a row of this run of profd */
	int64_t wall; /* from boot time to wall time */
	uint64_t seen; /* boot time of the copy */
	size_t nimages;
	struct catalog_image images[]; /* the newest first */
};

/* A change of a process that is no exec or exit; or a gap in the events. */
struct catalog_change {
	STAILQ_ENTRY(catalog_change) entry;
	const char *kind; /* a literal */
	const char *process, *image; /* their ids; NULL: of none */
	const char *comm, *cgroup; /* what it has now; NULL: as before */
	const char *detail; /* JSON, or NULL */
	uint64_t time;
	int64_t wall; /* from boot time to wall time */
	uint32_t uid, gid;
	bool ids; /* uid or gid, or the session, is another one */
};

#define CATALOG_CHANGE_KINDS 4

struct catalog_batch {
	STAILQ_ENTRY(catalog_batch) entry;
	STAILQ_HEAD(, catalog_process) processes;
	STAILQ_HEAD(, catalog_change) changes;
	struct arena arena;
	size_t n;
	/* The begin of the first snapshot: what does not follow has vanished. */
	bool vanish;
};

STAILQ_HEAD(catalog_batches, catalog_batch);

/* A row of a process and its images; NULL: no memory. */
struct catalog_process *catalog_pack(struct arena *a, enum reporter_args which,
				     const struct pm_image *newest,
				     bool update);
/* The kinds of change that an event is, by number; how many. */
size_t catalog_change_kinds(const struct quark_event *ev,
			    uint32_t kinds[CATALOG_CHANGE_KINDS]);
/* One of them; NULL: no memory. */
struct catalog_change *catalog_pack_change(struct arena *a,
					   const struct quark_event *ev,
					   uint32_t kind);

/* --- the file ---------------------------------------------------------------- */

/* Rows of texts that were used lately, by content. */
#define CATALOG_SLOTS 256
#define CATALOG_CACHED 1024 /* bytes; longer ones are not kept */

struct catalog_slot {
	char *s; /* NULL: none */
	size_t len;
	int64_t id;
	int64_t program; /* of arguments; else 0 */
	bool cut; /* of arguments: there are more */
};

struct catalog_cache {
	struct catalog_slot slots[CATALOG_SLOTS];
};

/* Numbers of comm, exe, cwd, build_id and cgroup; uid and gid, -1: not known. */
#define CATALOG_PROGRAM_KEY 7

/* What the texts of a user take. */
#define CATALOG_USES 64

struct catalog_use {
	int64_t uid, bytes;
	bool known, changed; /* it is that of the table; it is not any more */
};

struct catalog_known_program {
	int64_t key[CATALOG_PROGRAM_KEY];
	int64_t id; /* 0: none */
};

struct catalog_db {
	sqlite3 *sql; /* NULL: not open */
	sqlite3_stmt *statements[CATALOG_NSTATEMENTS];
	int64_t boot, run; /* their rows */
	dev_t dev;
	ino_t ino;
	int64_t oldest; /* before which changes were removed */
	/* The last parent that was looked up: most have many children. */
	struct abi_key parent; /* pid 0: none */
	int64_t parent_row; /* 0: it has none */
	uint64_t set_aside; /* files */
	int frames; /* of the WAL, after the last commit */
	int index; /* of the WAL, if it is open, for catalog_db_reader() */
	bool index_open;
	bool fresh; /* opened, and not yet compared with the windows */
	bool converting; /* it has rows of version 3, see convert.c */
	int64_t converted; /* up to this row */
	/* Of texts.c; empty after a rollback, and when rows were removed. */
	struct catalog_cache words, texts, args, cgroups;
	struct catalog_known_program programs[CATALOG_SLOTS];
	bool loose; /* a program may have lost its last image */
	struct catalog_use uses[CATALOG_USES];
	uint64_t texts_limit; /* bytes of the texts of a user */
	uint64_t texts_skipped;
};

/* This run of profd. */
struct catalog_run {
	const uint8_t *boot_id; /* STORE_BOOT_ID bytes */
	const char *version;
	unsigned int freq_hz;
	int64_t start_ns; /* since the epoch */
	uint64_t start_boot_ns;
};

/*
 * Opens the catalog in 'dir', created if it is missing; one that is none is set
 * aside. -EPROTONOSUPPORT: of a later version; or another -errno.
 */
int catalog_db_open(struct catalog_db *db, const char *dir,
		    const struct catalog_run *run);
/* The row of this run says that it lives now, or ends. 0 or -errno. */
int catalog_db_alive(struct catalog_db *db, bool ends);
void catalog_db_close(struct catalog_db *db);
/* Closes it if the file in 'dir' is not that which is open. */
void catalog_db_check(struct catalog_db *db, const char *dir);
/* Closes a damaged file and renames it. */
void catalog_db_set_aside(struct catalog_db *db, const char *dir);

/*
 * Copies what is in the WAL to the file, if it is worthwhile. The sizes of both, in
 * bytes.
 */
void catalog_db_checkpoint(struct catalog_db *db, uint64_t *bytes,
			   uint64_t *wal_bytes);
/* Whether a reader has kept the WAL from being emptied for too long. */
bool catalog_db_stalled(struct catalog_db *db);
/* Another process that reads now: its pid; 0: none, or not one of this pid namespace. */
pid_t catalog_db_reader(struct catalog_db *db, const char *dir);
/* The row of a boot, made if it is missing. */
int catalog_db_boot(struct catalog_db *db, const uint8_t id[STORE_BOOT_ID],
		    int64_t *row);

/* An error of SQLite as -errno; -EBADMSG: the file is damaged. */
int catalog_db_errno(struct catalog_db *db, int rc);
/*
 * Runs a statement whose parameters are bound. 0 or -errno; 'value' (may be NULL)
 * is the integer of its first row, and stays as it is if there is none.
 */
int catalog_db_run(struct catalog_db *db, enum catalog_statement which,
		   int64_t *value);
/* PRAGMA name, and its integer. */
int catalog_db_pragma(struct catalog_db *db, const char *pragma,
		      int64_t *value);

/* The parameters of a statement, by number. */
struct catalog_bind {
	struct catalog_db *db;
	sqlite3_stmt *s;
	bool failed;
	struct strbuf text; /* strings that had to be changed */
};

struct catalog_bind catalog_bind(struct catalog_db *db,
				 enum catalog_statement which);
void catalog_bind_int(struct catalog_bind *b, int at, uint64_t v);
void catalog_bind_signed(struct catalog_bind *b, int at, int64_t v);
void catalog_bind_real(struct catalog_bind *b, int at, double v);
/*
 * Text that processes control, cut to CATALOG_TEXT_MAX bytes: each byte that is not
 * UTF-8 becomes U+FFFD. NULL and "" are NULL. The text must be valid until the end
 * of catalog_bind_run(). Returns its bytes.
 */
size_t catalog_bind_text(struct catalog_bind *b, int at, const char *s,
			 size_t len);
void catalog_bind_str(struct catalog_bind *b, int at, const char *s);
/* A JSON array of the strings of 'args', with a NUL after the last of its 'len'
 * bytes. True: it had to be cut. */
bool catalog_bind_args(struct catalog_bind *b, int at, const char *args,
		       size_t len);
/* As catalog_db_run(). */
int catalog_bind_run(struct catalog_bind *b, enum catalog_statement which,
		     int64_t *value);

/* Bytes of a path or name, and of the JSON of all arguments. */
#define CATALOG_TEXT_MAX 4096
#define CATALOG_ARGS_MAX 4096

/* --- texts -------------------------------------------------------------------- */

/* What an image is; -1 and NULL: not known. */
struct catalog_program {
	const char *comm, *exe, *cwd, *build_id, *cgroup;
	int64_t uid, gid;
	int64_t seen_ns; /* since the epoch: of its control group */
};

/* What the row of an image says already. */
struct catalog_program_row {
	int64_t id; /* 0: there is no row */
	int64_t kept[4]; /* of exe, cwd, build_id and cgroup: as in a key */
	int64_t args; /* its arguments; 0: none */
};

/* Their numbers, with rows that are made if they are missing; 0: none. 0 or -errno. */
int catalog_texts_word(struct catalog_db *db, const char *s, int64_t *id);
/* Of an image of 'program': only images of one program share arguments. */
int catalog_texts_args(struct catalog_db *db, int64_t uid, int64_t program,
		       const char *args, size_t len, int64_t *id, bool *cut);
int catalog_texts_cgroup(struct catalog_db *db, const char *path,
			 int64_t seen_ns, int64_t *id);
/* What 'p' does not know is as it was. */
int catalog_texts_program(struct catalog_db *db,
			  const struct catalog_program *p,
			  const struct catalog_program_row *had, int64_t *id);
int catalog_texts_had(struct catalog_db *db, int64_t process, uint64_t exec,
		      struct catalog_program_row *had);
/* An image does not have this program and these arguments any more. */
int catalog_texts_loose(struct catalog_db *db,
			const struct catalog_program_row *had);
/* Writes what users take now; before what is written is removed or committed. */
int catalog_texts_flush(struct catalog_db *db);
/* Removes programs, arguments and texts that have lost their last image. */
int catalog_texts_collect(struct catalog_db *db);
/* Their rows may be others now. */
void catalog_texts_forget(struct catalog_db *db);

/* --- rows of version 3 ----------------------------------------------------------- */

/* Begins to copy them, or goes on; some of them at once. 0 or -errno. */
int catalog_convert_begin(struct catalog_db *db);
/* Copies some; at the end, 'converting' becomes false. 0 or -errno. */
int catalog_convert_step(struct catalog_db *db);

/* --- rows --------------------------------------------------------------------- */

/* "PID-START" or "PID-START-EXEC"; false: it is neither. */
bool catalog_id_parse(const char *id, struct abi_key *key);

/* 0 or -errno. */
int catalog_rows_write(struct catalog_db *db, const struct catalog_batch *b,
		       unsigned int freq_hz);
int catalog_rows_changes(struct catalog_db *db, const struct catalog_batch *b);
/* The row of a process; 0: there is none. */
int catalog_rows_find(struct catalog_db *db, int64_t boot,
		      const struct abi_key *key, int64_t *row);

/* An image as a window has it: by its labels. */
struct catalog_labels {
	const char *process, *image, *comm, *exe, *cgroup, *entry, *service;
	uint32_t pid, entry_pid;
	uint64_t samples, cpu_ns;
};

/* A row of a window. */
struct catalog_window_row {
	const struct store_window *file;
	int64_t boot, run; /* rows; run 0: not known */
	int64_t begin_ns, end_ns;
	uint64_t begin_boot_ns; /* 0: not known */
	uint64_t samples;
};

/* '*id' 0: it was there. */
int catalog_windows_begin(struct catalog_db *db,
			  const struct catalog_window_row *w, int64_t *id);
/*
 * The row of the image, made if it is missing, and its share of the window, to which
 * more may be added.
 */
int catalog_windows_image(struct catalog_db *db, int64_t window,
			  const struct catalog_window_row *w,
			  const struct catalog_labels *l);
/* The losses in the comments of a profile. */
int catalog_windows_losses(struct catalog_db *db, int64_t window,
			   const char *comments, size_t len);
/* 'rest': processes without a row, see rest.h; their number is a loss, too. */
int catalog_windows_add(struct catalog_db *db, const struct catalog_window *w,
			const struct catalog_rest *rest);
int catalog_windows_remove(struct catalog_db *db, const char *file);
/* "DAY/STEM.pb.gz" */
#define CATALOG_NAME_MAX (STORE_DAY_MAX + STORE_FILE_MAX)
void catalog_windows_name(char name[CATALOG_NAME_MAX],
			  const struct store_window *w);

/* --- retention ------------------------------------------------------------------- */

/*
 * Removes processes that ended before the oldest window; and, while the file has more
 * than 'limit' bytes in use, the oldest ones of the user with the most. A bounded
 * number of them.
 */
int catalog_keep_prune(struct catalog_db *db, uint64_t limit);
/* Gives free pages back to the disk, a bounded number. Not in a transaction. */
void catalog_keep_vacuum(struct catalog_db *db);

/* --- windows without rows ---------------------------------------------------------- */

/* Looks for them, or adds one. On a pool thread, one at a time. */
struct catalog;
void catalog_rebuild_step(struct catalog *c);

/* --- the catalog --------------------------------------------------------------- */

/* A process that has a row and is not known to have ended. */
struct catalog_known {
	struct hash_node node; /* by pid */
	uint32_t pid;
	enum pm_end end;
	uint64_t start;
	uint64_t samples, serial; /* of its newest image; as in its row */
	uint64_t turn; /* of the snapshot that had it */
};

struct catalog_job {
	uv_work_t work;
	struct catalog *c;
};

struct catalog_removal {
	STAILQ_ENTRY(catalog_removal) entry;
	char file[CATALOG_NAME_MAX];
};

STAILQ_HEAD(catalog_removals, catalog_removal);

struct catalog {
	struct catalog_opts opts; /* without 'dir' */
	char *dir;

	/* The loop's. */
	struct catalog_batch *open; /* or NULL */
	struct hash known;
	struct catalog_budget budget, changes;
	uint64_t turn; /* snapshots */
	bool first; /* the first one is being made */
	bool stopped;
	bool queued; /* a job is under way */
	uv_timer_t timer; /* of the rebuild */
	char problem[80]; /* as it was returned last */
	struct catalog_run run;

	/* Under 'mutex', which is held for moments only. */
	pthread_mutex_t mutex;
	struct catalog_batches pending;
	size_t pending_bytes;
	struct catalog_removals removed;
	size_t nremoved;
	struct catalog_rest rest; /* since the last window */
	struct catalog_stats stats;
	int err; /* of the last write */
	pid_t reader; /* who held the log then, if that was the cause */
	bool rebuild; /* there is something for catalog_rebuild_step() */

	/* Under 'writer', which is held while the disk is written. */
	pthread_mutex_t writer;
	struct catalog_db db;
	bool ends; /* the last transaction is to come */
	int64_t tried_ns; /* begin of the last window whose job was here */

	/* Of the rebuild's jobs. */
	struct store_list missing;
};

#endif /* REPORTER_CATALOG_INTERNAL_H */
