/* SPDX-License-Identifier: Apache-2.0 */
/* test_quark_apply: a queue without a backend, for tests of what changes the cache. */
#ifndef TEST_QUARK_APPLY_H
#define TEST_QUARK_APPLY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "processmanager/quark/apply.c"
#include "processmanager/quark/cache.c"
#include "processmanager/quark/event.c"
#include "processmanager/quark/leader.c"
#include "processmanager/quark/order.c"
#include "processmanager/quark/parent.c"
#include "processmanager/quark/proc/procfs.c"
#include "processmanager/quark/proc/procfs_task.c"
#include "processmanager/quark/proc/reader.c"
#include "processmanager/quark/record.c"
#include "processmanager/quark/rules.c"

static struct quark_queue_priv qq;

static int qq_setup(const struct quark_backend *backend, uint64_t grace_ns)
{
	memset(&qq, 0, sizeof(qq));
	qq.attr.flags = QQ_EBPF | QQ_NO_AGG;
	qq.backend = backend;
	quark_order_init(&qq.order);
	return vault_new(&qq.vault) || quark_cache_init(&qq.cache, grace_ns);
}

static int teardown(void **state)
{
	quark_record_put(qq.event_rec);
	patience_fini(&qq.reader.patience);
	quark_cache_fini(&qq.cache);
	vault_free(qq.vault);
	return 0;
}

#endif /* TEST_QUARK_APPLY_H */
