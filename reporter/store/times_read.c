// SPDX-License-Identifier: Apache-2.0
/*
 * times_read: reads a side file, see reporter/store/times_file.h. Everything is
 * checked when it is opened: each column that is known is decoded once, so that
 * reading cannot fail.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "reporter/times.h"
#include "reporter/store/times_coding.h"
#include "reporter/store/times_file.h"

#define READ_PIECE (64 << 10)
#define READ_WINDOW_LOG 23 /* 8 MiB, the least that RFC 8878 asks of a reader */
#define READ_EVENTS_MAX 64
#define READ_VALUES_MAX 128 /* of a Sample message */
#define READ_SAMPLES_MAX (16 << 20)

struct read_column {
	char name[TIMES_NAME_MAX];
	uint8_t table, coding;
	struct cursor data;
};

struct store_times {
	struct store_times_info info;
	struct store_times_event events[READ_EVENTS_MAX];
	uint32_t nevents, ncolumns;
	struct read_column columns[TIMES_COLUMNS_MAX];
	uint32_t *threads; /* by sample */
	const uint8_t *pairs; /* in 'data' */
	uint32_t npairs;
	uint8_t *data;
	size_t len;
};

/* --- unpacking ------------------------------------------------------------- */

static int times_read_grow(struct store_times *t, size_t *cap)
{
	uint8_t *data;

	if (t->len < *cap)
		return 0;
	if (*cap >= STORE_TIMES_MAX)
		return -EFBIG;
	*cap = *cap ? MIN(2 * *cap, STORE_TIMES_MAX) : READ_PIECE;
	data = realloc(t->data, *cap);
	if (!data)
		return -ENOMEM;
	t->data = data;
	return 0;
}

/* One frame, and nothing behind it. */
static int times_read_unpack(struct store_times *t, const void *buf, size_t len)
{
	ZSTD_DCtx *z = ZSTD_createDCtx();
	ZSTD_inBuffer in = { buf, len, 0 };
	size_t left = 1, cap = 0, before;
	int err = z ? 0 : -ENOMEM;

	if (z)
		ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, READ_WINDOW_LOG);
	while (!err && left) {
		err = times_read_grow(t, &cap);
		if (err)
			break;
		ZSTD_outBuffer out = { t->data, cap, t->len };

		before = in.pos;
		left = ZSTD_decompressStream(z, &out, &in);
		if (ZSTD_isError(left) ||
		    (in.pos == before && out.pos == t->len && t->len < cap))
			err = -EBADMSG;
		t->len = out.pos;
	}
	ZSTD_freeDCtx(z);
	return err ? err : in.pos == len ? 0 : -EBADMSG;
}

/* --- columns --------------------------------------------------------------- */

static bool times_read_open(const struct store_times *t,
			    const struct read_column *of,
			    struct store_times_column *c)
{
	if (of->table > STORE_TIMES_SAMPLES || of->coding >= TIMES_CODINGS)
		return false;
	*c = (struct store_times_column){
		.table = of->table,
		.coding = of->coding,
		.in = of->data,
		.left = of->table == STORE_TIMES_RECORDS ? t->info.records
							 : t->info.samples,
	};
	return true;
}

bool store_times_column(const struct store_times *t, const char *name,
			struct store_times_column *c)
{
	uint32_t i;

	for (i = 0; i < t->ncolumns; i++)
		if (!strcmp(t->columns[i].name, name))
			return times_read_open(t, &t->columns[i], c);
	return false;
}

bool store_times_value(struct store_times_column *c, uint64_t *v)
{
	uint64_t n;

	if (!c->left)
		return false;
	c->left--;
	n = cursor_uleb(&c->in);
	switch (c->coding) {
	case TIMES_DELTA:
		c->last += (n >> 1) ^ -(n & 1);
		*v = c->last;
		break;
	case TIMES_FRESH:
		*v = c->last - n;
		c->last += !n;
		break;
	default:
		*v = n;
	}
	return true;
}

/*
 * Decodes a column that is known. Each of its values is below 'limit', and there
 * are exactly as many as there should be.
 */
static bool times_read_check(const struct store_times *t, const char *name,
			     enum store_times_table table, uint64_t limit)
{
	struct store_times_column c;
	uint64_t v;

	if (!store_times_column(t, name, &c) || c.table != table)
		return false;
	while (!c.in.bad && store_times_value(&c, &v))
		if (limit && v >= limit)
			return false;
	return !c.in.bad && c.in.p == c.in.end;
}

