// SPDX-License-Identifier: Apache-2.0
/* load: bpf/watch.bpf.c, its hooks, filter and counters. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/watch.skel.h"
#include "processmanager/watch/internal.h"

#define LOAD_RING_BYTES (4 * 1024 * 1024)

struct watch_load {
	struct watch_bpf *skel;
	struct bpf_link *links[WATCH_N_HOOKS]; /* NULL: not attached */
	uint32_t *pids; /* in the map */
	size_t n_pids;
	uint32_t crowded;
	bool seeded;
};

static struct bpf_program *load_program(const struct watch_load *l, size_t i)
{
	struct bpf_program *const programs[] = {
#define X(program, tracepoint, names) l->skel->progs.program,
		WATCH_HOOKS(X)
#undef X
	};

	return programs[i];
}

static int load_open(struct watch_load *l, const struct watch_opts *opts)
{
	const struct watch_kernel *k = watch_kernel();
	uint32_t bytes = opts->ring_size ?: LOAD_RING_BYTES;
	int err = k->err;

	if (err)
		return err;
	errno = 0;
	l->skel = watch_bpf__open();
	if (!l->skel)
		return errno ? -errno : -ENOMEM;
	for (size_t i = 0; !err && i < WATCH_N_HOOKS; i++)
		if (!k->has[i])
			err = bpf_program__set_autoload(load_program(l, i),
							false);
	l->skel->rodata->watch_self = (uint32_t)opts->self;
	l->crowded = bytes / 4;
	if (!err)
		err = bpf_map__set_max_entries(l->skel->maps.watch_ring, bytes);
	return err ?: watch_bpf__load(l->skel);
}

static int load_no_print(enum libbpf_print_level level, const char *fmt,
			 va_list ap)
{
	return 0;
}

int watch_load_new(struct watch_load **lp, const struct watch_opts *opts,
		   const char **why)
{
	struct watch_load *l = calloc(1, sizeof(*l));
	libbpf_print_fn_t print;
	int err;

	*why = "loading the programs";
	if (!l)
		return -ENOMEM;
	print = libbpf_set_print(load_no_print);
	err = load_open(l, opts);
	libbpf_set_print(print);
	if (err)
		watch_load_free(l);
	else
		*lp = l;
	return err;
}

void watch_load_free(struct watch_load *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < WATCH_N_HOOKS; i++)
		bpf_link__destroy(l->links[i]);
	if (l->skel)
		watch_bpf__destroy(l->skel);
	free(l->pids);
	free(l);
}

/* Sockets that exist get an owner: once, while the hooks that change it are there. */
static void load_seed(struct watch_load *l)
{
	struct bpf_link *link;
	char buf[64];
	int fd;

	if (l->seeded)
		return;
	l->seeded = true;
	link = bpf_program__attach_iter(l->skel->progs.watch_seed, NULL);
	if (!link)
		return;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd >= 0) {
		while (read(fd, buf, sizeof(buf)) > 0)
			;
		close(fd);
	}
	bpf_link__destroy(link);
}

int watch_load_attach(struct watch_load *l, uint32_t hooks, uint32_t *failed)
{
	int err = 0;

	*failed = 0;
	if (!l->links[WATCH_HOOK_watch_sock_state])
		l->skel->bss->watch_era++;
	for (size_t i = 0; i < WATCH_N_HOOKS; i++) {
		if (!(hooks & WATCH_BIT(i))) {
			bpf_link__destroy(l->links[i]);
			l->links[i] = NULL;
		} else if (!l->links[i]) {
			l->links[i] = bpf_program__attach(load_program(l, i));
			if (l->links[i])
				continue;
			err = errno ? -errno : -ENOTSUP;
			*failed |= WATCH_BIT(i);
		}
	}
	if (l->links[WATCH_HOOK_watch_sock_state])
		load_seed(l);
	else
		l->seeded = false;
	return err;
}

static int load_cmp_pid(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

int watch_load_filter(struct watch_load *l, const struct watch_set *names,
		      struct abi_watch_filter filter, const uint32_t *pids,
		      size_t n_pids)
{
	int fd = bpf_map__fd(l->skel->maps.watch_pids), err;
	uint32_t zero = 0, *copy = NULL;

	if (n_pids) {
		copy = malloc(n_pids * sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		memcpy(copy, pids, n_pids * sizeof(*copy));
	}
	for (size_t i = 0; i < n_pids; i++)
		bpf_map_update_elem(fd, &pids[i], &zero, BPF_ANY);
	filter.names = (uint32_t)names->w[0];
	filter.by_pid = n_pids > 0;
	filter.crowded = l->crowded;
	err = bpf_map_update_elem(bpf_map__fd(l->skel->maps.watch_filter),
				  &zero, &filter, BPF_ANY);
	err = err ? -errno : 0;
	/* Last: events of those in both lists come all the time. */
	for (size_t i = 0; i < l->n_pids; i++)
		if (!n_pids || !bsearch(&l->pids[i], pids, n_pids,
					sizeof(*pids), load_cmp_pid))
			bpf_map_delete_elem(fd, &l->pids[i]);
	free(l->pids);
	l->pids = copy;
	l->n_pids = n_pids;
	return err;
}

int watch_load_ring(const struct watch_load *l)
{
	return bpf_map__fd(l->skel->maps.watch_ring);
}

struct abi_watch_loss watch_load_losses(const struct watch_load *l,
					uint32_t name)
{
	struct abi_watch_loss loss = { 0 };

	bpf_map_lookup_elem(bpf_map__fd(l->skel->maps.watch_losses), &name,
			    &loss);
	return loss;
}
