/* SPDX-License-Identifier: Apache-2.0 */
/*
 * times_file: a window's side file, with the time, thread and CPU of each of its
 * samples. Its form is in profd-times(5): columns with names and types, in zstd.
 *
 * A profile of waits has such a file, too, which has no records, but the long waits one by one,
 * and the threads that they are of.
 *
 * "Record" here is one sample as it was taken; a Sample message of the profile is the
 * sum of many.
 */
#ifndef REPORTER_STORE_TIMES_FILE_H
#define REPORTER_STORE_TIMES_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "bpf/abi_wait.h"
#include "reporter/store/store.h"

struct singles;
struct sink;
struct window;

#define STORE_BOOT_ID 16
#define STORE_TIMES_EVENT_MAX 64 /* bytes of an event's name, with the NUL */
#define STORE_TIMES_PAIRS_MAX 65536
/* A reader takes at most so much, uncompressed: two million records or more. */
#define STORE_TIMES_MAX (64 << 20)

struct store_times_info {
	int64_t wall_ns; /* of step 0, since the epoch; time_nanos of the profile */
	uint64_t boot_ns; /* of step 0, CLOCK_BOOTTIME */
	uint64_t duration_ns; /* duration_nanos of the profile */
	uint64_t step_ns;
	uint8_t boot_id[STORE_BOOT_ID]; /* zero: unknown */
	uint64_t records;
	uint64_t samples; /* Sample messages of the profile */
	uint64_t untimed; /* records of the profile that are not here */
	/* Of a profile of waits; else 0. */
	uint64_t waits, threads;
	uint64_t wait_min; /* the shortest wait that is here, ns */
	uint64_t wait_top; /* the same for the users with the most waits */
	uint64_t unrecorded; /* waits of wait_min and longer that are not here */
};

/* A kind of record: the values of Sample messages that it adds to. */
struct store_times_event {
	char name[STORE_TIMES_EVENT_MAX];
	uint32_t count; /* index in Sample.value of the number of records */
	uint32_t nvalues; /* 2: the sum of values is at count + 1; else 1 */
};

/*
 * Writes a sealed window, from which nothing was cut; wall_ns, boot_ns, duration_ns and
 * boot_id are of 'info'. The sink has the error; it is not finished.
 */
void store_times_write(const struct window *w,
		       const struct store_times_info *info, struct sink *sink);
/* The same of a profile of waits; of 'info' also 'unrecorded'. */
void store_times_write_waits(const struct window *w, const struct singles *s,
			     const struct store_times_info *info,
			     struct sink *sink);
/* The id of this boot; all zero if it is unknown. */
void store_boot_id(uint8_t id[STORE_BOOT_ID]);

/* --- reading --------------------------------------------------------------- */

struct store_times;

struct store_times_record {
	int64_t step; /* < 0: before the window began */
	uint32_t sample; /* index of the Sample message in the profile, from 0 */
	uint32_t thread; /* its tid */
	uint32_t cpu;
	uint32_t event; /* index for store_times_event() */
	uint64_t value; /* as in the sum of values */
	uint32_t ids; /* the trace that its thread worked at, from 1; 0: none */
};

/*
 * Checks and unpacks a side file; 'buf' is not needed afterwards. -EBADMSG: it is
 * none, or damaged; -EPROTONOSUPPORT: of a later version; -EFBIG: above
 * STORE_TIMES_MAX; -ENOMEM.
 */
int store_times_read(struct store_times **tp, const void *buf, size_t len);
/*
 * The same of a window's file of this kind, below 'dirfd', which is the archive. Or another
 * -errno, of the file.
 */
int store_times_open(const struct store_window *w, int dirfd,
		     enum store_kind kind, struct store_times **tp);
void store_times_free(struct store_times *t);
const struct store_times_info *store_times_info(const struct store_times *t);
/* NULL: there are not so many. */
const struct store_times_event *store_times_event(const struct store_times *t,
						  uint32_t i);
/* How many pairs of trace and span its records have. */
uint32_t store_times_pairs(const struct store_times *t);
/* The bytes of pair 'ids', from 1, as in reporter/times.h; valid as long as 't'. */
const uint8_t *store_times_pair(const struct store_times *t, uint32_t ids);
/* Whether it belongs to a profile with this time_nanos and number of samples. */
bool store_times_fit(const struct store_times *t, int64_t time_nanos,
		     uint64_t samples);

enum store_times_table {
	STORE_TIMES_RECORDS, /* a value for each record */
	STORE_TIMES_SAMPLES, /* a value for each Sample message */
	STORE_TIMES_PAIRS, /* a value for each pair of trace and span */
	STORE_TIMES_WAITS, /* a value for each wait */
	STORE_TIMES_THREADS, /* a value for each of their threads */
};

/* A column, read from its begin. */
struct store_times_column {
	enum store_times_table table;
	uint32_t coding;
	struct cursor in;
	uint64_t left; /* values to come */
	uint64_t last; /* for the coding */
};

/* False: there is no column of that name, or its coding is not known. */
bool store_times_column(const struct store_times *t, const char *name,
			struct store_times_column *c);
/* The next value, as an int64_t if the column has negative ones. False: end. */
bool store_times_value(struct store_times_column *c, uint64_t *v);

struct store_times_cursor {
	const struct store_times *t;
	struct store_times_column step, sample, cpu, event, value;
	struct store_times_column ids; /* without pairs it has no values */
};

/* The records in the order in which they were added, nearly that of time. */
void store_times_begin(const struct store_times *t,
		       struct store_times_cursor *c);
bool store_times_next(struct store_times_cursor *c,
		      struct store_times_record *out);

/* --- waits ------------------------------------------------------------------- */

#define STORE_TIMES_NONE UINT32_MAX

/* Who waits, or has ended a wait. */
struct store_times_thread {
	struct abi_key key;
	uint32_t tid;
	char name[ABI_COMM_LEN]; /* not terminated; "": not known */
};

struct store_times_wait {
	uint64_t begin, end; /* CLOCK_BOOTTIME */
	uint32_t thread; /* for store_times_thread() */
	uint32_t waker; /* likewise, or NONE */
	uint32_t sample; /* index of the Sample message of its sum, or NONE */
	uint32_t what; /* ABI_WAIT_WHAT() */
	uint32_t kind; /* enum abi_waker_kind */
	bool open; /* it had not ended at 'end' */
};

struct store_times_waits {
	const struct store_times *t;
	/* As TIMES_COLUMNS_WAITS has them: begin with thread. */
	struct store_times_column columns[9];
};

/* NULL: there are not so many. */
const struct store_times_thread *store_times_thread(const struct store_times *t,
						    uint32_t i);
/* The waits in the order in which they were added, nearly that of their ends. */
void store_times_waits_begin(const struct store_times *t,
			     struct store_times_waits *c);
bool store_times_waits_next(struct store_times_waits *c,
			    struct store_times_wait *out);

#endif /* REPORTER_STORE_TIMES_FILE_H */
