// SPDX-License-Identifier: Apache-2.0
/*
 * Names from Go's own table: functions, inlined calls and lines in each of its
 * layouts, where the data of functions may be, and tables that are damaged.
 */
#include "symbolize/file.h"
#include "symbolize/names/source.h"
#include "tests/unit/rows/test_rows.h"

#define PCLN 0x200000ULL /* the table, and inlined calls behind it */
#define DATA 0x300000ULL
#define ENTRY_TEXT 0x1000ULL /* of Go's text in TEXT */
#define AT(pc) (TEXT + ENTRY_TEXT + (pc))

/* A version of Go, by its layout; offsets as in go_table.c. */
struct version {
	uint32_t magic;
	bool offsets; /* addresses of 4 bytes */
	bool header; /* with offsets of the parts */
	size_t start_line_at, n_data_at;
	size_t ref; /* bytes of a reference to data; 0: no inlined calls */
	size_t call, call_name_at, call_parent_at, call_line_at;
	uint64_t gofunc_at; /* in moduledata */
};

static const struct version versions[] = {
	{ 0xfffffffb, false, false, 0, 39, 0, 0, 0, 0, 0, 0 }, /* 1.2 */
	{ 0xfffffffa, false, true, 0, 43, 8, 20, 12, 16, 0, 0 }, /* 1.16 */
	{ 0xfffffff0, true, true, 0, 39, 4, 20, 12, 16, 0, 304 }, /* 1.18 */
	{ 0xfffffff1, true, true, 36, 43, 4, 16, 4, 8, 12, 320 }, /* 1.20 */
};

#define NEWEST (&versions[3])

/* A piece of a table of pcs. */
struct piece {
	int32_t value;
	uint32_t len;
};

/* An inlined call. */
struct call {
	uint32_t name; /* in names[] */
	uint32_t parent, line;
};

struct func {
	uint32_t name; /* in names[] */
	uint32_t start, start_line;
	const struct piece *files, *lines, *inl; /* the last has no length */
	const struct call *calls;
	size_t n_calls;
};

static const char *const names[] = {
	"main.main", "main.mid[...]", "main.leaf", "main.plain", "runtime.asm",
};
static const char *const files[] = { "/src/a.go", "/src/b.go" };

/*
 * main.main: 0x10 bytes of its own; 0x10 of main.leaf, inlined into main.mid, inlined
 * at the address 0x104; 8 of main.mid; 8 of its own. Then 0x10 of padding.
 */
static const struct piece main_files[] = {
	{ 0, 0x10 }, { 1, 0x18 }, { 0, 8 }, { 0, 0 }
};
static const struct piece main_lines[] = { { 11, 4 },  { 12, 12 }, { 101, 8 },
					   { 102, 8 }, { 201, 8 }, { 13, 8 },
					   { 0, 0 } };
static const struct piece main_inl[] = {
	{ -1, 0x10 }, { 1, 0x10 }, { 0, 8 }, { -1, 8 }, { 0, 0 }
};
static const struct call main_calls[] = { { 1, 4, 200 }, { 2, 0x20, 100 } };

static const struct piece plain_files[] = { { 1, 0x20 }, { 0, 0 } };
static const struct piece plain_lines[] = { { 301, 0x20 }, { 0, 0 } };

#define PLAIN(at)                                                   \
	{                                                           \
		3, at, 300, plain_files, plain_lines, NULL, NULL, 0 \
	}

static const struct func good[] = {
	{ 0, 0x100, 10, main_files, main_lines, main_inl, main_calls, 2 },
	PLAIN(0x140),
	{ 4, 0x160, 0, NULL, NULL, NULL, NULL, 0 },
	{ .start = 0x180 },
};

static void set(struct bytes *o, size_t at, uint64_t v, size_t size)
{
	memcpy(o->b + at, &v, size);
}

static void align(struct bytes *o)
{
	while (o->n % 8)
		put1(o, 0);
}

