// SPDX-License-Identifier: Apache-2.0
/*
 * firefox: the "processed profile" of the Firefox Profiler, version 48, which it
 * upgrades when it loads it (its docs-developer/processed-profile-format.md and
 * src/types/profile.js). It has a list of threads, each with tables of its own.
 *
 * A merged profile knows how often a stack was seen, not when: the samples of a thread
 * are spread over the time of the profile by their weight. The heaviest FIREFOX_THREADS
 * threads are shown as such, all others together as one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/query/model.h"

#define FIREFOX_FLUSH 65536
#define FIREFOX_THREADS 500
#define FIREFOX_NS_PER_MS 1000000

/* Indices of the categories in firefox_meta(). */
enum firefox_category {
	FIREFOX_OTHER,
	FIREFOX_USER,
	FIREFOX_KERNEL,
};

struct firefox_thread {
	struct hash_node node;
	uint32_t process; /* string of its id; 0: only the pid is known */
	int64_t pid, tid;
	const struct query_sample *sample; /* its first one */
	int64_t weight; /* of all, each as a positive number */
	size_t nsamples;
	size_t first; /* of its samples in firefox.samples */
};

struct firefox_func {
	struct hash_node node;
	uint32_t id, name, file; /* strings of the thread; file 0: unknown */
	uint32_t mapping; /* index, or NONE */
};

struct firefox_frame {
	size_t line; /* number of the line of all locations */
	uint32_t location, k, func;
};

struct firefox_stack {
	struct hash_node node;
	uint32_t id, prefix, frame; /* prefix NONE: a root */
};

struct firefox {
	struct reporter_query *q;
	struct query_out out;
	size_t *first; /* line numbers, by location */
	struct arena arena; /* of threads */
	struct hash by_thread;
	struct firefox_thread **threads, others;
	size_t nthreads, threads_cap;
	const struct query_sample **samples; /* by thread */
	double length_ms; /* 0: unknown */
	/* The tables of the current thread. */
	uint32_t *frame_of; /* by line number: frame + 1 */
	uint32_t *resource_of; /* by mapping: resource + 1 */
	struct strtab strings;
	struct arena rows;
	struct hash by_func, by_stack;
	struct firefox_func **funcs;
	size_t nfuncs, funcs_cap;
	struct firefox_frame *frames;
	size_t nframes, frames_cap;
	struct firefox_stack **stacks;
	size_t nstacks, stacks_cap;
	uint32_t *resources; /* mappings */
	size_t nresources, resources_cap;
	uint32_t *sample_stacks; /* of the samples of the thread */
};

static struct strbuf *firefox_text(struct firefox *f)
{
	query_flush(&f->out, FIREFOX_FLUSH);
	return &f->out.text;
}

/* --- threads ------------------------------------------------------------------------ */

static int64_t firefox_weight(const struct firefox *f,
			      const struct query_sample *s)
{
	int64_t v = s->values[f->q->selected];

	return v < 0 ? query_negate(v) : v;
}

static const struct query_label *firefox_label(const struct firefox *f,
					       const struct query_sample *s,
					       const char *key)
{
	for (uint32_t i = 0; i < s->labels->n; i++)
		if (!strcmp(query_text(f->q, s->labels->items[i].key), key))
			return &s->labels->items[i];
	return NULL;
}

static struct firefox_thread *firefox_thread_of(struct firefox *f,
						const struct query_sample *s)
{
	const struct query_label *process = firefox_label(f, s, "process");
	const struct query_label *pid = firefox_label(f, s, "pid");
	const struct query_label *tid = firefox_label(f, s, "tid");
	struct firefox_thread key = {
		.process = process ? process->str : 0,
		.pid = pid ? pid->num : 0,
		.tid = tid ? tid->num : 0,
		.sample = s,
	};
	uint64_t h = hash_mix(hash_mix(key.process, (uint64_t)key.pid),
			      (uint64_t)key.tid);
	struct firefox_thread *t;

	HASH_FIND(t, &f->by_thread, h, node,
		  t->process == key.process && t->pid == key.pid &&
			  t->tid == key.tid);
	if (t)
		return t;
	t = arena_memdup(&f->arena, &key, sizeof(key));
	if (!t || VECTOR_ROOM(f->threads, f->nthreads, f->threads_cap))
		return NULL;
	hash_insert(&f->by_thread, &t->node, h);
	f->threads[f->nthreads++] = t;
	return t;
}

