// SPDX-License-Identifier: Apache-2.0
/*
 * rows_check FILE...: compares the unwind rows of each file with those of readelf of
 * binutils for the same CFI, every register, at every address: for each row of
 * readelf, all rows of profd within it; then gaps. Files that are not ELF programs or
 * libraries of x86-64 are skipped.
 *
 * Differences that are not errors, counted by name:
 *  outside  functions in no executable segment: left over by the linker where it
 *           removed the code, mostly at address 0
 *  overlap  one address in two functions: profd takes the one that starts last, of
 *           equal starts the first, and .eh_frame before .debug_frame
 *  go-rbp   a Go function keeps rbp below its return address, which is missing in
 *           its .debug_frame and known from .gopclntab and its code
 *  go-root  a Go function without a caller, likewise
 *  go-sig   where Go has signal handlers return to
 *  go-only  rows of a Go program without .debug_frame: nothing to compare with
 *  known    rows of known code without CFI; only where the file has no rows, all
 *           others stay as they are
 */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "symbolize/rows/gopclntab.h"
#include "symbolize/rows/rows.h"

#define CFA SYMBOLIZER_REGS
#define CELLS (SYMBOLIZER_REGS + 1)
#define SHOWN 20 /* differences of a file */

/* A register in readelf's output: 'u', 's', 'c', 'v', 'r'(eg), 'e', 'x'. */
struct cell {
	char kind;
	int reg;
	long n;
};

struct line {
	uint64_t at;
	struct cell cells[CELLS];
};

struct func {
	uint64_t start, end;
	size_t seq;
	bool debug, outside;
};

/* A difference, until it is known whether another function has the address. */
struct diff {
	uint64_t at;
	size_t seq; /* of the function */
	char text[120];
};

struct list {
	void *v;
	size_t n, cap;
};

struct check {
	struct symbolizer_elf elf;
	struct symbolizer_rows *rows; /* from the file */
	struct symbolizer_rows *all; /* ... and from known code */
	struct symbolizer_rows_info info;
	uint64_t *at; /* of profd's rows */
	uint16_t *rule;
	struct list lines, cies, funcs, diffs;
	bool debug; /* in .debug_frame */
	bool go; /* there is a .gopclntab */
	bool any_debug; /* functions in .debug_frame */
	int columns[40], n_columns; /* register of each; -1: none of ours */
	struct func cur;
	bool in_func, in_cie;
	uint64_t cie;
};

/* The last line of a common entry: of functions without lines of their own. */
struct cie {
	uint64_t offset;
	bool debug;
	struct line line;
};

static size_t total_files, total_rows, total_funcs, total_diffs;
static size_t total_outside, total_overlap, total_passed;
static size_t total_go_rbp, total_go_root, total_go_sig, total_go_only,
	total_known;

static const char *const names[] = {
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
	"r9",  "r10", "r11", "r12", "r13", "r14", "r15", "ra",
};

static void *add(struct list *l, size_t size)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 64;
		l->v = realloc(l->v, l->cap * size);
		if (!l->v)
			exit(3);
	}
	return (char *)l->v + l->n++ * size;
}

static int reg_of(const char *name, size_t len)
{
	for (int i = 0; i < SYMBOLIZER_REGS; i++)
		if (strlen(names[i]) == len && !memcmp(names[i], name, len))
			return i;
	if (len == 3 && !memcmp(name, "rip", 3))
		return SYMBOLIZER_REG_RA;
	return -1;
}

/* --- one row of readelf against one of profd ------------------------------- */

