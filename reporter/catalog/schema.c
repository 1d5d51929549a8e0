// SPDX-License-Identifier: Apache-2.0
/*
 * schema: see reporter/catalog/schema.h and profd-catalog(5). Each index costs about
 * a microsecond per row, so there are only those that a kind of query needs.
 */
#include "reporter/catalog/schema.h"
#include "base/base.h"
#include "reporter/catalog/catalog.h"

/* Before and behind a column of numbers, in views: what they stand for. */
#define SCHEMA_TEXT "(SELECT t.s FROM program g JOIN text t ON t.id = g."
#define SCHEMA_GROUP "(SELECT c."
#define SCHEMA_OF_GROUP \
	" FROM program g JOIN cgroup c ON c.id = g.cgroup" SCHEMA_OF_IMAGE
#define SCHEMA_OF_IMAGE "\n\t\tWHERE g.id = i.program)"
#define SCHEMA_WORD "(SELECT s FROM word WHERE id = p."
/* The id of a process. */
#define SCHEMA_ID "pid || '-' || format('%x', "
#define SCHEMA_ID_END ".start_boot_ns)"

/* Of the bytes of the texts of a user; texts.c adds those of new ones. */
#define SCHEMA_COUNTED(table)                                                \
	"CREATE TRIGGER " table "_removed AFTER DELETE ON " table " BEGIN\n" \
	"	UPDATE text_use SET bytes = bytes -\n"                             \
	"	length(CAST(old.s AS BLOB)) - 16 WHERE uid = old.uid;\n"           \
	"	END;\n"

/* Before and behind a column of nanoseconds: as text, in views. */
#define SCHEMA_UTC "strftime('%Y-%m-%dT%H:%M:%fZ', "
#define SCHEMA_NS " / 1e9, 'unixepoch')"

/* For people; the table, or the view, of images may have more columns. */
#define SCHEMA_VIEW_IMAGES(more)                                                  \
	"CREATE VIEW images AS SELECT i.id, p.process, i.image, i.comm, i.exe,\n" \
	"	i.argv, i.cwd, i.uid, i.gid, i.container, i.pod, i.unit,\n" more  \
	"	" SCHEMA_UTC "i.start_ns" SCHEMA_NS " AS start,\n"                \
	"	" SCHEMA_UTC "i.end_ns" SCHEMA_NS " AS \"end\", i.samples\n"      \
	"	FROM image i JOIN process p ON p.id = i.process;\n"

#define SCHEMA_VIEW_IMAGE(more)                                               \
	"CREATE VIEW image AS SELECT i.id, i.process, (SELECT\n"              \
	"	p." SCHEMA_ID "p" SCHEMA_ID_END "\n"                          \
	"	FROM process_row p WHERE p.id = i.process) || '-' || i.exec\n"      \
	"	AS image, i.start_ns, i.end_ns,\n"                                  \
	"	" SCHEMA_TEXT "comm" SCHEMA_OF_IMAGE " AS comm,\n"            \
	"	" SCHEMA_TEXT "exe" SCHEMA_OF_IMAGE " AS exe,\n"              \
	"	(SELECT a.s FROM args a WHERE a.id = i.args) AS argv,\n"            \
	"	i.args_cut,\n"                                                      \
	"	" SCHEMA_TEXT "cwd" SCHEMA_OF_IMAGE " AS cwd,\n"              \
	"	(SELECT nullif(g.uid, -1) FROM program g\n"                         \
	"		WHERE g.id = i.program) AS uid,\n"                                 \
	"	(SELECT nullif(g.gid, -1) FROM program g\n"                         \
	"		WHERE g.id = i.program) AS gid,\n"                                 \
	"	" SCHEMA_GROUP "path" SCHEMA_OF_GROUP " AS cgroup,\n"         \
	"	" SCHEMA_GROUP "container" SCHEMA_OF_GROUP " AS container,\n" \
	"	" SCHEMA_GROUP "engine" SCHEMA_OF_GROUP " AS engine,\n"       \
	"	" SCHEMA_GROUP "pod" SCHEMA_OF_GROUP " AS pod,\n"             \
	"	" SCHEMA_GROUP "unit" SCHEMA_OF_GROUP " AS unit,\n"           \
	"	" SCHEMA_TEXT "build_id" SCHEMA_OF_IMAGE " AS build_id,\n"    \
	"	i.samples, i.program" more " FROM image_row i;\n"

