/* SPDX-License-Identifier: Apache-2.0 */
/* times_coding: the bytes of a side file, profd-times(5). */
#ifndef REPORTER_STORE_TIMES_CODING_H
#define REPORTER_STORE_TIMES_CODING_H

#define TIMES_MAGIC "PROFTIME"
#define TIMES_VERSION 1
#define TIMES_HEADER 96
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

enum times_column {
#define X(NAME, name, table, coding) TIMES_##NAME,
	TIMES_COLUMNS(X)
	TIMES_COLUMNS_IDS(X)
#undef X
		TIMES_ALL,
	TIMES_OURS = TIMES_IDS, /* those of each file */
};

#endif /* REPORTER_STORE_TIMES_CODING_H */
