// SPDX-License-Identifier: Apache-2.0
/*
 * Where a file has a tracer's thread-local variable: libraries of each access model are
 * loaded here, and what the facts lead to is the address that the loader tells; programs
 * print theirs.
 */
#include <dlfcn.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

static char dir[] = "/tmp/test_slot.XXXXXX";

#include "tests/unit/files.h"
#include "tests/unit/symbolize/file_slot.h"

#define ELASTIC "elastic_apm_profiling_correlation_tls_v1"

/* --- libraries ------------------------------------------------------------ */

struct pair {
	uint64_t module, offset;
};

/* glibc: dtv is behind tp; an entry has 16 bytes. */
static char *in_module(const struct pair *p)
{
	char *tp = __builtin_thread_pointer();
	char **dtv;

	memcpy(&dtv, tp + 8, sizeof(dtv));
	return dtv[p->module * 2] + p->offset;
}

static char *by_desc(const char *where)
{
	static const uint8_t is_static[] = { 0x48, 0x8b, 0x40, 0x08, 0xc3 };
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	struct {
		const uint8_t *fn;
		int64_t arg;
	} desc;

	memcpy(&desc, where, sizeof(desc));
	assert_non_null(desc.fn);
	if (memcmp(desc.fn, endbr64, sizeof(endbr64)) == 0)
		desc.fn += sizeof(endbr64);
	if (memcmp(desc.fn, is_static, sizeof(is_static)) == 0)
		return (char *)__builtin_thread_pointer() + desc.arg;
	return in_module((const struct pair *)(uintptr_t)desc.arg);
}

static char *follow(const struct symbolizer_slot *slot, uint64_t bias)
{
	const char *where = (const char *)(uintptr_t)(bias + slot->where);
	struct pair p;

	switch (slot->model) {
	case SYMBOLIZER_SLOT_INITIAL:
		memcpy(&p.offset, where, sizeof(p.offset));
		return (char *)__builtin_thread_pointer() + p.offset;
	case SYMBOLIZER_SLOT_DESC:
		return by_desc(where);
	case SYMBOLIZER_SLOT_MODULE:
		memcpy(&p, where, sizeof(p));
		if (!slot->pair)
			p.offset = (uint64_t)slot->offset;
		return in_module(&p);
	default:
		fail_msg("no slot");
		return NULL;
	}
}

static void loaded(const char *name)
{
	struct symbolizer_slot slot;
	struct link_map *map;
	char path[256];
	void *(*touch)(void);
	void *lib;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		fail_msg("%s", dlerror());
	*(void **)&touch = dlsym(lib, "touch");
	assert_non_null(touch);
	assert_int_equal(dlinfo(lib, RTLD_DI_LINKMAP, &map), 0);
	file_slot(name, &slot);
	assert_ptr_equal(follow(&slot, map->l_addr), touch());
	dlclose(lib);
}

static enum symbolizer_slot_model made(const char *how)
{
	struct symbolizer_slot slot;

	sh("cc -shared -fPIC -O1 %s -o lib.so lib.c", how);
	loaded("lib.so");
	file_slot("lib.so", &slot);
	unlink("lib.so");
	return slot.model;
}

/* Another variable comes first, so that no offset is 0. */
static void lib_source(const char *attribute)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "__thread long before[3] = { 1 };\n"
		 "%s __thread void *otel_thread_ctx_v1;\n"
		 "long *other(void) { return before; }\n"
		 "void *touch(void) { return &otel_thread_ctx_v1; }\n",
		 attribute);
	write_file("lib.c", text);
}

static void a_library_of_each_model_leads_to_its_variable(void **state)
{
	lib_source("");
	assert_int_equal(made("-mtls-dialect=gnu"), SYMBOLIZER_SLOT_MODULE);
	assert_int_equal(made("-mtls-dialect=gnu2"), SYMBOLIZER_SLOT_DESC);
	assert_int_equal(made("-ftls-model=initial-exec"),
			 SYMBOLIZER_SLOT_INITIAL);
}

static void a_variable_bound_in_the_library_is_found(void **state)
{
	lib_source("__attribute__((visibility(\"protected\")))");
	assert_int_equal(made("-ftls-model=local-dynamic -mtls-dialect=gnu"),
			 SYMBOLIZER_SLOT_MODULE);
	assert_int_equal(made("-mtls-dialect=gnu"), SYMBOLIZER_SLOT_MODULE);
	assert_int_equal(made("-mtls-dialect=gnu2"), SYMBOLIZER_SLOT_DESC);
	assert_int_equal(made("-ftls-model=initial-exec"),
			 SYMBOLIZER_SLOT_INITIAL);
}

static void either_hash_table_and_no_sections_will_do(void **state)
{
	lib_source("");
	assert_int_equal(made("-Wl,--hash-style=sysv"), SYMBOLIZER_SLOT_MODULE);
	assert_int_equal(made("-Wl,--hash-style=gnu"), SYMBOLIZER_SLOT_MODULE);
	assert_int_equal(made("-s"), SYMBOLIZER_SLOT_MODULE);
	/* e_shoff, then e_shnum and e_shstrndx */
	sh("cc -shared -fPIC -o lib.so lib.c");
	sh("head -c 8 /dev/zero | dd of=lib.so bs=1 seek=40 conv=notrunc "
	   "status=none");
	sh("head -c 4 /dev/zero | dd of=lib.so bs=1 seek=60 conv=notrunc "
	   "status=none");
	loaded("lib.so");
}