static void put_uleb(struct bytes *o, uint32_t v)
{
	for (; v > 0x7f; v >>= 7)
		put1(o, (uint8_t)(v | 0x80));
	put1(o, (uint8_t)v);
}

/* The offset of the table of pcs from 'base', or 0. */
static uint32_t put_pcs(struct bytes *o, size_t base, const struct piece *p)
{
	uint32_t at = (uint32_t)(o->n - base);
	int32_t last = -1;

	if (!p)
		return 0;
	for (; p->len; p++) {
		uint32_t by = (uint32_t)p->value - (uint32_t)last;

		put_uleb(o, (by << 1) ^ (by >> 31 ? UINT32_MAX : 0));
		put_uleb(o, p->len);
		last = p->value;
	}
	put1(o, 0);
	return at;
}

static void put_word(struct bytes *o, uint64_t v, bool half)
{
	put(o, &v, half ? 4 : 8);
}

/* Everything of a table but its functions; their number is 'n'. */
struct table {
	const struct version *v;
	struct bytes o;
	size_t n, list, base; /* base: of places */
	size_t names_at, pcs_at, cus_at, files_at;
	uint32_t name[ARRAY_SIZE(names)];
	size_t calls_at; /* of all functions; behind the table */
	uint64_t gofunc;
};

static void put_texts(struct table *t)
{
	uint32_t at[ARRAY_SIZE(files)];

	t->names_at = t->v->header ? t->o.n : 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		t->name[i] = (uint32_t)(t->o.n - t->names_at);
		put(&t->o, names[i], strlen(names[i]) + 1);
	}
	t->files_at = t->o.n;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		at[i] = (uint32_t)(t->o.n - (t->v->header ? t->files_at : 0));
		put(&t->o, files[i], strlen(files[i]) + 1);
	}
	align(&t->o);
	/* Before 1.16 numbers are those of the whole program. */
	t->cus_at = t->o.n;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		put4(&t->o, at[i]);
	align(&t->o);
}

/* The record of a function, with its arrays. */
static void put_func(struct table *t, const struct func *f,
		     const uint32_t pcs[3], uint64_t calls)
{
	const struct version *v = t->v;
	size_t begin = t->o.n;

	put_word(&t->o, v->offsets ? f->start : AT(f->start), v->offsets);
	put4(&t->o, t->name[f->name]);
	put8(&t->o, 0); /* args, deferreturn */
	put4(&t->o, 0); /* pcsp */
	put4(&t->o, pcs[0]);
	put4(&t->o, pcs[1]);
	put4(&t->o, pcs[2] ? 3 : 0);
	while (t->o.n < begin + v->n_data_at + 1)
		put1(&t->o, 0);
	if (v->start_line_at)
		set(&t->o, begin + v->start_line_at, f->start_line, 4);
	if (!pcs[2])
		return;
	t->o.b[begin + v->n_data_at] = 4;
	put8(&t->o, 0);
	put4(&t->o, pcs[2]);
	if (v->ref == 8)
		align(&t->o);
	for (int i = 0; i < 3; i++)
		put_word(&t->o, UINT64_MAX, v->ref != 8);
	put_word(&t->o, v->ref == 8 ? calls : calls - t->gofunc, v->ref != 8);
}

/* Where calls will be: behind the table, at a place that is known before. */
#define CALLS 0x1000
#define GOFUNC 0xf00

static void put_calls(struct table *t, const struct func *f)
{
	const struct version *v = t->v;

	for (size_t i = 0; i < f->n_calls; i++) {
		uint8_t b[32] = { 0 };

		memcpy(b + v->call_name_at, &t->name[f->calls[i].name], 4);
		memcpy(b + v->call_parent_at, &f->calls[i].parent, 4);
		if (v->call_line_at)
			memcpy(b + v->call_line_at, &f->calls[i].line, 4);
		put(&t->o, b, v->call);
	}
}