static bool cell_is(const struct cell *c, const struct symbolizer_value *v,
		    int reg)
{
	switch (c->kind) {
	case 'u':
		if (reg == SYMBOLIZER_REG_RA)
			return v->from == SYMBOLIZER_UNDEFINED ||
			       v->from == SYMBOLIZER_ELSEWHERE;
		return v->from == SYMBOLIZER_SAME ||
		       v->from == SYMBOLIZER_UNDEFINED ||
		       (reg == 7 && v->from == SYMBOLIZER_CFA && v->n == 0);
	case 's':
		return v->from == SYMBOLIZER_SAME ||
		       (reg == 7 && v->from == SYMBOLIZER_REG && v->reg == 7 &&
			v->n == 0);
	case 'c':
		return v->from == SYMBOLIZER_AT_CFA && v->n == c->n;
	case 'v':
		return v->from == SYMBOLIZER_CFA && v->n == c->n;
	case 'r':
		return v->from == SYMBOLIZER_REG && v->reg == c->reg &&
		       v->n == c->n;
	case 'e': /* in memory at an expression; or, of the CFA, it is one */
		if (reg != CFA)
			return v->from == SYMBOLIZER_AT_EXPR ||
			       v->from == SYMBOLIZER_AT_REG;
		return v->from == SYMBOLIZER_EXPR ||
		       v->from == SYMBOLIZER_PLT ||
		       v->from == SYMBOLIZER_AT_REG;
	default:
		return v->from == SYMBOLIZER_EXPR ||
		       v->from == SYMBOLIZER_REG ||
		       v->from == SYMBOLIZER_AT_REG;
	}
}

static void differ(struct check *k, uint64_t at, const char *what,
		   const struct cell *c, const struct symbolizer_value *v)
{
	struct diff *d = add(&k->diffs, sizeof(*d));

	d->at = at;
	d->seq = k->cur.seq;
	snprintf(d->text, sizeof(d->text),
		 "%s: readelf %c reg %d n %ld, ours from %d reg %d n %d", what,
		 c->kind, c->reg, c->n, v->from, v->reg, v->n);
}

/* Where Go's own table has more; see above. */
static bool go_knows(const struct check *k, const struct cell *c,
		     const struct symbolizer_value *v, int reg)
{
	if (!k->go || !k->debug)
		return false;
	if (reg == 6 && c->kind == 'u' && v->from == SYMBOLIZER_AT_CFA &&
	    v->n == -16) {
		total_go_rbp++;
		return true;
	}
	if (reg == SYMBOLIZER_REG_RA && c->kind == 'c' && c->n == -8 &&
	    (v->from == SYMBOLIZER_UNDEFINED ||
	     v->from == SYMBOLIZER_ELSEWHERE)) {
		total_go_root++;
		return true;
	}
	return false;
}

static void compare_row(struct check *k, uint64_t at, const struct line *line,
			uint16_t id)
{
	struct symbolizer_rule rule;

	symbolizer_rows_rule(k->rows, id, &rule);
	if (k->go && k->debug && rule.signal) {
		total_go_sig++;
		return;
	}
	if (!cell_is(&line->cells[CFA], &rule.cfa, CFA))
		differ(k, at, "CFA", &line->cells[CFA], &rule.cfa);
	for (int i = 0; i < SYMBOLIZER_REGS; i++)
		if (!cell_is(&line->cells[i], &rule.regs[i], i) &&
		    !go_knows(k, &line->cells[i], &rule.regs[i], i))
			differ(k, at, names[i], &line->cells[i], &rule.regs[i]);
}

