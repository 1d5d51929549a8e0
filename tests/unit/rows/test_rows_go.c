// SPDX-License-Identifier: Apache-2.0
/*
 * Go's own unwind table: every layout it ever had, where it may be, what a
 * function's first instructions say, and tables that are broken.
 */
#include "symbolize/rows/gopclntab.h"
#include "tests/unit/rows/test_rows.h"

#define PCLN 0x200000ULL /* where the table is */
#define DATA 0x300000ULL
#define ENTRY_TEXT 0x1000ULL /* of Go's text in TEXT, behind some C */

/* A version of Go, by its layout. */
struct version {
	uint32_t magic;
	bool offsets; /* addresses of 4 bytes */
	bool header; /* with offsets of the parts */
	size_t flag_at;
};

static const struct version versions[] = {
	{ 0xfffffffb, false, false, 0 }, /* 1.2 */
	{ 0xfffffffa, false, true, 41 }, /* 1.16 */
	{ 0xfffffff0, true, true, 37 }, /* 1.18 */
	{ 0xfffffff1, true, true, 41 }, /* 1.20 */
};

/* A function: where it is in Go's text, its pc table, its flags. */
struct func {
	const char *name;
	uint32_t start;
	const char *pcs; /* 0 behind it; NULL: it has none */
	uint8_t flag;
};

/* Moved to 8 after 1, to 32 after 3 more, to 8 and 0 in the end; 0x20 long. */
#define PUSHED "\x02\x01\x10\x03\x30\x18\x2f\x01\x0f\x03"
/* Moved to 40 after 4; 0x20 long. */
#define MOVED "\x02\x04\x50\x1b\x4f\x01"
/* Nothing moves. */
#define LEAF "\x02\x20"

static const struct func plain[] = {
	{ "main.pushed", 0x100, PUSHED, 0 },
	{ "main.moved", 0x140, MOVED, 0 },
	{ "main.leaf", 0x180, LEAF, 0 },
	{ "race.external", 0x1c0, NULL, 0 },
	{ "runtime.goexit", 0x200, LEAF, 0 }, /* known by name */
	{ "runtime.mcall", 0x220, LEAF, 0 },
	{ "new.top", 0x240, LEAF, 1 }, /* known by its flags */
	{ "new.switch", 0x260, LEAF, 2 },
	{ "runtime.cgocallback", 0x280, LEAF, 2 },
	{ "runtime.sigreturn__x", 0x2a0, "\x02\x10", 4 },
	{ NULL, 0x2c0, NULL, 0 },
};

static void put_pc(struct bytes *o, const struct version *v, uint64_t pc)
{
	if (v->offsets)
		put4(o, (uint32_t)pc);
	else
		put8(o, TEXT + ENTRY_TEXT + pc);
}

static void put_place(struct bytes *o, const struct version *v, uint64_t at)
{
	if (v->offsets)
		put4(o, (uint32_t)at);
	else
		put8(o, at);
}

static void set(struct bytes *o, size_t at, uint64_t v, size_t size)
{
	memcpy(o->b + at, &v, size);
}

/* The record of a function; names and pcs were written before. */
static void put_func(struct bytes *o, const struct version *v,
		     const struct func *f, uint32_t name, uint32_t pcs)
{
	size_t begin = o->n;

	put_pc(o, v, f->start);
	put4(o, name);
	put4(o, 0); /* args */
	put4(o, 0); /* deferreturn */
	put4(o, pcs);
	while (o->n < begin + 44)
		put4(o, 0);
	if (v->flag_at)
		o->b[begin + v->flag_at] = f->flag;
}

