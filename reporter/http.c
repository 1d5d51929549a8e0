// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include "reporter/internal.h"
int http_listen(struct reporter *r, const char *address)
{
	return -EOPNOTSUPP;
}
void http_stop(struct reporter *r)
{
}
