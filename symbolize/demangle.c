// SPDX-License-Identifier: Apache-2.0
/* demangle: see symbolize/demangle.h. */
#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "symbolize/demangle.h"

/*
 * libiberty itself refuses C++ names of more than 1024 bytes, and more than
 * 2048 levels, unless told to recurse without limit, which nobody here does.
 */
#define MANGLED_MAX 1024

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

/* The text of the C++ name at hand; fixed, for on_tick() may stop at any time. */
static char cxx_text[SYMBOLIZER_DEMANGLED_MAX];
static size_t cxx_len;
static sigjmp_buf cxx_stop;
static volatile sig_atomic_t cxx_busy; /* in libiberty's C++ demangler */
static volatile sig_atomic_t cxx_ticks; /* of this name */
static bool started;

/*
 * The C++ demangler with a callback keeps all it has on the stack, by alloca():
 * left by a jump it leaks nothing, and no lock is held. SA_NODEFER, so that no
 * signal mask has to be restored, which would be a system call.
 */
static void on_tick(int sig)
{
	if (cxx_busy && ++cxx_ticks >= SYMBOLIZER_DEMANGLE_TICKS) {
		cxx_busy = 0;
		siglongjmp(cxx_stop, 1);
	}
}

int symbolizer_demangle_start(void)
{
	struct sigaction sa = { .sa_handler = on_tick,
				.sa_flags = SA_RESTART | SA_NODEFER };
	const struct timeval tick = { 0, SYMBOLIZER_DEMANGLE_TICK_MS * 1000 };
	const struct itimerval timer = { tick, tick };
	sigset_t set;

	sigemptyset(&sa.sa_mask);
	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	if (sigaction(SIGPROF, &sa, NULL) ||
	    sigprocmask(SIG_UNBLOCK, &set, NULL) ||
	    setitimer(ITIMER_PROF, &timer, NULL))
		return -errno;
	started = true;
	return 0;
}

static void collect_cxx(const char *s, size_t len, void *arg)
{
	if (cxx_len + len > sizeof(cxx_text)) {
		cxx_busy = 0;
		siglongjmp(cxx_stop, 1);
	}
	memcpy(cxx_text + cxx_len, s, len);
	cxx_len += len;
}

static bool cxx(const char *name, struct strbuf *to,
		struct symbolizer_demangle_cost *cost)
{
	volatile bool done = false;

	cxx_len = 0;
	cxx_ticks = 0;
	if (sigsetjmp(cxx_stop, 0) == 0) {
		cxx_busy = 1;
		done = cplus_demangle_v3_callback(name, OPTIONS, collect_cxx,
						  NULL);
		cxx_busy = 0;
	}
	if (cost) {
		cost->ticks += (unsigned int)cxx_ticks;
		cost->exceeded += cxx_ticks >= SYMBOLIZER_DEMANGLE_TICKS;
	}
	if (!done || !cxx_len)
		return false;
	strbuf_add(to, cxx_text, cxx_len);
	return !to->failed;
}

/* --- Rust ------------------------------------------------------------------- */

struct output {
	struct strbuf *to;
	size_t begin;
	bool cut;
	jmp_buf stop;
};

static bool has_high_byte(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] >= 0x80)
			return true;
	return false;
}

/*
 * The demangler cannot be told to stop, so it is left by a jump: it branches
 * nowhere without output. It keeps what it has on the stack, but for the buffer
 * of a punycode identifier, which it frees after it has printed it, in one piece.
 * Such a piece is not ASCII: it is dropped and the jump waits for the next.
 */
static void collect_rust(const char *s, size_t len, void *arg)
{
	struct output *out = arg;

	if (out->to->len - out->begin + len > SYMBOLIZER_DEMANGLED_MAX) {
		out->cut = true;
		if (has_high_byte(s, len))
			return;
		longjmp(out->stop, 1);
	}
	strbuf_add(out->to, s, len);
}

static bool rust(const char *name, struct strbuf *to)
{
	struct output out = { .to = to, .begin = to->len };

	return setjmp(out.stop) == 0 &&
	       rust_demangle_callback(name, OPTIONS, collect_rust, &out) &&
	       !out.cut && !to->failed && to->len > out.begin;
}

static bool is_mangled(const char *name)
{
	name += strspn(name, "_");
	return name[0] == 'Z' || name[0] == 'R' ||
	       strncmp(name, "GLOBAL_", 7) == 0;
}

bool symbolizer_demangle(const char *name, struct strbuf *to,
			 struct symbolizer_demangle_cost *cost)
{
	size_t begin = to->len;

	if (name[0] != '_' || !is_mangled(name) || strlen(name) > MANGLED_MAX)
		return false;
	/* Rust's older names are C++ names too: it goes first. */
	if (rust(name, to))
		return true;
	if (to->data) {
		to->len = begin;
		to->data[begin] = '\0';
	}
	return started && cxx(name, to, cost);
}
