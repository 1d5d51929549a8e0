// SPDX-License-Identifier: Apache-2.0
/* sums: see profiler/waiting/sums.h. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/base.h"
#include "bpf/abi_wait.h"
#include "bpf/wait/wait.skel.h"
#include "profiler/waiting/calls.h"
#include "profiler/waiting/edges.h"
#include "profiler/waiting/sums.h"

#define SUMS_RING_BYTES (4 << 20)
#define SUMS_STACK_COPY (64 * 1024)
#define SUMS_BYTES (ABI_WAIT_SUMS * sizeof(struct abi_wait_sum))

/* A sum of waits rests, and is freed; with many of them in use earlier. */
#define SUMS_REST_NS (300 * CLOCK_NSEC_PER_SEC)
#define SUMS_REST_CROWDED_NS (20 * CLOCK_NSEC_PER_SEC)
#define SUMS_TURN_NS (20 * CLOCK_NSEC_PER_SEC)
#define SUMS_TURN_CROWDED_NS (2 * CLOCK_NSEC_PER_SEC)
/* A program that found one in the index has stored it as its thread's after that. */
#define SUMS_PIN_NS (500 * CLOCK_NSEC_PER_MSEC)

/* Read and given so far. */
struct sums_seen {
	struct abi_wait_slot slots[ABI_WAIT_SLOTS];
	__u64 cpu_ns[ABI_WAIT_SLOTS], wall_ns;
	uint64_t used; /* when something was added, or it was first seen */
	bool given;
};

struct waiting_sums {
	struct wait_bpf *skel;
	struct bpf_link *iter, *list;
	struct waiting_edges edges;
	struct abi_wait_sum *sums; /* mapped */
	struct sums_seen *seen; /* by number */
	uint8_t *final; /* of heads: no thread is left */
	uint8_t *gone; /* of heads: waiting_sums_check() found no process */
	uint32_t limit;
	uint64_t now; /* of the reading */
	uint64_t rest; /* 0: SUMS_REST_NS */
	uint64_t turned; /* sums were retired */
	uint64_t cut; /* the last cut began */
	size_t retired; /* since the last turn */
	struct ring *ring; /* of stacks; NULL: nobody wants them */
	void (*stack)(void *arg, const struct abi_sample *rec, size_t len);
	void *arg;
};

static int sums_no_print(enum libbpf_print_level level, const char *fmt,
			 va_list ap)
{
	return 0;
}

/* A page does for what is not used. */
static int sums_size_rings(const struct waiting_sums *s, unsigned int flags)
{
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
	int err = bpf_map__set_max_entries(s->skel->maps.samples,
					   SUMS_RING_BYTES);

	if (!err && !(flags & WAITING_SUMS_RECORDS))
		err = bpf_map__set_max_entries(s->skel->maps.wait_records,
					       page);
	return err;
}

static int sums_load(struct waiting_sums *s, unsigned int flags)
{
	uint32_t seed = 0;
	int err;

	errno = 0;
	s->skel = wait_bpf__open();
	if (!s->skel)
		return errno ? -errno : -ENOMEM;
	bpf_program__set_autoattach(s->skel->progs.wait_cut, false);
	bpf_program__set_autoattach(s->skel->progs.wait_list, false);
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0)
		seed = (uint32_t)clock_boottime_ns();
	s->skel->rodata->wait_seed = seed;
	s->skel->rodata->wait_limit = s->limit;
	s->skel->rodata->wait_copy_all = flags & WAITING_SUMS_COPY_ALL;
	s->skel->rodata->wait_few_records = flags & WAITING_SUMS_FEW;
	waiting_calls((uint8_t *)s->skel->rodata->wait_calls);
	/* The run queue is locked meanwhile: never more than a usual copy. */
	s->skel->rodata->stack_cap = SUMS_STACK_COPY;
	s->skel->rodata->deep_cap = SUMS_STACK_COPY;
	err = sums_size_rings(s, flags);
	return err ? err : wait_bpf__load(s->skel);
}

static int sums_map(struct waiting_sums *s)
{
	void *p = mmap(NULL, SUMS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		       bpf_map__fd(s->skel->maps.wait_sums), 0);

	if (p == MAP_FAILED)
		return -errno;
	s->sums = p;
	s->seen = calloc(ABI_WAIT_SUMS, sizeof(*s->seen));
	s->final = calloc(ABI_WAIT_SUMS, 1);
	s->gone = calloc(ABI_WAIT_SUMS, 1);
	return s->seen && s->final && s->gone ? 0 : -ENOMEM;
}