/* The whole table, as the linker of that version would write it. */
static void put_table(struct bytes *o, const struct version *v,
		      const struct func *funcs, uint64_t text)
{
	uint32_t names[16], pcs[16], places[16];
	size_t n, base, list, names_at, pcs_at;

	for (n = 0; funcs[n].name; n++)
		;
	put4(o, v->magic);
	put4(o, 0x08010000);
	put8(o, n);
	if (v->header)
		put8(o, 0); /* files */
	if (v->offsets)
		put8(o, text);
	base = o->n;
	for (int i = 0; v->header && i < 5; i++)
		put8(o, 0);
	names_at = v->header ? o->n : 0;
	if (v->header) {
		/* Parts first, for they are known by then. */
		for (size_t i = 0; i < n; i++) {
			names[i] = (uint32_t)(o->n - names_at);
			put(o, funcs[i].name, strlen(funcs[i].name) + 1);
		}
		pcs_at = o->n;
		put1(o, 0);
		for (size_t i = 0; i < n; i++) {
			pcs[i] = funcs[i].pcs ? (uint32_t)(o->n - pcs_at) : 0;
			if (funcs[i].pcs)
				put(o, funcs[i].pcs, strlen(funcs[i].pcs) + 1);
		}
		while (o->n % 8)
			put1(o, 0);
		set(o, base, names_at, 8);
		set(o, base + 24, pcs_at, 8);
		set(o, base + 32, o->n, 8);
	}
	list = o->n;
	for (size_t i = 0; i <= n; i++) {
		put_pc(o, v, funcs[i].start);
		put_place(o, v, 0);
	}
	if (!v->header) {
		for (size_t i = 0; i < n; i++) {
			names[i] = (uint32_t)o->n;
			put(o, funcs[i].name, strlen(funcs[i].name) + 1);
			pcs[i] = funcs[i].pcs ? (uint32_t)o->n : 0;
			if (funcs[i].pcs)
				put(o, funcs[i].pcs, strlen(funcs[i].pcs) + 1);
		}
	}
	for (size_t i = 0; i < n; i++) {
		size_t each = v->offsets ? 4 : 8;

		while (o->n % 8)
			put1(o, 0);
		places[i] = (uint32_t)(o->n - (v->header ? list : 0));
		set(o, list + i * 2 * each + each, places[i], each);
		put_func(o, v, &funcs[i], names[i], pcs[i]);
	}
}

/* --- a file around it ------------------------------------------------------- */

/* What is in it beside the table; NULL: nothing. */
struct parts {
	const char *section; /* the table's name */
	bool bare; /* no section headers */
	bool module; /* moduledata in the file */
	bool reloc; /* ... as the dynamic linker would make them */
	struct bytes code; /* of Go's text */
};

static void put_rela(struct bytes *o, uint64_t where, uint64_t addend)
{
	put8(o, where);
	put8(o, R_X86_64_RELATIVE);
	put8(o, addend);
}

/* moduledata at DATA + 64, the relocations and what leads to them behind. */
static void put_data(struct bytes *o, const struct parts *p)
{
	uint64_t text = TEXT + ENTRY_TEXT, rela;

	while (o->n < 64 + 256)
		put8(o, 0);
	if (p->module) {
		set(o, 64, PCLN, 8);
		set(o, 64 + 160, text + 0x100, 8);
		set(o, 64 + 168, text + 0x2c0, 8);
	}
	rela = o->n;
	if (p->reloc) {
		put_rela(o, DATA + 8, 0x1234);
		put_rela(o, DATA + 64, PCLN);
		put_rela(o, DATA + 64 + 160, text + 0x100);
		put_rela(o, DATA + 64 + 168, text + 0x2c0);
	}
	put8(o, DT_RELA);
	put8(o, DATA + rela);
	put8(o, DT_RELASZ);
	put8(o, o->n - rela - 24);
	put8(o, DT_NULL);
	put8(o, 0);
}

/* The file: code, the table, data; the dynamic segment ends the data. */
static void make_go(struct bytes *f, const struct bytes *table,
		    const struct parts *p)
{
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
				       ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_phoff = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_phnum = 4 };
	uint64_t at = sizeof(eh) + 4 * sizeof(Elf64_Phdr), data_at;
	struct bytes data = { 0 };
	char names[64] = "";

	f->n = 0;
	put_data(&data, p);
	data_at = at + p->code.n + table->n;
	if (!p->bare) {
		eh.e_shoff = data_at + data.n;
		eh.e_shnum = 3;
		eh.e_shstrndx = 2;
	}
	put(f, &eh, sizeof(eh));
	put_phdr(f, PT_LOAD, PF_R | PF_X, at, TEXT + ENTRY_TEXT, p->code.n,
		 0x1000);
	put_phdr(f, PT_LOAD, PF_R, at + p->code.n, PCLN, table->n, table->n);
	put_phdr(f, PT_LOAD, PF_R | PF_W, data_at, DATA, data.n, data.n);
	put_phdr(f, PT_DYNAMIC, PF_R | PF_W, data_at + data.n - 48, DATA, 48,
		 48);
	if (p->code.n)
		put(f, p->code.b, p->code.n);
	put(f, table->b, table->n);
	put(f, data.b, data.n);
	if (p->section)
		snprintf(names + 1, sizeof(names) - 1, "%s", p->section);
	put_shdr(f, 0, false, 0, 0, 0, 0);
	put_shdr(f, 1, false, SHF_ALLOC, PCLN, at + p->code.n, table->n);
	put_shdr(f, 0, false, 0, 0, f->n + sizeof(Elf64_Shdr), sizeof(names));
	put(f, names, sizeof(names));
	free(data.b);
}

