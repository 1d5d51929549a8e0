// SPDX-License-Identifier: Apache-2.0
/*
 * times_write: writes a side file, see reporter/store/times_file.h. The list of times
 * is read once for the sizes of the columns and once for each of them, so that
 * nothing is kept in memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "reporter/store/singles.h"
#include "reporter/sink.h"
#include "reporter/store/times_coding.h"
#include "reporter/store/times_file.h"
#include "reporter/window.h"

#define WRITE_NUMBER_MAX 10 /* bytes of 64 bits */

static const struct {
	const char *name;
	uint8_t table, coding;
} write_columns[] = {
#define X(NAME, name, table, coding) \
	[TIMES_##NAME] = { name, STORE_TIMES_##table, TIMES_##coding },
	TIMES_COLUMNS(X) TIMES_COLUMNS_IDS(X) TIMES_COLUMNS_WAITS(X)
#undef X
};

struct write {
	const struct window *w;
	const struct singles *singles; /* of a profile of waits; else NULL */
	uint64_t boot_ns;
	struct sink *sink; /* NULL: only counts */
	uint64_t bytes[TIMES_ALL];
	/* Of the column: the value before, or the next fresh number. */
	uint64_t last[TIMES_ALL];
};

/* Those of each file, with ids those of pairs, or those of waits. */
static bool write_has(const struct write *wr, uint32_t column)
{
	return column < TIMES_OURS ||
	       (column >= TIMES_WAITS ? wr->singles != NULL
				      : wr->w->ids.by_bytes.count > 0);
}

static uint32_t write_columns_of(const struct write *wr)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < TIMES_ALL; i++)
		n += write_has(wr, i);
	return n;
}

static void write_fixed(struct sink *sink, uint64_t v, size_t size)
{
	uint8_t buf[8];
	size_t i;

	for (i = 0; i < size; i++, v >>= 8)
		buf[i] = (uint8_t)v;
	sink_write(sink, buf, size);
}

static uint64_t write_code(struct write *wr, enum times_column col, uint64_t v)
{
	uint64_t *last = &wr->last[col], was = *last;
	int64_t by;

	switch (write_columns[col].coding) {
	case TIMES_DELTA:
		*last = v;
		by = (int64_t)(v - was);
		return (uint64_t)by << 1 ^ (uint64_t)(by >> 63);
	case TIMES_FRESH:
		*last = MAX(was, v + 1);
		return was - v;
	default:
		return v;
	}
}

static void write_value(struct write *wr, enum times_column col, uint64_t v)
{
	uint8_t buf[WRITE_NUMBER_MAX];
	size_t n = 0;

	v = write_code(wr, col, v);
	for (; v > 0x7f; v >>= 7)
		buf[n++] = (uint8_t)(v | 0x80);
	buf[n++] = (uint8_t)v;
	wr->bytes[col] += n;
	if (wr->sink)
		sink_write(wr->sink, buf, n);
}

static void write_record(struct write *wr, enum times_column col,
			 const struct times_sample *s)
{
	const struct window_opts *o = &wr->w->opts;
	const uint64_t values[] = {
		[TIMES_STEP] = (uint64_t)s->step,
		[TIMES_SAMPLE] = s->sample,
		[TIMES_CPU] = s->cpu,
		[TIMES_EVENT] = s->event,
		[TIMES_VALUE] = o->types[s->event].periodic && !s->value
					? (uint64_t)o->period
					: s->value,
		[TIMES_IDS] = s->ids,
	};

	write_value(wr, col, values[col]);
}

static void write_threads(struct write *wr)
{
	const struct window_sample *s;

	STAILQ_FOREACH(s, &wr->w->sample_list, entry)
		write_value(wr, TIMES_THREAD, s->tid);
}