/* Before the first thread is found all its events are seen. */
static int sums_attach(struct waiting_sums *s)
{
	int err = wait_bpf__attach(s->skel);

	if (err)
		return err;
	s->iter = bpf_program__attach_iter(s->skel->progs.wait_cut, NULL);
	if (s->iter)
		s->list = bpf_program__attach_iter(s->skel->progs.wait_list,
						   NULL);
	return s->list ? 0 : errno ? -errno : -ENOTSUP;
}

int waiting_sums_new(struct waiting_sums **sp, uint32_t limit,
		     unsigned int flags, const char **what)
{
	struct waiting_sums *s = calloc(1, sizeof(*s));
	libbpf_print_fn_t print;
	int err;

	*what = "memory";
	if (!s)
		return -ENOMEM;
	s->limit = limit ? MIN(limit, ABI_WAIT_SUMS) : ABI_WAIT_SUMS;
	print = libbpf_set_print(sums_no_print);
	*what = "loading the programs of --wait";
	err = sums_load(s, flags);
	if (!err) {
		waiting_edges_init(&s->edges, s->skel->data->wait_begins);
		*what = "mapping the sums of --wait";
		err = sums_map(s);
	}
	if (!err) {
		*what = "attaching the programs of --wait";
		err = sums_attach(s);
	}
	libbpf_set_print(print);
	if (!err) {
		*what = "finding the threads for --wait";
		err = waiting_sums_cut(s, 0);
	}
	if (err)
		waiting_sums_free(s);
	else
		*sp = s;
	return err;
}

void waiting_sums_free(struct waiting_sums *s)
{
	if (!s)
		return;
	bpf_link__destroy(s->iter);
	bpf_link__destroy(s->list);
	ring_free(s->ring);
	if (s->sums)
		munmap(s->sums, SUMS_BYTES);
	wait_bpf__destroy(s->skel);
	free(s->seen);
	free(s->final);
	free(s->gone);
	free(s);
}

struct wait_bpf *waiting_sums_skel(struct waiting_sums *s)
{
	return s->skel;
}

static int sums_on_stack(void *arg, void *data, size_t len)
{
	struct waiting_sums *s = arg;

	if (len >= sizeof(struct abi_sample))
		s->stack(s->arg, data, len);
	return 0;
}

int waiting_sums_stacks(struct waiting_sums *s,
			void (*fn)(void *arg, const struct abi_sample *rec,
				   size_t len),
			void *arg)
{
	s->stack = fn;
	s->arg = arg;
	return ring_new(&s->ring, bpf_map__fd(s->skel->maps.samples),
			sums_on_stack, s);
}

int waiting_sums_poll(struct waiting_sums *s)
{
	return s->ring ? ring_consume(s->ring) : 0;
}

uint64_t waiting_sums_watermark(const struct waiting_sums *s)
{
	return s->ring ? ring_watermark(s->ring) : UINT64_MAX;
}

int waiting_sums_epoll_fd(const struct waiting_sums *s)
{
	return s->ring ? ring_epoll_fd(s->ring) : -1;
}

void waiting_sums_edges(struct waiting_sums *s, const uint64_t *times, size_t n,
			uint64_t now)
{
	waiting_edges_set(&s->edges, times, n, now);
}

uint64_t waiting_sums_edge(const struct waiting_sums *s)
{
	return waiting_edges_first(&s->edges);
}

bool waiting_sums_pass(struct waiting_sums *s, uint64_t time)
{
	return waiting_edges_pass(&s->edges, time);
}

int waiting_sums_cut(struct waiting_sums *s, uint64_t time)
{
	ssize_t n;
	char c;
	int fd, err = 0;

	s->cut = clock_boottime_ns();
	__atomic_store_n(&s->skel->bss->wait_cut_at, time, __ATOMIC_SEQ_CST);
	fd = bpf_iter_create(bpf_link__fd(s->iter));
	if (fd < 0)
		return -errno;
	/* It writes nothing; EAGAIN: a million tasks, so far. */
	do
		n = read(fd, &c, 1);
	while (n < 0 && (errno == EAGAIN || errno == EINTR));
	if (n < 0)
		err = -errno;
	close(fd);
	return err;
}

