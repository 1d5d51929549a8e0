// SPDX-License-Identifier: Apache-2.0
/*
 * Rows from instructions: small functions, each instruction with the rule that it must
 * have, and the libraries of this program, whose CFI tells the truth.
 */
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/rows/flow.h"
#include "tests/unit/rows/test_rows.h"

#define NOTE_SIZE 24
#define HEAD (sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr) + NOTE_SIZE)

/* An instruction, and the rule before it. NULL code: the end. */
struct piece {
	const char *code;
	size_t len;
	const char *rule;
};

static void put_note(struct bytes *f)
{
	size_t begin = f->n;

	put4(f, 4);
	put4(f, 8);
	put4(f, NT_GNU_BUILD_ID);
	put(f,
	    "GNU\0"
	    "\1\2\3\4\5\6\7\10",
	    12);
	assert_int_equal(f->n - begin, NOTE_SIZE);
}

/* A library with code, which begins with its entry, and a build id. */
static void make_code(struct bytes *f, const struct piece *p)
{
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
				       ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_entry = TEXT + HEAD,
			  .e_phoff = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 2 };
	uint64_t size = HEAD;

	for (size_t i = 0; p[i].code; i++)
		size += p[i].len;
	put(f, &eh, sizeof(eh));
	put_phdr(f, PT_LOAD, PF_R | PF_X, 0, TEXT, size, size);
	put_phdr(f, PT_NOTE, PF_R, HEAD - NOTE_SIZE, TEXT + HEAD - NOTE_SIZE,
		 NOTE_SIZE, NOTE_SIZE);
	put_note(f);
	for (size_t i = 0; p[i].code; i++)
		put(f, p[i].code, p[i].len);
}

static void expect(const struct piece *p)
{
	struct symbolizer_rows *rows;
	struct bytes f = { 0 };
	uint64_t at = HEAD;

	make_code(&f, p);
	assert_int_equal(read_file(&f, &rows), 0);
	for (size_t i = 0; p[i].code; i++) {
		assert_string_equal(rule_at(rows, at), p[i].rule);
		at += p[i].len;
	}
	assert_true(info_of(rows).by_code);
	symbolizer_rows_free(rows);
	free(f.b);
}

static void pushes_and_room(void **state)
{
	static const struct piece p[] = {
		{ C("\x53"), "r7+8" }, /* push rbx */
		{ C("\x55"), "r7+16 3=*cfa-16" }, /* push rbp */
		{ C("\x48\x83\xec\x28"), "r7+24 3=*cfa-16 6=*cfa-24" },
		{ C("\x31\xed"), "r7+64 3=*cfa-16 6=*cfa-24" }, /* xor ebp */
		{ C("\xe8\x09\x00\x00\x00"), "r7+64 3=*cfa-16 6=*cfa-24" },
		{ C("\x48\x83\xc4\x28"), "r7+64 3=*cfa-16 6=*cfa-24" },
		{ C("\x5d"), "r7+24 3=*cfa-16 6=*cfa-24" },
		{ C("\x5b"), "r7+16 3=*cfa-16" },
		{ C("\xc3"), "r7+8" },
		{ C("\xcc\xcc"), "gap" },
		/* The function that is called. */
		{ C("\xc3"), "r7+8" },
		{ 0 },
	};

	expect(p);
}

static void a_frame_pointer(void **state)
{
	static const struct piece p[] = {
		{ C("\x55"), "r7+8" },
		{ C("\x48\x89\xe5"), "r7+16 6=*cfa-16" }, /* mov rbp,rsp */
		{ C("\x53"), "r7+16 6=*cfa-16" },
		{ C("\x48\x29\xc4"), "r7+24 3=*cfa-24 6=*cfa-16" }, /* alloca */
		{ C("\x48\x83\xe4\xf0"), "r6+16 3=*cfa-24 6=*cfa-16" },
		{ C("\x31\xdb"), "r6+16 3=*cfa-24 6=*cfa-16" },
		{ C("\x48\x8b\x5d\xf8"), "r6+16 3=*cfa-24 6=*cfa-16" },
		{ C("\xc9"), "r6+16 6=*cfa-16" }, /* leave */
		{ C("\xc3"), "r7+8" },
		{ 0 },
	};

	expect(p);
}

