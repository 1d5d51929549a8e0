/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms: functions of the kernel, its modules and BPF programs, from
 * /proc/kallsyms: a line has the address in hex, a type letter, the name and,
 * after a tab and in brackets, the module ("bpf" for programs).
 *
 * The symbols are packed, in the order of addresses: the distance from the one
 * before, then the name; every 16th can be found directly. Half of them are
 * "__pfx_NAME", the padding before NAME (Linux 6.1 and newer), without a name
 * here.
 *
 * A symbol extends to the next one. The last of a module or of a run of BPF
 * programs has KALLSYMS_TAIL bytes at most.
 */
#ifndef SYMBOLIZE_KALLSYMS_H
#define SYMBOLIZE_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KALLSYMS_TAIL 65536
#define KALLSYMS_NAME_MAX 512 /* as the kernel's KSYM_NAME_LEN */

struct kallsyms;

/*
 * Reads 'path'. 0; -EPERM: it has zeros for addresses (kptr_restrict, no
 * CAP_SYSLOG); -ENODATA: it has no function; or another -errno.
 */
int kallsyms_read(struct kallsyms **kp, const char *path);
/* The same from memory. */
int kallsyms_parse(struct kallsyms **kp, const char *text, size_t len);
void kallsyms_free(struct kallsyms *k);
/* Memory held. */
size_t kallsyms_bytes(const struct kallsyms *k);

struct kallsyms_symbol {
	uint64_t start, size;
	char name[KALLSYMS_NAME_MAX];
	const char *module; /* kallsyms' own; "vmlinux" for the kernel */
};

/* The function with this address; false: none. */
bool kallsyms_find(const struct kallsyms *k, uint64_t addr,
		   struct kallsyms_symbol *out);
/* Between the first and the last function of the kernel proper. */
bool kallsyms_is_core(const struct kallsyms *k, uint64_t addr);

/*
 * Functions of modules that a reading had and a later one had not, for samples from
 * before their unloading. All zero: none. The oldest are dropped.
 */
#define KALLSYMS_PAST 64 /* readings */
#define KALLSYMS_PAST_BYTES (2U << 20)

struct kallsyms_past {
	struct {
		struct kallsyms *k;
		uint64_t until; /* boot time of the later reading */
	} v[KALLSYMS_PAST];
	size_t n; /* ascending by time */
	size_t bytes;
};

void kallsyms_past_fini(struct kallsyms_past *p);
/* What 'was' has and 'now', read at 'time', has not. 0 or -ENOMEM. */
int kallsyms_past_add(struct kallsyms_past *p, const struct kallsyms *was,
		      const struct kallsyms *now, uint64_t time);
/* The function with this address at 'time', if it is gone since. */
bool kallsyms_past_find(const struct kallsyms_past *p, uint64_t addr,
			uint64_t time, struct kallsyms_symbol *out);

#endif /* SYMBOLIZE_KALLSYMS_H */