/* push %rbp at the first, mov %rbp, 32(%rsp) at the second's move. */
static void put_code(struct bytes *o)
{
	while (o->n < 0x400)
		put1(o, 0x90);
	o->b[0x100] = 0x55;
	memcpy(o->b + 0x144, "\x48\x89\x6c\x24\x20", 5);
}

static struct symbolizer_rows *
rows_of_go(const struct version *v, struct parts *p, const struct func *funcs)
{
	struct bytes table = { 0 }, f = { 0 };
	struct symbolizer_rows *rows;

	put_code(&p->code);
	put_table(&table, v, funcs,
		  p->module || p->reloc ? 0 : TEXT + ENTRY_TEXT);
	make_go(&f, &table, p);
	assert_int_equal(read_file(&f, &rows), 0);
	free(f.b);
	free(table.b);
	free(p->code.b);
	p->code = (struct bytes){ 0 };
	return rows;
}

#define AT(off) (ENTRY_TEXT + (off))

static void expect_plain(const struct symbolizer_rows *rows,
			 const struct version *v)
{
	assert_null(info_of(rows).damage);
	assert_string_equal(rule_at(rows, AT(0xff)), "gap");
	/* By "push %rbp", done. */
	assert_string_equal(rule_at(rows, AT(0x100)), "r7+8");
	assert_string_equal(rule_at(rows, AT(0x101)), "r7+16 6=*cfa-16");
	assert_string_equal(rule_at(rows, AT(0x104)), "r7+40 6=*cfa-16");
	assert_string_equal(rule_at(rows, AT(0x11b)), "r7+40 6=*cfa-16");
	assert_string_equal(rule_at(rows, AT(0x11c)), "r7+16 6=*cfa-16");
	assert_string_equal(rule_at(rows, AT(0x11d)), "r7+8");
	assert_string_equal(rule_at(rows, AT(0x11f)), "r7+8");
	/* Between functions is nothing. */
	assert_string_equal(rule_at(rows, AT(0x120)), "gap");
	assert_string_equal(rule_at(rows, AT(0x13f)), "gap");
	/* By "mov %rbp, 32(%rsp)", to come. */
	assert_string_equal(rule_at(rows, AT(0x143)), "r7+8");
	assert_string_equal(rule_at(rows, AT(0x144)), "r7+48");
	assert_string_equal(rule_at(rows, AT(0x148)), "r7+48");
	assert_string_equal(rule_at(rows, AT(0x149)), "r7+48 6=*cfa-16");
	assert_string_equal(rule_at(rows, AT(0x15f)), "r7+8");
	assert_string_equal(rule_at(rows, AT(0x180)), "r7+8");
	/* Of code that is not Go's nothing is known. */
	assert_string_equal(rule_at(rows, AT(0x1c0)), "gap");
	/* Tops of stacks, and those that change to another. */
	assert_string_equal(rule_at(rows, AT(0x200)), "r7+8 16=none");
	assert_string_equal(rule_at(rows, AT(0x220)), "r7+8 16=elsewhere+3");
	assert_string_equal(rule_at(rows, AT(0x240)),
			    v->flag_at ? "r7+8 16=none" : "r7+8");
	assert_string_equal(rule_at(rows, AT(0x260)),
			    v->flag_at ? "r7+8 16=elsewhere" : "r7+8");
	assert_string_equal(rule_at(rows, AT(0x280)), "r7+8");
	/* Where a signal handler returns to. */
	assert_non_null(strstr(rule_at(rows, AT(0x2a0)), "*r7+160 0=*r7+144"));
	assert_non_null(strstr(rule_at(rows, AT(0x2af)), " signal"));
	assert_string_equal(rule_at(rows, AT(0x2b1)), "gap");
}

static void every_layout_gives_the_same_rows(void **state)
{
	struct parts p = { .section = ".gopclntab" };
	struct symbolizer_rows *rows;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		rows = rows_of_go(&versions[i], &p, plain);
		expect_plain(rows, &versions[i]);
		symbolizer_rows_free(rows);
	}
}

