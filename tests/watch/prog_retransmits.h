/* SPDX-License-Identifier: Apache-2.0 */
/* prog_retransmits: what its BPF program counts. Included by both sides. */
#ifndef TESTS_WATCH_PROG_RETRANSMITS_H
#define TESTS_WATCH_PROG_RETRANSMITS_H

/* IPv4 addresses are in the first four bytes. */
struct retransmits_ends {
	__u8 src[16], dst[16]; /* the host's end first */
	__u16 family, sport; /* in the host's byte order */
	__u16 dport; /* in the network's */
	__u16 pad;
};

struct retransmits_sums {
	__u64 events, segs;
	__u64 unsent; /* what was not handed to IP; reported by Linux 6.17 and newer */
};

#endif /* TESTS_WATCH_PROG_RETRANSMITS_H */