/* The heaviest first; of equal ones as the samples are. */
static int firefox_compare(const void *a, const void *b)
{
	const struct firefox_thread *x = *(struct firefox_thread *const *)a;
	const struct firefox_thread *y = *(struct firefox_thread *const *)b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->pid != y->pid	  ? (x->pid < y->pid ? -1 : 1)
	       : x->tid != y->tid ? (x->tid < y->tid ? -1 : 1)
				  : 0;
}

/* Counts the samples of each thread, and chooses those that are shown. */
static int firefox_threads(struct firefox *f)
{
	const struct reporter_query *q = f->q;
	struct firefox_thread *t;
	size_t i, at = 0;

	for (i = 0; i < q->nsamples; i++) {
		if (!q->samples[i]->values[q->selected])
			continue;
		t = firefox_thread_of(f, q->samples[i]);
		if (!t)
			return -ENOMEM;
		t->nsamples++;
		t->weight = query_saturate(t->weight,
					   firefox_weight(f, q->samples[i]));
	}
	if (f->nthreads)
		qsort(f->threads, f->nthreads, sizeof(*f->threads),
		      firefox_compare);
	for (i = 0; i < f->nthreads; i++) {
		f->threads[i]->first = at;
		at += f->threads[i]->nsamples;
	}
	f->samples = calloc(at + 1, sizeof(*f->samples));
	f->sample_stacks = calloc(at + 1, sizeof(*f->sample_stacks));
	return f->samples && f->sample_stacks ? 0 : -ENOMEM;
}

/* The samples by thread; those of the threads that are too many follow each other. */
static void firefox_group(struct firefox *f)
{
	const struct reporter_query *q = f->q;
	struct firefox_thread *t;
	size_t i;

	for (i = 0; i < q->nsamples; i++) {
		if (!q->samples[i]->values[q->selected])
			continue;
		t = firefox_thread_of(f, q->samples[i]);
		f->samples[t->first++] = q->samples[i];
	}
	for (i = 0; i < f->nthreads; i++) {
		t = f->threads[i];
		t->first -= t->nsamples;
		if (i < FIREFOX_THREADS)
			continue;
		if (!f->others.nsamples)
			f->others.first = t->first;
		f->others.nsamples += t->nsamples;
		f->others.weight = query_saturate(f->others.weight, t->weight);
	}
	f->nthreads = MIN(f->nthreads, (size_t)FIREFOX_THREADS);
}

/* --- the tables of a thread ----------------------------------------------------------- */

/* Appends to a vector; its index, or NONE without memory. */
#define FIREFOX_ADD(v, n, cap, item)         \
	(VECTOR_ROOM(v, n, cap) ? QUERY_NONE \
				: ((v)[n] = (item), (uint32_t)(n)++))

/* A string that the tables use, by its number. */
static uint32_t firefox_string(struct firefox *f, const char *text)
{
	int64_t id = text ? strtab_id(&f->strings, text) : -ENOMEM;

	f->out.failed |= id < 0;
	return id < 0 ? 0 : (uint32_t)id;
}

