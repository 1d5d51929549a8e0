// SPDX-License-Identifier: Apache-2.0
/* cmd_status: profd status. Prints what a running profd says of itself. */
#include <errno.h>
#include <stdio.h>

#include "profiler/client.h"
#include "profiler/cmd.h"

static bool print(void *arg, const void *data, size_t len)
{
	return fwrite(data, 1, len, stdout) == len;
}

int cmd_status(const struct options *o)
{
	struct client_request req = {
		.server = o->server,
		.path = "/status",
		.body = print,
	};
	char msg[768];
	int err = client_get(&req, msg, sizeof(msg));

	if (err == -ECANCELED || (!err && fflush(stdout)))
		return cmd_fail("standard output cannot be written");
	return err ? cmd_fail("%s", msg) : 0;
}