static void put_header(struct table *t)
{
	put4(&t->o, t->v->magic);
	put4(&t->o, 0x08010000);
	put8(&t->o, t->n);
	if (t->v->header)
		put8(&t->o, 0); /* files */
	if (t->v->offsets)
		put8(&t->o, AT(0));
}

/* A table, as the linker of that version writes it, padded to CALLS. */
static void put_table(struct table *t, const struct func *funcs)
{
	const struct version *v = t->v;
	uint32_t pcs[8][3] = { 0 };
	size_t offsets, calls = CALLS, each = v->offsets ? 4 : 8;

	for (t->n = 0; funcs[t->n].files || funcs[t->n].name; t->n++)
		;
	t->gofunc = PCLN + GOFUNC;
	put_header(t);
	offsets = t->o.n;
	for (int i = 0; v->header && i < 5; i++)
		put8(&t->o, 0);
	if (!v->header) { /* the list comes first */
		t->list = t->o.n;
		for (size_t i = 0; i <= t->n; i++) {
			put8(&t->o, AT(funcs[i].start));
			put8(&t->o, 0);
		}
	}
	put_texts(t);
	t->pcs_at = v->header ? t->o.n : 0;
	put1(&t->o, 0);
	for (size_t i = 0; i < t->n; i++) {
		pcs[i][0] = put_pcs(&t->o, t->pcs_at, funcs[i].files);
		pcs[i][1] = put_pcs(&t->o, t->pcs_at, funcs[i].lines);
		if (v->ref)
			pcs[i][2] = put_pcs(&t->o, t->pcs_at, funcs[i].inl);
	}
	align(&t->o);
	if (v->header) {
		t->list = t->o.n;
		for (size_t i = 0; i <= t->n; i++) {
			put_word(&t->o,
				 v->offsets ? funcs[i].start
					    : AT(funcs[i].start),
				 v->offsets);
			put_word(&t->o, 0, v->offsets);
		}
		set(&t->o, offsets, t->names_at, 8);
		set(&t->o, offsets + 8, t->cus_at, 8);
		set(&t->o, offsets + 16, t->files_at, 8);
		set(&t->o, offsets + 24, t->pcs_at, 8);
		set(&t->o, offsets + 32, t->list, 8);
		t->base = t->list;
	} else {
		set(&t->o, t->list + t->n * 16 + 8, t->cus_at, 8);
	}
	for (size_t i = 0; i < t->n; i++) {
		align(&t->o);
		set(&t->o, t->list + i * 2 * each + each, t->o.n - t->base,
		    each);
		put_func(t, &funcs[i], pcs[i], PCLN + calls);
		calls += funcs[i].n_calls * v->call;
	}
	assert_true(t->o.n < GOFUNC);
	while (t->o.n < CALLS)
		put1(&t->o, 0);
	for (size_t i = 0; i < t->n && v->ref; i++)
		put_calls(t, &funcs[i]);
	align(&t->o);
}

/* --- a file around it ------------------------------------------------------- */

/* How moduledata is found. */
enum module {
	NONE,
	IN_FILE,
	BY_RELA,
};

static void put_data(struct bytes *o, const struct table *t, enum module how)
{
	const struct {
		uint64_t at, value;
	} words[] = { { 0, PCLN },
		      { 160, AT(0x100) },
		      { 168, AT(0x180) },
		      { t->v->gofunc_at, t->gofunc } };
	size_t rela;

	while (o->n < 64 + 400)
		put8(o, 0);
	for (size_t i = 0; how == IN_FILE && i < ARRAY_SIZE(words); i++)
		if (i < 3 || words[i].at)
			set(o, 64 + words[i].at, words[i].value, 8);
	rela = o->n;
	for (size_t i = 0; how == BY_RELA && i < ARRAY_SIZE(words); i++) {
		put8(o, DATA + 64 + words[i].at);
		put8(o, R_X86_64_RELATIVE);
		put8(o, words[i].value);
	}
	put8(o, DT_RELA);
	put8(o, DATA + rela);
	put8(o, DT_RELASZ);
	put8(o, o->n - rela - 24);
	put8(o, DT_NULL);
	put8(o, 0);
}