/* --- waits without a site ---------------------------------------------------------- */

size_t waiting_sums_list(struct waiting_sums *s, uint32_t after,
			 struct abi_wait_open *out)
{
	const size_t room = ABI_WAIT_OPEN_MAX * sizeof(*out);
	size_t len = 0;
	ssize_t n = 0;
	int fd;

	__atomic_store_n(&s->skel->bss->wait_list_after, after,
			 __ATOMIC_SEQ_CST);
	fd = bpf_iter_create(bpf_link__fd(s->list));
	if (fd < 0)
		return 0;
	do {
		n = read(fd, (char *)out + len, room - len);
		len += n > 0 ? (size_t)n : 0;
	} while ((n > 0 && len < room) ||
		 (n < 0 && (errno == EAGAIN || errno == EINTR)));
	close(fd);
	return len / sizeof(*out);
}

void waiting_sums_give(struct waiting_sums *s, const struct abi_wait_open *open,
		       struct abi_wait_given *given, size_t n)
{
	int fd = bpf_map__fd(s->skel->maps.wait_given);

	for (size_t i = 0; i < n; i++)
		if (given[i].site)
			bpf_map_update_elem(fd, &open[i].tid, &given[i], 0);
	__atomic_store_n(&s->skel->bss->wait_given_any, 1, __ATOMIC_SEQ_CST);
	waiting_sums_cut(s, clock_boottime_ns());
	__atomic_store_n(&s->skel->bss->wait_given_any, 0, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < n; i++)
		if (given[i].site) {
			bpf_map_lookup_elem(fd, &open[i].tid, &given[i]);
			bpf_map_delete_elem(fd, &open[i].tid);
		}
}

static uint32_t sums_end(const struct waiting_sums *s)
{
	uint64_t end =
		__atomic_load_n(&s->skel->data->wait_fresh, __ATOMIC_ACQUIRE);

	return MIN(end, ABI_WAIT_SUMS);
}

static uint32_t sums_what(const struct abi_wait_sum *sum)
{
	return __atomic_load_n(&sum->key.what, __ATOMIC_ACQUIRE);
}

static bool sums_is_head(uint32_t what)
{
	return what == ABI_WAIT_WHAT_ON;
}

/*
 * First: what is read after that is final. A sum that is made by the image's last
 * thread after this is freed by the next call.
 */
static void sums_find_final(struct waiting_sums *s, uint32_t end)
{
	const struct abi_wait_sum *sum;

	for (uint32_t i = ABI_WAIT_RESERVED; i < end; i++) {
		sum = &s->sums[i];
		s->final[i] = sums_is_head(sums_what(sum)) &&
			      !__atomic_load_n(&sum->threads, __ATOMIC_ACQUIRE);
	}
}

/*
 * The difference, in slots whose values are 'step' words apart. What a cut or an edge has
 * added too much is taken back later, so a sum may shrink for a moment: then it is 0, and
 * the next one is less.
 */
static uint64_t sums_delta(const struct waiting_sums *s, const __u64 *now,
			   __u64 *seen, size_t step)
{
	__u64 values[ABI_WAIT_SLOTS], delta = 0;

	for (uint32_t i = 0; i < ABI_WAIT_SLOTS; i++) {
		values[i] = seen[i * step];
		if (waiting_edges_before(&s->edges, i))
			values[i] = __atomic_load_n(&now[i * step],
						    __ATOMIC_RELAXED);
		delta += values[i] - seen[i * step];
	}
	if ((int64_t)delta <= 0)
		return 0;
	for (uint32_t i = 0; i < ABI_WAIT_SLOTS; i++)
		seen[i * step] = values[i];
	return delta;
}

#define SUMS_SLOT_WORDS (sizeof(struct abi_wait_slot) / sizeof(__u64))

static void sums_get_head(struct waiting_sums *s, uint32_t i,
			  struct waiting_sum *out)
{
	const struct abi_wait_sum *sum = &s->sums[i];
	struct sums_seen *seen = &s->seen[i];
	uint64_t wall = __atomic_load_n(&sum->wall_ns, __ATOMIC_RELAXED);

	out->threads = sum->threads & ~ABI_WAIT_HEAD_NEW;
	out->cpu_ns = sums_delta(s, sum->cpu_ns, seen->cpu_ns, 1);
	out->wall_ns = wall - seen->wall_ns;
	seen->wall_ns = wall;
}

