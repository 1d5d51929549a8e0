// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_symbolize_profile: profd symbolize-profile. Adds names, inlined functions and
 * lines to an existing profile, from files that have the build ids of its mappings:
 * at the mapping's path, below the directories of debug files, or, if the profile is
 * of this boot, the running kernel. A file with another build id is never used.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/cmd/cmd.h"
#include "profiler/cmd/lines.h"
#include "profiler/inspect/naming.h"
#include "reporter/reporter.h"

#define RENAME_SLICE 16384 /* addresses looked up together */
#define RENAME_REPORTED 20 /* mappings in messages */
#define RENAME_DIR "/usr/lib/debug"
#define RENAME_ID_MAX 64 /* bytes of a build id */

/* A location that lacks a name or a line. */
struct rename_want {
	size_t mapping, location;
	uint64_t address;
};

struct rename {
	const struct options *o;
	const char *in;
	struct reporter_profile *p;
	struct naming *n;
	bool ours; /* written by profd: addresses are those in the file */
	bool this_boot;
	struct rename_want *wants; /* by mapping and address */
	size_t nwants, named;
	/*
	 * Mappings that have such locations, those whose file was read, and
	 * those with a file of another build id.
	 */
	size_t mappings, read, other;
	char last[256]; /* the last message */
	size_t reported;
	/* The current mapping. */
	struct reporter_profile_mapping map;
	uint8_t id[RENAME_ID_MAX];
	size_t id_len;
	struct symbolizer_file *file;
	bool stale; /* a file with another build id was found */
	/* The current slice of it. */
	struct rename_want *slice;
	uint64_t offsets[RENAME_SLICE];
	size_t nslice;
	int err;
};

/* --- messages ---------------------------------------------------------------- */

/* Once for the segments of a file, which follow each other. */
static void rename_report(struct rename *r, const char *why)
{
	struct strbuf sb = STRBUF_INIT;

	strbuf_puts(&sb, "profd: ");
	lines_text(&sb, *r->map.path ? r->map.path : "a mapping without path");
	strbuf_printf(&sb, ": %s\n", why);
	if (!r->o->quiet && !sb.failed &&
	    strncmp(sb.data, r->last, sizeof(r->last) - 1) != 0) {
		snprintf(r->last, sizeof(r->last), "%s", sb.data);
		if (r->reported++ < RENAME_REPORTED)
			fputs(sb.data, stderr);
	}
	strbuf_fini(&sb);
}

/* --- the file of a mapping --------------------------------------------------- */

static bool rename_parse_id(struct rename *r)
{
	const char *s = r->map.build_id;
	size_t len = strlen(s);

	if (!len || len % 2 || len / 2 > sizeof(r->id) ||
	    strspn(s, "0123456789abcdefABCDEF") != len)
		return false;
	for (size_t i = 0; i < len / 2; i++) {
		char pair[3] = { s[2 * i], s[2 * i + 1] };

		r->id[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
	r->id_len = len / 2;
	return true;
}

/* Whether to look at no further path. */
static bool rename_try(struct rename *r, const char *path)
{
	int err = naming_open(r->n, path, r->id, r->id_len, &r->file);

	r->stale |= err == -ESTALE;
	/* Of a debug file the addresses must be those in the file already. */
	if (!err && naming_is_debug(r->file) && !r->ours &&
	    strcmp(path, NAMING_KERNEL) != 0) {
		naming_close(r->n, r->file);
		r->file = NULL;
	}
	return r->file;
}

/* The executable or its debug file, below a directory of debug files. */
static bool rename_try_dir(struct rename *r, const char *dir)
{
	char path[2 * sizeof(r->map.path)], id[2 * RENAME_ID_MAX + 1];
	size_t i;

	for (i = 0; i < r->id_len; i++)
		snprintf(id + 2 * i, 3, "%02x", r->id[i]);
	snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s", dir, id, id + 2);
	if (rename_try(r, path))
		return true;
	if (r->map.path[0] == '/') {
		snprintf(path, sizeof(path), "%s%s", dir, r->map.path);
		if (rename_try(r, path))
			return true;
	}
	snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", dir, id,
		 id + 2);
	return rename_try(r, path);
}

/* The debug file alone is enough: addresses are those in the file. */
static void rename_fetch(struct rename *r)
{
	const char *dir = r->ours ? naming_fetch(r->n, r->id, r->id_len) : NULL;

	if (dir)
		rename_try_dir(r, dir);
}

/* Opens the file of the current mapping; or reports why there is none. */
static bool rename_open(struct rename *r)
{
	const struct options_strings *dirs = &r->o->debug_dir;
	bool kernel = !strcmp(r->map.path, NAMING_KERNEL);
	size_t i;

	r->file = NULL;
	r->stale = false;
	if (!rename_parse_id(r)) {
		rename_report(r, "has no build id");
		return false;
	}
	if (kernel && !r->this_boot) {
		rename_report(r,
			      "is not known to be of this boot of this host");
		return false;
	}
	if (kernel || r->map.path[0] == '/' ||
	    !strcmp(r->map.path, NAMING_VDSO))
		rename_try(r, r->map.path);
	for (i = 0; i < dirs->n && !r->file && !kernel; i++)
		rename_try_dir(r, dirs->items[i]);
	if (!dirs->n && !r->file && !kernel)
		rename_try_dir(r, RENAME_DIR);
	if (!r->file && !kernel)
		rename_fetch(r);
	if (r->file)
		return true;
	r->other += r->stale;
	rename_report(r, r->stale ? "the file has another build id"
				  : "no file with its build id");
	return false;
}

/* --- names -------------------------------------------------------------------- */

static bool rename_has_line(const struct symbolizer_symbol *sym)
{
	for (size_t i = 0; i < sym->nfunctions; i++)
		if (sym->functions[i].line)
			return true;
	return false;
}

static int rename_location(struct rename *r, size_t location,
			   const struct symbolizer_symbol *sym)
{
	struct reporter_function *fns = calloc(sym->nfunctions, sizeof(*fns));
	struct reporter_line *lines = calloc(sym->nfunctions, sizeof(*lines));
	int err = fns && lines ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < sym->nfunctions; i++) {
		fns[i] = (struct reporter_function){
			.name = sym->functions[i].name,
			.system_name = sym->functions[i].system_name,
			.file = sym->functions[i].file,
			.start_line = sym->functions[i].start_line,
		};
		lines[i].function = &fns[i];
		lines[i].line = sym->functions[i].line;
	}
	if (!err)
		err = reporter_profile_set(r->p, location, lines,
					   sym->nfunctions);
	free(fns);
	free(lines);
	return err;
}