static bool times_read_check_columns(const struct store_times *t)
{
	const uint64_t limits[TIMES_OURS] = {
		[TIMES_SAMPLE] = MAX(t->info.samples, 1),
		[TIMES_CPU] = 1ULL << 32,
		[TIMES_EVENT] = MAX(t->nevents, 1),
		[TIMES_THREAD] = 1ULL << 32,
	};
	uint32_t i;

#define X(NAME, name, table, coding)                        \
	if (!times_read_check(t, name, STORE_TIMES_##table, \
			      limits[TIMES_##NAME]))        \
		return false;
	TIMES_COLUMNS(X)
#undef X
	/* Those that are not: a later profd may have given them a new coding. */
	for (i = 0; i < t->ncolumns; i++) {
		const struct read_column *of = &t->columns[i];

		if (of->table <= STORE_TIMES_SAMPLES &&
		    of->coding < TIMES_CODINGS &&
		    !times_read_check(t, of->name, of->table, 0))
			return false;
	}
	return true;
}

/* Files without traces have none; of a later profd they may be coded otherwise. */
static bool times_read_ids(struct store_times *t)
{
	const struct read_column *of = NULL;
	struct store_times_column c;
	size_t len;

	for (uint32_t i = 0; i < t->ncolumns && !of; i++)
		if (!strcmp(t->columns[i].name, "ids.pair"))
			of = &t->columns[i];
	if (!of || of->table != STORE_TIMES_PAIRS || of->coding != TIMES_PAIR ||
	    !store_times_column(t, "sample.ids", &c))
		return true;
	len = (size_t)(of->data.end - of->data.p);
	if (len % IDS_PAIR || len / IDS_PAIR > STORE_TIMES_PAIRS_MAX ||
	    !times_read_check(t, "sample.ids", STORE_TIMES_RECORDS,
			      len / IDS_PAIR + 1))
		return false;
	t->pairs = of->data.p;
	t->npairs = (uint32_t)(len / IDS_PAIR);
	return true;
}

/* --- the tables at the front ----------------------------------------------- */

/* A text of 'len' bytes, without NUL. */
static bool times_read_name(struct cursor *c, char *out, size_t room,
			    uint64_t len)
{
	const uint8_t *s = len < room ? cursor_bytes(c, len) : NULL;

	if (!s || memchr(s, '\0', len))
		return false;
	memcpy(out, s, len);
	out[len] = '\0';
	return true;
}

static int times_read_header(struct store_times *t, struct cursor *c,
			     uint32_t *end)
{
	struct store_times_info *info = &t->info;
	const uint8_t *magic = cursor_bytes(c, strlen(TIMES_MAGIC));
	const uint8_t *boot_id;

	if (!magic || memcmp(magic, TIMES_MAGIC, strlen(TIMES_MAGIC)))
		return -EBADMSG;
	if (cursor_fixed(c, 4) != TIMES_VERSION)
		return c->bad ? -EBADMSG : -EPROTONOSUPPORT;
	*end = cursor_fixed(c, 4);
	info->wall_ns = cursor_signed(c, 8);
	info->boot_ns = cursor_fixed(c, 8);
	info->duration_ns = cursor_fixed(c, 8);
	info->step_ns = cursor_fixed(c, 8);
	boot_id = cursor_bytes(c, STORE_BOOT_ID);
	if (!boot_id)
		return -EBADMSG;
	memcpy(info->boot_id, boot_id, STORE_BOOT_ID);
	info->records = cursor_fixed(c, 8);
	info->samples = cursor_fixed(c, 8);
	info->untimed = cursor_fixed(c, 8);
	t->nevents = cursor_fixed(c, 4);
	t->ncolumns = cursor_fixed(c, 4);
	/* A record, and a sample, is a byte at least. */
	return !c->bad && *end >= TIMES_HEADER && info->step_ns &&
			       info->records <= t->len &&
			       info->samples <= MIN(t->len, READ_SAMPLES_MAX) &&
			       t->nevents <= READ_EVENTS_MAX &&
			       t->ncolumns <= TIMES_COLUMNS_MAX
		       ? 0
		       : -EBADMSG;
}

/* The next entry of a table: the cursor of its bytes, without its size. */
static bool times_read_entry(struct cursor *c, struct cursor *entry)
{
	uint64_t size = cursor_fixed(c, 4);
	const uint8_t *p = size < 4 ? NULL : cursor_bytes(c, size - 4);

	if (!p)
		return false;
	*entry = (struct cursor){ p, p + (size - 4), false };
	return true;
}

static bool times_read_event(struct cursor *c, struct store_times_event *ev)
{
	struct cursor entry;

	if (!times_read_entry(c, &entry))
		return false;
	ev->count = cursor_fixed(&entry, 4);
	ev->nvalues = cursor_fixed(&entry, 4);
	return ev->count < READ_VALUES_MAX && ev->nvalues >= 1 &&
	       ev->nvalues <= 2 &&
	       times_read_name(&entry, ev->name, sizeof(ev->name),
			       cursor_fixed(&entry, 4)) &&
	       !entry.bad;
}

static bool times_read_column(struct cursor *c, struct read_column *col,
			      uint64_t *bytes)
{
	struct cursor entry;
	uint64_t len;

	if (!times_read_entry(c, &entry))
		return false;
	col->table = cursor_fixed(&entry, 1);
	col->coding = cursor_fixed(&entry, 1);
	len = cursor_fixed(&entry, 2);
	*bytes = cursor_fixed(&entry, 8);
	return !entry.bad &&
	       times_read_name(&entry, col->name, sizeof(col->name), len);
}

/* A reader finds columns by their names, so no two may be equal. */
static bool times_read_is_new(const struct store_times *t, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(t->columns[i].name, t->columns[n].name))
			return false;
	return true;
}

static bool times_read_tables(struct store_times *t, struct cursor *c)
{
	uint64_t bytes[TIMES_COLUMNS_MAX];
	const uint8_t *p;
	uint32_t i;

	for (i = 0; i < t->nevents; i++)
		if (!times_read_event(c, &t->events[i]))
			return false;
	for (i = 0; i < t->ncolumns; i++)
		if (!times_read_column(c, &t->columns[i], &bytes[i]) ||
		    !times_read_is_new(t, i))
			return false;
	for (i = 0; i < t->ncolumns; i++) {
		p = cursor_bytes(c, bytes[i]);
		if (!p)
			return false;
		t->columns[i].data = (struct cursor){ p, p + bytes[i], false };
	}
	return c->p == c->end;
}

static int times_read_threads(struct store_times *t)
{
	struct store_times_column c;
	uint64_t i, v;

	t->threads = malloc((t->info.samples + 1) * sizeof(*t->threads));
	if (!t->threads)
		return -ENOMEM;
	store_times_column(t, "thread", &c);
	for (i = 0; store_times_value(&c, &v); i++)
		t->threads[i] = (uint32_t)v;
	return 0;
}

static int times_read_parse(struct store_times *t)
{
	struct cursor c = { t->data, t->data + t->len, false };
	uint32_t end;
	int err = times_read_header(t, &c, &end);

	if (err)
		return err;
	/* Members of a later profd. */
	cursor_bytes(&c, end - TIMES_HEADER);
	if (c.bad || !times_read_tables(t, &c) ||
	    !times_read_check_columns(t) || !times_read_ids(t))
		return -EBADMSG;
	return times_read_threads(t);
}

/* --- the interface --------------------------------------------------------- */

int store_times_read(struct store_times **tp, const void *buf, size_t len)
{
	struct store_times *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	err = times_read_unpack(t, buf, len);
	if (!err)
		err = times_read_parse(t);
	if (err)
		store_times_free(t);
	else
		*tp = t;
	return err;
}

void store_times_free(struct store_times *t)
{
	if (!t)
		return;
	free(t->threads);
	free(t->data);
	free(t);
}

const struct store_times_info *store_times_info(const struct store_times *t)
{
	return &t->info;
}

const struct store_times_event *store_times_event(const struct store_times *t,
						  uint32_t i)
{
	return i < t->nevents ? &t->events[i] : NULL;
}

uint32_t store_times_pairs(const struct store_times *t)
{
	return t->npairs;
}

const uint8_t *store_times_pair(const struct store_times *t, uint32_t ids)
{
	return t->pairs + (size_t)(ids - 1) * IDS_PAIR;
}

bool store_times_fit(const struct store_times *t, int64_t time_nanos,
		     uint64_t samples)
{
	return t->info.wall_ns == time_nanos && t->info.samples == samples;
}

void store_times_begin(const struct store_times *t,
		       struct store_times_cursor *c)
{
	c->t = t;
	store_times_column(t, "step", &c->step);
	store_times_column(t, "sample", &c->sample);
	store_times_column(t, "cpu", &c->cpu);
	store_times_column(t, "event", &c->event);
	store_times_column(t, "value", &c->value);
	c->ids.left = 0;
	if (t->npairs)
		store_times_column(t, "sample.ids", &c->ids);
}

bool store_times_next(struct store_times_cursor *c,
		      struct store_times_record *out)
{
	uint64_t step, sample, cpu, event, ids = 0;

	if (!store_times_value(&c->step, &step) ||
	    !store_times_value(&c->sample, &sample) ||
	    !store_times_value(&c->cpu, &cpu) ||
	    !store_times_value(&c->event, &event) ||
	    !store_times_value(&c->value, &out->value))
		return false;
	store_times_value(&c->ids, &ids);
	out->ids = (uint32_t)ids;
	out->step = (int64_t)step;
	out->sample = (uint32_t)sample;
	out->thread = c->t->threads[sample];
	out->cpu = (uint32_t)cpu;
	out->event = (uint32_t)event;
	return true;
}
