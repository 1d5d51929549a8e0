// SPDX-License-Identifier: Apache-2.0
/*
 * The ids of traces in samples: of a real process in each access model, found by
 * profiler/tracing/find.h, and equal to what the thread has written. trace_writer.c is
 * the program; its ids cannot be mixed, or be another thread's, unseen.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/source/sampler.h"
#include "profiler/tracing/find.h"
#include "tracehandler/record.h"

static char dir[] = "/tmp/test_sampler_trace.XXXXXX";

#include "tests/unit/files.h"
#include "tests/unit/symbolize/file_slot.h"

#define HANG_S 60
#define ENOUGH 10000 /* at the rate below, in half a second on two CPUs */
#define SOME 500
#define TEST(name) cmocka_unit_test_teardown(name, writer_stop)
#define WRITER "tests/bpf/sampler/trace_writer.c"

struct writer {
	pid_t pid;
	FILE *in, *out;
};

/* What the samples of one process have. */
struct seen {
	uint32_t tgid, main; /* 'main': a thread without ids */
	struct abi_key key; /* of the last sample */
	unsigned int samples, with;
	uint64_t last_begin;
	uint32_t last_tid;
	uint32_t tids[4]; /* of those with ids */
	size_t ntids;
};

static struct seen seen;
static pid_t running; /* the writer */
static struct sampler *sampler;
static bool elastic; /* the writer has Elastic's record */
static bool tasks; /* ids name the stack of a task */

#define TASK_STACK (64 << 10) /* as in trace_writer.c */

/* As in trace_writer.c. */
static void check_ids(const struct abi_sample *head, const struct abi_trace *t)
{
	uint64_t begin, span, transaction;
	uint32_t tid, check;

	memcpy(&begin, t->trace_id, 8);
	memcpy(&tid, t->trace_id + 8, 4);
	memcpy(&check, t->trace_id + 12, 4);
	memcpy(&span, t->span_id, 8);
	memcpy(&transaction, t->transaction_id, 8);
	assert_int_equal(tid, head->tid);
	assert_int_equal(check, (uint32_t)(begin * 2654435761u) ^ tid);
	assert_int_equal(span, begin * 0x9fb21c651e98df25u ^ tid);
	assert_int_equal(transaction, elastic ? ~span : 0);
	assert_int_equal(t->flags, 1);
	assert_true(begin <= head->time);
	if (seen.last_tid == tid)
		assert_true(begin >= seen.last_begin);
	seen.last_tid = tid;
	seen.last_begin = begin;
}

static void check_task(const struct abi_sample *head, const struct abi_trace *t,
		       const struct abi_regs *regs)
{
	uint64_t stack;
	uint32_t tid;

	memcpy(&stack, t->trace_id, 8);
	memcpy(&tid, t->trace_id + 8, 4);
	assert_int_equal(tid, head->tid);
	assert_true(regs->gpr[ABI_REG_SP] - stack < TASK_STACK);
}

static void seen_tid(uint32_t tid)
{
	for (size_t i = 0; i < seen.ntids; i++)
		if (seen.tids[i] == tid)
			return;
	assert_true(seen.ntids < ARRAY_SIZE(seen.tids));
	seen.tids[seen.ntids++] = tid;
}

static void look(void *arg, const struct abi_sample *head, size_t len)
{
	struct trace_record r;

	assert_int_equal(trace_record_parse(head, len, &r), 0);
	assert_true(!r.has_trace || head->key.tgid == seen.tgid ||
		    head->key.tgid == (uint32_t)running);
	if (head->key.tgid != seen.tgid || !r.has_regs ||
	    head->tid == seen.main)
		return;
	seen.key = head->key;
	seen.samples++;
	if (!r.has_trace)
		return;
	seen.with++;
	seen_tid(head->tid);
	if (tasks)
		check_task(head, &r.trace, &r.regs);
	else
		check_ids(head, &r.trace);
}

static void collect(uint32_t tgid, uint32_t but, unsigned int n)
{
	time_t begin = time(NULL);

	assert_true(sampler_poll(sampler) >= 0);
	memset(&seen, 0, sizeof(seen));
	seen.tgid = tgid;
	seen.main = but;
	while (seen.samples < n && time(NULL) - begin < HANG_S) {
		usleep(20000);
		assert_true(sampler_poll(sampler) >= 0);
	}
	assert_true(seen.samples >= n);
}