static void make_go(struct bytes *f, const struct table *t, enum module how)
{
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
				       ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_phoff = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_phnum = 4,
			  .e_shnum = 3,
			  .e_shstrndx = 2 };
	uint64_t at = sizeof(eh) + 4 * sizeof(Elf64_Phdr);
	static const char strings[16] = "\0.gopclntab";
	struct bytes code = { 0 }, data = { 0 };

	while (code.n < 0x400)
		put1(&code, 0xcc);
	put_data(&data, t, how);
	eh.e_shoff = at + code.n + t->o.n + data.n;
	put(f, &eh, sizeof(eh));
	put_phdr(f, PT_LOAD, PF_R | PF_X, at, AT(0), code.n, code.n);
	at += code.n;
	put_phdr(f, PT_LOAD, PF_R, at, PCLN, t->o.n, t->o.n);
	put_phdr(f, PT_LOAD, PF_R | PF_W, at + t->o.n, DATA, data.n, data.n);
	put_phdr(f, PT_DYNAMIC, PF_R | PF_W, at + t->o.n + data.n - 48, DATA,
		 48, 48);
	put(f, code.b, code.n);
	put(f, t->o.b, t->o.n);
	put(f, data.b, data.n);
	put_shdr(f, 0, false, 0, 0, 0, 0);
	put_shdr(f, 1, false, SHF_ALLOC, PCLN, at, MIN(t->o.n, (size_t)CALLS));
	put_shdr(f, 0, false, 0, 0, f->n + sizeof(Elf64_Shdr), sizeof(strings));
	put(f, strings, sizeof(strings));
	free(code.b);
	free(data.b);
}

/* An open source. */
struct source {
	struct symbolizer_src src;
	struct names_context c;
	struct arena arena;
	struct bytes file;
	void *state;
};

static int source_open(struct source *s)
{
	struct symbolizer_elf e;
	int err;

	arena_init(&s->arena);
	symbolizer_src_mem(&s->src, s->file.b, s->file.n);
	s->c = (struct names_context){ .src = &s->src, .arena = &s->arena };
	assert_int_equal(symbolizer_elf_init(&e, &s->src), 0);
	s->c.elf = &e;
	err = names_go.open(&s->state, &s->c);
	s->c.elf = NULL;
	symbolizer_elf_fini(&e);
	return err;
}

static void source_close(struct source *s)
{
	if (s->state)
		names_go.close(s->state);
	arena_fini(&s->arena);
	free(s->file.b);
	*s = (struct source){ 0 };
}

static void source_of(struct source *s, const struct version *v,
		      const struct func *funcs, enum module how)
{
	struct table t = { .v = v };

	*s = (struct source){ 0 };
	put_table(&t, funcs);
	make_go(&s->file, &t, how);
	free(t.o.b);
	assert_int_equal(source_open(s), 0);
}

/* What is found at 'pc', as "[start end) name file:line<start_line>, ...". */
static const char *found_at(struct source *s, uint64_t pc)
{
	static char text[8192];
	struct names_found f;
	size_t n;
	int err = names_go.find(s->state, &s->c, AT(pc), &f);

	if (err == -ENOENT)
		return "nothing";
	assert_int_equal(err, 0);
	assert_int_equal(f.source, SYMBOLIZER_SOURCE_GO);
	assert_in_range(AT(pc), f.start, f.start + f.size - 1);
	n = (size_t)snprintf(text, sizeof(text), "[%llx %llx)",
			     (unsigned long long)(f.start - AT(0)),
			     (unsigned long long)(f.start + f.size - AT(0)));
	for (size_t i = 0; i < f.n && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      " %s %s:%u<%u>", f.functions[i].name,
				      f.functions[i].file, f.functions[i].line,
				      f.functions[i].start_line);
	return text;
}

