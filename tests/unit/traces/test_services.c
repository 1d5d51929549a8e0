// SPDX-License-Identifier: Apache-2.0
/*
 * When images are looked at for the names of a service, whose names count, and how users
 * share the looks. Processes and what they publish are made up.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "profiler/tracing/services.h"

#define SEC CLOCK_NSEC_PER_SEC
#define PROCS_MAX 512

/* --- processes ------------------------------------------------------------------ */

struct pm_image {
	struct abi_key key;
	uint32_t uid;
	bool exited, hangs, slot, forked;
	uint64_t cpu_ns; /* that a look takes */
	enum published_found found;
	/* Of its context, its environment, and the storage of its agent. */
	const char *service, *env, *stored, *socket;
	unsigned int looks, environs;
	struct symbolizer_context names;
};

struct pm_view {
	struct pm_image *img;
};

struct pm_exe {
	int unused;
};

static struct pm_image procs[PROCS_MAX];
static size_t nprocs;
static uint64_t tracers;
static struct pm_view view;
static int hang[2]; /* what a hung look reads from */

struct pm_image *pm_newest(struct pm *pm, const struct abi_key *key)
{
	for (size_t i = 0; i < nprocs; i++)
		if (procs[i].key.tgid == key->tgid)
			return &procs[i];
	return NULL;
}

void pm_image_info(const struct pm_image *img, struct pm_image_info *out)
{
	memset(out, 0, sizeof(*out));
	out->key = img->key;
	out->uid = img->uid;
	out->exited = img->exited;
}

struct pm_view *pm_view_new(struct pm *pm, struct pm_image *img, uint64_t time)
{
	view.img = img;
	return &view;
}

void pm_view_free(struct pm_view *v)
{
}

void pm_view_each(struct pm_view *v,
		  void (*fn)(void *arg, const struct pm_mapping *map),
		  void *arg)
{
	static struct pm_exe exe;
	const struct pm_mapping map = {
		.start = 0x1000,
		.end = 0x2000,
		.exe = &exe,
	};

	fn(arg, &map);
}

const struct symbolizer_slot *pm_exe_slot(const struct pm_exe *exe)
{
	static const struct symbolizer_slot slot = {
		.kind = SYMBOLIZER_SLOT_ELASTIC,
		.storage = 0x10,
	};

	return view.img->slot ? &slot : NULL;
}

const struct symbolizer_segment *pm_exe_segments(const struct pm_exe *exe,
						 size_t *np)
{
	static const struct symbolizer_segment seg = { .size = 0x1000 };

	*np = 1;
	return &seg;
}

bool pm_image_forked(const struct pm_image *img)
{
	return img->forked;
}

uint64_t pm_tracers(const struct pm *pm)
{
	return tracers;
}

bool pm_image_set_context(struct pm *pm, struct pm_image *img,
			  const struct symbolizer_context *c)
{
	bool same = !memcmp(&img->names, c, sizeof(*c));

	img->names = *c;
	return !same;
}

/* In the thread. */
static void burn(uint64_t ns)
{
	struct timespec ts;
	uint64_t begin, at;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	begin = (uint64_t)ts.tv_sec * SEC + (uint64_t)ts.tv_nsec;
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
		at = (uint64_t)ts.tv_sec * SEC + (uint64_t)ts.tv_nsec;
	} while (at - begin < ns);
}

static uint64_t now;

void published_read(struct published *p)
{
	struct pm_image *img = pm_newest(NULL, &p->key);
	char c;

	memset(&p->names, 0, sizeof(p->names));
	p->payload = NULL;
	p->found = PUBLISHED_GONE;
	p->read_at = now;
	if (!img)
		return;
	__atomic_fetch_add(&img->looks, 1, __ATOMIC_RELAXED);
	if (img->hangs && read(hang[0], &c, 1) == 1)
		return;
	burn(img->cpu_ns);
	img->environs += p->environ;
	if (p->environ && img->env)
		strcpy(p->names.service, img->env);
	p->found = img->found;
	p->stored = NULL;
	if (p->storage && img->stored) {
		assert_int_equal(p->storage, 0x1010);
		p->stored = calloc(1, sizeof(*p->stored));
		strcpy(p->stored->names.service, img->stored);
		if (img->socket)
			strcpy(p->stored->socket, img->socket);
		p->uid = img->uid;
	}
	if (p->found == PUBLISHED_NEW && p->published_ns) {
		p->found = PUBLISHED_SAME;
	} else if (p->found == PUBLISHED_NEW) {
		p->mapping = 0x1000;
		p->published_ns = 1;
		p->payload = strdup(img->service);
		p->size = (uint32_t)strlen(img->service);
	}
}

