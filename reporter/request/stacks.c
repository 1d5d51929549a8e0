// SPDX-License-Identifier: Apache-2.0
/* stacks: see reporter/request/stacks.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reporter/query/input.h"
#include "reporter/request/stacks.h"

#define STACKS_WINDOWS 8 /* some MB each */
#define STACKS_DEPTH 1024 /* locations of a stack that are looked at */

/* A profile of waits. */
struct stacks_window {
	uint32_t window; /* index */
	uint8_t *data;
	size_t len;
	struct input in;
	struct edit_bytes
		*samples; /* messages, by index; NULL: it cannot be read */
	size_t n;
};

struct stacks {
	const struct lanes *lanes;
	struct stacks_window windows[STACKS_WINDOWS];
	size_t n;
	struct arena texts;
};

/* --- a profile ------------------------------------------------------------------ */

static int stacks_list(struct stacks_window *w)
{
	struct edit_bytes msg = { w->data, w->len };
	struct edit_field f;
	int err;

	w->samples = calloc(w->in.nsamples + 1, sizeof(*w->samples));
	if (!w->samples)
		return -ENOMEM;
	while ((err = edit_next(&msg, &f)) > 0)
		if (f.number == EDIT_SAMPLE && f.wire == EDIT_LEN &&
		    w->n < w->in.nsamples)
			w->samples[w->n++] = f.bytes;
	return err;
}

static void stacks_read(const struct lanes *l, struct stacks_window *w)
{
	const struct store_window *of = &l->windows[w->window];
	int fd = store_window_open(of, l->dirfd, store_wait(of->format));
	const char *what;
	int err;

	if (fd < 0)
		return;
	err = edit_read(fd, &w->data, &w->len, &what);
	close(fd);
	if (!err)
		err = input_parse(&w->in,
				  (struct edit_bytes){ w->data, w->len });
	if (!err)
		err = stacks_list(w);
	if (err)
		w->n = 0;
}

static struct stacks_window *stacks_window(struct stacks *s, uint32_t window)
{
	struct stacks_window *w;

	for (w = s->windows; w < s->windows + s->n; w++)
		if (w->window == window)
			return w;
	if (s->n == STACKS_WINDOWS || window >= s->lanes->nwindows)
		return NULL;
	s->n++;
	w->window = window;
	stacks_read(s->lanes, w);
	return w;
}

static void stacks_window_fini(struct stacks_window *w)
{
	input_tables_fini(&w->in);
	free(w->samples);
	free(w->data);
}

/* --- a stack -------------------------------------------------------------------- */

static bool stacks_is(const struct stacks_window *w, uint64_t string,
		      const char *text)
{
	const struct edit_bytes *s;

	if (string >= w->in.nstrings)
		return false;
	s = &w->in.strings[string];
	return s->len == strlen(text) && !memcmp(s->p, text, s->len);
}

/* "": it is not known, or there is no memory. */
static const char *stacks_text(struct stacks *s, const struct stacks_window *w,
			       uint64_t string)
{
	const struct edit_bytes *from;
	char *text;

	if (string >= w->in.nstrings)
		return "";
	from = &w->in.strings[string];
	text = arena_alloc(&s->texts, from->len + 1);
	if (!text)
		return "";
	memcpy(text, from->p, from->len);
	text[from->len] = '\0';
	return text;
}

static const struct input_function *
stacks_function(const struct stacks_window *w, const struct input_location *l,
		uint32_t line)
{
	return line < l->nlines
		       ? input_find(w->in.functions, w->in.nfunctions,
				    sizeof(*w->in.functions),
				    w->in.lines[l->first + line].function)
		       : NULL;
}

/* The functions of a location; 'out' has room for 'max'. How many there are. */
static size_t stacks_location(struct stacks *s, const struct stacks_window *w,
			      const struct input_location *l,
			      struct reporter_step_frame *out, size_t max)
{
	const struct input_mapping *m =
		input_find(w->in.mappings, w->in.nmappings,
			   sizeof(*w->in.mappings), l->mapping);
	const struct input_function *fn;
	uint32_t i;

	for (i = 0; i < l->nlines && i < max; i++) {
		fn = stacks_function(w, l, i);
		out[i] = (struct reporter_step_frame){
			.function = fn ? stacks_text(s, w, fn->name) : "",
			.file = fn ? stacks_text(s, w, fn->file) : "",
			.mapping = m ? stacks_text(s, w, m->file) : "",
			.line = (uint32_t)w->in.lines[l->first + i].line,
			.inlined = i + 1 < l->nlines,
		};
	}
	return l->nlines;
}

/* The ids of the locations of a sample, leaf first. */
static size_t stacks_ids(struct edit_bytes msg, uint64_t *ids)
{
	struct edit_field f;
	size_t n = 0;
	uint64_t v;

	while (edit_next(&msg, &f) > 0) {
		if (f.number != EDIT_SAMPLE_LOCATION)
			continue;
		if (f.wire == EDIT_VARINT && n < STACKS_DEPTH)
			ids[n++] = f.value;
		while (f.wire == EDIT_LEN && n < STACKS_DEPTH &&
		       edit_next_packed(&f.bytes, &v) > 0)
			ids[n++] = v;
	}
	return n;
}

static bool stacks_is_uncopied(const struct stacks_window *w,
			       const struct input_location *l)
{
	const struct input_function *fn = stacks_function(w, l, 0);

	return fn && stacks_is(w, fn->name, REPORTER_WAIT_UNCOPIED);
}

/* The leaf is no code: it has the reason. */
size_t stacks_frames(void *arg, uint64_t site, struct reporter_step_frame *out,
		     size_t max)
{
	struct stacks *s = arg;
	struct stacks_window *w = stacks_window(s, lanes_site_window(site));
	uint32_t sample = lanes_site_sample(site);
	uint64_t ids[STACKS_DEPTH];
	const struct input_location *l;
	size_t n = 0, nids;

	if (!w || sample >= w->n)
		return 0;
	nids = stacks_ids(w->samples[sample], ids);
	for (size_t i = 1; i < nids; i++) {
		l = input_find(w->in.locations, w->in.nlocations,
			       sizeof(*w->in.locations), ids[i]);
		if (!l || stacks_is_uncopied(w, l))
			break;
		n += stacks_location(s, w, l, out + MIN(n, max),
				     max - MIN(n, max));
	}
	return n;
}

/* --- the object ------------------------------------------------------------------ */

struct stacks *stacks_new(const struct lanes *l)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->lanes = l;
	arena_init(&s->texts);
	return s;
}

void stacks_free(struct stacks *s)
{
	if (!s)
		return;
	while (s->n)
		stacks_window_fini(&s->windows[--s->n]);
	arena_fini(&s->texts);
	free(s);
}
