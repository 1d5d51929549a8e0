// SPDX-License-Identifier: Apache-2.0
/*
 * times_read: reads a side file, see reporter/store/times_file.h. Everything is
 * checked when it is opened: each column that is known is decoded once, so that
 * reading cannot fail.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
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
	struct store_times_thread *threads_of; /* waits; of info.threads */
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

/* Whether its coding, and how many values it has, are known. */
static bool times_read_known(const struct read_column *of)
{
	return of->table <= STORE_TIMES_THREADS &&
	       of->table != STORE_TIMES_PAIRS && of->coding < TIMES_CODINGS;
}

static uint64_t times_read_values(const struct store_times *t, uint8_t table)
{
	const uint64_t values[] = {
		[STORE_TIMES_RECORDS] = t->info.records,
		[STORE_TIMES_SAMPLES] = t->info.samples,
		[STORE_TIMES_WAITS] = t->info.waits,
		[STORE_TIMES_THREADS] = t->info.threads,
	};

	return values[table];
}

static bool times_read_open(const struct store_times *t,
			    const struct read_column *of,
			    struct store_times_column *c)
{
	if (!times_read_known(of))
		return false;
	*c = (struct store_times_column){
		.table = of->table,
		.coding = of->coding,
		.in = of->data,
		.left = times_read_values(t, of->table),
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

		if (times_read_known(of) &&
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

/* --- waits ------------------------------------------------------------------- */

static const struct read_column *times_read_find(const struct store_times *t,
						 const char *name)
{
	for (uint32_t i = 0; i < t->ncolumns; i++)
		if (!strcmp(t->columns[i].name, name))
			return &t->columns[i];
	return NULL;
}

/*
 * The columns of waits, with values below these limits, 0: any. A later profd may have more
 * reasons and kinds. Of names it is the bytes that are checked.
 */
static bool times_read_check_waits(const struct store_times *t)
{
	const struct read_column *names = times_read_find(t, "thread.name");
	const uint64_t limits[TIMES_ALL] = {
		[TIMES_WAIT_THREAD] = MAX(t->info.threads, 1),
		[TIMES_WAIT_SAMPLE] = t->info.samples + 1,
		[TIMES_WAIT_WAKER] = t->info.threads + 1,
		[TIMES_THREAD_TID] = 1ULL << 32,
		[TIMES_THREAD_PID] = 1ULL << 32,
	};

#define X(NAME, name, table, coding)                        \
	if (TIMES_##coding != TIMES_NAME &&                 \
	    !times_read_check(t, name, STORE_TIMES_##table, \
			      limits[TIMES_##NAME]))        \
		return false;
	TIMES_COLUMNS_WAITS(X)
#undef X
	return names && names->table == STORE_TIMES_THREADS &&
	       names->coding == TIMES_NAME &&
	       (uint64_t)(names->data.end - names->data.p) ==
		       t->info.threads * ABI_COMM_LEN;
}

static int times_read_wait_threads(struct store_times *t)
{
	struct cursor names = times_read_find(t, "thread.name")->data;
	struct store_times_column tid, pid, start, exec;
	struct store_times_thread *at;
	uint64_t v[4];

	t->threads_of = calloc(t->info.threads + 1, sizeof(*t->threads_of));
	if (!t->threads_of)
		return -ENOMEM;
	store_times_column(t, "thread.tid", &tid);
	store_times_column(t, "thread.pid", &pid);
	store_times_column(t, "thread.start", &start);
	store_times_column(t, "thread.exec", &exec);
	at = t->threads_of;
	while (store_times_value(&tid, &v[0]) &&
	       store_times_value(&pid, &v[1]) &&
	       store_times_value(&start, &v[2]) &&
	       store_times_value(&exec, &v[3])) {
		at->tid = (uint32_t)v[0];
		at->key.tgid = (uint32_t)v[1];
		at->key.start_boottime = v[2];
		at->key.exec_id = v[3];
		memcpy(at->name, names.p, ABI_COMM_LEN);
		names.p += ABI_COMM_LEN;
		at++;
	}
	return 0;
}

/*
 * No wait is longer, or further from its window: so no sum of times overflows. 0 or
 * -EBADMSG.
 */
#define READ_WAIT_MAX (1ULL << 62)

static int times_read_wait_times(const struct store_times *t)
{
	struct store_times_column begin, length;
	uint64_t b, l;

	store_times_column(t, "wait.begin", &begin);
	store_times_column(t, "wait.length", &length);
	while (store_times_value(&begin, &b) &&
	       store_times_value(&length, &l)) {
		b += t->info.boot_ns;
		if (b > READ_WAIT_MAX || l > READ_WAIT_MAX)
			return -EBADMSG;
	}
	return 0;
}

/* Files of other profiles, and those of before there were waits, have none. */
static int times_read_waits(struct store_times *t)
{
	int err;

	if (!times_read_find(t, "wait.thread")) {
		t->info.waits = t->info.threads = 0;
		return 0;
	}
	if (!times_read_check_waits(t))
		return -EBADMSG;
	err = times_read_wait_times(t);
	return err ? err : times_read_wait_threads(t);
}

const struct store_times_thread *store_times_thread(const struct store_times *t,
						    uint32_t i)
{
	return i < t->info.threads ? &t->threads_of[i] : NULL;
}

void store_times_waits_begin(const struct store_times *t,
			     struct store_times_waits *c)
{
	static const char *const names[] = {
#define X(NAME, name, table, coding) name,
		TIMES_COLUMNS_WAITS(X)
#undef X
	};

	*c = (struct store_times_waits){ .t = t };
	for (size_t i = 0; t->info.waits && i < ARRAY_SIZE(c->columns); i++)
		store_times_column(t, names[i], &c->columns[i]);
}

/* The value of a column of waits. */
#define READ_WAIT(v, NAME) ((v)[TIMES_WAIT_##NAME - TIMES_WAITS])

static uint32_t times_read_what(const uint64_t *v)
{
	uint64_t nr = READ_WAIT(v, SYSCALL), fd = READ_WAIT(v, FD);
	uint64_t reason = READ_WAIT(v, REASON);

	nr = nr && nr <= ABI_WAIT_NO_CALL ? nr - 1 : ABI_WAIT_NO_CALL;
	reason = reason < ABI_WAIT_REASON_MAX - ABI_WAIT_SLEEP
			 ? reason + ABI_WAIT_SLEEP
			 : ABI_WAIT_OTHER;
	return ABI_WAIT_WHAT(nr, reason, fd < ABI_FD_KINDS ? fd : ABI_FD_NONE);
}

bool store_times_waits_next(struct store_times_waits *c,
			    struct store_times_wait *out)
{
	uint64_t v[ARRAY_SIZE(c->columns)], end;

	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		if (!store_times_value(&c->columns[i], &v[i]))
			return false;
	end = READ_WAIT(v, END);
	*out = (struct store_times_wait){
		.begin = c->t->info.boot_ns + READ_WAIT(v, BEGIN),
		.thread = (uint32_t)READ_WAIT(v, THREAD),
		.waker = (uint32_t)READ_WAIT(v, WAKER) - 1,
		.sample = (uint32_t)READ_WAIT(v, SAMPLE) - 1,
		.what = times_read_what(v),
		.kind = end > ABI_WAKER_MAX ? ABI_WAKER_UNKNOWN
			: end		    ? (uint32_t)end - 1
					    : ABI_WAKER_NONE,
		.open = !end,
	};
	out->end = out->begin + READ_WAIT(v, LENGTH);
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

/* What a file with waits has behind the header of all. */
static bool times_read_header_waits(struct store_times *t, struct cursor *c)
{
	struct store_times_info *info = &t->info;

	info->waits = cursor_fixed(c, 8);
	info->threads = cursor_fixed(c, 8);
	info->wait_min = cursor_fixed(c, 8);
	info->wait_top = cursor_fixed(c, 8);
	info->unrecorded = cursor_fixed(c, 8);
	return !c->bad && info->waits <= t->len && info->threads <= t->len;
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
	uint32_t end, known = TIMES_HEADER;
	int err = times_read_header(t, &c, &end);

	if (err)
		return err;
	if (end >= TIMES_HEADER_WAITS) {
		known = TIMES_HEADER_WAITS;
		if (!times_read_header_waits(t, &c))
			return -EBADMSG;
	}
	/* Members of a later profd. */
	cursor_bytes(&c, end - known);
	if (c.bad || !times_read_tables(t, &c) ||
	    !times_read_check_columns(t) || !times_read_ids(t))
		return -EBADMSG;
	err = times_read_waits(t);
	return err ? err : times_read_threads(t);
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

int store_times_open(const struct store_window *w, int dirfd,
		     enum store_kind kind, struct store_times **tp)
{
	struct strbuf sb = STRBUF_INIT;
	char piece[READ_PIECE];
	int err = 0, fd = store_window_open(w, dirfd, kind);
	ssize_t n = 1;

	if (fd < 0)
		return fd;
	while (n > 0 && !err) {
		n = TEMP_FAILURE_RETRY(read(fd, piece, sizeof(piece)));
		if (n < 0)
			err = -errno;
		else
			strbuf_add(&sb, piece, (size_t)n);
		if (sb.len > STORE_TIMES_MAX)
			err = -EFBIG;
	}
	close(fd);
	if (!err && sb.failed)
		err = -ENOMEM;
	if (!err)
		err = store_times_read(tp, sb.data, sb.len);
	strbuf_fini(&sb);
	return err;
}

void store_times_free(struct store_times *t)
{
	if (!t)
		return;
	free(t->threads);
	free(t->threads_of);
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
