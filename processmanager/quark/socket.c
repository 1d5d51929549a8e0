// SPDX-License-Identifier: Apache-2.0
/*
 * socket: the calls of the published interface for QQ_SOCK_CONN. No queue has
 * connections, since quark_queue_open() refuses that flag.
 */
#include "processmanager/quark/priv.h"

const struct quark_socket *quark_socket_lookup(struct quark_queue *qq,
					       struct quark_sockaddr *local,
					       struct quark_sockaddr *remote)
{
	return quark_null(ENOTSUP);
}

void quark_socket_iter_init(struct quark_socket_iter *it,
			    struct quark_queue *qq)
{
	it->qq = qq;
	it->qsk = NULL;
}

const struct quark_socket *quark_socket_iter_next(struct quark_socket_iter *it)
{
	return it->qsk;
}