/* By version. */
#define SCHEMA_IMAGES_3 SCHEMA_VIEW_IMAGES("")
#define SCHEMA_IMAGES_5 SCHEMA_VIEW_IMAGES("	i.service,\n")
#define SCHEMA_IMAGE_4 SCHEMA_VIEW_IMAGE("")
#define SCHEMA_IMAGE_5 SCHEMA_VIEW_IMAGE(", i.service")

const char *const catalog_schema[] = {
	"CREATE TABLE boot(\n"
	"	id INTEGER PRIMARY KEY,\n"
	"	boot_id TEXT NOT NULL UNIQUE);\n"
	"CREATE TABLE process(\n"
	"	id INTEGER PRIMARY KEY,\n"
	"	boot INTEGER NOT NULL REFERENCES boot(id),\n"
	"	process TEXT NOT NULL,\n"
	"	pid INTEGER NOT NULL,\n"
	"	ppid INTEGER,\n"
	"	parent TEXT,\n"
	"	parent_row INTEGER REFERENCES process(id),\n"
	"	start_ns INTEGER,\n"
	"	start_boot_ns INTEGER,\n"
	"	end_ns INTEGER,\n"
	"	reap_ns INTEGER,\n"
	"	seen_ns INTEGER NOT NULL,\n"
	"	state TEXT,\n"
	"	exit_code INTEGER,\n"
	"	signal INTEGER,\n"
	"	core INTEGER,\n"
	"	session INTEGER,\n"
	"	pgid INTEGER,\n"
	"	entry TEXT,\n"
	"	entry_pid INTEGER,\n"
	"	kernel_thread INTEGER NOT NULL DEFAULT 0,\n"
	"	cpu_ns INTEGER,\n"
	"	user_ns INTEGER,\n"
	"	system_ns INTEGER,\n"
	"	cpu TEXT,\n"
	"	samples INTEGER NOT NULL DEFAULT 0,\n"
	"	coverage REAL,\n"
	"	uid INTEGER,\n"
	"	maxrss_bytes INTEGER,\n"
	"	minflt INTEGER,\n"
	"	majflt INTEGER,\n"
	"	UNIQUE(boot, process));\n"
	"CREATE INDEX process_by_pid ON process(pid);\n"
	"CREATE INDEX process_by_parent ON process(parent_row)\n"
	"	WHERE parent_row IS NOT NULL;\n"
	"CREATE INDEX process_by_start ON process(start_ns);\n"
	"CREATE INDEX process_by_end ON process(end_ns);\n"
	"CREATE INDEX process_by_user ON process(uid, end_ns)\n"
	"	WHERE end_ns IS NOT NULL;\n"
	"CREATE INDEX process_by_exit ON process(exit_code)\n"
	"	WHERE exit_code IS NOT NULL;\n"
	"CREATE INDEX process_by_signal ON process(signal)\n"
	"	WHERE signal IS NOT NULL;\n"
	"CREATE TABLE image(\n"
	"	id INTEGER PRIMARY KEY,\n"
	"	process INTEGER NOT NULL REFERENCES process(id),\n"
	"	image TEXT NOT NULL,\n"
	"	start_ns INTEGER,\n"
	"	end_ns INTEGER,\n"
	"	comm TEXT,\n"
	"	exe TEXT,\n"
	"	argv TEXT,\n"
	"	args_cut INTEGER NOT NULL DEFAULT 0,\n"
	"	cwd TEXT,\n"
	"	uid INTEGER,\n"
	"	gid INTEGER,\n"
	"	cgroup TEXT,\n"
	"	container TEXT,\n"
	"	engine TEXT,\n"
	"	pod TEXT,\n"
	"	unit TEXT,\n"
	"	build_id TEXT,\n"
	"	samples INTEGER NOT NULL DEFAULT 0,\n"
	"	UNIQUE(process, image));\n"
	"CREATE INDEX image_by_comm ON image(comm);\n"
	"CREATE INDEX image_by_exe ON image(exe);\n"
	"CREATE TABLE window(\n"
	"	id INTEGER PRIMARY KEY,\n"
	"	file TEXT NOT NULL UNIQUE,\n"
	"	boot INTEGER REFERENCES boot(id),\n"
	"	begin_ns INTEGER NOT NULL,\n"
	"	end_ns INTEGER NOT NULL,\n"
	"	begin_boot_ns INTEGER,\n"
	"	bytes INTEGER NOT NULL,\n"
	"	times_bytes INTEGER NOT NULL,\n"
	"	samples INTEGER NOT NULL);\n"
	"CREATE INDEX window_by_time ON window(begin_ns, end_ns);\n"
	"CREATE TABLE window_image(\n"
	"	window INTEGER NOT NULL REFERENCES window(id),\n"
	"	image INTEGER NOT NULL REFERENCES image(id),\n"
	"	samples INTEGER NOT NULL,\n"
	"	cpu_ns INTEGER NOT NULL,\n"
	"	PRIMARY KEY(window, image)) WITHOUT ROWID;\n"
	"CREATE INDEX window_by_image ON window_image(image);\n"
	"CREATE TABLE loss(\n"
	"	window INTEGER NOT NULL REFERENCES window(id),\n"
	"	cause TEXT NOT NULL,\n"
	"	count INTEGER NOT NULL,\n"
	"	PRIMARY KEY(window, cause)) WITHOUT ROWID;\n",
	/* Execs in the order of time, for events. */
	"CREATE INDEX image_by_start ON image(start_ns);\n",
	/* Runs of profd, changes, what has no row, control groups; and views. */
	"CREATE TABLE run(\n"
	"	id INTEGER PRIMARY KEY,\n"
	"	boot INTEGER NOT NULL REFERENCES boot(id),\n"
	"	start_ns INTEGER NOT NULL,\n"
	"	start_boot_ns INTEGER NOT NULL,\n"
	"	alive_ns INTEGER NOT NULL,\n"
	"	end_ns INTEGER,\n"
	"	version TEXT,\n"
	"	freq_hz INTEGER,\n"
	"	UNIQUE(boot, start_boot_ns));\n"
	"ALTER TABLE window ADD COLUMN run INTEGER REFERENCES run(id);\n"
	"CREATE TABLE change(\n"
	"	id INTEGER PRIMARY KEY,\n"
	"	boot INTEGER NOT NULL REFERENCES boot(id),\n"
	"	time_ns INTEGER NOT NULL,\n"
	"	time_boot_ns INTEGER NOT NULL,\n"
	"	kind TEXT NOT NULL,\n"
	"	process TEXT,\n"
	"	image TEXT,\n"
	"	comm TEXT,\n"
	"	uid INTEGER,\n"
	"	gid INTEGER,\n"
	"	cgroup TEXT,\n"
	"	detail TEXT);\n"
	"CREATE INDEX change_by_kind ON change(kind, time_ns);\n"
	"CREATE INDEX change_by_process ON change(process)\n"
	"	WHERE process IS NOT NULL;\n"
	"CREATE TABLE rest(\n"
	"	window INTEGER NOT NULL REFERENCES window(id),\n"
	"	uid INTEGER NOT NULL,\n"
	"	comm TEXT NOT NULL,\n"
	"	exe TEXT NOT NULL,\n"
	"	count INTEGER NOT NULL,\n"
	"	failed INTEGER NOT NULL,\n"
	"	cpu_ns INTEGER NOT NULL,\n"
	"	PRIMARY KEY(window, uid, comm, exe)) WITHOUT ROWID;\n"
	"CREATE TABLE cgroup(\n"
	"	id INTEGER PRIMARY KEY,\n"
	"	path TEXT NOT NULL UNIQUE,\n"
	"	seen_ns INTEGER NOT NULL);\n"
	"DROP INDEX window_by_image;\n"
	"ALTER TABLE window_image RENAME TO window_image_2;\n"
	"CREATE TABLE window_image(\n"
	"	window INTEGER NOT NULL REFERENCES window(id),\n"
	"	image INTEGER NOT NULL REFERENCES image(id),\n"
	"	cgroup INTEGER NOT NULL DEFAULT 0,\n"
	"	samples INTEGER NOT NULL,\n"
	"	cpu_ns INTEGER NOT NULL,\n"
	"	PRIMARY KEY(window, image, cgroup)) WITHOUT ROWID;\n"
	"INSERT INTO window_image\n"
	"	SELECT window, image, 0, samples, cpu_ns FROM window_image_2;\n"
	"DROP TABLE window_image_2;\n"
	"CREATE INDEX window_by_image ON window_image(image);\n"
	/* Those without samples go first. */
	"DROP INDEX process_by_user;\n"
	"CREATE INDEX process_by_user ON process(uid, samples > 0, end_ns)\n"
	"	WHERE end_ns IS NOT NULL;\n"
	"CREATE VIEW processes AS SELECT p.id, p.process, p.pid, p.ppid,\n"
	"	p.parent, i.comm, i.exe, i.argv, i.uid, i.container, i.unit,\n"
	"	" SCHEMA_UTC "p.start_ns" SCHEMA_NS " AS start,\n"
	"	" SCHEMA_UTC "p.end_ns" SCHEMA_NS
	" AS \"end\", p.state, p.exit_code,\n"
	"	p.signal, p.cpu_ns / 1e9 AS cpu_s, p.samples, p.coverage\n"
	"	FROM process p LEFT JOIN image i ON i.id = (SELECT id\n"
	"	FROM image WHERE process = p.id\n"
	"	ORDER BY start_ns DESC, id DESC LIMIT 1);\n" SCHEMA_IMAGES_3
	"CREATE VIEW windows AS SELECT w.id, w.file,\n"
	"	" SCHEMA_UTC "w.begin_ns" SCHEMA_NS " AS begin,\n"
	"	" SCHEMA_UTC "w.end_ns" SCHEMA_NS " AS \"end\", w.samples,\n"
	"	w.bytes + w.times_bytes AS bytes, r.version AS profd\n"
	"	FROM window w LEFT JOIN run r ON r.id = w.run;\n"
	"CREATE VIEW events AS\n"
	"	SELECT " SCHEMA_UTC "start_ns" SCHEMA_NS
	" AS time, 'fork' AS event,\n"
	"	process, NULL AS image, ppid AS detail FROM process\n"
	"	WHERE start_ns IS NOT NULL\n"
	"	UNION ALL SELECT " SCHEMA_UTC "i.start_ns" SCHEMA_NS
	", 'exec',\n"
	"	p.process, i.image, i.exe\n"
	"	FROM image i JOIN process p ON p.id = i.process\n"
	"	WHERE i.start_ns > p.start_ns\n"
	"	UNION ALL SELECT " SCHEMA_UTC "end_ns" SCHEMA_NS
	", 'exit', process,\n"
	"	NULL, ifnull(exit_code, 'signal ' || signal) FROM process\n"
	"	WHERE end_ns IS NOT NULL\n"
	"	UNION ALL SELECT " SCHEMA_UTC "time_ns" SCHEMA_NS
	", kind, process,\n"
	"	image, CASE kind WHEN 'rename' THEN comm\n"
	"	WHEN 'id_change' THEN uid || ':' || gid\n"
	"	WHEN 'cgroup' THEN cgroup ELSE detail END FROM change;\n",
	/*
	 * Texts by number. The tables of rows are beside those of version 3 until all
	 * rows have been copied; see convert.c.
	 */
	"CREATE TABLE word(id INTEGER PRIMARY KEY, s TEXT NOT NULL UNIQUE);\n"
	"INSERT INTO word(s) VALUES('alive'), ('exited'), ('reaped'),\n"
	"	('vanished'), ('now'), ('provisional'), ('exact');\n"
	"CREATE TABLE text_use(\n"
	"	uid INTEGER PRIMARY KEY,\n"
	"	bytes INTEGER NOT NULL);\n"
	"CREATE TABLE text(\n"
	"	id INTEGER PRIMARY KEY,\n"
	"	s TEXT NOT NULL UNIQUE,\n"
	"	uid INTEGER NOT NULL);\n"
	"CREATE TABLE args(\n"
	"	id INTEGER PRIMARY KEY,\n"
	"	s TEXT NOT NULL,\n"
	"	uid INTEGER NOT NULL);\n" SCHEMA_COUNTED("text") SCHEMA_COUNTED(
		"args") "ALTER TABLE cgroup ADD COLUMN container TEXT;\n"
			"ALTER TABLE cgroup ADD COLUMN engine TEXT;\n"
			"ALTER TABLE cgroup ADD COLUMN pod TEXT;\n"
			"ALTER TABLE cgroup ADD COLUMN unit TEXT;\n"
			"CREATE TABLE program(\n"
			"	id INTEGER PRIMARY KEY,\n"
			"	comm INTEGER NOT NULL,\n"
			"	exe INTEGER NOT NULL,\n"
			"	cwd INTEGER NOT NULL,\n"
			"	build_id INTEGER NOT NULL,\n"
			"	cgroup INTEGER NOT NULL,\n"
			"	uid INTEGER NOT NULL,\n"
			"	gid INTEGER NOT NULL,\n"
			"	UNIQUE(comm, exe, cwd, build_id, cgroup, uid, gid));\n"
			"CREATE INDEX program_by_exe ON program(exe);\n"
			"CREATE INDEX program_by_cwd ON program(cwd);\n"
			"CREATE INDEX program_by_build_id ON program(build_id);\n"
			"CREATE INDEX program_by_cgroup ON program(cgroup);\n"
			"CREATE TABLE process_row(\n"
			"	id INTEGER PRIMARY KEY,\n"
			"	boot INTEGER NOT NULL REFERENCES boot(id),\n"
			"	pid INTEGER NOT NULL,\n"
			"	start_boot_ns INTEGER NOT NULL,\n"
			"	ppid INTEGER,\n"
			"	parent_row INTEGER REFERENCES process_row(id),\n"
			"	parent_pid INTEGER,\n"
			"	parent_start_boot_ns INTEGER,\n"
			"	start_ns INTEGER,\n"
			"	end_ns INTEGER,\n"
			"	reap INTEGER,\n"
			"	seen INTEGER NOT NULL,\n"
			"	state INTEGER,\n"
			"	exit_code INTEGER,\n"
			"	signal INTEGER,\n"
			"	core INTEGER,\n"
			"	session INTEGER,\n"
			"	pgid INTEGER,\n"
			"	entry INTEGER,\n"
			"	entry_pid INTEGER,\n"
			"	kernel_thread INTEGER NOT NULL DEFAULT 0,\n"
			"	cpu_ns INTEGER,\n"
			"	user_ns INTEGER,\n"
			"	system_ns INTEGER,\n"
			"	cpu INTEGER,\n"
			"	samples INTEGER NOT NULL DEFAULT 0,\n"
			"	coverage REAL,\n"
			"	uid INTEGER,\n"
			"	maxrss_bytes INTEGER,\n"
			"	minflt INTEGER,\n"
			"	majflt INTEGER,\n"
			"	UNIQUE(pid, start_boot_ns, boot));\n"
			"CREATE INDEX process_row_by_parent ON process_row(parent_row)\n"
			"	WHERE parent_row IS NOT NULL;\n"
			"CREATE INDEX process_row_by_start ON process_row(start_ns);\n"
			"CREATE INDEX process_row_by_end ON process_row(end_ns);\n"
			"CREATE INDEX process_row_by_user ON process_row(\n"
			"	uid, samples > 0, end_ns) WHERE end_ns IS NOT NULL;\n"
			"CREATE INDEX process_row_by_exit ON process_row(exit_code)\n"
			"	WHERE exit_code > 0;\n"
			"CREATE INDEX process_row_by_signal ON process_row(signal)\n"
			"	WHERE signal IS NOT NULL;\n"
			"CREATE TABLE image_row(\n"
			"	id INTEGER PRIMARY KEY,\n"
			"	process INTEGER NOT NULL REFERENCES process_row(id),\n"
			"	exec INTEGER NOT NULL,\n"
			"	start_ns INTEGER,\n"
			"	end_ns INTEGER,\n"
			"	program INTEGER NOT NULL REFERENCES program(id),\n"
			"	args INTEGER REFERENCES args(id),\n"
			"	args_cut INTEGER NOT NULL DEFAULT 0,\n"
			"	samples INTEGER NOT NULL DEFAULT 0,\n"
			"	UNIQUE(process, exec));\n"
			"CREATE INDEX image_row_by_start ON image_row(start_ns);\n"
			"CREATE INDEX image_row_by_program ON image_row(program, args);\n",
	/* Services: a name has 128 bytes at most, so it is in the row. */
	"ALTER TABLE image_row ADD COLUMN service TEXT;\n"
	"CREATE INDEX image_row_by_service ON image_row(service)\n"
	"	WHERE service IS NOT NULL;\n",
};