/* The columns [first, end) of records, in one pass over the list. */
static void write_records(struct write *wr, int first, int end)
{
	struct times_cursor c;
	struct times_sample s;
	int col;

	times_begin(&wr->w->times, &c);
	while (times_next(&c, &s))
		for (col = first; col < end; col++)
			write_record(wr, col, &s);
}

static void write_pairs(struct write *wr)
{
	const struct times_pair *p;

	STAILQ_FOREACH(p, &wr->w->ids.list, entry) {
		wr->bytes[TIMES_PAIRS] += sizeof(p->bytes);
		if (wr->sink)
			sink_write(wr->sink, p->bytes, sizeof(p->bytes));
	}
}

/* --- waits --------------------------------------------------------------------- */

static uint64_t write_index(uint32_t i)
{
	return i == SINGLES_NONE ? 0 : (uint64_t)i + 1;
}

static uint64_t write_wait_value(const struct write *wr,
				 enum times_column column,
				 const struct single *x)
{
	switch (column) {
	case TIMES_WAIT_THREAD:
		return x->thread;
	case TIMES_WAIT_BEGIN:
		return x->begin - wr->boot_ns;
	case TIMES_WAIT_LENGTH:
		return x->length;
	case TIMES_WAIT_REASON:
		return ABI_WAIT_WHAT_REASON(x->what) - ABI_WAIT_SLEEP;
	case TIMES_WAIT_SYSCALL:
		return ABI_WAIT_WHAT_NR(x->what) == ABI_WAIT_NO_CALL
			       ? 0
			       : ABI_WAIT_WHAT_NR(x->what) + 1;
	case TIMES_WAIT_FD:
		return ABI_WAIT_WHAT_FD(x->what);
	case TIMES_WAIT_SAMPLE:
		return write_index(x->sample);
	case TIMES_WAIT_WAKER:
		return write_index(x->waker);
	default:
		return x->end;
	}
}

static uint64_t write_thread_value(enum times_column column,
				   const struct singles_thread *t)
{
	return column == TIMES_THREAD_TID     ? t->tid
	       : column == TIMES_THREAD_PID   ? t->key.tgid
	       : column == TIMES_THREAD_START ? t->key.start_boottime
					      : t->key.exec_id;
}

static void write_names(struct write *wr)
{
	const struct singles *s = wr->singles;

	for (size_t i = 0; i < s->nthreads; i++)
		if (wr->sink)
			sink_write(wr->sink, s->threads[i]->name, ABI_COMM_LEN);
	wr->bytes[TIMES_THREAD_NAME] = s->nthreads * ABI_COMM_LEN;
}

static void write_waits(struct write *wr)
{
	const struct singles *s = wr->singles;
	size_t i;
	int col;

	for (col = TIMES_WAITS; col < TIMES_THREAD_TID; col++)
		for (i = 0; i < s->n; i++)
			write_value(wr, col,
				    write_wait_value(wr, col, &s->items[i]));
	for (; col < TIMES_THREAD_NAME; col++)
		for (i = 0; i < s->nthreads; i++)
			write_value(wr, col,
				    write_thread_value(col, s->threads[i]));
	write_names(wr);
}

/* What is behind the columns of each file. */
static void write_more(struct write *wr)
{
	if (write_has(wr, TIMES_IDS)) {
		write_records(wr, TIMES_IDS, TIMES_PAIRS);
		write_pairs(wr);
	}
	if (wr->singles)
		write_waits(wr);
}

/* --- the tables at the front ------------------------------------------------------ */

static void write_header_waits(const struct singles *s,
			       const struct store_times_info *info,
			       struct sink *sink)
{
	write_fixed(sink, s->n, 8);
	write_fixed(sink, s->nthreads, 8);
	write_fixed(sink, s->min, 8);
	write_fixed(sink, singles_top(s), 8);
	write_fixed(sink, info->unrecorded, 8);
}

