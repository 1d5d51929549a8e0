// SPDX-License-Identifier: Apache-2.0
/* load: bpf/watch/watch.bpf.c, its hooks, filter and counters. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/abi_watch.h"
#include "bpf/watch/watch.skel.h"
#include "processmanager/watch/internal.h"

#define LOAD_RING_BYTES (4 * 1024 * 1024)

#define LOAD_PIDS_MAX (WATCH_PIDS_MAX + WATCH_SUBS_MAX)

struct load_pid {
	uint32_t pid;
	uint32_t bits; /* enum abi_watch_pid */
};

struct watch_load {
	struct watch_bpf *skel;
	struct bpf_link *links[WATCH_N_HOOKS]; /* NULL: not attached */
	struct load_pid pids[LOAD_PIDS_MAX]; /* in the map; ascending */
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

/* Which arguments are what, of one call. */
static void load_arguments(struct abi_watch_conf *conf,
			   const struct watch_call *call)
{
	enum watch_arg_kind kind;
	uint8_t is;
	size_t n = 0;

	for (size_t i = 0; i < ABI_WATCH_ARGS; i++) {
		kind = call->args[i].kind;
		is = (uint8_t)(i + 1);
		if (kind == WATCH_ARG_PATH && n < ABI_WATCH_PATHS)
			conf->path[n++] = is;
		/* Of some descriptors the first. */
		if (!conf->fd &&
		    (kind == WATCH_ARG_FD || kind == WATCH_ARG_ENDS ||
		     kind == WATCH_ARG_PAIR))
			conf->fd = is;
		if (kind == WATCH_ARG_PAIR)
			conf->makes = ABI_WATCH_MAKES_PAIR;
		if (kind == WATCH_ARG_ENDS)
			conf->makes = ABI_WATCH_ENDS;
	}
	if (call->opens)
		conf->makes = ABI_WATCH_MAKES_RESULT;
}

static void load_tables(struct abi_watch_conf *conf)
{
	for (uint32_t nr = 0; nr < ABI_WATCH_CALLS; nr++)
		if (watch_call(nr))
			load_arguments(&conf[nr], watch_call(nr));
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
	load_tables(l->skel->bss->watch_conf);
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

/* --- the filter ---------------------------------------------------------------- */

static int load_cmp_pid(const void *a, const void *b)
{
	const struct load_pid *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static bool load_has_pid(const struct load_pid *v, size_t n, uint32_t pid)
{
	struct load_pid key = { .pid = pid };

	return n && bsearch(&key, v, n, sizeof(*v), load_cmp_pid);
}

/* Processes with what they are; one may be both. The number. */
static size_t load_list_pids(const struct watch_wanted *all,
			     struct load_pid v[LOAD_PIDS_MAX])
{
	struct load_pid key, *hit;
	size_t n = 0;

	for (; n < all->n_pids; n++)
		v[n] = (struct load_pid){ all->pids[n], ABI_WATCH_PID_WANTED };
	for (size_t i = 0; i < all->n_clients; i++) {
		key = (struct load_pid){ all->clients[i],
					 ABI_WATCH_PID_CLIENT };
		hit = bsearch(&key, v, all->n_pids, sizeof(*v), load_cmp_pid);
		if (hit)
			hit->bits |= ABI_WATCH_PID_CLIENT;
		else
			v[n++] = key;
	}
	qsort(v, n, sizeof(*v), load_cmp_pid);
	return n;
}

static uint64_t load_pid_bits(const struct load_pid *v, size_t n)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < n; i++)
		bits |= ABI_WATCH_PID_BIT(v[i].pid);
	return bits;
}

static void load_categories(struct abi_watch_conf *conf,
			    const struct watch_call *call,
			    const struct watch_set *names)
{
	if (!watch_name(call->enter)->by_fd)
		return;
	__atomic_store_n(&conf->categories[0], names->categories[call->enter],
			 __ATOMIC_RELAXED);
	__atomic_store_n(&conf->categories[1], names->categories[call->exit],
			 __ATOMIC_RELAXED);
}

/* Hooks see each byte at once. */
static void load_calls(struct watch_load *l, const struct watch_set *names)
{
	struct abi_watch_conf *conf = l->skel->bss->watch_conf;
	const struct watch_call *call;
	uint8_t wants;

	for (uint32_t nr = 0; nr < ABI_WATCH_CALLS; nr++) {
		call = watch_call(nr);
		if (!call)
			continue;
		wants = watch_set_has(names, call->enter) ? ABI_WATCH_ENTER : 0;
		if (call->exit && watch_set_has(names, call->exit))
			wants |= ABI_WATCH_EXIT;
		load_categories(&conf[nr], call, names);
		if (wants & ~conf[nr].wants & ABI_WATCH_EXIT)
			__atomic_store_n(&conf[nr].era,
					 (uint8_t)(conf[nr].era + 1),
					 __ATOMIC_RELEASE);
		__atomic_store_n(&conf[nr].wants, wants, __ATOMIC_RELEASE);
	}
}

int watch_load_filter(struct watch_load *l, const struct watch_wanted *all)
{
	int pids = bpf_map__fd(l->skel->maps.watch_pids), err = 0;
	int filters = bpf_map__fd(l->skel->maps.watch_filter);
	struct load_pid now[LOAD_PIDS_MAX];
	struct abi_watch_filter f;
	size_t n = load_list_pids(all, now);

	for (size_t i = 0; i < n; i++)
		if (bpf_map_update_elem(pids, &now[i].pid, &now[i].bits,
					BPF_ANY))
			err = err ?: -errno;
	for (uint32_t i = 0; i < ABI_WATCH_CLASSES; i++) {
		f = all->filters[i];
		if (i == ABI_WATCH_OTHERS)
			f.names = watch_mask_of(&all->names);
		f.crowded = l->crowded;
		f.pids = load_pid_bits(now, n);
		if (bpf_map_update_elem(filters, &i, &f, BPF_ANY))
			err = err ?: -errno;
	}
	load_calls(l, &all->names);
	/* Last: events of those in both lists come all the time. */
	for (size_t i = 0; i < l->n_pids; i++)
		if (!load_has_pid(now, n, l->pids[i].pid))
			bpf_map_delete_elem(pids, &l->pids[i].pid);
	memcpy(l->pids, now, n * sizeof(*now));
	l->n_pids = n;
	return err;
}

int watch_load_ring(const struct watch_load *l)
{
	return bpf_map__fd(l->skel->maps.watch_ring);
}

const struct abi_watch_loss *watch_load_losses(const struct watch_load *l)
{
	return l->skel->bss->watch_losses;
}

uint64_t watch_load_skipped(const struct watch_load *l, enum watch_hook hook)
{
	int fd = bpf_program__fd(load_program(l, hook));
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	/* Not of a tracepoint that this kernel lacks. */
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
		return 0;
	return info.recursion_misses;
}