static void writer_start(struct writer *w, const char *program,
			 const char *context, const char *how, const char *lib)
{
	char path[256], libpath[256], line[64];
	int in[2], out[2];

	snprintf(path, sizeof(path), "%s/%s", dir, program);
	snprintf(libpath, sizeof(libpath), "%s/%s", dir, lib ? lib : "");
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	w->pid = fork();
	assert_true(w->pid >= 0);
	if (!w->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl(path, program, context, how, libpath, NULL);
		_exit(9);
	}
	running = w->pid;
	close(in[0]);
	close(out[1]);
	w->in = fdopen(in[1], "w");
	w->out = fdopen(out[0], "r");
	assert_non_null(fgets(line, sizeof(line), w->out));
	assert_string_equal(line, "ready\n");
}

static long writer_ask(struct writer *w, char what)
{
	char line[64];

	fprintf(w->in, "%c", what);
	fflush(w->in);
	assert_non_null(fgets(line, sizeof(line), w->out));
	return strtol(line, NULL, 10);
}

/* Also after a failure. What is left of its samples is none of the next writer's. */
static int writer_stop(void **state)
{
	if (running) {
		kill(running, SIGKILL);
		waitpid(running, NULL, 0);
		sampler_poll(sampler);
		sampler_trace_slot(sampler, (uint32_t)running, NULL);
	}
	running = 0;
	elastic = tasks = false;
	return 0;
}

static void writer_end(struct writer *w)
{
	writer_stop(NULL);
	fclose(w->in);
	fclose(w->out);
}

/* The first mapping of a library is of its first bytes, at address 0. */
static uint64_t file_bias(pid_t pid, const char *name)
{
	char path[64], line[512];
	uint64_t at = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (!at && fgets(line, sizeof(line), f))
		if (strstr(line, name))
			at = strtoull(line, NULL, 16);
	fclose(f);
	assert_true(at);
	return at;
}

static enum tracing_found find(const struct writer *w, struct tracing_find *f,
			       const char *file)
{
	*f = (struct tracing_find){ .key = seen.key };
	file_slot(file, &f->slot);
	assert_int_not_equal(f->slot.model, SYMBOLIZER_SLOT_NONE);
	f->bias = file_bias(w->pid, file);
	tracing_find(f);
	return f->found;
}

static void put(const struct tracing_find *f)
{
	assert_int_equal(f->found, TRACING_FOUND);
	assert_int_equal(sampler_trace_slot(sampler, f->key.tgid, &f->entry),
			 0);
}

/* A writer whose slot is in 'file', with its entry. */
static void writer_known(struct writer *w, struct tracing_find *f,
			 const char *how, const char *file)
{
	bool lib = strcmp(file, "writer") != 0;

	writer_start(w, "writer", "1", how, lib ? file : NULL);
	collect((uint32_t)w->pid, (uint32_t)w->pid, 5);
	assert_int_equal(seen.with, 0);
	assert_int_equal(find(w, f, file), TRACING_FOUND);
	put(f);
	usleep(50000);
}

/* Whether the model is static is the loader's decision. */
static void model(const char *what, const char *file)
{
	struct tracing_find f;
	struct writer w;

	writer_known(&w, &f, "swap", file);
	collect((uint32_t)w.pid, (uint32_t)w.pid, ENOUGH);
	print_message("# %s: module %llu, %u of %u\n", what,
		      (unsigned long long)f.entry.module, seen.with,
		      seen.samples);
	assert_true(seen.with * 100 >= seen.samples * 99);
	writer_end(&w);
	writer_known(&w, &f, "flag", file);
	collect((uint32_t)w.pid, (uint32_t)w.pid, SOME);
	assert_true(seen.with >= seen.samples / 4);
	writer_end(&w);
}

static char source[4096];

/* A virtual machine has none. */
static void need_compiler(void)
{
	if (system("command -v cc >/dev/null && "
		   "command -v musl-gcc >/dev/null"))
		skip();
}

static void make_writer(const char *cc, const char *flags)
{
	need_compiler();
	/* dlopen() of a static program is warned of, and not called. */
	sh("%s -O1 -pthread %s -o writer %s -ldl 2>err || { cat err; exit 1; }",
	   cc, flags, source);
}

static void make_lib(const char *cc, const char *flags)
{
	need_compiler();
	sh("%s -O1 -shared -fPIC -DLIB %s -o tracer.so %s", cc, flags, source);
}

static void a_program_has_its_own(void **state)
{
	make_writer("cc", "-DOWN -rdynamic");
	model("program", "writer");
	make_writer("cc", "-DOWN -static");
	model("static program", "writer");
	make_writer("cc", "-DOWN -static-pie");
	model("static-pie program", "writer");
	make_writer("musl-gcc", "-DOWN -rdynamic");
	model("musl program", "writer");
	make_writer("musl-gcc", "-DOWN -static");
	model("static musl program", "writer");
}