static void write_header(const struct write *wr,
			 const struct store_times_info *info, struct sink *sink)
{
	const struct window *w = wr->w;

	sink_write(sink, TIMES_MAGIC, strlen(TIMES_MAGIC));
	write_fixed(sink, TIMES_VERSION, 4);
	write_fixed(sink, wr->singles ? TIMES_HEADER_WAITS : TIMES_HEADER, 4);
	write_fixed(sink, (uint64_t)info->wall_ns, 8);
	write_fixed(sink, info->boot_ns, 8);
	write_fixed(sink, info->duration_ns, 8);
	write_fixed(sink, TIMES_STEP_NS, 8);
	sink_write(sink, info->boot_id, STORE_BOOT_ID);
	write_fixed(sink, w->times.count, 8);
	write_fixed(sink, w->samples.count, 8);
	/* Of waits there are sums only. */
	write_fixed(sink, wr->singles ? w->nsamples : w->times.dropped, 8);
	write_fixed(sink, wr->singles ? 0 : w->opts.ntypes, 4);
	write_fixed(sink, write_columns_of(wr), 4);
	if (wr->singles)
		write_header_waits(wr->singles, info, sink);
}

static void write_events(const struct window *w, struct sink *sink)
{
	const struct reporter_event_type *type;
	size_t i, len;

	for (i = 0; i < w->opts.ntypes; i++) {
		type = &w->opts.types[i];
		len = MIN(strlen(type->name), STORE_TIMES_EVENT_MAX - 1);
		write_fixed(sink, 16 + len, 4);
		write_fixed(sink, w->first_column[i], 4);
		write_fixed(sink, type->value.type ? 2 : 1, 4);
		write_fixed(sink, len, 4);
		sink_write(sink, type->name, len);
	}
}

static void write_directory(const struct write *wr, struct sink *sink)
{
	size_t i, len;

	for (i = 0; i < TIMES_ALL; i++) {
		if (!write_has(wr, i))
			continue;
		len = strlen(write_columns[i].name);
		write_fixed(sink, 16 + len, 4);
		write_fixed(sink, write_columns[i].table, 1);
		write_fixed(sink, write_columns[i].coding, 1);
		write_fixed(sink, len, 2);
		write_fixed(sink, wr->bytes[i], 8);
		sink_write(sink, write_columns[i].name, len);
	}
}

/* First for the sizes, then with the sink. */
static void write_file(const struct write *of,
		       const struct store_times_info *info, struct sink *sink)
{
	struct write wr = *of;
	int col;

	wr.boot_ns = info->boot_ns;
	write_records(&wr, 0, TIMES_THREAD);
	write_threads(&wr);
	write_more(&wr);
	write_header(&wr, info, sink);
	if (!wr.singles)
		write_events(wr.w, sink);
	write_directory(&wr, sink);
	wr = *of;
	wr.boot_ns = info->boot_ns;
	wr.sink = sink;
	for (col = 0; col < TIMES_THREAD; col++)
		write_records(&wr, col, col + 1);
	write_threads(&wr);
	write_more(&wr);
}

void store_times_write(const struct window *w,
		       const struct store_times_info *info, struct sink *sink)
{
	const struct write wr = { .w = w };

	write_file(&wr, info, sink);
}

void store_times_write_waits(const struct window *w, const struct singles *s,
			     const struct store_times_info *info,
			     struct sink *sink)
{
	const struct write wr = { .w = w, .singles = s };

	write_file(&wr, info, sink);
}

void store_boot_id(uint8_t id[STORE_BOOT_ID])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char text[64];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	size_t i, at = 0;
	unsigned int byte;

	if (fd >= 0)
		close(fd);
	memset(id, 0, STORE_BOOT_ID);
	text[MAX(n, 0)] = '\0';
	for (i = 0; i < STORE_BOOT_ID; i++) {
		at += text[at] == '-';
		if (sscanf(text + at, "%2x", &byte) != 1)
			break;
		id[i] = (uint8_t)byte;
		at += 2;
	}
}
