/* SPDX-License-Identifier: Apache-2.0 */
/* times_coding: the bytes of a side file, profd-times(5). */
#ifndef REPORTER_STORE_TIMES_CODING_H
#define REPORTER_STORE_TIMES_CODING_H

#define TIMES_MAGIC "PROFTIME"
#define TIMES_VERSION 1
#define TIMES_HEADER 96
#define TIMES_HEADER_WAITS 136 /* of a file with waits */
#define TIMES_COLUMNS_MAX 256
#define TIMES_NAME_MAX 64

enum times_coding {
	TIMES_PLAIN, /* ULEB128 */
	TIMES_DELTA, /* the difference to the value before, zigzag, ULEB128 */
	/*
	 * For numbers that are given in the order of their first use. 0: one more
	 * than the highest so far; n: n less than that.
	 */
	TIMES_FRESH,
	TIMES_CODINGS, /* of numbers */
	TIMES_PAIR = TIMES_CODINGS, /* IDS_PAIR bytes, see reporter/times.h */
	TIMES_NAME, /* ABI_COMM_LEN bytes: a name, and zeros */
};

/* X(NAME, "name", table, coding): the columns of each file, */
#define TIMES_COLUMNS(X)                    \
	X(STEP, "step", RECORDS, DELTA)     \
	X(SAMPLE, "sample", RECORDS, FRESH) \
	X(CPU, "cpu", RECORDS, PLAIN)       \
	X(EVENT, "event", RECORDS, PLAIN)   \
	X(VALUE, "value", RECORDS, PLAIN)   \
	X(THREAD, "thread", SAMPLES, DELTA)
/* and of one with ids of traces. 0: a record has none, else the number of a pair. */
#define TIMES_COLUMNS_IDS(X)                 \
	X(IDS, "sample.ids", RECORDS, PLAIN) \
	X(PAIRS, "ids.pair", PAIRS, PAIR)

/*
 * And of a profile of waits. 0: a wait has no sample or waker, or is in no system call,
 * else its index, or number, and 1.
 */
#define TIMES_COLUMNS_WAITS(X)                          \
	X(WAIT_THREAD, "wait.thread", WAITS, PLAIN)     \
	X(WAIT_BEGIN, "wait.begin", WAITS, DELTA)       \
	X(WAIT_LENGTH, "wait.length", WAITS, PLAIN)     \
	X(WAIT_REASON, "wait.reason", WAITS, PLAIN)     \
	X(WAIT_SYSCALL, "wait.syscall", WAITS, PLAIN)   \
	X(WAIT_FD, "wait.fd", WAITS, PLAIN)             \
	X(WAIT_SAMPLE, "wait.sample", WAITS, PLAIN)     \
	X(WAIT_WAKER, "wait.waker", WAITS, PLAIN)       \
	X(WAIT_END, "wait.end", WAITS, PLAIN)           \
	X(THREAD_TID, "thread.tid", THREADS, DELTA)     \
	X(THREAD_PID, "thread.pid", THREADS, DELTA)     \
	X(THREAD_START, "thread.start", THREADS, DELTA) \
	X(THREAD_EXEC, "thread.exec", THREADS, PLAIN)   \
	X(THREAD_NAME, "thread.name", THREADS, NAME)

enum times_column {
#define X(NAME, name, table, coding) TIMES_##NAME,
	TIMES_COLUMNS(X)
	TIMES_COLUMNS_IDS(X) TIMES_COLUMNS_WAITS(X)
#undef X
		TIMES_ALL,
	TIMES_OURS = TIMES_IDS, /* those of each file */
	TIMES_WAITS = TIMES_WAIT_THREAD, /* those of waits */
};

#endif /* REPORTER_STORE_TIMES_CODING_H */
