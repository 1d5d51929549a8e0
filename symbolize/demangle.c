// SPDX-License-Identifier: Apache-2.0
/* demangle: see symbolize/demangle.h. */
#include <errno.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>

#include "symbolize/arch.h"
#include "symbolize/demangle.h"

/* Longer names were cut when they were read. */
#define MANGLED_MAX 4095

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)
/*
 * Without this libiberty refuses C++ names above 1024 bytes. What recurs while a name
 * is read is then limited by its length; printing has a limit of its own.
 */
#define CXX_OPTIONS (OPTIONS | DMGL_NO_RECURSE_LIMIT)

/* From the linker: the code of this program, without shared libraries. */
extern const char __executable_start[], etext[];

enum demangler {
	NONE,
	CXX,
	RUST,
};

/*
 * The current name of a thread: kernel names are demangled in threads too. The
 * buffer is static, since on_tick() may stop the demangler at any time.
 */
static _Thread_local struct {
	char text[SYMBOLIZER_DEMANGLED_MAX];
	size_t len;
	sigjmp_buf stop;
	volatile sig_atomic_t in; /* the enum demangler that runs */
	volatile sig_atomic_t ticks; /* of this name */
	volatile bool cut;
} now;
static bool started;

static bool in_this_program(const void *context)
{
	uintptr_t pc = arch_signal_pc(context);

	return pc >= (uintptr_t)__executable_start && pc < (uintptr_t)etext;
}

/*
 * With a callback the C++ demangler allocates by alloca() only, so a jump out of
 * it leaks nothing and leaves no lock held. The Rust demangler calls malloc() and
 * free() for a punycode identifier. libiberty is linked statically and libc is
 * not, so these do not run if the program counter is in this program; else the
 * next tick tries again. A jump may leak that buffer, of 8 KiB at most; the
 * worker's limit on CPU time allows for 6000 of them.
 *
 * SA_NODEFER makes restoring the signal mask, a system call, unnecessary.
 */
static void on_tick(int sig, siginfo_t *info, void *context)
{
	if (now.in == NONE || ++now.ticks < SYMBOLIZER_DEMANGLE_TICKS)
		return;
	if (now.in == RUST && !in_this_program(context))
		return;
	now.in = NONE;
	siglongjmp(now.stop, 1);
}

int symbolizer_demangle_start(void)
{
	struct sigaction sa = {
		.sa_sigaction = on_tick,
		.sa_flags = SA_RESTART | SA_NODEFER | SA_SIGINFO,
	};
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

static bool has_high_byte(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] >= 0x80)
			return true;
	return false;
}

/*
 * Too much text ends in a jump, too. The buffer of a punycode identifier is freed
 * after its only piece, which is not ASCII, was printed: the jump is delayed to
 * the next piece, so that it leaks nothing.
 */
static void demangle_collect(const char *s, size_t len, void *arg)
{
	if (len == 0)
		return; /* an empty identifier of Rust is NULL */
	if (now.cut || now.len + len > sizeof(now.text)) {
		now.cut = true;
		if (has_high_byte(s, len))
			return;
		now.in = NONE;
		siglongjmp(now.stop, 1);
	}
	memcpy(now.text + now.len, s, len);
	now.len += len;
}

static bool demangle_run(enum demangler which, const char *name,
			 struct strbuf *to,
			 struct symbolizer_demangle_cost *cost)
{
	volatile bool done = false;

	now.len = 0;
	now.ticks = 0;
	now.cut = false;
	if (sigsetjmp(now.stop, 0) == 0) {
		now.in = which;
		done = which == RUST
			       ? rust_demangle_callback(name, OPTIONS,
							demangle_collect, NULL)
			       : cplus_demangle_v3_callback(name, CXX_OPTIONS,
							    demangle_collect,
							    NULL);
		now.in = NONE;
	}
	if (cost) {
		cost->ticks += (unsigned int)now.ticks;
		cost->exceeded += now.ticks >= SYMBOLIZER_DEMANGLE_TICKS;
	}
	if (!done || now.cut || !now.len)
		return false;
	strbuf_add(to, now.text, now.len);
	return !to->failed;
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
	/* First Rust, whose older names are also C++ names. */
	if (demangle_run(RUST, name, to, cost) ||
	    (started && demangle_run(CXX, name, to, cost)))
		return true;
	if (to->data) {
		to->len = begin;
		to->data[begin] = '\0';
	}
	return false;
}
