// SPDX-License-Identifier: Apache-2.0
/* rows: unwind rows that do not come from an executable itself. */
#include "processmanager/internal.h"

int pm_rows_by_hand(struct pm *pm, const uint8_t *id, size_t len,
		    struct symbolizer_rows *rows)
{
	return symbolizer_rows_by_hand(pm->opts.symbolizer, id, len, rows);
}
