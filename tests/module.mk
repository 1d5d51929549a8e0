# Tests, benches, fuzzers. A test program speaks TAP; tests/run adds up.
#   tests/unit/PART/test_*.c  cmocka, no privilege
#   tests/bpf/ROOM/test_*.c   cmocka, root: loads BPF; *.bpf.c: programs for that
#   tests/e2e/test_*.sh       shell over the built profd and real programs
#   tests/fuzz/PART/fuzz_*.c  libFuzzer targets; check replays tests/fuzz/corpus/NAME
#   tests/bench/bench_*       programs or scripts that print JSON lines
#   tests/languages/test_*    what one gets by language: make check-languages
#   tests/watch/test_*        events and waits beside other programs: make check-watch
#   tests/traces/test_*       ids of real tracers: make check-traces

UNIT_TESTS := $(patsubst %.c,$(B)/%,$(sort $(shell find tests/unit -name 'test_*.c')))
BPF_TESTS := $(patsubst %.c,$(B)/%,$(sort $(shell find tests/bpf -name 'test_*.c')))
E2E_TESTS := $(wildcard tests/e2e/test_*.sh)
FUZZ_TARGETS := $(sort $(shell find tests/fuzz -name 'fuzz_*.c'))
FUZZERS := $(patsubst fuzz_%.c,%,$(notdir $(FUZZ_TARGETS)))
REPLAYS := $(join $(dir $(FUZZ_TARGETS:%=$(B)/%)),$(FUZZERS:%=replay_%))
REPLAY_OBJS := $(FUZZ_TARGETS:%.c=$(B)/%.o)
BENCH_PROGS := $(patsubst %.c,$(B)/%,$(wildcard tests/bench/bench_*.c))
# That the tests of check-watch run.
WATCH_PROGS := $(addprefix $(B)/tests/watch/prog_,exits retransmits)