/* --- the symbolizer --------------------------------------------------------------- */

static struct {
	symbolizer_context_fn fn;
	void *arg;
	struct symbolizer_context c;
} parses[PROCS_MAX];
static size_t nparses;

int symbolizer_context(struct symbolizer *s, const void *payload, size_t len,
		       uint32_t uid, symbolizer_context_fn fn, void *arg)
{
	memset(&parses[nparses], 0, sizeof(*parses));
	memcpy(parses[nparses].c.service, payload, len);
	parses[nparses].fn = fn;
	parses[nparses++].arg = arg;
	return 0;
}

static void parse_all(int err)
{
	size_t n = nparses;

	nparses = 0;
	for (size_t i = 0; i < n; i++)
		parses[i].fn(parses[i].arg, err, err ? NULL : &parses[i].c);
}

/* --- the module ------------------------------------------------------------------- */

static struct services services;
static uint64_t passed; /* 0: as far as now */
static unsigned int named, agents;
static char agent_socket[64];
static uint32_t agent_uid;

static void on_named(void *arg, struct pm_image *img)
{
	named++;
}

static void on_agent(void *arg, struct pm_image *img, uint32_t uid,
		     const char *socket)
{
	agents++;
	agent_uid = uid;
	snprintf(agent_socket, sizeof(agent_socket), "%s", socket);
}

static int setup(void **state)
{
	static int the_pm;
	const struct services_opts opts = {
		.pm = (struct pm *)&the_pm,
		.named = on_named,
		.agent = on_agent,
	};

	memset(procs, 0, sizeof(procs));
	nprocs = nparses = 0;
	named = agents = 0;
	tracers = 0;
	passed = 0;
	now = 1000 * SEC;
	return services_init(&services, &opts);
}

static int teardown(void **state)
{
	services_fini(&services);
	parse_all(-ECANCELED);
	return 0;
}

static struct pm_image *process(uint32_t uid)
{
	struct pm_image *img = &procs[nprocs++];

	img->key = (struct abi_key){ .tgid = (uint32_t)nprocs,
				     .start_boottime = nprocs };
	img->uid = uid;
	img->found = PUBLISHED_NONE;
	return img;
}

static void sample(struct pm_image *img)
{
	services_sampled(&services, &img->key, false, now);
}

/* Until there is nothing to do at this time. */
static void turn(void)
{
	do {
		services_tick(&services, now, passed ? passed : now);
		if (services.batch)
			usleep(200);
	} while (services.batch);
	parse_all(0);
	services_tick(&services, now, passed ? passed : now);
}

/* Turns as often as in profd, with a sample of each in each. */
static void run(uint64_t ns)
{
	for (uint64_t end = now + ns; now < end; now += SEC / 10) {
		for (size_t i = 0; i < nprocs; i++)
			sample(&procs[i]);
		turn();
	}
}

/* --- when ------------------------------------------------------------------------- */

static void an_image_is_looked_at_after_1_10_and_60_s(void **state)
{
	struct pm_image *img = process(0);

	run(SEC - SEC / 10);
	assert_int_equal(img->looks, 0);
	run(2 * SEC);
	assert_int_equal(img->looks, 1);
	run(8 * SEC);
	assert_int_equal(img->looks, 1);
	run(2 * SEC);
	assert_int_equal(img->looks, 2);
	run(57 * SEC);
	assert_int_equal(img->looks, 2);
	run(4 * SEC);
	assert_int_equal(img->looks, 3);
	run(62 * SEC);
	assert_int_equal(img->looks, 4);
	assert_int_equal(img->environs, 1);
}

static void one_that_is_not_sampled_is_not_looked_at(void **state)
{
	struct pm_image *img = process(0);

	sample(img);
	for (int i = 0; i < 300; i++, now += SEC)
		turn();
	assert_int_equal(img->looks, 1);
	run(61 * SEC);
	assert_int_equal(img->looks, 2);
}

static void one_with_a_tracer_is_looked_at_at_once(void **state)
{
	struct pm_image *img = process(0);

	tracers = 1;
	img->slot = true;
	run(SEC / 5);
	assert_int_equal(img->looks, 1);
}