/* --- layouts ------------------------------------------------------------------ */

static void expect_plain(struct source *s, uint32_t line)
{
	char want[128];

	snprintf(want, sizeof(want), "[140 160) main.plain /src/b.go:301<%u>",
		 line);
	assert_string_equal(found_at(s, 0x140), want);
	assert_string_equal(found_at(s, 0x15f), want);
}

static void inlined_calls_are_found(void **state)
{
	struct source s;

	source_of(&s, NEWEST, good, IN_FILE);
	assert_string_equal(found_at(&s, 0x100),
			    "[100 104) main.main /src/a.go:11<10>");
	assert_string_equal(found_at(&s, 0x10f),
			    "[104 110) main.main /src/a.go:12<10>");
	assert_string_equal(found_at(&s, 0x110),
			    "[110 118) main.leaf /src/b.go:101<100>"
			    " main.mid[...] /src/b.go:201<200>"
			    " main.main /src/a.go:12<10>");
	assert_string_equal(found_at(&s, 0x11f),
			    "[118 120) main.leaf /src/b.go:102<100>"
			    " main.mid[...] /src/b.go:201<200>"
			    " main.main /src/a.go:12<10>");
	assert_string_equal(found_at(&s, 0x127),
			    "[120 128) main.mid[...] /src/b.go:201<200>"
			    " main.main /src/a.go:12<10>");
	assert_string_equal(found_at(&s, 0x128),
			    "[128 130) main.main /src/a.go:13<10>");
	expect_plain(&s, 300);
	source_close(&s);
}

static void every_layout_has_names_and_lines(void **state)
{
	struct source s;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		source_of(&s, &versions[i], good, IN_FILE);
		expect_plain(&s, versions[i].start_line_at ? 300 : 0);
		if (!versions[i].start_line_at && versions[i].ref)
			assert_string_equal(
				found_at(&s, 0x110),
				"[110 118) main.leaf /src/b.go:101<0>"
				" main.mid[...] /src/b.go:201<0>"
				" main.main /src/a.go:12<0>");
		/* As `go tool addr2line` has it: the version has no more. */
		if (!versions[i].ref)
			assert_string_equal(
				found_at(&s, 0x110),
				"[110 118) main.main /src/b.go:101<0>");
		source_close(&s);
	}
}

static void other_code_is_not_gos(void **state)
{
	struct source s;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		source_of(&s, &versions[i], good, IN_FILE);
		assert_string_equal(found_at(&s, 0xff), "nothing");
		assert_string_equal(found_at(&s, 0x180), "nothing");
		assert_string_equal(found_at(&s, -AT(0)), "nothing");
		assert_string_equal(found_at(&s, UINT64_MAX), "nothing");
		/* Between functions, where no table of pcs reaches. */
		assert_string_equal(
			found_at(&s, 0x12f),
			versions[i].start_line_at
				? "[128 130) main.main /src/a.go:13<10>"
				: "[128 130) main.main /src/a.go:13<0>");
		assert_string_equal(found_at(&s, 0x130), "nothing");
		assert_string_equal(found_at(&s, 0x13f), "nothing");
		/* Without any table it is all of it. */
		assert_string_equal(found_at(&s, 0x17f),
				    "[160 180) runtime.asm :0<0>");
		source_close(&s);
	}
}

static void calls_are_found_by_relocations(void **state)
{
	struct source s;

	for (size_t i = 2; i < ARRAY_SIZE(versions); i++) {
		source_of(&s, &versions[i], good, BY_RELA);
		assert_non_null(strstr(found_at(&s, 0x120), "main.mid[...]"));
		assert_non_null(strstr(found_at(&s, 0x120), "main.main"));
		source_close(&s);
	}
}