static void moves_save_too(void **state)
{
	static const struct piece p[] = {
		{ C("\x48\x83\xec\x18"), "r7+8" },
		{ C("\x4c\x89\x64\x24\x10"), "r7+32" }, /* mov [rsp+16],r12 */
		{ C("\x41\x89\xc4"), "r7+32 12=*cfa-16" }, /* mov r12d,eax */
		{ C("\x89\xc3"), "r7+32 12=*cfa-16" }, /* mov ebx,eax: lost */
		{ C("\x4c\x8b\x64\x24\x10"), "r7+32 3=none 12=*cfa-16" },
		{ C("\x48\x8d\x64\x24\x18"), "r7+32 3=none" }, /* lea rsp */
		{ C("\xc3"), "r7+8 3=none" },
		{ 0 },
	};

	expect(p);
}

/* What two paths reach with different frames is not known; what is behind it may be. */
static void paths_that_differ(void **state)
{
	static const struct piece p[] = {
		{ C("\x55"), "r7+8" },
		{ C("\x48\x89\xe5"), "r7+16 6=*cfa-16" },
		{ C("\x74\x01"), "r7+16 6=*cfa-16" }, /* jz to the nop */
		{ C("\x50"), "r7+16 6=*cfa-16" },
		{ C("\x90"), "r6+16 6=*cfa-16" },
		{ C("\xc9"), "r6+16 6=*cfa-16" },
		{ C("\x74\x01"), "r7+8" },
		{ C("\x50"), "r7+8" },
		{ C("\xc3"), "gap" },
		{ 0 },
	};

	expect(p);
}

/* A jump to a start is a call at the end: nothing of the frame goes there. */
static void starts_are_starts(void **state)
{
	static const struct piece p[] = {
		{ C("\x50"), "r7+8" },
		{ C("\xe8\x02\x00\x00\x00"), "r7+16" },
		{ C("\xeb\x00"), "r7+16" },
		{ C("\x90"), "r7+8" },
		{ C("\xc3"), "r7+8" },
		{ 0 },
	};

	expect(p);
}

/* Behind the call of such a function another one may begin. */
static void what_never_returns(void **state)
{
	static const struct piece p[] = {
		{ C("\x50"), "r7+8" },
		{ C("\x74\x06"), "r7+16" },
		{ C("\xe8\x05\x00\x00\x00"), "r7+16" },
		{ C("\xc3"), "gap" },
		{ C("\x58"), "r7+16" },
		{ C("\xc3"), "r7+8" },
		{ C("\xcc\xcc"), "gap" },
		/* push; call of what stops; then other code. */
		{ C("\x50"), "r7+8" },
		{ C("\xe8\x01\x00\x00\x00"), "r7+16" },
		{ C("\xc3"), "gap" },
		{ C("\x0f\x0b"), "r7+8" },
		{ 0 },
	};

	expect(p);
}

/* A call that cannot return, as the path behind it would return with a frame. */
static void calls_before_another_function(void **state)
{
	static const struct piece p[] = {
		{ C("\x50"), "r7+8" },
		{ C("\xff\xd0"), "r7+16" }, /* call rax */
		{ C("\x90\x90\x90\x90\x90"), "gap" }, /* up to 16 bytes */
		{ C("\xc3"), "gap" },
		{ 0 },
	};

	assert_int_equal((TEXT + HEAD + 8) % 16, 0);
	expect(p);
}