static uint32_t firefox_func_of(struct firefox *f,
				const struct query_location *l, uint32_t k)
{
	const struct query_function *fn = query_function_of(f->q, l, k);
	struct strbuf name = STRBUF_INIT;
	struct firefox_func key = { .mapping = l->mapping }, *found;
	uint64_t h;

	query_frame_name(f->q, l, k, &name);
	key.name = firefox_string(f, strbuf_str(&name));
	strbuf_fini(&name);
	if (fn && fn->file)
		key.file = firefox_string(f, query_text(f->q, fn->file));
	h = hash_mix(hash_mix(key.name, key.file), key.mapping);
	HASH_FIND(found, &f->by_func, h, node,
		  found->name == key.name && found->file == key.file &&
			  found->mapping == key.mapping);
	if (found)
		return found->id;
	if (key.mapping != QUERY_NONE && !f->resource_of[key.mapping])
		f->resource_of[key.mapping] =
			FIREFOX_ADD(f->resources, f->nresources,
				    f->resources_cap, key.mapping) +
			1;
	found = arena_memdup(&f->rows, &key, sizeof(key));
	if (!found)
		return QUERY_NONE;
	found->id = FIREFOX_ADD(f->funcs, f->nfuncs, f->funcs_cap, found);
	if (found->id != QUERY_NONE)
		hash_insert(&f->by_func, &found->node, h);
	return found->id;
}

static uint32_t firefox_frame_of(struct firefox *f, uint32_t location,
				 uint32_t k)
{
	struct firefox_frame frame = {
		.line = f->first[location] + k,
		.location = location,
		.k = k,
	};
	uint32_t id;

	if (f->frame_of[frame.line])
		return f->frame_of[frame.line] - 1;
	frame.func = firefox_func_of(f, f->q->locations[location], k);
	if (frame.func == QUERY_NONE)
		return QUERY_NONE;
	id = FIREFOX_ADD(f->frames, f->nframes, f->frames_cap, frame);
	f->frame_of[frame.line] = id + 1; /* NONE + 1 is 0 */
	return id;
}

static uint32_t firefox_stack_of(struct firefox *f, uint32_t prefix,
				 uint32_t frame)
{
	uint64_t h = hash_mix(prefix, frame);
	struct firefox_stack *s;

	HASH_FIND(s, &f->by_stack, h, node,
		  s->prefix == prefix && s->frame == frame);
	if (s)
		return s->id;
	s = arena_alloc(&f->rows, sizeof(*s));
	if (!s)
		return QUERY_NONE;
	*s = (struct firefox_stack){ .prefix = prefix, .frame = frame };
	s->id = FIREFOX_ADD(f->stacks, f->nstacks, f->stacks_cap, s);
	if (s->id != QUERY_NONE)
		hash_insert(&f->by_stack, &s->node, h);
	return s->id;
}

static int firefox_stack_add(struct firefox *f, const struct query_stack *s,
			     uint32_t *out)
{
	uint32_t at = QUERY_NONE, frame;

	for (uint32_t i = s->n; i--;) {
		uint32_t l = s->locations[i];

		for (uint32_t k = query_lines(f->q->locations[l]); k--;) {
			frame = firefox_frame_of(f, l, k);
			if (frame == QUERY_NONE)
				return -ENOMEM;
			at = firefox_stack_of(f, at, frame);
			if (at == QUERY_NONE)
				return -ENOMEM;
		}
	}
	*out = at;
	return 0;
}

static int firefox_tables_begin(struct firefox *f)
{
	int err;

	arena_init(&f->rows);
	f->by_func = f->by_stack = (struct hash){ NULL };
	f->nfuncs = f->nframes = f->nstacks = f->nresources = 0;
	err = strtab_init(&f->strings);
	if (!err)
		err = hash_init(&f->by_func, 0);
	return err ? err : hash_init(&f->by_stack, 0);
}

static void firefox_tables_end(struct firefox *f)
{
	for (size_t i = 0; i < f->nframes; i++)
		f->frame_of[f->frames[i].line] = 0;
	for (size_t i = 0; i < f->nresources; i++)
		f->resource_of[f->resources[i]] = 0;
	hash_fini(&f->by_func);
	hash_fini(&f->by_stack);
	strtab_fini(&f->strings);
	arena_fini(&f->rows);
}

/* --- writing ---------------------------------------------------------------------------- */