static void libraries(const char *cc, const char *what)
{
	static const char *const models[] = {
		"-ftls-model=initial-exec",
		"-mtls-dialect=gnu",
		"-mtls-dialect=gnu2",
		"-mtls-dialect=gnu -Wl,-Bsymbolic",
		"-mtls-dialect=gnu2 -Wl,-Bsymbolic",
	};
	char name[128];

	/* The programs are the same for all libraries. */
	make_writer(cc, "");
	sh("mv writer late");
	make_lib(cc, models[0]);
	make_writer(
		cc,
		"-DNEEDED -Wl,--no-as-needed tracer.so -Wl,-rpath,'$ORIGIN'");
	sh("mv writer needed");
	for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
		make_lib(cc, models[i]);
		if (strcmp(cc, "cc") == 0 || i) {
			sh("cp late writer");
			snprintf(name, sizeof(name), "%s late %s", what,
				 models[i]);
			model(name, "tracer.so");
		}
		sh("cp needed writer");
		snprintf(name, sizeof(name), "%s needed %s", what, models[i]);
		model(name, "tracer.so");
	}
}

static void a_library_has_it(void **state)
{
	libraries("cc", "glibc");
}

static void a_library_of_musl_has_it(void **state)
{
	libraries("musl-gcc", "musl");
}

/* More than glibc's surplus of static room. */
static void a_large_library_is_dynamic(void **state)
{
	need_compiler();
	sh("printf '__thread char room[8192];char *r(void){return room;}' > r.c");
	sh("cc -O1 -shared -fPIC -DLIB -mtls-dialect=gnu2 -o tracer.so %s r.c",
	   source);
	make_writer("cc", "");
	model("large gnu2", "tracer.so");
}

static void without_a_context_there_is_no_slot(void **state)
{
	struct tracing_find f;
	struct writer w;

	make_writer("cc", "-DOWN -rdynamic");
	writer_start(&w, "writer", "0", "swap", NULL);
	collect((uint32_t)w.pid, 0, 5);
	assert_int_equal(find(&w, &f, "writer"), TRACING_NO_CONTEXT);
	writer_end(&w);
}

static void another_process_is_refused(void **state)
{
	struct tracing_find f;
	struct writer w;

	make_writer("cc", "-DOWN -rdynamic");
	writer_start(&w, "writer", "1", "swap", NULL);
	collect((uint32_t)w.pid, 0, 5);
	seen.key.start_boottime += CLOCK_NSEC_PER_SEC;
	assert_int_equal(find(&w, &f, "writer"), TRACING_GONE);
	f.entry.offset = (uint64_t)f.slot.offset;
	f.found = TRACING_FOUND;
	put(&f); /* of a later process with this pid, say */
	collect((uint32_t)w.pid, 0, 50);
	assert_int_equal(seen.with, 0);
	writer_end(&w);
}

static void a_child_inherits_nothing(void **state)
{
	struct tracing_find f;
	struct writer w;
	uint32_t pid;

	make_writer("cc", "-DOWN -rdynamic");
	writer_known(&w, &f, "swap", "writer");
	pid = (uint32_t)writer_ask(&w, 'f');
	collect(pid, 0, 100);
	assert_int_equal(seen.with, 0);
	f.key = seen.key;
	tracing_find(&f);
	assert_int_equal(f.found, TRACING_NO_CONTEXT);
	kill((pid_t)pid, SIGKILL);
	writer_end(&w);
}

/* The same program, which has its variable at the same place again. */
static void an_exec_inherits_nothing(void **state)
{
	struct tracing_find f;
	struct writer w;

	make_writer("cc", "-DOWN -rdynamic");
	writer_known(&w, &f, "swap", "writer");
	fprintf(w.in, "x");
	fflush(w.in);
	do
		collect((uint32_t)w.pid, 0, 1);
	while (seen.key.exec_id == f.key.exec_id);
	collect((uint32_t)w.pid, 0, 100);
	assert_int_equal(seen.with, 0);
	writer_end(&w);
}

/* Its threads run on, with a pointer in the slot. */
static void an_unloaded_library_has_no_ids(const char *flags)
{
	struct tracing_find f;
	struct writer w;

	make_lib("cc", flags);
	make_writer("cc", "");
	writer_known(&w, &f, "swap", "tracer.so");
	collect((uint32_t)w.pid, (uint32_t)w.pid, 100);
	assert_true(seen.with > 90);
	writer_ask(&w, 'u');
	usleep(50000);
	collect((uint32_t)w.pid, (uint32_t)w.pid, 100);
	assert_int_equal(seen.with, 0);
	writer_end(&w);
}