/* cmp eax,1; ja; lea rdx,[table]; movsxd rax,[rdx+rax*4]; add rax,rdx; jmp rax */
static void tables_of_switches(void **state)
{
	static const struct piece p[] = {
		{ C("\x50"), "r7+8" },
		{ C("\x83\xf8\x01"), "r7+16" },
		{ C("\x77\x14"), "r7+16" },
		{ C("\x48\x8d\x15\x0f\x00\x00\x00"), "r7+16" },
		{ C("\x48\x63\x04\x82"), "r7+16" },
		{ C("\x48\x01\xd0"), "r7+16" },
		{ C("\xff\xe0"), "r7+16" },
		{ C("\xcc\xcc\xcc\xcc"), "gap" },
		{ C("\x58"), "r7+16" }, /* otherwise */
		{ C("\xc3"), "r7+8" },
		/* Two entries; what follows them would be a third one. */
		{ C("\x09\x00\x00\x00\x0c\x00\x00\x00"), "gap" },
		{ C("\x58"), "gap" },
		{ C("\x59"), "r7+16" },
		{ C("\xc3"), "r7+8" },
		{ C("\x90"), "gap" },
		{ C("\x5a"), "r7+16" },
		{ C("\xc3"), "r7+8" },
		{ 0 },
	};

	expect(p);
}

/* An address that is only loaded: a start, or inside of an instruction. */
static void addresses_are_starts_if_nothing_leads_there(void **state)
{
	static const struct piece p[] = {
		{ C("\x48\x8d\x05\x0e\x00\x00\x00"),
		  "r7+8" }, /* lea, to the end */
		/* Into the next one, where a push would be. */
		{ C("\x48\x8d\x05\x01\x00\x00\x00"), "r7+8" },
		{ C("\xb8\x50"), "r7+8" }, /* mov eax,80 */
		{ C("\x00\x00\x00"), "r7+8" },
		{ C("\xc3"), "r7+8" },
		{ C("\xcc"), "gap" },
		{ C("\x50"), "r7+8" },
		{ C("\x58"), "r7+16" },
		{ C("\xc3"), "r7+8" },
		{ 0 },
	};

	expect(p);
}

static int on_ask(void *arg, const char *basename, const uint8_t *build_id,
		  size_t len, uint32_t crc, bool has_crc)
{
	const struct bytes *debug = arg;
	int fd;

	if (!len)
		return -ENOENT;
	fd = memfd_create("debug", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, debug->b, debug->n), debug->n);
	return fd;
}

/* As distributions package musl: the CFI of its debug file counts, not its instructions. */
static void a_debug_file_comes_first(void **state)
{
	static const struct piece p[] = {
		{ C("\x50"), "r7+8" },
		{ C("\x58"), "r7+16" },
		{ C("\xc3"), "r7+8" },
		{ 0 },
	};
	struct bytes f = { 0 }, debug = { 0 }, frame = { 0 }, note = { 0 };
	struct section s[] = { { ".debug_frame", 0, 0, &frame },
			       { ".note.gnu.build-id", 0, 0, &note } };
	struct symbolizer_ask ask = { .file = on_ask, .arg = &debug };
	struct symbolizer_rows *rows;
	struct symbolizer_src src;
	size_t cie = put_cie(&frame, false, "", NULL, 0, C(USUAL));

	expect(p);
	put_debug_fde(&frame, cie, 0, HEAD + 3, C("\x0e\x20"));
	put_note(&note);
	make_file(&debug, s, ARRAY_SIZE(s), false);
	make_code(&f, p);
	symbolizer_src_mem(&src, f.b, f.n);
	assert_int_equal(symbolizer_rows_read(&rows, &src, &ask), 0);
	assert_string_equal(rule_at(rows, HEAD + 1), "r7+32");
	assert_string_equal(rule_at(rows, HEAD + 2), "r7+32");
	assert_false(info_of(rows).by_code);
	symbolizer_rows_free(rows);
	free(f.b);
	free(debug.b);
	free(frame.b);
	free(note.b);
}

/* --- against CFI ------------------------------------------------------------- */

struct truth {
	const struct flow *f;
	const struct symbolizer_rows *rows;
	unsigned long right, wrong, unknown;
};

struct sum {
	unsigned long right, all;
	int files;
};

/* Rules by the stack pointer, and by the frame pointer. */
static int32_t state_of(const struct flow_node *n,
			const struct symbolizer_rule *r)
{
	return !n || !n->reached		 ? FLOW_UNKNOWN
	       : r->cfa.reg == SYMBOLIZER_REG_SP ? n->state.sp
						 : n->state.fp;
}

