/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base: what no library provides. This is the public header of the part; it includes
 * all others but perfring.h, which needs the kernel's <linux/perf_event.h>.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <sys/param.h> /* MIN, MAX; <uv.h> includes it anyway */

#include "base/clock.h"
#include "base/cursor.h"
#include "base/dirs.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem/arena.h"
#include "base/mem/pool.h"
#include "base/mem/strtab.h"
#include "base/mem/vault.h"
#include "base/mem/vector.h"
#include "base/proc/cpus.h"
#include "base/proc/patience.h"
#include "base/proc/procfs.h"
#include "base/proc/self.h"
#include "base/ring.h"
#include "base/strbuf.h"
#include "base/text.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) \
	((type *)((char *)(ptr)-offsetof(type, member)))

#endif /* BASE_BASE_H */
