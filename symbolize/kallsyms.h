/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kallsyms: functions of the kernel, its modules and BPF programs, as
 * /proc/kallsyms tells them: a line has the address in hex, a type letter, the
 * name and, in brackets behind a tab, the module ("bpf" for programs).
 *
 * Half of them are "__pfx_NAME", the padding in front of NAME (6.1 and newer),
 * so all of it is packed: names in the order of addresses, each behind its
 * distance from the one before; every 16th can be found directly.
 *
 * A symbol reaches to the next. The last of a module or of a run of BPF
 * programs reaches no farther than KALLSYMS_TAIL: what follows is not known to
 * be its.
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
 * Reads 'path'. 0; -EPERM if it shows zeros for addresses (kptr_restrict,
 * no CAP_SYSLOG); -ENODATA without any function in it; -errno.
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

#endif /* SYMBOLIZE_KALLSYMS_H */