static void the_table_is_found_by_itself(void **state)
{
	static const struct parts ways[] = {
		{ .section = ".data.rel.ro.gopclntab" },
		{ .section = ".go.buildinfo" }, /* merged with others */
		{ .bare = true },
	};
	struct parts p;
	struct symbolizer_rows *rows;

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		p = ways[i];
		rows = rows_of_go(&versions[3], &p, plain);
		expect_plain(rows, &versions[3]);
		symbolizer_rows_free(rows);
	}
}

static void the_start_of_the_text_is_found(void **state)
{
	struct parts in_file = { .section = ".gopclntab", .module = true };
	struct parts by_reloc = { .section = ".gopclntab", .reloc = true };
	struct symbolizer_rows *rows;

	for (size_t i = 2; i < ARRAY_SIZE(versions); i++) {
		rows = rows_of_go(&versions[i], &in_file, plain);
		expect_plain(rows, &versions[i]);
		symbolizer_rows_free(rows);
		rows = rows_of_go(&versions[i], &by_reloc, plain);
		expect_plain(rows, &versions[i]);
		symbolizer_rows_free(rows);
	}
}

static void files_that_are_not_gos_are_not_searched(void **state)
{
	struct parts p = { .section = ".rodata" };
	struct bytes table = { 0 }, f = { 0 };
	struct symbolizer_rows *rows;

	put_code(&p.code);
	put_table(&table, &versions[3], plain, TEXT + ENTRY_TEXT);
	make_go(&f, &table, &p);
	assert_int_equal(read_file(&f, &rows), -ENODATA);
	free(f.b);
	free(table.b);
	free(p.code.b);
}

static void a_frame_pointer_is_not_guessed(void **state)
{
	static const struct func funcs[] = {
		{ "asm.neither", 0x140, MOVED, 4 },
		{ NULL, 0x180, NULL, 0 },
	};
	struct parts p = { .section = ".gopclntab" };
	struct bytes table = { 0 }, f = { 0 };
	struct symbolizer_rows *rows;

	put_code(&p.code);
	memcpy(p.code.b + 0x144, "\x48\x89\x6c\x24\x18", 5); /* elsewhere */
	p.code.b[0x143] = 0x55; /* not a push, for rsp has moved by more */
	put_table(&table, &versions[3], funcs, TEXT + ENTRY_TEXT);
	make_go(&f, &table, &p);
	assert_int_equal(read_file(&f, &rows), 0);
	assert_string_equal(rule_at(rows, AT(0x144)), "r7+48");
	assert_string_equal(rule_at(rows, AT(0x14c)), "r7+48");
	symbolizer_rows_free(rows);
	memcpy(f.b + sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Phdr) + 0x144,
	       "\x48\x89\xac\x24\x20\0\0\0", 8); /* a long form */
	assert_int_equal(read_file(&f, &rows), 0);
	assert_string_equal(rule_at(rows, AT(0x14b)), "r7+48");
	assert_string_equal(rule_at(rows, AT(0x14c)), "r7+48 6=*cfa-16");
	symbolizer_rows_free(rows);
	free(f.b);
	free(table.b);
	free(p.code.b);
}

/* --- broken ones -------------------------------------------------------------- */

/* Three functions, the second with this pc table: what is said of it. */
static void expect_damage(const char *pcs, const char *what)
{
	struct func funcs[] = {
		{ "a", 0x100, PUSHED, 0 },
		{ "b", 0x140, pcs, 0 },
		{ "c", 0x180, LEAF, 0 },
		{ NULL, 0x1c0, NULL, 0 },
	};
	struct parts p = { .section = ".gopclntab" };
	struct symbolizer_rows *rows = rows_of_go(&versions[3], &p, funcs);

	assert_non_null(info_of(rows).damage);
	assert_string_equal(info_of(rows).damage, what);
	assert_string_equal(info_of(rows).section, ".gopclntab");
	assert_int_equal(info_of(rows).file_offset -
				 info_of(rows).section_offset,
			 sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Phdr) + 0x400);
	assert_string_equal(rule_at(rows, AT(0x101)), "r7+16 6=*cfa-16");
	assert_string_equal(rule_at(rows, AT(0x140)), "r7+8");
	assert_string_equal(rule_at(rows, AT(0x144)), "gap");
	assert_string_equal(rule_at(rows, AT(0x180)), "r7+8");
	symbolizer_rows_free(rows);
}