static void rename_on_names(void *arg, int err,
			    const struct symbolizer_symbol *syms, size_t n)
{
	struct reporter_profile_location l;
	struct rename *r = arg;

	for (size_t i = 0; i < n && !r->err; i++) {
		reporter_profile_location(r->p, r->slice[i].location, &l);
		/* A name that is there is replaced only for its lines. */
		if (!syms[i].nfunctions ||
		    (l.named && !rename_has_line(&syms[i])))
			continue;
		r->err = rename_location(r, r->slice[i].location, &syms[i]);
		r->named++;
	}
}

/*
 * Looks up 'n' locations of the current mapping. pprof's offset in a file is that
 * of the address in the mapping, which holds for addresses of profd too.
 */
static int rename_slice(struct rename *r, struct rename_want *wants, size_t n)
{
	bool vaddrs = naming_is_debug(r->file);
	int err;

	r->slice = wants;
	for (size_t i = 0; i < n; i++)
		r->offsets[i] = vaddrs ? wants[i].address
				       : wants[i].address - r->map.start +
						 r->map.offset;
	err = naming_resolve(r->n, r->file, r->offsets, n, rename_on_names, r);
	if (err) {
		rename_report(r, symbolizer_problem(err));
		return 0;
	}
	return r->err;
}

/* The locations of one mapping. */
static int rename_mapping(struct rename *r, struct rename_want *wants, size_t n)
{
	struct rename_want *end = wants + n;
	size_t len;
	int err = 0;

	reporter_profile_mapping(r->p, wants->mapping, &r->map);
	r->mappings++;
	if (!rename_open(r))
		return 0;
	r->read++;
	for (; wants < end && !err; wants += len) {
		len = MIN((size_t)(end - wants), (size_t)RENAME_SLICE);
		err = rename_slice(r, wants, len);
	}
	if (symbolizer_relocation(r->file))
		rename_report(r, "has relocations that are not known: names "
				 "without lines");
	naming_close(r->n, r->file);
	return err;
}

/* --- the profile --------------------------------------------------------------- */

static int rename_compare(const void *a, const void *b)
{
	const struct rename_want *x = a, *y = b;

	if (x->mapping != y->mapping)
		return x->mapping < y->mapping ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static int rename_list(struct rename *r)
{
	size_t n = reporter_profile_locations(r->p);
	struct reporter_profile_location l;

	r->wants = calloc(n + 1, sizeof(*r->wants));
	if (!r->wants)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		reporter_profile_location(r->p, i, &l);
		if ((l.named && l.lined) || l.mapping == REPORTER_PROFILE_NONE)
			continue;
		r->wants[r->nwants++] =
			(struct rename_want){ l.mapping, i, l.address };
	}
	qsort(r->wants, r->nwants, sizeof(*r->wants), rename_compare);
	return 0;
}