/* The last of profd's rows that begins at or before 'at', or n. */
static size_t row_before(const struct check *k, uint64_t at)
{
	size_t lo = 0, hi = k->info.rows, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (k->at[mid] <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? lo - 1 : k->info.rows;
}

/* All of profd's rows in [from, to), in which readelf has one rule. */
static void compare_span(struct check *k, const struct line *line,
			 uint64_t from, uint64_t to)
{
	size_t i = row_before(k, from);

	if (symbolizer_rows_find(k->rows, from) !=
		    (i < k->info.rows ? k->rule[i] : 0) ||
	    (!(k->go && k->debug) &&
	     symbolizer_rows_find(k->rows, to - 1) !=
		     symbolizer_rows_find(k->rows, from))) {
		struct symbolizer_value none = { 0 };

		differ(k, from, "look-up", &line->cells[CFA], &none);
	}
	compare_row(k, from, line, i < k->info.rows ? k->rule[i] : 0);
	for (i = i == k->info.rows ? 0 : i + 1;
	     i < k->info.rows && k->at[i] < to; i++)
		compare_row(k, k->at[i], line, k->rule[i]);
}

static bool is_outside(struct check *k, uint64_t at)
{
	Elf64_Phdr ph;

	for (uint16_t i = 0; i < k->elf.phnum; i++)
		if (!symbolizer_elf_phdr(&k->elf, i, &ph) &&
		    ph.p_type == PT_LOAD && (ph.p_flags & PF_X) &&
		    at >= ph.p_vaddr && at - ph.p_vaddr < ph.p_memsz)
			return false;
	return true;
}

/* A function of readelf is complete. */
static void end_func(struct check *k)
{
	const struct line *l = k->lines.v;
	size_t n = k->lines.n;
	uint64_t to;

	k->in_func = false;
	k->cur.seq = k->funcs.n;
	k->cur.debug = k->debug;
	k->any_debug |= k->debug;
	k->cur.outside = is_outside(k, k->cur.start);
	if (k->cur.end <= k->cur.start)
		return;
	*(struct func *)add(&k->funcs, sizeof(k->cur)) = k->cur;
	total_outside += k->cur.outside;
	if (k->cur.outside)
		return;
	for (size_t i = 0; i < n; i++) {
		to = i + 1 < n ? MIN(l[i + 1].at, k->cur.end) : k->cur.end;
		if (l[i].at < to)
			compare_span(k, &l[i], l[i].at, to);
	}
}

/* --- the text of readelf ---------------------------------------------------- */

static struct cell parse_cell(const char *s, size_t len)
{
	struct cell c = { .kind = '?' };
	size_t name = 0;

	while (name < len && s[name] != '+' && s[name] != '-')
		name++;
	c.n = name < len ? strtol(s + name, NULL, 10) : 0;
	/* A register as a place is called by its DWARF number first. */
	if (s[0] == 'r' && name == len && len > 1 && isdigit(s[1]))
		c.reg = atoi(s + 1);
	else
		c.reg = reg_of(s, name);
	if (c.reg >= 0)
		c.kind = 'r';
	else if (len == 3 && !memcmp(s, "exp", 3))
		c.kind = 'e';
	else if (len == 4 && !memcmp(s, "vexp", 4))
		c.kind = 'x';
	else if (name == 1)
		c.kind = s[0];
	return c;
}

static void parse_columns(struct check *k, char *p)
{
	size_t len;

	k->n_columns = 0;
	strtok(p, " \n"); /* LOC */
	while ((p = strtok(NULL, " \n")) && k->n_columns < 40) {
		len = strlen(p);
		k->columns[k->n_columns++] =
			!strcmp(p, "CFA") ? CFA : reg_of(p, len);
	}
}

static void parse_line(struct check *k, char *p)
{
	struct line *l = add(&k->lines, sizeof(*l));
	int col = 0;
	size_t len;

	for (int i = 0; i < CELLS; i++)
		l->cells[i] = (struct cell){ 'u', 0, 0 };
	l->at = strtoull(p, &p, 16);
	for (;;) {
		p += strspn(p, " ");
		len = strcspn(p, " \n");
		if (!len || col == k->n_columns)
			break;
		if (*p == '(') { /* "r3 (rbx)": the name was not needed */
			p += len;
			continue;
		}
		if (k->columns[col] >= 0)
			l->cells[k->columns[col]] = parse_cell(p, len);
		col++;
		p += len;
	}
}

static void end_entry(struct check *k)
{
	const struct line *l = k->lines.v;

	if (k->in_cie && k->lines.n) {
		struct cie *c = add(&k->cies, sizeof(*c));

		c->offset = k->cie;
		c->debug = k->debug;
		c->line = l[k->lines.n - 1];
	}
	k->in_cie = false;
	if (k->in_func)
		end_func(k);
	k->lines.n = 0;
}

static void begin_func(struct check *k, const char *p)
{
	const struct cie *cies = k->cies.v;
	unsigned long long offset, start, end;

	if (sscanf(p, " FDE cie=%llx pc=%llx..%llx", &offset, &start, &end) !=
	    3)
		return;
	k->cur = (struct func){ .start = start, .end = end };
	k->in_func = true;
	for (size_t i = k->cies.n; i-- > 0;) {
		if (cies[i].offset != offset || cies[i].debug != k->debug)
			continue;
		/* Until a line of its own says more. */
		*(struct line *)add(&k->lines, sizeof(struct line)) =
			cies[i].line;
		((struct line *)k->lines.v)->at = start;
		break;
	}
}

static void parse_text(struct check *k, FILE *f)
{
	char *buf = NULL, *p;
	size_t cap = 0;

	while (getline(&buf, &cap, f) > 0) {
		if (strstr(buf, " of the .")) {
			end_entry(k);
			k->debug = strstr(buf, ".debug_frame") != NULL;
		} else if ((p = strstr(buf, " FDE "))) {
			end_entry(k);
			begin_func(k, p);
		} else if (strstr(buf, " CIE ")) {
			end_entry(k);
			k->cie = strtoull(buf, NULL, 16);
			k->in_cie = true;
		} else if (strstr(buf, "LOC  ")) {
			parse_columns(k, buf);
			if (k->in_func)
				k->lines.n = 0;
		} else if (isxdigit((unsigned char)buf[0]) &&
			   strspn(buf, "0123456789abcdef") == 16 &&
			   (k->in_func || k->in_cie)) {
			parse_line(k, buf);
		}
	}
	end_entry(k);
	free(buf);
}

/* --- a file ----------------------------------------------------------------- */

static int cmp_func(const void *a, const void *b)
{
	const struct func *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->seq < y->seq ? -1 : 1;
}

/* Whether two functions have this address. */
static bool twice(const struct check *k, uint64_t at)
{
	const struct func *f = k->funcs.v;
	int n = 0;

	for (size_t i = 0; i < k->funcs.n; i++)
		n += !f[i].outside && at >= f[i].start && at < f[i].end;
	return n > 1;
}

static size_t report(const struct check *k, const char *path)
{
	const struct diff *d = k->diffs.v;
	size_t n = 0, overlap = 0;

	for (size_t i = 0; i < k->diffs.n; i++) {
		if (overlap < 10000 && twice(k, d[i].at)) {
			overlap++;
			continue;
		}
		if (n++ < SHOWN)
			printf("%s: %llx: %s\n", path,
			       (unsigned long long)d[i].at, d[i].text);
	}
	total_overlap += overlap;
	return n;
}

/* profd's gaps are where no function is, and all of them. */
static size_t check_gaps(struct check *k, const char *path)
{
	struct func *f = k->funcs.v;
	uint64_t covered = 0, to;
	size_t bad = 0, fi = 0, row;

	if (k->funcs.n)
		qsort(f, k->funcs.n, sizeof(*f), cmp_func);
	for (row = 0; row < k->info.rows; row++) {
		for (; fi < k->funcs.n && f[fi].start <= k->at[row]; fi++)
			if (!f[fi].outside)
				covered = MAX(covered, f[fi].end);
		if (!k->rule[row] && covered > k->at[row]) {
			/* The earlier of two ends with the later: overlap. */
			if (twice(k, k->at[row] - 1)) {
				total_overlap++;
				continue;
			}
			bad++;
			printf("%s: %llx: a gap in a function\n", path,
			       (unsigned long long)k->at[row]);
		}
		to = row + 1 < k->info.rows ? k->at[row + 1] : k->at[row] + 1;
		/* It may continue in functions that follow without a gap. */
		if (!k->rule[row])
			continue;
		for (; fi < k->funcs.n && f[fi].start < to; fi++) {
			if (f[fi].outside)
				continue;
			if (f[fi].start > covered)
				break;
			covered = MAX(covered, f[fi].end);
		}
		if (covered < to && k->go && !k->any_debug) {
			total_go_only++;
		} else if (covered < to) {
			bad++;
			printf("%s: %llx: a rule where no function is\n", path,
			       (unsigned long long)k->at[row]);
		}
	}
	return bad;
}

static bool same_rule(const struct symbolizer_rows *a, uint16_t i,
		      const struct symbolizer_rows *b, uint16_t j)
{
	struct symbolizer_rule x, y;

	symbolizer_rows_rule(a, i, &x);
	symbolizer_rows_rule(b, j, &y);
	return memcmp(&x, &y, sizeof(x)) == 0;
}

/* Known code fills only the gaps of the rows from the file. */
static size_t check_known(struct check *k, const char *path)
{
	struct symbolizer_rows_info info;
	size_t bad = 0;
	uint64_t at;
	uint16_t id, said;

	symbolizer_rows_info(k->all, &info);
	for (size_t i = 0; i < info.rows; i++) {
		id = symbolizer_rows_at(k->all, i, &at);
		said = symbolizer_rows_find(k->rows, at);
		total_known += !said && id;
		if (said && !same_rule(k->rows, said, k->all, id)) {
			bad++;
			printf("%s: %llx: another rule than the file's\n", path,
			       (unsigned long long)at);
		}
	}
	for (size_t i = 0; i < k->info.rows; i++) {
		id = symbolizer_rows_find(k->all, k->at[i]);
		if (k->rule[i] && !same_rule(k->rows, k->rule[i], k->all, id)) {
			bad++;
			printf("%s: %llx: the file's rule is lost\n", path,
			       (unsigned long long)k->at[i]);
		}
	}
	return bad;
}

static void run_readelf(struct check *k, const char *path)
{
	struct strbuf cmd = STRBUF_INIT;
	FILE *f;

	setenv("ROWS_FILE", path, 1);
	strbuf_puts(&cmd, "readelf -wNF \"$ROWS_FILE\" 2>/dev/null");
	f = popen(cmd.data, "r");
	if (!f)
		exit(3);
	parse_text(k, f);
	pclose(f);
	strbuf_fini(&cmd);
}

static void check_rows(struct check *k, const char *path)
{
	size_t n = k->info.rows, bad;

	k->at = calloc(n + 1, sizeof(*k->at));
	k->rule = calloc(n + 1, sizeof(*k->rule));
	if (!k->at || !k->rule)
		exit(3);
	for (size_t i = 0; i < n; i++)
		k->rule[i] = symbolizer_rows_at(k->rows, i, &k->at[i]);
	run_readelf(k, path);
	bad = report(k, path) + check_gaps(k, path) + check_known(k, path);
	if (k->info.damage) {
		printf("%s: %s+0x%llx: %s\n", path, k->info.section,
		       (unsigned long long)k->info.section_offset,
		       k->info.damage);
		bad++;
	}
	total_files++;
	total_rows += n;
	total_funcs += k->funcs.n;
	total_diffs += bad;
}

static void check_file(const char *path)
{
	struct symbolizer_src src;
	struct gopclntab table;
	struct check k = { 0 };
	const char *bad;
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = -1;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0) {
		symbolizer_src_fd(&src, fd, (uint64_t)st.st_size);
		err = symbolizer_elf_init(&k.elf, &src);
		if (!err)
			err = symbolizer_rows_read_tables(&k.rows, &src);
		if (!err)
			err = symbolizer_rows_read(&k.all, &src, NULL);
	}
	if (!err) {
		symbolizer_rows_info(k.rows, &k.info);
		k.go = symbolizer_gopclntab_find(&table, &k.elf, &bad) && !bad;
		check_rows(&k, path);
	} else {
		total_passed++;
	}
	if (fd >= 0)
		close(fd);
	symbolizer_elf_fini(&k.elf);
	symbolizer_rows_free(k.rows);
	symbolizer_rows_free(k.all);
	free(k.at);
	free(k.rule);
	free(k.lines.v);
	free(k.cies.v);
	free(k.funcs.v);
	free(k.diffs.v);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		check_file(argv[i]);
	printf("files %zu functions %zu rows %zu differences %zu overlap %zu "
	       "outside %zu passed-over %zu go-rbp %zu go-root %zu "
	       "go-sig %zu go-only %zu known %zu\n",
	       total_files, total_funcs, total_rows, total_diffs, total_overlap,
	       total_outside, total_passed, total_go_rbp, total_go_root,
	       total_go_sig, total_go_only, total_known);
	return total_diffs || !total_files;
}