/* ,"KEY":[ITEM,...] of a table; 'i' is the number of the row. */
#define FIREFOX_COLUMN(f, key, n, ...)                              \
	do {                                                        \
		strbuf_puts(firefox_text(f), ",\"" key "\":[");     \
		for (size_t i = 0; i < (n); i++) {                  \
			strbuf_puts(firefox_text(f), i ? "," : ""); \
			strbuf_printf(&(f)->out.text, __VA_ARGS__); \
		}                                                   \
		strbuf_puts(&(f)->out.text, "]");                   \
	} while (0)

/* The same of one value in all rows. */
static void firefox_same(struct firefox *f, const char *key, size_t n,
			 const char *value)
{
	strbuf_printf(firefox_text(f), ",\"%s\":[", key);
	for (size_t i = 0; i < n; i++) {
		strbuf_puts(firefox_text(f), i ? "," : "");
		strbuf_puts(&f->out.text, value);
	}
	strbuf_puts(&f->out.text, "]");
}

/* An index, or a word for none. */
static void firefox_index(struct strbuf *out, uint32_t id, const char *none)
{
	if (id == QUERY_NONE)
		strbuf_puts(out, none);
	else
		strbuf_printf(out, "%" PRIu32, id);
}

static const struct query_location *firefox_location(const struct firefox *f,
						     size_t frame)
{
	return f->q->locations[f->frames[frame].location];
}

static enum firefox_category firefox_category_of(const struct firefox *f,
						 size_t frame)
{
	uint32_t m = firefox_location(f, frame)->mapping;

	if (m == QUERY_NONE)
		return FIREFOX_OTHER;
	return strncmp(query_text(f->q, f->q->mappings[m]->file), "[kernel",
		       7) != 0
		       ? FIREFOX_USER
		       : FIREFOX_KERNEL;
}

/* Relative to its file; what a number of JSON cannot hold is left out. */
static int64_t firefox_address(const struct firefox *f, size_t frame)
{
	const struct query_location *l = firefox_location(f, frame);

	return l->mapping != QUERY_NONE && l->address < 1ULL << 53
		       ? (int64_t)l->address
		       : -1;
}

static void firefox_frame_table(struct firefox *f)
{
	size_t n = f->nframes;

	strbuf_printf(firefox_text(f), ",\n\"frameTable\":{\"length\":%zu", n);
	FIREFOX_COLUMN(f, "address", n, "%" PRId64, firefox_address(f, i));
	FIREFOX_COLUMN(f, "inlineDepth", n, "%" PRIu32,
		       query_lines(firefox_location(f, i)) - 1 -
			       f->frames[i].k);
	FIREFOX_COLUMN(f, "category", n, "%d", (int)firefox_category_of(f, i));
	firefox_same(f, "subcategory", n, "0");
	FIREFOX_COLUMN(f, "func", n, "%" PRIu32, f->frames[i].func);
	firefox_same(f, "nativeSymbol", n, "null");
	firefox_same(f, "innerWindowID", n, "0");
	firefox_same(f, "implementation", n, "null");
	strbuf_puts(&f->out.text, ",\"line\":[");
	for (size_t i = 0; i < n; i++) {
		const struct query_location *l = firefox_location(f, i);
		int64_t line = f->frames[i].k < l->nlines
				       ? l->lines[f->frames[i].k].line
				       : 0;

		strbuf_puts(firefox_text(f), i ? "," : "");
		strbuf_printf(&f->out.text, line > 0 ? "%" PRId64 : "null",
			      line);
	}
	strbuf_puts(&f->out.text, "]");
	firefox_same(f, "column", n, "null");
	strbuf_puts(&f->out.text, "}");
}