_Static_assert(ARRAY_SIZE(catalog_schema) == CATALOG_VERSION,
	       "a step for each version");

const char catalog_schema_end[] =
	"DROP TABLE image;\n"
	"DROP TABLE process;\n"
	"CREATE VIEW process AS SELECT p.id, p.boot,\n"
	"	p." SCHEMA_ID "p" SCHEMA_ID_END " AS process,\n"
	"	p.pid, p.ppid, CASE WHEN p.parent_row IS NULL\n"
	"	THEN p.parent_pid || '-' || format('%x',\n"
	"		p.parent_start_boot_ns) ELSE (SELECT\n"
	"		q." SCHEMA_ID "q" SCHEMA_ID_END "\n"
	"		FROM process_row q WHERE q.id = p.parent_row)\n"
	"	END AS parent, p.parent_row, p.start_ns, p.start_boot_ns,\n"
	"	p.end_ns, p.end_ns + p.reap AS reap_ns,\n"
	"	ifnull(p.end_ns, 0) + p.seen AS seen_ns,\n"
	"	" SCHEMA_WORD "state) AS state,\n"
	"	p.exit_code, p.signal, p.core, p.session, p.pgid,\n"
	"	" SCHEMA_WORD "entry) AS entry,\n"
	"	p.entry_pid, p.kernel_thread,\n"
	"	p.cpu_ns, p.user_ns, p.system_ns,\n"
	"	" SCHEMA_WORD "cpu) AS cpu,\n"
	"	p.samples, p.coverage, p.uid,\n"
	"	p.maxrss_bytes, p.minflt, p.majflt FROM process_row p;\n" SCHEMA_IMAGE_4;

const char catalog_schema_views[] =
	"DROP VIEW images;\n"
	"DROP VIEW image;\n" SCHEMA_IMAGE_5 SCHEMA_IMAGES_5;

const char *const catalog_statements[] = {
#define X(NAME, sql) [CATALOG_##NAME] = sql,
	CATALOG_STATEMENTS(X)
#undef X
};