static void a_line_of_an_unknown_function_is_not_shown(void **state)
{
	struct source s;

	source_of(&s, NEWEST, good, NONE);
	assert_string_equal(found_at(&s, 0x100),
			    "[100 104) main.main /src/a.go:11<10>");
	assert_string_equal(found_at(&s, 0x110), "[110 118) main.main :0<10>");
	expect_plain(&s, 300);
	source_close(&s);
}

static void a_file_without_the_table_is_not_gos(void **state)
{
	struct source s = { 0 };
	struct table t = { .v = NEWEST };

	put_table(&t, good);
	make_go(&s.file, &t, IN_FILE);
	s.file.b[s.file.n - 14] = 'x'; /* the name of its section */
	assert_int_equal(source_open(&s), -ENODATA);
	source_close(&s);
	free(t.o.b);
}

static void memory_is_counted(void **state)
{
	struct source s;

	source_of(&s, NEWEST, good, IN_FILE);
	assert_in_range(names_go.bytes(s.state), 64, 512);
	source_close(&s);
}

/* Whether the hash of the file depends on this byte. */
static bool hashed(const struct bytes *f, size_t at)
{
	uint8_t was[16], is[16];
	struct symbolizer_src src;

	symbolizer_src_mem(&src, f->b, f->n);
	assert_int_equal(symbolizer_content(&src, was), 0);
	f->b[at] ^= 1;
	assert_int_equal(symbolizer_content(&src, is), 0);
	f->b[at] ^= 1;
	return memcmp(was, is, sizeof(was)) != 0;
}

static void all_that_is_read_is_hashed(void **state)
{
	struct table t = { .v = NEWEST };
	struct bytes f = { 0 };
	size_t table = sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Phdr) + 0x400;
	size_t module;

	put_table(&t, good);
	module = table + t.o.n + 64;
	make_go(&f, &t, IN_FILE);
	while (f.n < 5 << 20)
		put8(&f, 0); /* only parts of a large file are hashed */
	assert_false(hashed(&f, f.n - 1));
	assert_false(hashed(&f, table - 1)); /* code */
	assert_true(hashed(&f, table + t.names_at));
	assert_true(hashed(&f, table + CALLS + 4));
	assert_true(hashed(&f, module + NEWEST->gofunc_at));
	free(f.b);
	free(t.o.b);
}

/* --- damaged tables ------------------------------------------------------------- */

#define MAIN(inl, calls)                                                 \
	{                                                                \
		{ 0, 0x100, 10, main_files, main_lines, inl, calls, 2 }, \
			PLAIN(0x140),                                    \
		{                                                        \
			.start = 0x180                                   \
		}                                                        \
	}

static const char *found_with(struct source *s, const struct piece *inl,
			      const struct call *calls, uint64_t pc)
{
	const struct func funcs[] = MAIN(inl, calls);
	const char *text;

	source_of(s, NEWEST, funcs, IN_FILE);
	expect_plain(s, 300);
	text = found_at(s, pc);
	source_close(s);
	return text;
}

static void callers_without_end_are_cut(void **state)
{
	static const struct call loop[] = { { 1, 0x10, 200 },
					    { 2, 0x20, 100 } };
	struct source s;
	const char *text = found_with(&s, main_inl, loop, 0x120), *at = text;
	size_t n = 0;

	for (; (at = strstr(at, "main.mid")); at++)
		n++;
	assert_int_equal(n, 32);
	assert_non_null(strstr(text, " main.main :0<10>"));
}

static void calls_that_lead_nowhere_are_left_out(void **state)
{
	static const struct call outside[] = { { 1, 0x40, 200 },
					       { 2, 0x20, 100 } };
	static const struct call negative[] = { { 1, UINT32_MAX, 200 },
						{ 2, 0x20, 100 } };
	static const struct piece far[] = { { -1, 0x10 },
					    { INT32_MAX, 0x20 },
					    { 0, 0 } };
	static const struct piece below[] = { { -2, 0x30 }, { 0, 0 } };
	struct source s;

	/* The caller's name is known, but not where it was called. */
	assert_string_equal(found_with(&s, main_inl, outside, 0x110),
			    "[110 118) main.leaf /src/b.go:101<100>"
			    " main.main :0<10>");
	assert_string_equal(found_with(&s, main_inl, negative, 0x110),
			    "[110 118) main.leaf /src/b.go:101<100>"
			    " main.main :0<10>");
	assert_string_equal(found_with(&s, far, main_calls, 0x110),
			    "[110 118) main.main :0<10>");
	assert_string_equal(found_with(&s, below, main_calls, 0x110),
			    "[110 118) main.main /src/b.go:101<10>");
}

