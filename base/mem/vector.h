/* SPDX-License-Identifier: Apache-2.0 */
/* vector: growth of malloc'ed arrays, and binary search in sorted ones. */
#ifndef BASE_VECTOR_H
#define BASE_VECTOR_H

#include <errno.h>
#include <stdlib.h>

/*
 * Makes room for one more element in array 'v' of 'n' elements and capacity 'cap'.
 * When it grows, v and cap change, and cap at least doubles. 0, or -ENOMEM without
 * a change. The caller frees v with free(3).
 */
#define VECTOR_ROOM(v, n, cap)                                           \
	({                                                               \
		size_t cap_ = (cap) ? 2 * (size_t)(cap) : 16, bytes_;    \
		__typeof__(v) v_ = NULL;                                 \
                                                                         \
		if ((n) >= (cap) && cap_ == (__typeof__(cap))cap_ &&     \
		    !__builtin_mul_overflow(cap_, sizeof(*v_), &bytes_)) \
			v_ = realloc(v, bytes_);                         \
		if (v_) {                                                \
			(v) = v_;                                        \
			(cap) = (__typeof__(cap))cap_;                   \
		}                                                        \
		(n) < (cap) ? 0 : -ENOMEM;                               \
	})

/*
 * Sets 'i' to the first index below 'n' for which 'before', an expression in i, is
 * false, or to n. 'before' must be true below one index and false from there on.
 */
#define VECTOR_SEARCH(i, n, before)                      \
	do {                                             \
		__typeof__(i) low_ = 0, high_ = (n);     \
                                                         \
		while (low_ < high_) {                   \
			(i) = low_ + (high_ - low_) / 2; \
			if (before)                      \
				low_ = (i) + 1;          \
			else                             \
				high_ = (i);             \
		}                                        \
		(i) = low_;                              \
	} while (0)

#endif /* BASE_VECTOR_H */