static bool rename_is_this_boot(const struct rename *r, const char *host)
{
	char name[256];
	struct timespec now;
	int64_t at = reporter_profile_time(r->p), wall;

	if (gethostname(name, sizeof(name)) || strcmp(name, host) != 0)
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	wall = now.tv_sec * (int64_t)CLOCK_NSEC_PER_SEC + now.tv_nsec;
	return at <= wall && at > wall - (int64_t)clock_boottime_ns();
}

/* From the comment "profd VERSION HOST". */
static void rename_find_origin(struct rename *r)
{
	char text[512], *host;

	for (size_t i = 0;
	     !r->ours && reporter_profile_comment(r->p, i, text, sizeof(text));
	     i++) {
		host = strrchr(text, ' ');
		r->ours = !strncmp(text, "profd ", 6) && host > text + 6;
		r->this_boot = r->ours && rename_is_this_boot(r, host + 1);
	}
}

static int rename_all(struct rename *r)
{
	size_t i, n;
	int err = rename_list(r);

	rename_find_origin(r);
	if (!err)
		err = naming_new(&r->n, r->o);
	for (i = 0; i < r->nwants && !err; i += n) {
		n = 1;
		while (i + n < r->nwants &&
		       r->wants[i + n].mapping == r->wants[i].mapping)
			n++;
		err = rename_mapping(r, &r->wants[i], n);
	}
	naming_free(r->n);
	free(r->wants);
	return err ? cmd_fail("%s: %s", r->in, strerror(-err)) : 0;
}

/* --- files ----------------------------------------------------------------------- */

/* Reads the profile; an exit status. '*st' is set even if that fails. */
static int rename_read(struct rename *r, struct stat *st)
{
	const char *what = NULL;
	int err = 0, fd = open(r->in, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	memset(st, 0, sizeof(*st));
	if (fd < 0 || fstat(fd, st))
		err = -errno;
	if (!err)
		err = reporter_profile_read(fd, &r->p, &what);
	if (fd >= 0)
		close(fd);
	return err ? cmd_fail("%s: %s", r->in, what ? what : strerror(-err))
		   : 0;
}

/* An exit status. */
static int rename_check_output(const struct rename *r, const struct stat *in,
			       int *format)
{
	struct options o = *r->o;
	struct stat st;

	o.output = o.named_output;
	if (!strcmp(o.output, "-")) {
		*format = REPORTER_GZIP;
		return isatty(STDOUT_FILENO)
			       ? cmd_fail("standard output is a terminal")
			       : 0;
	}
	if (strcmp(o.output, r->in) != 0 && !stat(o.output, &st) &&
	    st.st_dev == in->st_dev && st.st_ino == in->st_ino)
		return cmd_fail("%s: the same file as %s", o.output, r->in);
	return cmd_check_output("symbolize-profile", &o, format);
}

static int rename_write(struct rename *r, int format)
{
	const char *path = r->o->named_output;
	struct reporter_outfile file;
	int err;

	if (!strcmp(path, "-")) {
		err = reporter_profile_write(r->p, STDOUT_FILENO, format);
		return err ? cmd_fail("standard output: %s", strerror(-err))
			   : 0;
	}
	err = reporter_outfile_open(&file, path);
	if (!err) {
		err = reporter_profile_write(r->p, file.fd, format);
		if (!err)
			err = reporter_outfile_commit(&file);
		if (err)
			reporter_outfile_abort(&file);
		else
			reporter_outfile_fini(&file);
	}
	return err ? cmd_fail("%s: %s", path, strerror(-err)) : 0;
}

static void rename_summary(const struct rename *r)
{
	if (r->o->quiet)
		return;
	if (r->reported > RENAME_REPORTED)
		fprintf(stderr, "profd: and %zu such messages more\n",
			r->reported - RENAME_REPORTED);
	fprintf(stderr,
		"profd: %zu of %zu locations without name or line named; of "
		"%zu mappings %zu read, %zu with another build id, %zu "
		"without a file\n",
		r->named, r->nwants, r->mappings, r->read, r->other,
		r->mappings - r->read - r->other);
}

int cmd_symbolize_profile(const struct options *o)
{
	struct rename *r;
	struct stat in;
	int format, status;

	if (o->nargs != 1 || !o->named_output)
		return cmd_usage("symbolize-profile", "needs IN and -o OUT");
	r = calloc(1, sizeof(*r));
	if (!r)
		return cmd_fail("%s", strerror(ENOMEM));
	r->o = o;
	r->in = o->args[0];
	status = rename_read(r, &in);
	if (!status)
		status = rename_check_output(r, &in, &format);
	if (!status)
		status = rename_all(r);
	if (!status)
		status = rename_write(r, format);
	if (!status)
		rename_summary(r);
	reporter_profile_free(r->p);
	free(r);
	return status;
}