static void what_is_whole_of_a_broken_table_is_used(void **state)
{
	expect_damage("\x02\x04\x1f\x04",
		      "a stack pointer that moves to nowhere");
	expect_damage("\x02\x04\x02\x04",
		      "a stack pointer that moves to nowhere");
	expect_damage("\x02\x04\x20\x80\x80\x80\x80\x80\x80",
		      "pcs that are cut off");
}

static void a_list_that_goes_backwards_ends_there(void **state)
{
	static const struct func funcs[] = {
		{ "a", 0x100, PUSHED, 0 },
		{ "b", 0x180, LEAF, 0 },
		{ "c", 0x140, LEAF, 0 },
		{ NULL, 0x1c0, NULL, 0 },
	};
	struct parts p = { .section = ".gopclntab" };
	struct symbolizer_rows *rows = rows_of_go(&versions[3], &p, funcs);

	assert_string_equal(info_of(rows).damage,
			    "functions that go backwards");
	assert_string_equal(rule_at(rows, AT(0x100)), "r7+8");
	assert_string_equal(rule_at(rows, AT(0x140)), "gap");
	symbolizer_rows_free(rows);
}

static void a_table_cut_anywhere_is_no_danger(void **state)
{
	for (size_t v = 0; v < ARRAY_SIZE(versions); v++) {
		struct bytes table = { 0 }, f = { 0 };
		struct parts p = { .section = ".gopclntab" };
		struct symbolizer_rows *rows;

		put_code(&p.code);
		put_table(&table, &versions[v], plain, TEXT + ENTRY_TEXT);
		for (size_t n = table.n; n-- > 1;) {
			table.n = n;
			make_go(&f, &table, &p);
			assert_int_equal(read_file(&f, &rows), 0);
			if (n < 0x100) /* not even the list */
				assert_non_null(info_of(rows).damage);
			symbolizer_rows_free(rows);
		}
		free(f.b);
		free(table.b);
		free(p.code.b);
	}
}

/* --- beside other tables ------------------------------------------------------ */

static void the_entry_stub_is_a_root(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		const char *want;
	} stubs[] = {
		{ C("\x48\x31\xed\x48\x89\xe7"), "r7+8 16=none" }, /* musl */
		{ C("\xf3\x0f\x1e\xfa\x31\xed"), "r7+8 16=none" },
		{ C("\x48\x89\xe7"), "r7+8 16=none" }, /* ld.so */
		{ C("\x48\x89\xf7"), NULL }, /* any first function */
	};
	uint64_t entry = TEXT + AT(0x2c8);

	for (size_t i = 0; i < ARRAY_SIZE(stubs); i++) {
		struct parts p = { .section = ".gopclntab" };
		struct bytes table = { 0 }, f = { 0 };
		struct symbolizer_rows *rows;

		put_code(&p.code);
		memcpy(p.code.b + 0x2c8, stubs[i].code, stubs[i].len);
		put_table(&table, &versions[3], plain, TEXT + ENTRY_TEXT);
		make_go(&f, &table, &p);
		memcpy(f.b + offsetof(Elf64_Ehdr, e_entry), &entry, 8);
		assert_int_equal(read_file(&f, &rows), 0);
		expect_plain(rows, &versions[3]);
		if (stubs[i].want) {
			assert_string_equal(rule_at(rows, AT(0x2c7)), "gap");
			assert_string_equal(rule_at(rows, AT(0x2c8)),
					    stubs[i].want);
			assert_string_equal(rule_at(rows, AT(0x2c8 + 63)),
					    stubs[i].want);
		} else {
			assert_null(strstr(rule_at(rows, AT(0x2c8)), "16="));
		}
		assert_null(strstr(rule_at(rows, AT(0x2c8 + 64)), "16="));
		symbolizer_rows_free(rows);
		free(f.b);
		free(table.b);
		free(p.code.b);
	}
}