static void names_begin_behind_another(void **state)
{
	struct table t = { .v = NEWEST };
	struct source s = { 0 };

	put_table(&t, good);
	/* As if go:func.* were elsewhere: in the middle of a name. */
	set(&t.o, CALLS + 4, t.name[1] + 2, 4);
	make_go(&s.file, &t, IN_FILE);
	assert_int_equal(source_open(&s), 0);
	assert_string_equal(found_at(&s, 0x120), "[120 128) main.main :0<10>");
	source_close(&s);
	free(t.o.b);
}

static void a_hole_between_sections_has_no_function(void **state)
{
	struct table t = { .v = NEWEST };
	struct source s = { 0 };

	put_table(&t, good);
	set(&t.o, t.list + 8 + 4, UINT32_MAX, 4);
	make_go(&s.file, &t, IN_FILE);
	assert_int_equal(source_open(&s), 0);
	assert_string_equal(found_at(&s, 0x140), "nothing");
	assert_non_null(strstr(found_at(&s, 0x100), "main.main"));
	source_close(&s);
	free(t.o.b);
}

/* Looks at every address; nothing outside of the file is read (sanitizers). */
static void look_everywhere(struct source *s)
{
	if (source_open(s) == 0)
		for (uint64_t pc = 0xf8; pc < 0x188; pc += 4)
			found_at(s, pc);
}

static void a_table_cut_anywhere_is_no_danger(void **state)
{
	for (size_t v = 0; v < ARRAY_SIZE(versions); v++) {
		struct table t = { .v = &versions[v] };
		struct source s = { 0 };

		put_table(&t, good);
		for (size_t n = 0x280; n-- > 1;) {
			t.o.n = n;
			make_go(&s.file, &t, IN_FILE);
			look_everywhere(&s);
			source_close(&s);
		}
		free(t.o.b);
	}
}

static void any_byte_may_be_wrong(void **state)
{
	for (size_t v = 0; v < ARRAY_SIZE(versions); v++) {
		struct table t = { .v = &versions[v] };
		struct source s = { 0 };
		size_t end;

		put_table(&t, good);
		end = t.o.n;
		for (size_t i = 8; i < end; i += i < 0x280 ? 1 : 8) {
			uint8_t was = t.o.b[i];

			t.o.b[i] = i % 2 ? 0xff : 0x80;
			make_go(&s.file, &t, IN_FILE);
			look_everywhere(&s);
			source_close(&s);
			t.o.b[i] = was;
		}
		free(t.o.b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inlined_calls_are_found),
		cmocka_unit_test(every_layout_has_names_and_lines),
		cmocka_unit_test(other_code_is_not_gos),
		cmocka_unit_test(calls_are_found_by_relocations),
		cmocka_unit_test(a_line_of_an_unknown_function_is_not_shown),
		cmocka_unit_test(a_file_without_the_table_is_not_gos),
		cmocka_unit_test(memory_is_counted),
		cmocka_unit_test(all_that_is_read_is_hashed),
		cmocka_unit_test(callers_without_end_are_cut),
		cmocka_unit_test(calls_that_lead_nowhere_are_left_out),
		cmocka_unit_test(names_begin_behind_another),
		cmocka_unit_test(a_hole_between_sections_has_no_function),
		cmocka_unit_test(a_table_cut_anywhere_is_no_danger),
		cmocka_unit_test(any_byte_may_be_wrong),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