static void so_is_one_whose_thread_has_a_trace(void **state)
{
	struct pm_image *img = process(0);

	run(5 * SEC);
	assert_int_equal(img->looks, 1);
	services_sampled(&services, &img->key, true, now);
	run(SEC / 5);
	assert_int_equal(img->looks, 2);
	/* Once. */
	services_sampled(&services, &img->key, true, now);
	run(SEC / 5);
	assert_int_equal(img->looks, 2);
}

/* --- what counts -------------------------------------------------------------------- */

static void names_of_a_context_go_before_those_of_the_environment(void **state)
{
	struct pm_image *both = process(0), *env = process(0);

	both->found = PUBLISHED_NEW;
	both->service = "context";
	both->env = env->env = "environ";
	run(2 * SEC);
	assert_string_equal(both->names.service, "context");
	assert_string_equal(env->names.service, "environ");
	assert_int_equal(named, 2);
	/* It has withdrawn its context. */
	both->found = PUBLISHED_NONE;
	run(11 * SEC);
	assert_string_equal(both->names.service, "environ");
	assert_int_equal(named, 3);
}

static void those_of_an_agents_storage_are_between(void **state)
{
	struct pm_image *img = process(0), *child = process(0);

	tracers = 1;
	img->slot = child->slot = child->forked = true;
	img->env = child->env = "environ";
	img->stored = child->stored = "stored";
	run(2 * SEC);
	assert_string_equal(img->names.service, "stored");
	/* What a child of fork has in memory is its parent's. */
	assert_string_equal(child->names.service, "environ");
	img->found = PUBLISHED_NEW;
	img->service = "context";
	run(11 * SEC);
	assert_string_equal(img->names.service, "context");
	img->found = PUBLISHED_NONE;
	img->stored = NULL;
	run(62 * SEC);
	assert_string_equal(img->names.service, "environ");
}

static void an_agents_socket_is_reported_after_each_look(void **state)
{
	struct pm_image *img = process(5), *none = process(5);

	tracers = 1;
	img->slot = none->slot = true;
	img->stored = none->stored = "stored";
	img->socket = "/tmp/agent";
	passed = now - 1;
	run(SEC / 2);
	assert_int_equal(img->looks, 1);
	assert_int_equal(agents, 0); /* an exec before may not be known yet */
	passed = 0;
	turn();
	assert_int_equal(agents, 1);
	assert_string_equal(agent_socket, "/tmp/agent");
	assert_int_equal(agent_uid, 5);
	run(15 * SEC);
	assert_int_equal(agents, 3);
	/* It is gone: a look in a second, not in a minute. */
	services_agent_gone(&services, &img->key, now);
	img->socket = "/tmp/other";
	run(SEC + SEC / 5);
	assert_int_equal(agents, 4);
	assert_string_equal(agent_socket, "/tmp/other");
}

static void a_context_that_is_being_written_is_as_before(void **state)
{
	struct pm_image *img = process(0);

	img->found = PUBLISHED_NEW;
	img->service = "context";
	run(2 * SEC);
	img->found = PUBLISHED_WRITING;
	run(11 * SEC);
	assert_int_equal(img->looks, 2);
	assert_string_equal(img->names.service, "context");
}

/* Its context goes to the worker; its environment has a name, too. */
static struct pm_image *parsing(void)
{
	struct pm_image *img = process(0);

	img->found = PUBLISHED_NEW;
	img->service = "context";
	img->env = "environ";
	sample(img);
	now += SEC;
	services_tick(&services, now, now);
	while (services.batch) {
		usleep(200);
		services_tick(&services, now, now);
	}
	return img;
}

static void an_invalid_context_names_nothing(void **state)
{
	struct pm_image *img = parsing();

	parse_all(-EINVAL);
	turn();
	assert_string_equal(img->names.service, "environ");
	assert_int_equal(services.stats.unparsed, 1);
}

/* No worker could parse it then. */
static void a_context_that_was_refused_is_read_again(void **state)
{
	struct pm_image *img = parsing();

	parse_all(-EIO);
	turn();
	assert_string_equal(img->names.service, "environ");
	assert_int_equal(services.stats.unparsed, 0);
	sample(img);
	now += SEC;
	turn();
	assert_string_equal(img->names.service, "context");
	assert_int_equal(img->looks, 2);
}

/* What was read may be of the next image, until events of that time are known. */
static void names_wait_for_the_execs_before_them(void **state)
{
	struct pm_image *stays = process(0), *execs = process(0);

	stays->env = execs->env = "environ";
	passed = now;
	run(2 * SEC);
	assert_int_equal(stays->looks, 1);
	assert_string_equal(stays->names.service, "");
	execs->key.exec_id++;
	passed = now;
	turn();
	assert_string_equal(stays->names.service, "environ");
	assert_string_equal(execs->names.service, "");
}