static void firefox_func_table(struct firefox *f)
{
	size_t n = f->nfuncs;

	strbuf_printf(firefox_text(f), ",\n\"funcTable\":{\"length\":%zu", n);
	FIREFOX_COLUMN(f, "name", n, "%" PRIu32, f->funcs[i]->name);
	firefox_same(f, "isJS", n, "false");
	firefox_same(f, "relevantForJS", n, "false");
	FIREFOX_COLUMN(f, "resource", n, "%d",
		       f->funcs[i]->mapping == QUERY_NONE
			       ? -1
			       : (int)f->resource_of[f->funcs[i]->mapping] - 1);
	strbuf_puts(&f->out.text, ",\"fileName\":[");
	for (size_t i = 0; i < n; i++) {
		strbuf_puts(firefox_text(f), i ? "," : "");
		firefox_index(&f->out.text,
			      f->funcs[i]->file ? f->funcs[i]->file
						: QUERY_NONE,
			      "null");
	}
	strbuf_puts(&f->out.text, "]");
	firefox_same(f, "lineNumber", n, "null");
	firefox_same(f, "columnNumber", n, "null");
	strbuf_puts(&f->out.text, "}");
}

static const char *firefox_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void firefox_resource_table(struct firefox *f)
{
	const struct reporter_query *q = f->q;
	size_t n = f->nresources;

	strbuf_printf(firefox_text(f), ",\n\"resourceTable\":{\"length\":%zu",
		      n);
	FIREFOX_COLUMN(f, "lib", n, "%" PRIu32, f->resources[i]);
	FIREFOX_COLUMN(
		f, "name", n, "%" PRIu32,
		firefox_string(
			f, firefox_base_name(query_text(
				   q, q->mappings[f->resources[i]]->file))));
	firefox_same(f, "host", n, "null");
	firefox_same(f, "type", n, "1"); /* a library */
	strbuf_puts(&f->out.text, "}");
}

static void firefox_stack_table(struct firefox *f)
{
	size_t n = f->nstacks;

	strbuf_printf(firefox_text(f), ",\n\"stackTable\":{\"length\":%zu", n);
	FIREFOX_COLUMN(f, "frame", n, "%" PRIu32, f->stacks[i]->frame);
	FIREFOX_COLUMN(f, "category", n, "%d",
		       (int)firefox_category_of(f, f->stacks[i]->frame));
	firefox_same(f, "subcategory", n, "0");
	strbuf_puts(&f->out.text, ",\"prefix\":[");
	for (size_t i = 0; i < n; i++) {
		strbuf_puts(firefox_text(f), i ? "," : "");
		firefox_index(&f->out.text, f->stacks[i]->prefix, "null");
	}
	strbuf_puts(&f->out.text, "]}");
}

static const struct {
	const char *unit, *type;
	int64_t factor; /* of milliseconds */
} firefox_weights[] = {
	{ "nanoseconds", "tracing-ms", FIREFOX_NS_PER_MS },
	{ "microseconds", "tracing-ms", 1000 },
	{ "milliseconds", "tracing-ms", 1 },
	{ "bytes", "bytes", 1 },
};

/* The weight of a row in the unit of the table: exact up to 53 bits. */
static void firefox_samples_table(struct firefox *f,
				  const struct firefox_thread *t)
{
	const struct reporter_query *q = f->q;
	const struct query_sample **samples = f->samples + t->first;
	const char *unit = query_text(q, q->types[q->selected].unit);
	const char *type = "samples";
	double sum = 0, all = (double)MAX(t->weight, (int64_t)1), factor = 1;

	for (size_t i = 0; i < ARRAY_SIZE(firefox_weights); i++)
		if (!strcmp(firefox_weights[i].unit, unit)) {
			type = firefox_weights[i].type;
			factor = (double)firefox_weights[i].factor;
		}
	strbuf_printf(firefox_text(f),
		      "\"samples\":{\"length\":%zu,\"weightType\":\"%s\","
		      "\"stack\":[",
		      t->nsamples, type);
	for (size_t i = 0; i < t->nsamples; i++) {
		strbuf_puts(firefox_text(f), i ? "," : "");
		firefox_index(&f->out.text, f->sample_stacks[i], "null");
	}
	strbuf_puts(&f->out.text, "],\"time\":[");
	for (size_t i = 0; i < t->nsamples; i++) {
		strbuf_printf(firefox_text(f), i ? ",%.6f" : "%.6f",
			      sum / all * f->length_ms);
		sum += (double)firefox_weight(f, samples[i]);
	}
	strbuf_puts(&f->out.text, "]");
	FIREFOX_COLUMN(f, "weight", t->nsamples, "%.15g",
		       (double)samples[i]->values[q->selected] / factor);
	strbuf_puts(&f->out.text, "}");
}