static int compare(void *arg, uint64_t start, uint64_t end)
{
	struct truth *t = arg;
	const struct flow *f = t->f;
	struct symbolizer_rule r;
	struct flow_insn in;
	uint16_t id;
	int32_t n;

	for (uint64_t at = start; at < end; at += in.len) {
		uint64_t off = at - f->base - f->start;

		if (off >= f->size)
			return 0;
		arch_flow_decode(f->code + off, f->size - off, at, f->base,
				 &in);
		id = symbolizer_rows_find(t->rows, at);
		if (!id)
			continue;
		symbolizer_rows_rule(t->rows, id, &r);
		if (r.cfa.from != SYMBOLIZER_REG ||
		    (r.cfa.reg != SYMBOLIZER_REG_SP &&
		     r.cfa.reg != SYMBOLIZER_REG_FP))
			continue;
		n = state_of(flow_at(f, (uint32_t)(at - f->base)), &r);
		t->unknown += n == FLOW_UNKNOWN;
		t->right += n == r.cfa.n;
		t->wrong += n != FLOW_UNKNOWN && n != r.cfa.n;
	}
	return 0;
}

static void compare_file(const char *path, struct sum *sum)
{
	struct symbolizer_src src, again;
	struct truth t = { 0 };
	struct symbolizer_rows *rows;
	struct symbolizer_elf e;
	struct flow *f;
	struct stat st;
	int fd;
	double all;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return; /* the program, the vDSO */
	symbolizer_src_fd(&src, fd, (uint64_t)st.st_size);
	symbolizer_src_fd(&again, fd, (uint64_t)st.st_size);
	assert_int_equal(symbolizer_elf_init(&e, &src), 0);
	assert_int_equal(symbolizer_elf_tables(&e), 0);
	f = malloc(sizeof(*f));
	assert_non_null(f);
	if (!flow_init(f, &e) && !flow_solve(f) &&
	    !symbolizer_rows_read_tables(&rows, &again)) {
		t.f = f;
		t.rows = rows;
		assert_int_equal(symbolizer_rows_functions(&again, compare, &t),
				 0);
		symbolizer_rows_free(rows);
		all = (double)(t.right + t.wrong + t.unknown);
		print_message("# %s: %.0f instructions, right %.2f %%, "
			      "wrong %lu, not known %.2f %%\n",
			      path, all, 100 * (double)t.right / all, t.wrong,
			      100 * (double)t.unknown / all);
		assert_true((double)t.wrong <= all / 1000);
		sum->right += t.right;
		sum->all += (unsigned long)all;
		sum->files++;
	}
	flow_fini(f);
	free(f);
	symbolizer_elf_fini(&e);
	close(fd);
}

static int library(struct dl_phdr_info *info, size_t size, void *arg)
{
	/* Lazy binding jumps into the dynamic linker with more on the stack. */
	if (!strstr(info->dlpi_name, "ld-linux"))
		compare_file(info->dlpi_name, arg);
	return 0;
}

static void libraries_have_the_rows_of_their_cfi(void **state)
{
	const char *more = getenv("FLOW_FILES");
	struct sum sum = { 0 };
	char path[4096];
	int n;

	for (; more && sscanf(more, " %4095s%n", path, &n) == 1; more += n)
		compare_file(path, &sum);
	dl_iterate_phdr(library, &sum);
	assert_true(sum.files >= 5);
	/* In some half of the functions is reached by pointers only. */
	assert_true((double)sum.right >= 0.8 * (double)sum.all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pushes_and_room),
		cmocka_unit_test(a_frame_pointer),
		cmocka_unit_test(moves_save_too),
		cmocka_unit_test(paths_that_differ),
		cmocka_unit_test(starts_are_starts),
		cmocka_unit_test(what_never_returns),
		cmocka_unit_test(calls_before_another_function),
		cmocka_unit_test(tables_of_switches),
		cmocka_unit_test(addresses_are_starts_if_nothing_leads_there),
		cmocka_unit_test(a_debug_file_comes_first),
		cmocka_unit_test(libraries_have_the_rows_of_their_cfi),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