static void unloading_ends_it(void **state)
{
	an_unloaded_library_has_no_ids("-mtls-dialect=gnu");
	an_unloaded_library_has_no_ids("-mtls-dialect=gnu2");
}

/*
 * Its first threads run on. In the older model their blocks are theirs until they ask for
 * the variable again, so they may have the ids that they had; in the other one they have
 * none.
 */
static void a_reloaded_library_has_new_threads(const char *flags, size_t most)
{
	size_t n_new = 0;
	struct tracing_find f;
	struct writer w;
	struct seen old;

	make_lib("cc", flags);
	make_writer("cc", "");
	writer_known(&w, &f, "swap", "tracer.so");
	collect((uint32_t)w.pid, (uint32_t)w.pid, 200);
	old = seen;
	assert_int_equal(old.ntids, 2);
	writer_ask(&w, 'r');
	assert_int_equal(find(&w, &f, "tracer.so"), TRACING_FOUND);
	put(&f);
	usleep(50000);
	collect((uint32_t)w.pid, (uint32_t)w.pid, SOME);
	for (size_t i = 0; i < seen.ntids; i++)
		n_new += seen.tids[i] != old.tids[0] &&
			 seen.tids[i] != old.tids[1];
	assert_int_equal(n_new, 2);
	assert_true(seen.ntids <= most);
	assert_true(seen.with * 4 >= seen.samples);
	writer_end(&w);
}

static void reloading_begins_it_anew(void **state)
{
	a_reloaded_library_has_new_threads("-mtls-dialect=gnu", 4);
	a_reloaded_library_has_new_threads("-mtls-dialect=gnu2", 2);
}

/* Eight a thread, which take turns a hundred thousand times a second. */
static void a_scheduler_switches_ids_with_its_tasks(void **state)
{
	struct tracing_find f;
	struct writer w;

	make_writer("cc", "-DOWN -DTASKS -rdynamic");
	tasks = true;
	writer_known(&w, &f, "tasks", "writer");
	collect((uint32_t)w.pid, (uint32_t)w.pid, ENOUGH);
	assert_true(seen.with * 2 >= seen.samples);
	writer_end(&w);
}

/* It publishes no context of OpenTelemetry's. */
static void elastics_record_has_a_transaction(const char *flags,
					      const char *file)
{
	static const char *const hows[] = { "swap", "flag" };
	struct tracing_find f;
	struct writer w;

	for (size_t i = 0; i < ARRAY_SIZE(hows); i++) {
		writer_start(&w, "writer", "0", hows[i], file);
		collect((uint32_t)w.pid, (uint32_t)w.pid, 5);
		assert_int_equal(find(&w, &f,
				      strstr(flags, "OWN") ? "writer" : file),
				 TRACING_FOUND);
		elastic = true;
		put(&f);
		usleep(50000);
		collect((uint32_t)w.pid, (uint32_t)w.pid, i ? SOME : ENOUGH);
		assert_true(seen.with * 100 >= seen.samples * (i ? 25 : 99));
		/* A child of fork has its parent's. */
		f.forked = true;
		tracing_find(&f);
		assert_int_equal(f.found, TRACING_NO_CONTEXT);
		writer_end(&w);
	}
}

static void elastics_variable_is_read(void **state)
{
	make_writer("cc", "-DELASTIC -DOWN -rdynamic");
	elastics_record_has_a_transaction("-DOWN", "writer");
	make_lib("cc", "-DELASTIC -mtls-dialect=gnu2");
	make_writer("cc", "-DELASTIC");
	elastics_record_has_a_transaction("", "tracer.so");
}

static int setup(void **state)
{
	struct sampler_opts opts = { .freq_hz = 9973, .sample = look };
	const char *what = "nothing";

	assert_non_null(mkdtemp(dir));
	if (!realpath(WRITER, source))
		source[0] = '\0';
	assert_int_equal(sampler_new(&sampler, &opts, &what), 0);
	return sampler_enable(sampler);
}

static int teardown(void **state)
{
	sampler_free(sampler);
	sh("rm -rf %s", dir);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_program_has_its_own),
		TEST(a_library_has_it),
		TEST(a_library_of_musl_has_it),
		TEST(a_large_library_is_dynamic),
		TEST(without_a_context_there_is_no_slot),
		TEST(another_process_is_refused),
		TEST(a_child_inherits_nothing),
		TEST(an_exec_inherits_nothing),
		TEST(unloading_ends_it),
		TEST(reloading_begins_it_anew),
		TEST(a_scheduler_switches_ids_with_its_tasks),
		TEST(elastics_variable_is_read),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