# Helpers shared by test programs: tests/unit/*.c that are no tests themselves.
TEST_HELPERS := $(patsubst %.c,$(B)/%.o,$(wildcard tests/unit/*.c))

$(UNIT_TESTS) $(BPF_TESTS) $(BENCH_PROGS): $(B)/%: $(B)/%.o $(TEST_HELPERS) $(B)/profd.a $(B)/libquark.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) -lcmocka

# Their own code need not be fast, but be compiled fast: at -O2 with sanitizers one with
# many assertions takes 5 s, so 0.6 s.
$(UNIT_TESTS:%=%.o) $(BPF_TESTS:%=%.o) $(REPLAY_OBJS) $(TEST_HELPERS): private override CFLAGS += -Og -g1

$(UNIT_TESTS:%=%.o) $(BPF_TESTS:%=%.o) $(BENCH_PROGS:%=%.o): | $(SKELS) $(B)/reporter/profile.pb-c.h

$(BPF_TESTS): $(B)/tests/bpf/place.o
$(B)/tests/bpf/watch/test_watch_fd_change.o: $(B)/tests/bpf/watch/fd_change.skel.h

# Runs test programs for tests/run: never with sanitizers.
REAPER := build/tests/reaper

$(REAPER): tests/tools/reaper.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -O1 -g -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -o $@ $<

WRAP_MALLOC := $(foreach f,malloc calloc realloc,-Wl,--wrap=$(f))
$(B)/tests/unit/processmanager/test_pm_nomem: LDFLAGS += $(WRAP_MALLOC) -Wl,--wrap=free
$(B)/tests/unit/processmanager/test_pm_random $(B)/tests/fuzz/processmanager/replay_pm: LDFLAGS += $(WRAP_MALLOC)
$(B)/tests/unit/processmanager/test_pm_apm: LDFLAGS += -Wl,--wrap=clock_awake_ns
# These set the wall clock.
$(addprefix $(B)/tests/unit/catalog/test_,catalog catalog_keep catalog_texts past_why) \
$(addprefix $(B)/tests/unit/reporter/test_,reporter reporter_events reporter_files reporter_times reporter_traces store): LDFLAGS += -Wl,--wrap=clock_wall_offset_ns
# Its truth is elfutils' unwinder.
$(addprefix $(B)/tests/,unit/tracehandler/test_walk bpf/sampler/test_stacks bench/bench_unwind): LIBS += -ldw
# Its variable has to be in .dynsym.
$(B)/tests/bench/bench_trace: LDFLAGS += -rdynamic

# The same target function, over the committed corpus, without a fuzzer. The pattern
# has no slash, so that it holds in every directory.
replay_%: fuzz_%.o $(B)/tests/fuzz/replay.o $(B)/profd.a $(B)/libquark.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# Real fuzzing: everything of ours compiled again, instrumented, by clang.
FUZZ_SRCS := $(SRCS)
# libquark's targets include what they test: whatever else pulls in the archive
# would bring it a second time.
$(B)/fuzz/quark_%: FUZZ_SRCS := $(filter base/%,$(SRCS))
$(filter $(B)/fuzz/quark_%,$(FUZZERS:%=$(B)/fuzz/%)): $(QUARK_SRCS)
# The symbolizer is one of its own, and so is the end of memory.
$(B)/fuzz/pm: FUZZ_SRCS := $(filter base/% processmanager/%,$(SRCS))
$(B)/fuzz/pm: FUZZ_FLAGS := $(WRAP_MALLOC)
vpath fuzz_%.c $(sort $(dir $(FUZZ_TARGETS)))
$(B)/fuzz/%: fuzz_%.c $(FUZZ_SRCS) | $(SKELS) $(B)/reporter/profile.pb-c.c $(B)/libquark.a
	$(call say,FUZZ,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS) -std=gnu11 -O1 -g -fno-omit-frame-pointer \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
		$(FUZZ_FLAGS) -o $@ $< $(FUZZ_SRCS) $(B)/reporter/profile.pb-c.c $(B)/libquark.a $(LIBS)

fuzz: all $(FUZZERS:%=$(B)/fuzz/%)
	$(Q)for f in $(FUZZERS); do \
		mkdir -p $(B)/fuzz/found-$$f tests/fuzz/corpus/$$f; \
		$(B)/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 \
			-artifact_prefix=$(B)/fuzz/ $(B)/fuzz/found-$$f \
			tests/fuzz/corpus/$$f || exit 1; done

-include tests/e2e/module.mk

# What is missing is installed before anything is built with it. Tests are built on
# all CPUs, unless -j says otherwise.
ON_ALL_CPUS = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))

check: deps
	$(Q)$(MAKE) --no-print-directory $(ON_ALL_CPUS) check-built

# Benches are not run, but built: a change must not break them unnoticed.
check-built: all $(REAPER) $(UNIT_TESTS) $(BPF_TESTS) $(REPLAYS) $(E2E_PROGS) $(BENCH_PROGS) $(WATCH_PROGS)
	$(Q)packaging/promtool $(B)/tools
	$(Q)PATH="$(CURDIR)/$(B)/tools:$$PATH" B=$(B) REAPER=$(REAPER) tests/run $(UNIT_TESTS) $(BPF_TESTS) $(REPLAYS) $(E2E_TESTS)

# Runs them again and again, to find those that fail on a loaded machine: tests/steady.
check-steady: all $(REAPER) $(UNIT_TESTS) $(BPF_TESTS) $(REPLAYS) $(E2E_PROGS)
	$(Q)packaging/promtool $(B)/tools
	$(Q)PATH="$(CURDIR)/$(B)/tools:$$PATH" B=$(B) REAPER=$(REAPER) N="$(or $(N),3)" LOAD="$(LOAD)" \
		tests/steady $(UNIT_TESTS) $(BPF_TESTS) $(REPLAYS) $(E2E_TESTS)

.PHONY: check-steady

# kill -9 at two hundred moments, and how long profd takes to start after each.
check-archive: all $(REAPER) $(E2E_PROGS)
	$(Q)CRASH_ROUNDS=50 TEST_TIMEOUT=3600 B=$(B) REAPER=$(REAPER) tests/run tests/e2e/test_crash.sh

.PHONY: check-archive

# What other programs read of profd's output: speedscope, in a browser. It is fetched.
check-api: deps
	$(Q)packaging/install-deps $(shell sed 's/\#.*//' packaging/deps-api)
	$(Q)packaging/speedscope $(B)/tools
	$(Q)$(MAKE) --no-print-directory $(ON_ALL_CPUS) check-api-built

check-api-built: all $(REAPER) $(E2E_PROGS)
	$(Q)SPEEDSCOPE=$(CURDIR)/$(B)/tools/speedscope B=$(B) REAPER=$(REAPER) \
		tests/run $(wildcard tests/api/test_*.sh)

.PHONY: check-api check-api-built

# Events and waits beside strace and other programs, in storms and often; then the programs
# of make check that test them, under other kernels: half an hour.
check-watch: deps
	$(Q)packaging/install-deps $(shell sed 's/\#.*//' packaging/deps-watch)
	$(Q)$(MAKE) --no-print-directory $(ON_ALL_CPUS) check-watch-built
	$(Q)$(MAKE) --no-print-directory $(ON_ALL_CPUS) check-vm TESTS='$(or $(TESTS),*/test_watch*)'

$(WATCH_PROGS): %: %.o $(B)/profd.a $(B)/libquark.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(WATCH_PROGS:%=%.o): %.o: %.skel.h

check-watch-built: all $(REAPER) $(WATCH_PROGS)
	$(Q)TEST_TIMEOUT=1200 B=$(B) REAPER=$(REAPER) tests/run $(wildcard tests/watch/test_*.sh)

.PHONY: check-watch check-watch-built

# What one gets by language, with the runtimes that are installed: the table of README.
check-languages: all $(REAPER) $(E2E_PROGS)
	$(Q)TEST_TIMEOUT=600 B=$(B) REAPER=$(REAPER) tests/run $(wildcard tests/languages/test_*.sh)

.PHONY: check-languages

# Programs with real tracers, from the registries of their languages, to build/traces: ids
# of samples beside what their threads logged, and what an agent was told.
check-traces: all $(REAPER) $(E2E_B)/prog_place
	$(Q)TEST_TIMEOUT=1200 B=$(B) REAPER=$(REAPER) tests/run $(wildcard tests/traces/test_*.sh)

.PHONY: check-traces

# With sanitizers: what parses, what holds, and a pass of the whole profd through
# run, record, fetch, ps, status and events. A leak is a failure. What was freed stays
# in memory for a while, 256 MiB a process if nothing is said: with three processes that
# is the ceiling of --memory-max, where caches are cut and queries refused.
SAN_E2E := $(patsubst %,tests/e2e/test_%.sh,lives formats ledger commands)
# Of the programs that e2e tests run, those that these four need.
SAN_E2E_PROGS := $(addprefix $(E2E_B)/,prog_place prog_lives prog_spin_a pprof_check pprof_samples)

check-san: deps
	$(Q)$(MAKE) --no-print-directory $(ON_ALL_CPUS) SAN=address,undefined check-san-built

check-san-built: all $(REAPER) $(UNIT_TESTS) $(REPLAYS) $(SAN_E2E_PROGS)
	$(Q)packaging/promtool $(B)/tools
	$(Q)PATH="$(CURDIR)/$(B)/tools:$$PATH" B=$(B) REAPER=$(REAPER) RETRY=0 \
		ASAN_OPTIONS=quarantine_size_mb=16 \
		tests/run $(UNIT_TESTS) $(REPLAYS) $(SAN_E2E)

.PHONY: check-san check-san-built

# The kernel-side tests under the oldest and other kernels: see tests/vm/run.
VM_KERNELS ?= 6.1 6.12
# Not what takes its load from the host's compilers and interpreters.
VM_TESTS := $(filter-out %/test_stacks,$(BPF_TESTS)) $(wildcard tests/vm/test_*.sh)
# What the shell tests among them run.
VM_PROGS := $(B)/profd $(B)/tests/vm/windows $(addprefix $(B)/tests/e2e/prog_,shares lives new renames)

$(B)/tests/vm/windows: $(B)/tests/vm/windows.o $(B)/tests/unit/pprof_check.o $(B)/profd.a $(B)/libquark.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/tests/vm/windows.o: | $(B)/reporter/profile.pb-c.h

check-vm: deps
	$(Q)packaging/install-deps $(shell sed 's/\#.*//' packaging/deps-vm)
	$(Q)$(MAKE) --no-print-directory check-vm-built

check-vm-built: $(REAPER) $(VM_TESTS) $(VM_PROGS)
	$(Q)B=$(B) VM_PROGS="$(VM_PROGS)" tests/vm/run "$(VM_KERNELS)" $(VM_TESTS)

.PHONY: check-vm check-vm-built

bench: all $(BENCH_PROGS) $(E2E_PROGS)
	$(Q)B=$(B) tests/bench/run