/* --- a thread ----------------------------------------------------------------------------- */

/* The text of a label of the first sample; else 'none'. */
static void firefox_name(struct firefox *f, const struct firefox_thread *t,
			 const char *key, const char *none)
{
	const struct query_label *l =
		t->sample ? firefox_label(f, t->sample, key) : NULL;

	query_json_string(&f->out,
			  l && l->str ? query_text(f->q, l->str) : none);
}

static void firefox_thread_head(struct firefox *f,
				const struct firefox_thread *t)
{
	struct strbuf *out = firefox_text(f);
	const char *none = t->sample ? "unknown" : "other threads";
	bool named;

	strbuf_puts(out, "{\"processType\":\"default\",\"processName\":");
	firefox_name(f, t, "comm", none);
	strbuf_puts(out, ",\"name\":");
	named = t->sample && firefox_label(f, t->sample, "thread");
	firefox_name(f, t, named ? "thread" : "comm", none);
	strbuf_puts(out, ",\"pid\":");
	if (t->process)
		query_json_string(&f->out, query_text(f->q, t->process));
	else
		strbuf_printf(out, "\"%" PRId64 "\"", t->pid);
	strbuf_printf(out, ",\"tid\":%" PRId64 ",\"isMainThread\":%s", t->tid,
		      t->pid == t->tid ? "true" : "false");
	strbuf_printf(out,
		      ",\"processStartupTime\":0,\"processShutdownTime\":null,"
		      "\"registerTime\":0,\"unregisterTime\":null,"
		      "\"pausedRanges\":[],\n"
		      "\"markers\":{\"length\":0,\"data\":[],\"name\":[],"
		      "\"startTime\":[],\"endTime\":[],\"phase\":[],"
		      "\"category\":[]},\n"
		      "\"nativeSymbols\":{\"length\":0,\"libIndex\":[],"
		      "\"address\":[],\"name\":[],\"functionSize\":[]},\n");
}

static int firefox_thread_write(struct firefox *f,
				const struct firefox_thread *t)
{
	int err = firefox_tables_begin(f);

	for (size_t i = 0; i < t->nsamples && !err; i++)
		err = firefox_stack_add(f, f->samples[t->first + i]->stack,
					&f->sample_stacks[i]);
	if (!err) {
		firefox_thread_head(f, t);
		firefox_samples_table(f, t);
		firefox_stack_table(f);
		firefox_frame_table(f);
		firefox_func_table(f);
		firefox_resource_table(f);
		strbuf_puts(&f->out.text, ",\n\"stringArray\":[");
		for (uint32_t i = 0; i < f->strings.count; i++) {
			strbuf_puts(firefox_text(f), i ? "," : "");
			query_json_string(&f->out, strtab_str(&f->strings, i));
		}
		strbuf_puts(&f->out.text, "]}");
	}
	firefox_tables_end(f);
	return err;
}

/* --- the whole ------------------------------------------------------------------------------ */

static void firefox_meta(struct firefox *f)
{
	const struct reporter_query *q = f->q;
	bool ns = !strcmp(query_text(q, q->period_type.unit), "nanoseconds");

	strbuf_printf(
		firefox_text(f),
		"{\"meta\":{\"version\":29,\"preprocessedProfileVersion\":48,"
		"\"product\":\"profd\",\"importedFrom\":\"profd " PROFD_VERSION
		"\",\"processType\":0,\"stackwalk\":1,\"debug\":false,"
		"\"symbolicated\":true,\"usesOnlyOneStackType\":true,"
		"\"doesNotUseFrameImplementation\":true,"
		"\"sourceCodeIsNotOnSearchfox\":true,"
		"\"startTime\":%.6f,\"interval\":%.6f,"
		"\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
		"\"threadCPUDelta\":\"ns\"},"
		"\"extensions\":{\"length\":0,\"id\":[],\"name\":[],"
		"\"baseURL\":[]},\"markerSchema\":[],\"categories\":["
		"{\"name\":\"Other\",\"color\":\"grey\","
		"\"subcategories\":[\"Other\"]},"
		"{\"name\":\"User\",\"color\":\"yellow\","
		"\"subcategories\":[\"Other\"]},"
		"{\"name\":\"Kernel\",\"color\":\"orange\","
		"\"subcategories\":[\"Other\"]}]},\n",
		(double)q->begin / FIREFOX_NS_PER_MS,
		ns && q->period > 0 ? (double)q->period / FIREFOX_NS_PER_MS
				    : 1.0);
}