static void an_exec_makes_another_image(void **state)
{
	struct pm_image *img = process(0);

	img->env = "old";
	run(2 * SEC);
	img->key.exec_id++;
	img->env = "new";
	memset(&img->names, 0, sizeof(img->names));
	run(2 * SEC);
	assert_int_equal(img->looks, 2);
	assert_int_equal(img->environs, 2);
	assert_string_equal(img->names.service, "new");
	assert_int_equal(services.stats.images, 1);
}

static void a_late_sample_changes_nothing(void **state)
{
	struct pm_image *img = process(0);
	struct abi_key old = img->key;

	img->key.exec_id++;
	for (int i = 0; i < 30; i++, now += SEC / 10) {
		sample(img);
		services_sampled(&services, &old, false, now);
		turn();
	}
	assert_int_equal(img->looks, 1);
}

static void images_that_ended_are_forgotten(void **state)
{
	for (int i = 0; i < 100; i++)
		sample(process(0));
	assert_int_equal(services.stats.images, 100);
	for (int i = 0; i < 100; i++)
		procs[i].exited = true;
	now += 2 * SEC;
	turn();
	assert_int_equal(services.stats.images, 0);
}

/* --- users -------------------------------------------------------------------------- */

static void looks_take_a_fiftieth_of_a_cpu(void **state)
{
	struct pm_image *img;
	unsigned int looks = 0;

	for (int i = 0; i < 400; i++) {
		img = process((uint32_t)i % 8);
		img->cpu_ns = CLOCK_NSEC_PER_MSEC;
	}
	run(10 * SEC);
	for (int i = 0; i < 400; i++)
		looks += procs[i].looks;
	/* 9 s, 20 ms of each, a millisecond each; a batch may exceed it. */
	assert_in_range(looks, 100, 9 * 20 + SERVICES_BATCH);
}

static void a_user_does_not_keep_others_waiting(void **state)
{
	struct pm_image *one;

	for (int i = 0; i < 300; i++)
		process(1)->cpu_ns = 2 * CLOCK_NSEC_PER_MSEC;
	one = process(2);
	one->env = "environ";
	run(10 * SEC);
	assert_int_equal(one->looks, 1);
}

static void a_user_may_have_as_many_images_as_are_free(void **state)
{
	services.opts.images = 100;
	for (int i = 0; i < 90; i++)
		process(1);
	for (int i = 0; i < 10; i++)
		process(2);
	run(2 * SEC);
	assert_in_range(services.users[1].images, 30, 60);
	assert_int_equal(services.users[2].images, 10);
	assert_true(services.stats.refused > 0);
}

static void a_process_that_does_not_answer_is_left_alone(void **state)
{
	struct pm_image *hangs = process(1), *other = process(2);

	assert_int_equal(pipe(hang), 0);
	hangs->hangs = true;
	run(2 * SEC);
	assert_int_equal(services.stats.hung, 1);
	assert_int_equal(hangs->looks, 1);
	assert_int_equal(other->looks, 1);
	run(30 * SEC);
	assert_int_equal(hangs->looks, 1);
	/* The abandoned thread ends. */
	assert_int_equal(write(hang[1], "x", 1), 1);
	while (patience_abandoned())
		usleep(1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define X(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
		X(an_image_is_looked_at_after_1_10_and_60_s),
		X(one_that_is_not_sampled_is_not_looked_at),
		X(one_with_a_tracer_is_looked_at_at_once),
		X(so_is_one_whose_thread_has_a_trace),
		X(names_of_a_context_go_before_those_of_the_environment),
		X(those_of_an_agents_storage_are_between),
		X(an_agents_socket_is_reported_after_each_look),
		X(a_context_that_is_being_written_is_as_before),
		X(an_invalid_context_names_nothing),
		X(a_context_that_was_refused_is_read_again),
		X(names_wait_for_the_execs_before_them),
		X(an_exec_makes_another_image),
		X(a_late_sample_changes_nothing),
		X(images_that_ended_are_forgotten),
		X(looks_take_a_fiftieth_of_a_cpu),
		X(a_user_does_not_keep_others_waiting),
		X(a_user_may_have_as_many_images_as_are_free),
		X(a_process_that_does_not_answer_is_left_alone),
#undef X
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
