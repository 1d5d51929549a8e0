#!/bin/bash
# The wait profile beside bcc's offcputime (of libbpf-tools), of a program whose functions
# wait in ways of their own: the part of the time of each is the same in both. offcputime
# has the time in the run queue, too: so the program XX
. "$(dirname "$0")/../e2e/lib.sh"

cat >"$T/waits.c" <<'C'
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

static int ends[2];
static sem_t sem;
static void ms(long n)
{
	nanosleep(&(struct timespec){ 0, n * 1000000 }, NULL);
}
#define WAITS(name, how) __attribute__((noinline)) void name(void) { how; asm(""); }
WAITS(waits_long, ms(60))
WAITS(waits_short, ms(20))
WAITS(waits_poll, poll(NULL, 0, 30))
WAITS(waits_pipe, char c; if (read(ends[0], &c, 1) < 0) return)
WAITS(waits_semaphore, sem_wait(&sem))
static void *sleeps(void *unused)
{
	for (;;) {
		waits_long();
		waits_short();
	}
}
static void *polls(void *unused)
{
	for (;;) {
		waits_poll();
		waits_semaphore();
	}
}
static void *reads(void *unused)
{
	for (;;) {
		waits_pipe();
		waits_long();
	}
}
int main(void)
{
	void *(*of[])(void *) = { sleeps, polls, reads };
	const char *names[] = { "sleeps", "polls", "reads" };
	pthread_t t;

	if (pipe(ends) || sem_init(&sem, 0, 0))
		return 1;
	for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (pthread_create(&t, NULL, of[i], NULL) || pthread_setname_np(t, names[i]))
			return 1;
	pthread_setname_np(pthread_self(), "main");
	for (;;) {
		ms(100);
		sem_post(&sem);
		if (write(ends[1], "x", 1) < 0)
			return 1;
	}
}
C
cc -O1 -g -fno-omit-frame-pointer -pthread -o "$T/waits" "$T/waits.c" || bail "it compiles"
background nice -n -20 "$T/waits"
load=$pid
wait_for 30 eval "((\$(ls /proc/$load/task | wc -l) == 4))"
nice -n -20 offcputime -p "$load" 10 >"$T/theirs" 2>"$T/theirs.err" &
other=$!
# Both begin within a part of a second, and wait far longer.
nice -n -20 "$PROFD" record --wait --pid "$load" -d 10 -o "$T/x.pb.gz" >"$T/record" 2>&1
is "profd records" $? 0
wait "$other"
is "offcputime ends well" $? 0
pprof -traces -sample_index=wait -unit=us "$T/x.wait.pb.gz" >"$T/ours"
cat >"$T/compare.py" <<'PY'
import collections, re, sys
thread = re.compile(r"\b(sleeps|polls|reads|main)\b")
reason = re.compile(r"\[wait (\w+)\]|\b(do_nanosleep|do_sys_poll|(?:anon_)?pipe_read|futex_wait)\b")
reasons = {"do_nanosleep": "sleep", "do_sys_poll": "poll", "pipe_read": "pipe",
           "anon_pipe_read": "pipe", "futex_wait": "futex"}
def sums(path, number):
    """Of blocks of frames, by the thread's function and the reason; 'number' has the time."""
    out, key = collections.Counter(), [None, None]
    for line in open(path):
        m = number.match(line)
        if m:
            value = float(m[1])
            if number is theirs_number:
                out[tuple(key)] += value
                key = [None, None]
                continue
            key = [None, None]
        for i, pattern in enumerate((thread, reason)):
            m = pattern.search(line)
            if m:
                word = next(g for g in m.groups() if g)
                key[i] = reasons.get(word, word)
        if number is ours_number and all(key):
            out[tuple(key)] += value
            key = [None, None]
    return collections.Counter({k: v for k, v in out.items() if all(k)})
ours_number, theirs_number = re.compile(r"\s*([\d.]+)us\s"), re.compile(r"\s+(\d+)$")
a, b = sums(sys.argv[1], ours_number), sums(sys.argv[2], theirs_number)
print("places", len(a.keys() & b.keys()))
apart = 0
for k in sorted(a.keys() | b.keys()):
    x, y = (100 * c[k] / max(sum(c.values()), 1) for c in (a, b))
    print(f"# {' '.join(k)}: profd {x:.1f} %, offcputime {y:.1f} %")
    apart += abs(x - y) > 2
print("apart", apart)
PY
python3 "$T/compare.py" "$T/ours" "$T/theirs" >"$T/compared" 2>&1
is "all places are in both" "$(sed -n 's/^places //p' "$T/compared")" 6
is "with the same part of the time, within 2 %" "$(sed -n 's/^apart //p' "$T/compared")" 0
sed 's/^/# /' "$T/compared"
plan