static void who_only_uses_the_variable_has_no_slot(void **state)
{
	struct symbolizer_slot slot;

	write_file("use.c",
		   "extern __thread void *otel_thread_ctx_v1;\n"
		   "__thread int own;\n"
		   "void *use(void) { return own++, otel_thread_ctx_v1; }\n");
	sh("cc -shared -fPIC -Wl,--hash-style=sysv -o use.so use.c");
	file_slot("use.so", &slot);
	assert_int_equal(slot.model, SYMBOLIZER_SLOT_NONE);
	write_file("like.c", "__thread void *otel_thread_ctx_v12;\n"
			     "__thread void *xotel_thread_ctx_v1;\n"
			     "void **f(void) { return &otel_thread_ctx_v12; }\n"
			     "void **g(void) { return &xotel_thread_ctx_v1; }\n"
			     "void *otel_thread_ctx_v1;\n");
	sh("cc -shared -fPIC -o like.so like.c");
	file_slot("like.so", &slot);
	assert_int_equal(slot.model, SYMBOLIZER_SLOT_NONE);
}

static void elastics_file_has_a_storage(void **state)
{
	struct symbolizer_slot slot;
	uint64_t *at;
	void *lib;
	char path[256];

	write_file("lib.c",
		   "__thread void *" ELASTIC ";\n"
		   "void *" SYMBOLIZER_STORAGE_NAME " = (void *)0x1234;\n"
		   "void **where(void) { return &" ELASTIC "; }\n"
		   "void **stored(void) { return &" SYMBOLIZER_STORAGE_NAME
		   "; }\n");
	for (int sysv = 0; sysv < 2; sysv++) {
		sh("cc -shared -fPIC -Wl,--hash-style=%s -o elastic%d.so lib.c",
		   sysv ? "sysv" : "gnu", sysv);
		snprintf(path, sizeof(path), "elastic%d.so", sysv);
		file_slot(path, &slot);
		assert_int_equal(slot.kind, SYMBOLIZER_SLOT_ELASTIC);
		assert_int_equal(slot.model, SYMBOLIZER_SLOT_MODULE);
		snprintf(path, sizeof(path), "%s/elastic%d.so", dir, sysv);
		lib = dlopen(path, RTLD_NOW);
		assert_non_null(lib);
		at = dlsym(lib, SYMBOLIZER_STORAGE_NAME);
		assert_ptr_equal(at, *(char **)lib + slot.storage);
		assert_int_equal(*at, 0x1234);
		dlclose(lib);
	}
	/* The pointer has to be data of this file. */
	write_file("lib.c", "__thread void *" ELASTIC ";\n"
			    "extern void *" SYMBOLIZER_STORAGE_NAME ";\n"
			    "void *f(void) { return " ELASTIC
			    " ? 0 : " SYMBOLIZER_STORAGE_NAME "; }\n");
	sh("cc -shared -fPIC -o elastic.so lib.c");
	file_slot("elastic.so", &slot);
	assert_int_equal(slot.kind, SYMBOLIZER_SLOT_ELASTIC);
	assert_int_equal(slot.storage, 0);
}

/* --- programs ------------------------------------------------------------- */

static void printed(const char *how)
{
	struct symbolizer_slot slot;
	char path[256], line[64] = "";
	FILE *f;

	sh("%s -o prog prog.c", how);
	file_slot("prog", &slot);
	assert_int_equal(slot.model, SYMBOLIZER_SLOT_EXEC);
	snprintf(path, sizeof(path), "%s/prog", dir);
	f = popen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_int_equal(pclose(f), 0);
	assert_int_equal(slot.offset, strtoll(line, NULL, 10));
	assert_true(slot.offset < 0);
}

static void a_program_has_it_at_a_fixed_distance(void **state)
{
	static const char *const align[] = { "8", "64", "4096" };
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(align); i++) {
		snprintf(text, sizeof(text),
			 "#include <stdio.h>\n"
			 "__thread void *otel_thread_ctx_v1;\n"
			 "__thread char a[3] __attribute__((aligned(%s)));\n"
			 "int main(void) { a[0]++; return printf(\"%%ld\\n\","
			 " (long)((char *)&otel_thread_ctx_v1 -\n"
			 " (char *)__builtin_thread_pointer())) < 0; }\n",
			 align[i]);
		write_file("prog.c", text);
		printed("cc -rdynamic");
		printed("cc -rdynamic -no-pie");
		printed("cc -static");
		printed("cc -static-pie");
		printed("musl-gcc -static");
		printed("musl-gcc -rdynamic");
	}
}

static int setup(void **state)
{
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char line[64];

	snprintf(line, sizeof(line), "rm -rf %s", dir);
	return system(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_library_of_each_model_leads_to_its_variable),
		cmocka_unit_test(a_variable_bound_in_the_library_is_found),
		cmocka_unit_test(either_hash_table_and_no_sections_will_do),
		cmocka_unit_test(who_only_uses_the_variable_has_no_slot),
		cmocka_unit_test(elastics_file_has_a_storage),
		cmocka_unit_test(a_program_has_it_at_a_fixed_distance),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
