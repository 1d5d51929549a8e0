# The programs of tests/e2e/test_stacks.sh: what compilers and linkers make of
# code without frame pointers; and of test_copied_text.sh.

STACKS_B := $(E2E_B)/stacks
STACKS_SRC := tests/e2e/stacks
# No padding between functions: what lies behind a call that does not return is
# then the next one.
STACKS_CFLAGS := -O2 -fomit-frame-pointer -falign-functions=1 -D_GNU_SOURCE \
	-Wall -Wextra -Wno-unused-parameter
STACKS_MODES := $(STACKS_SRC)/modes.c $(STACKS_SRC)/module.mk
STACKS_GO := GO111MODULE=off GOCACHE=$(abspath $(B))/go-cache \
	$(firstword $(wildcard /usr/bin/go) go) build

E2E_PROGS += $(addprefix $(STACKS_B)/,modes_gcc modes_clang modes_static \
	modes_static_pie modes_musl modes_musl_static modes_stripped \
	modes_static_stripped modes_sectionless libone.so libtwo.so libcalled.so \
	throw_gcc throw_clang go_plain go_cgo rust secret text)

# profd knows an executable by its build id, and what it knows of one it takes for
# all that have it: so it differs by path, in another checkout and of a twin, too.
STACKS_ID = -Wl,--build-id=0x$(shell echo $(abspath $@) | cat - $(STACKS_MODES) | sha1sum | cut -c 1-40)

$(STACKS_B)/modes_gcc $(STACKS_B)/modes_clang: $(STACKS_B)/modes_%: $(STACKS_MODES) $(STACKS_B)/libcalled.so
	$(call say,CC,$@)
	$(Q)$* $(STACKS_CFLAGS) -DWITH_CONTEXT -DWITH_LIBRARIES -Wl,-z,lazy \
		-Wl,-rpath,'$$ORIGIN' $(STACKS_ID) -o $@ $< -L$(@D) -lcalled -pthread

$(STACKS_B)/modes_stripped.twin $(STACKS_B)/modes_sectionless.twin: $(STACKS_MODES) $(STACKS_B)/libcalled.so
	$(call say,CC,$@)
	$(Q)$(CC) $(STACKS_CFLAGS) -DWITH_CONTEXT -DWITH_LIBRARIES -Wl,-z,lazy \
		-Wl,-rpath,'$$ORIGIN' $(STACKS_ID) -o $@ $< -L$(@D) -lcalled -pthread

$(STACKS_B)/libone.so $(STACKS_B)/libtwo.so $(STACKS_B)/libcalled.so: $(STACKS_B)/lib%.so: $(STACKS_SRC)/library.c $(STACKS_SRC)/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(STACKS_CFLAGS) $(STACKS_ID) $(if $(filter called,$*),-DCALLED) -DNAME=$* \
		-fPIC -shared -o $@ $<

$(STACKS_B)/modes_static: STACKS_LINK := -static -no-pie
$(STACKS_B)/modes_static_pie: STACKS_LINK := -static-pie
$(STACKS_B)/modes_static_stripped.twin: STACKS_LINK := -static -no-pie
$(STACKS_B)/modes_static $(STACKS_B)/modes_static_pie $(STACKS_B)/modes_static_stripped.twin: $(STACKS_MODES)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(STACKS_CFLAGS) $(STACKS_ID) -DWITH_CONTEXT $(STACKS_LINK) -o $@ $< -pthread

$(STACKS_B)/modes_musl_static: STACKS_LINK := -static
$(STACKS_B)/modes_musl $(STACKS_B)/modes_musl_static: $(STACKS_MODES)
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)musl-gcc $(STACKS_CFLAGS) $(STACKS_ID) $(STACKS_LINK) -o $@ $<

$(STACKS_B)/modes_stripped $(STACKS_B)/modes_static_stripped $(STACKS_B)/modes_sectionless: %: %.twin
	$(Q)strip -o $@ $<
	$(Q)$(STACKS_THEN)

# No section headers: e_shoff, then e_shentsize, e_shnum and e_shstrndx.
$(STACKS_B)/modes_sectionless: STACKS_THEN = \
	zero() { dd if=/dev/zero of=$@ bs=1 seek=$$1 count=$$2 conv=notrunc status=none; }; \
	zero 40 8 && zero 58 6

$(STACKS_B)/secret: $(STACKS_SRC)/secret.c $(STACKS_SRC)/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(STACKS_CFLAGS) $(STACKS_ID) -o $@ $<

$(STACKS_B)/text: $(STACKS_SRC)/text.c $(STACKS_SRC)/module.mk
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(E2E_CFLAGS) -o $@ $<

$(STACKS_B)/throw_gcc: STACKS_CXX := g++
$(STACKS_B)/throw_clang: STACKS_CXX := clang++
$(STACKS_B)/throw_gcc $(STACKS_B)/throw_clang: $(STACKS_SRC)/throw.cc $(STACKS_SRC)/module.mk
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(STACKS_CXX) $(STACKS_CFLAGS) -Wno-infinite-recursion \
		$(STACKS_ID) -o $@ $<

$(STACKS_B)/go_plain: export CGO_ENABLED := 0
$(STACKS_B)/go_cgo: export CGO_ENABLED := 1
$(STACKS_B)/go_plain $(STACKS_B)/go_cgo: $(STACKS_B)/go_%: $(STACKS_SRC)/%.go $(STACKS_SRC)/module.mk
	$(call say,GO,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(STACKS_GO) -o $@ $(abspath $<)

$(STACKS_B)/rust: $(STACKS_SRC)/rust.rs $(STACKS_SRC)/module.mk
	$(call say,RUSTC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)env -u MAKEFLAGS -u MFLAGS rustc -O -C force-frame-pointers=no -o $@ $<