/* False: nothing was added. */
static bool sums_get(struct waiting_sums *s, uint32_t i, uint32_t what,
		     struct waiting_sum *out)
{
	const struct abi_wait_sum *sum = &s->sums[i];
	struct sums_seen *seen = &s->seen[i];

	*out = (struct waiting_sum){
		.key.start_boottime = sum->key.start_boottime,
		.key.exec_id = sum->key.exec_id,
		.key.tgid = sum->key.tgid,
		.what = what,
		.site = sum->key.site,
		.count = sums_delta(s, &sum->slots[0].count,
				    &seen->slots[0].count, SUMS_SLOT_WORDS),
		.ns = sums_delta(s, &sum->slots[0].ns, &seen->slots[0].ns,
				 SUMS_SLOT_WORDS),
	};
	if (sums_is_head(what))
		sums_get_head(s, i, out);
	if (!out->count && !out->ns && !out->cpu_ns && !out->wall_ns) {
		seen->used = seen->used ?: s->now;
		return false;
	}
	seen->used = s->now;
	out->first = out->site >= ABI_WAIT_SITE_LEAST && !seen->given;
	seen->given |= out->first;
	return true;
}

/* No thread of the image is left that could find it. */
static void sums_free_one(struct waiting_sums *s, uint32_t i)
{
	struct abi_wait_sum *sum = &s->sums[i];
	struct abi_wait_key key = sum->key;
	uint32_t user = sum->user % ABI_WAIT_USERS;

	/* The index has its successor, if one was made. */
	if (!sum->retired)
		bpf_map_delete_elem(bpf_map__fd(s->skel->maps.wait_index),
				    &key);
	memset(sum, 0, sizeof(*sum));
	s->seen[i] = (struct sums_seen){ 0 };
	s->gone[i] = false;
	__atomic_sub_fetch(&s->skel->bss->wait_users[user], 1,
			   __ATOMIC_SEQ_CST);
	__atomic_sub_fetch(&s->skel->bss->wait_counters.used, 1,
			   __ATOMIC_SEQ_CST);
	/* If it fails one sum less can be used; it has room for all. */
	bpf_map_update_elem(bpf_map__fd(s->skel->maps.wait_free), NULL, &i, 0);
}

static void sums_give_last(const struct waiting_sums *s, uint32_t i,
			   void (*fn)(void *arg, const struct waiting_sum *sum),
			   void *arg)
{
	const struct waiting_sum last = {
		.what = s->sums[i].key.what,
		.site = s->sums[i].key.site,
		.last = true,
	};

	if (s->seen[i].given)
		fn(arg, &last);
}

static bool sums_is_final(const struct waiting_sums *s, uint32_t i,
			  uint32_t what)
{
	uint32_t head = sums_is_head(what) ? i : s->sums[i].head;

	return head < ABI_WAIT_SUMS && s->final[head];
}

/* Heads the last: others ask for theirs. */
static void
sums_free_final(struct waiting_sums *s, uint32_t end,
		void (*fn)(void *arg, const struct waiting_sum *sum), void *arg)
{
	uint32_t what;

	for (int heads = 0; heads < 2; heads++)
		for (uint32_t i = ABI_WAIT_RESERVED; i < end; i++) {
			what = sums_what(&s->sums[i]);
			if (!what || sums_is_head(what) != heads ||
			    !sums_is_final(s, i, what))
				continue;
			sums_give_last(s, i, fn, arg);
			sums_free_one(s, i);
		}
}

/* --- sums of waits that nobody uses ---------------------------------------------- */

static uint64_t sums_rest(const struct waiting_sums *s)
{
	if (s->rest)
		return s->rest;
	return waiting_sums_crowded(s) ? SUMS_REST_CROWDED_NS : SUMS_REST_NS;
}

static uint64_t sums_turn_ns(const struct waiting_sums *s)
{
	if (s->rest)
		return s->rest;
	return waiting_sums_crowded(s) ? SUMS_TURN_CROWDED_NS : SUMS_TURN_NS;
}

void waiting_sums_rest(struct waiting_sums *s, uint64_t ns)
{
	s->rest = ns;
}

bool waiting_sums_wants_cut(const struct waiting_sums *s)
{
	uint64_t from = s->turned + SUMS_PIN_NS;

	return s->retired && s->cut < from && clock_boottime_ns() >= from;
}

