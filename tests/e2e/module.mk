# The programs that the end-to-end tests and the benches profile, and the strict checker
# of profiles. Their flags do not change with SAN=: the tests rely on how they are
# compiled.

E2E_B := $(B)/tests/e2e
E2E_CFLAGS := -std=gnu11 -D_GNU_SOURCE -I. -g -O1 -fno-omit-frame-pointer \
	-fno-optimize-sibling-calls -Wall -Wextra -Wshadow \
	-Wstrict-prototypes -Wmissing-prototypes -Wl,--build-id=sha1
# One address for the hot functions of all programs.
E2E_STATIC := -static -no-pie -Wl,--section-start=hot_spin=0x700000

E2E_PROGS := $(addprefix $(E2E_B)/,prog_shares prog_killer prog_spin_a prog_spin_b \
	prog_spin_old prog_spin_new prog_swap libswap_a.so libswap_b.so libplugin.so \
	libclock.so libfault.so pprof_check pprof_samples rows_check names_go prog_lives prog_memfd prog_gone \
	prog_new prog_jit prog_nocfi prog_renames prog_reuse prog_storm prog_witness prog_fuse \
	prog_flip prog_opened prog_bpf prog_pattern prog_waits prog_chain prog_place prog_traced prog_services \
	prog_agent load_spawn load_small load_sleep \
	load_first load_churn load_sideband)

$(addprefix $(E2E_B)/,prog_shares prog_killer prog_gone prog_nocfi prog_reuse prog_storm prog_witness prog_fuse prog_opened prog_flip prog_bpf): $(E2E_B)/%: tests/e2e/%.c tests/e2e/frame.h tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -o $@ $<

$(E2E_B)/load_spawn $(E2E_B)/load_small $(E2E_B)/load_sleep $(E2E_B)/load_first: $(E2E_B)/load_%: tests/bench/load_%.c tests/e2e/frame.h tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -o $@ $<

$(addprefix $(E2E_B)/,prog_waits prog_chain prog_pattern): $(E2E_B)/%: tests/bpf/wait/%.c tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -o $@ $<

# Its variable has to be in .dynsym.
$(E2E_B)/prog_traced: tests/bpf/sampler/prog_traced.c tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -Wno-missing-prototypes -rdynamic -o $@ $<

$(E2E_B)/prog_services: tests/unit/traces/prog_services.c tests/unit/traces/context.h tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -Wno-unused-parameter -o $@ $<

# So have its variables.
$(E2E_B)/prog_agent: tests/unit/traces/prog_agent.c tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -Wno-missing-prototypes -Wno-unused-parameter -pthread -rdynamic -o $@ $<

$(E2E_B)/prog_place: tests/bpf/place.c tests/bpf/place.h tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -DPLACE_MAIN -o $@ $<

# With the code of profd that opens it.
$(E2E_B)/load_sideband: tests/bench/load_sideband.c $(B)/profd.a $(B)/libquark.a
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(E2E_B)/load_churn: tests/bench/load_churn.c tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -pthread -o $@ $< -ldl

$(E2E_B)/prog_jit $(E2E_B)/prog_lives $(E2E_B)/prog_memfd $(E2E_B)/prog_renames: $(E2E_B)/%: tests/e2e/%.c tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -pthread -o $@ $<

# Without frame pointers, as such programs are: only its tables lead to main.
$(E2E_B)/prog_new: tests/e2e/prog_new.c tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -O2 -fomit-frame-pointer -o $@ $<

# Starting two thousand processes a second takes more than two CPUs with dynamic linking.
$(E2E_B)/prog_lives: E2E_CFLAGS += -static

$(E2E_B)/prog_spin_a $(E2E_B)/prog_spin_b: $(E2E_B)/prog_spin_%: tests/e2e/prog_spin.c tests/e2e/frame.h tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) $(E2E_STATIC) -pthread -DNAME=$* -o $@ $<

$(E2E_B)/prog_spin_old $(E2E_B)/prog_spin_new: $(E2E_B)/prog_spin_%: tests/e2e/prog_spin.c tests/e2e/frame.h tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -fPIE -pie -pthread -DWITH_DLOPEN -DNAME=$* -o $@ $< -ldl

$(E2E_B)/prog_swap: tests/e2e/prog_swap.c tests/e2e/frame.h tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -fPIE -pie -o $@ $< -ldl

$(E2E_B)/libswap_a.so $(E2E_B)/libswap_b.so: $(E2E_B)/libswap_%.so: tests/e2e/swap.c tests/e2e/frame.h tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -DNAME=$* -fPIC -shared -o $@ $<

$(E2E_B)/libplugin.so: tests/e2e/plugin.c tests/e2e/frame.h tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -fPIC -shared -o $@ $<

$(E2E_B)/libclock.so: tests/e2e/libclock.c tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -fPIC -shared -o $@ $< -ldl

$(E2E_B)/libfault.so: tests/tools/libfault.c tests/e2e/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -fPIC -shared -o $@ $< -ldl

$(E2E_B)/pprof_check: $(E2E_B)/pprof_check.o
$(E2E_B)/pprof_samples: $(B)/tests/tools/pprof_samples.o
$(E2E_B)/pprof_check $(E2E_B)/pprof_samples: $(B)/tests/unit/pprof_check.o $(B)/profd.a $(B)/libquark.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(E2E_B)/rows_check $(E2E_B)/names_go: %: %.o $(B)/profd.a $(B)/libquark.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(E2E_B)/pprof_check.o $(B)/tests/tools/pprof_samples.o: | $(B)/reporter/profile.pb-c.h

-include tests/e2e/stacks/module.mk