static void an_entry_that_is_known_stays_as_it_is(void **state)
{
	uint64_t entry = TEXT + AT(0x180); /* Go says that it is a leaf */
	struct parts p = { .section = ".gopclntab" };
	struct bytes table = { 0 }, f = { 0 };
	struct symbolizer_rows *rows;

	put_code(&p.code);
	put_table(&table, &versions[3], plain, TEXT + ENTRY_TEXT);
	make_go(&f, &table, &p);
	f.b[offsetof(Elf64_Ehdr, e_type)] = ET_EXEC;
	memcpy(f.b + offsetof(Elf64_Ehdr, e_entry), &entry, 8);
	assert_int_equal(read_file(&f, &rows), 0);
	assert_string_equal(rule_at(rows, AT(0x180)), "r7+8 16=none");
	assert_string_equal(rule_at(rows, AT(0x1a0)), "gap");
	symbolizer_rows_free(rows);
	free(f.b);
	free(table.b);
	free(p.code.b);
}

/* --- where a thread has its g --------------------------------------------------- */

/* runtime.systemstack of Go 1.26: with a constant offset, and position-independent. */
#define LOAD "\x64\x48\x8b\x04\x25\xb8\xff\xff\xff"
#define PIE_LOAD "\x48\xc7\xc1\xf8\xff\xff\xff\x64\x48\x8b\x01"
#define GSIGNAL "\x48\x8b\x58\x30\x48\x3b\x43\x48\x74\x65"
#define CURG "\x48\x3b\x83\xb8\x00\x00\x00\x75\x64"
#define CURG_OLD "\x48\x39\x83\xc0\x00\x00\x00\x75\x64"

static struct symbolizer_go go_of(const char *code, size_t len,
				  const char *name)
{
	const struct func funcs[] = { { name, 0x100, LEAF, 0 },
				      { "main.main", 0x140, LEAF, 0 },
				      { NULL, 0x160, NULL, 0 } };
	struct parts p = { .section = ".gopclntab" };
	struct symbolizer_rows *rows;
	struct bytes table = { 0 }, f = { 0 };
	struct symbolizer_go go;

	put_code(&p.code);
	memcpy(p.code.b + 0x110, code, len);
	put_table(&table, &versions[3], funcs, TEXT + ENTRY_TEXT);
	make_go(&f, &table, &p);
	assert_int_equal(read_file(&f, &rows), 0);
	go = symbolizer_rows_go(rows);
	symbolizer_rows_free(rows);
	free(f.b);
	free(table.b);
	free(p.code.b);
	return go;
}

#define GO_OF(code) go_of(code, sizeof(code) - 1, "runtime.systemstack")

static void the_runtime_tells_where_g_is(void **state)
{
	struct symbolizer_go go = GO_OF(LOAD GSIGNAL CURG);

	assert_int_equal(go.tls, -72);
	assert_int_equal(go.curg, 184);
	go = GO_OF(PIE_LOAD GSIGNAL CURG_OLD);
	assert_int_equal(go.tls, -8);
	assert_int_equal(go.curg, 192);
}

static void another_runtime_tells_nothing(void **state)
{
	static const char code[] = LOAD GSIGNAL CURG;
	const struct symbolizer_go none[] = {
		GO_OF(GSIGNAL CURG), /* no g */
		GO_OF(LOAD GSIGNAL), /* no curg */
		GO_OF(CURG LOAD GSIGNAL), /* of something else */
		GO_OF(LOAD GSIGNAL "\x48\x3b\x83\xc8\x00\x00\x00"),
		GO_OF("\x64\x48\x8b\x04\x25\xb9\xff\xff\xff" GSIGNAL CURG),
		GO_OF("\x64\x48\x8b\x04\x25\x00\x00\x00\x80" GSIGNAL CURG),
		GO_OF("\x64\x48\x8b\x04\x25\x00\x00\x00\x00" GSIGNAL CURG),
		go_of(code, sizeof(code) - 1, "runtime.systemstack_switch"),
	};

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		assert_int_equal(none[i].tls, 0);
		assert_int_equal(none[i].curg, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_layout_gives_the_same_rows),
		cmocka_unit_test(the_table_is_found_by_itself),
		cmocka_unit_test(the_start_of_the_text_is_found),
		cmocka_unit_test(files_that_are_not_gos_are_not_searched),
		cmocka_unit_test(a_frame_pointer_is_not_guessed),
		cmocka_unit_test(what_is_whole_of_a_broken_table_is_used),
		cmocka_unit_test(a_list_that_goes_backwards_ends_there),
		cmocka_unit_test(a_table_cut_anywhere_is_no_danger),
		cmocka_unit_test(the_entry_stub_is_a_root),
		cmocka_unit_test(an_entry_that_is_known_stays_as_it_is),
		cmocka_unit_test(the_runtime_tells_where_g_is),
		cmocka_unit_test(another_runtime_tells_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