/* Takes it out of the index; a thread that waits there keeps it. */
static void sums_retire(struct waiting_sums *s, uint32_t i)
{
	struct abi_wait_key key = s->sums[i].key;

	if (!s->sums[i].retired)
		bpf_map_delete_elem(bpf_map__fd(s->skel->maps.wait_index),
				    &key);
	__atomic_store_n(&s->sums[i].retired, ABI_WAIT_RETIRED,
			 __ATOMIC_RELEASE);
	s->retired++;
}

/*
 * Frees those that were retired at the last turn and that no thread had at a cut after it,
 * and retires those that have rested. What was added to them until now is read.
 */
static void sums_turn(struct waiting_sums *s, uint32_t end,
		      void (*fn)(void *arg, const struct waiting_sum *sum),
		      void *arg)
{
	uint64_t now = clock_boottime_ns(), rest = sums_rest(s);
	uint32_t what, retired;

	if (now - s->turned < sums_turn_ns(s) ||
	    (s->retired && s->cut < s->turned + SUMS_PIN_NS))
		return;
	s->turned = now;
	s->retired = 0;
	for (uint32_t i = ABI_WAIT_RESERVED; i < end; i++) {
		what = sums_what(&s->sums[i]);
		if (!what || ABI_WAIT_WHAT_REASON(what) < ABI_WAIT_SLEEP)
			continue;
		retired = s->sums[i].retired;
		if (retired == ABI_WAIT_RETIRED) {
			sums_give_last(s, i, fn, arg);
			sums_free_one(s, i);
		} else if (retired || now - s->seen[i].used > rest) {
			sums_retire(s, i);
		}
	}
}

void waiting_sums_read(struct waiting_sums *s,
		       void (*fn)(void *arg, const struct waiting_sum *sum),
		       void *arg)
{
	uint32_t end = sums_end(s), what;
	struct waiting_sum sum;

	s->now = clock_boottime_ns();
	sums_find_final(s, end);
	for (uint32_t i = 0; i < ABI_WAIT_REASON_MAX; i++)
		if (sums_get(s, i, ABI_WAIT_WHAT(ABI_WAIT_NO_CALL, i, 0), &sum))
			fn(arg, &sum);
	for (uint32_t i = ABI_WAIT_RESERVED; i < end; i++) {
		what = sums_what(&s->sums[i]);
		if (what && sums_get(s, i, what, &sum))
			fn(arg, &sum);
	}
	/* Not while there may be time of after the edge, which was not read. */
	if (waiting_sums_edge(s) <= clock_boottime_ns())
		return;
	sums_free_final(s, end, fn, arg);
	sums_turn(s, end, fn, arg);
}

void waiting_sums_spans(struct waiting_sums *s,
			void (*fn)(void *arg, const struct abi_key *key,
				   struct abi_wait_span *spans),
			void *arg)
{
	uint32_t end = sums_end(s);
	struct abi_wait_sum *sum;
	struct abi_key key = { 0 };

	for (uint32_t i = ABI_WAIT_RESERVED; i < end; i++) {
		sum = &s->sums[i];
		if (!sums_is_head(sums_what(sum)) || !sum->threads)
			continue;
		key.start_boottime = sum->key.start_boottime;
		key.exec_id = sum->key.exec_id;
		key.tgid = sum->key.tgid;
		fn(arg, &key, sum->spans);
	}
}

size_t waiting_sums_check(struct waiting_sums *s)
{
	uint32_t end = sums_end(s);
	struct abi_wait_sum *sum;
	size_t n = 0;
	bool gone;

	for (uint32_t i = ABI_WAIT_RESERVED; i < end; i++) {
		sum = &s->sums[i];
		if (!sums_is_head(sums_what(sum)) || !sum->threads)
			continue;
		gone = kill((pid_t)sum->key.tgid, 0) && errno == ESRCH;
		if (gone && s->gone[i]) {
			__atomic_store_n(&sum->threads, 0, __ATOMIC_RELEASE);
			n++;
		}
		s->gone[i] = gone;
	}
	return n;
}

bool waiting_sums_crowded(const struct waiting_sums *s)
{
	return s->skel->bss->wait_counters.used > s->limit / 4;
}

void waiting_sums_counters(const struct waiting_sums *s,
			   struct abi_wait_counters *out)
{
	*out = s->skel->bss->wait_counters;
}