/* All mappings: the resources of threads refer to them by index. */
static void firefox_libs(struct firefox *f)
{
	const struct reporter_query *q = f->q;

	strbuf_puts(firefox_text(f), "\"libs\":[");
	for (size_t i = 0; i < q->nmappings; i++) {
		const struct query_mapping *m = q->mappings[i];
		const char *path = query_text(q, m->file);
		const char *name = firefox_base_name(path);

		strbuf_puts(firefox_text(f), i ? ",\n" : "\n");
		strbuf_puts(&f->out.text, "{\"name\":");
		query_json_string(&f->out, name);
		strbuf_puts(&f->out.text, ",\"path\":");
		query_json_string(&f->out, path);
		strbuf_puts(&f->out.text, ",\"debugName\":");
		query_json_string(&f->out, name);
		strbuf_puts(&f->out.text, ",\"debugPath\":");
		query_json_string(&f->out, path);
		strbuf_puts(&f->out.text,
			    ",\"arch\":null,\"breakpadId\":\"\",\"codeId\":");
		if (m->build_id)
			query_json_string(&f->out, query_text(q, m->build_id));
		else
			strbuf_puts(&f->out.text, "null");
		strbuf_puts(&f->out.text, "}");
	}
	strbuf_puts(&f->out.text, "],\n");
}

static int firefox_write(struct firefox *f)
{
	size_t i;
	int err = firefox_threads(f);

	if (err)
		return err;
	firefox_group(f);
	firefox_meta(f);
	firefox_libs(f);
	strbuf_puts(firefox_text(f), "\"threads\":[");
	for (i = 0; i < f->nthreads && !err; i++) {
		strbuf_puts(firefox_text(f), i ? ",\n" : "\n");
		err = firefox_thread_write(f, f->threads[i]);
	}
	/* It shows no profile without a thread. */
	if (!err && (f->others.nsamples || !i)) {
		strbuf_puts(firefox_text(f), i ? ",\n" : "\n");
		err = firefox_thread_write(f, &f->others);
	}
	strbuf_puts(&f->out.text, "]}\n");
	query_flush(&f->out, 0);
	return err ? err : f->out.failed ? -ENOMEM : 0;
}

int write_firefox(struct reporter_query *q, struct sink *sink)
{
	struct firefox f = {
		.q = q,
		.out = { .sink = sink, .text = STRBUF_INIT },
		.first = query_first_lines(q),
		.resource_of = calloc(q->nmappings + 1, sizeof(uint32_t)),
	};
	int err = hash_init(&f.by_thread, 0);

	arena_init(&f.arena);
	if (q->begin && q->end > q->begin)
		f.length_ms = (double)(q->end - q->begin) / FIREFOX_NS_PER_MS;
	if (f.first)
		f.frame_of =
			calloc(f.first[q->nlocations] + 1, sizeof(uint32_t));
	if (!err)
		err = f.frame_of && f.resource_of ? firefox_write(&f) : -ENOMEM;
	strbuf_fini(&f.out.text);
	hash_fini(&f.by_thread);
	arena_fini(&f.arena);
	free(f.threads);
	free(f.samples);
	free(f.sample_stacks);
	free(f.funcs);
	free(f.frames);
	free(f.stacks);
	free(f.resources);
	free(f.resource_of);
	free(f.frame_of);
	free(f.first);
	return err;
}
