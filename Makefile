# profd: one Makefile. What is built lands in build/ (build/san/ with SAN=),
# nothing generated is committed.
#
#   make deps    install what is missing, from Debian's packages
#   make         build/profd, build/libquark.so.0, build/libquark.a, build/quark-mon
#   make run     all of the above, then profile this host (RUN_SECONDS=20 ends it)
#   make check   deps, then every test; needs root for those that load BPF
#   make lint    layout, format, lengths, manual pages
#   make bench   figures, as JSON lines
#   make fuzz    fuzz each parser for FUZZ_SECONDS (60)
#   make fmt     put the format right
#   make deb     a Debian package, in build/deb
#   make install DESTDIR= PREFIX=/usr/local; make uninstall likewise
#
# SAN=address,undefined builds with sanitizers, V=1 shows the commands.

VERSION := 0.1.0
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
RUN_SECONDS ?= 0
RUN_DIR ?= build/run
FUZZ_SECONDS ?= 60

B := build$(if $(SAN),/san)
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-8s%s\n' '$(1)' '$(2)')

CC := gcc
CLANG ?= clang
BPFTOOL ?= $(shell command -v bpftool || echo /usr/sbin/bpftool)
ARCH := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')

PKGS := libbpf libelf libprotobuf-c libzstd libuv libmicrohttpd \
	jansson zlib libdeflate liblzma nettle inih libcap libseccomp sqlite3 ncursesw
# With sanitizers, -O1 and -g1, which their reports need: compiled and linked in two thirds
# of the time. Then gcc sees less of the lengths that it warns of; the ordinary build has
# these warnings.
CFLAGS ?= $(if $(SAN),-O1 -g1 -Wno-format-truncation,-O2 -g)
override CFLAGS += -std=gnu11 -fPIC -fno-omit-frame-pointer -pthread \
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wvla -Wno-unused-parameter $(if $(WERROR),-Werror)
CPPFLAGS += -I. -I$(B) -D_GNU_SOURCE -DPROFD_VERSION='"$(VERSION)"'
ifneq ($(SAN),)
override CFLAGS += -fsanitize=$(SAN) -fno-sanitize-recover=undefined
LDFLAGS += -fsanitize=$(SAN)
else
CPPFLAGS += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
override CFLAGS += -fstack-protector-strong
LDFLAGS += -Wl,-z,relro,-z,now
endif
LIBS = $(shell pkg-config --libs $(PKGS)) -lZydis -liberty -lm
QUARK_LIBS := -lbpf -lelf -lz -pthread

PARTS := base symbolize processmanager reporter tracehandler profiler
# A part's own files and those of its inner directories; libquark is a part by itself.
SRCS := $(filter-out profiler/main.c processmanager/quark/%,$(sort $(shell find $(PARTS) -name '*.c')))
OBJS := $(SRCS:%.c=$(B)/%.o) $(B)/reporter/profile.pb-c.o
QUARK_SRCS := $(filter-out processmanager/quark/tools/%,$(sort $(shell find processmanager/quark -name '*.c')))
QUARK_BASE := $(addprefix base/,clock.c hash.c perfring.c ring.c strbuf.c mem/arena.c mem/pool.c \
	mem/vault.c proc/cpus.c proc/patience.c proc/procfs.c)
QUARK_OBJS := $(QUARK_SRCS:%.c=$(B)/%.o) $(QUARK_BASE:%.c=$(B)/%.o)
QUARK_TOOLS := $(patsubst processmanager/quark/tools/%.c,%,$(wildcard processmanager/quark/tools/*.c))
BPF_SRCS := $(wildcard bpf/*.bpf.c bpf/*/*.bpf.c)
SKELS := $(BPF_SRCS:bpf/%.bpf.c=$(B)/bpf/%.skel.h)
MANS := $(wildcard docs/*.[1578]) $(wildcard processmanager/quark/man/*.[378])

all: $(B)/profd $(B)/libquark.so.0 $(B)/libquark.a $(B)/quark.pc \
	$(QUARK_TOOLS:%=$(B)/%)

$(B)/profd: $(B)/profiler/main.o $(B)/profd.a $(B)/libquark.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

# Not installed: what the tests link against.
$(B)/profd.a: $(OBJS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcsD $@ $^

# --- libquark --------------------------------------------------------------
# One object with every name local that the version script does not list, so
# that the archive, like the shared library, exports what is documented only.
$(B)/libquark.o: $(QUARK_OBJS) processmanager/quark/libquark.map
	$(call say,LD,$@)
	$(Q)ld -r -o $@.tmp $(QUARK_OBJS)
	$(Q)sed -n 's/^[[:space:]]*\(quark_[a-z0-9_]*\);.*/\1/p' \
		processmanager/quark/libquark.map > $@.syms
	$(Q)objcopy --keep-global-symbols=$@.syms $@.tmp $@ && rm -f $@.tmp

$(B)/libquark.a: $(B)/libquark.o
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcsD $@ $^

# nodelete: an abandoned thread may still be in it after a dlclose(3).
$(B)/libquark.so.0: $(QUARK_OBJS) processmanager/quark/libquark.map
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libquark.so.0,-z,nodelete \
		-Wl,--version-script=processmanager/quark/libquark.map \
		-o $@ $(QUARK_OBJS) $(QUARK_LIBS)
	$(Q)ln -sf libquark.so.0 $(B)/libquark.so

# PREFIX may be another one at make install: looked at as the flags are, below.
$(shell mkdir -p $(B); echo '$(PREFIX)' | cmp -s - $(B)/prefix || \
	echo '$(PREFIX)' > $(B)/prefix)
$(B)/quark.pc: Makefile $(B)/prefix
	$(Q)printf '%s\n' 'prefix=$(PREFIX)' 'Name: quark' \
		'Description: process lifecycle events of a Linux host' \
		'Version: $(VERSION)' 'Cflags: -I$${prefix}/include' \
		'Libs: -L$${prefix}/lib -lquark' \
		'Libs.private: $(QUARK_LIBS)' > $@

$(QUARK_TOOLS:%=$(B)/%): $(B)/quark-%: $(B)/processmanager/quark/tools/quark-%.o $(B)/libquark.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(QUARK_LIBS)

# --- objects ---------------------------------------------------------------
# Objects are rebuilt when the flags change, and only then. Looked at while the
# makefile is read, so that `make -n` tells the truth.
FLAGS_NOW := $(CC) $(CFLAGS) $(CPPFLAGS) $(SAN)
$(shell mkdir -p $(B); echo '$(FLAGS_NOW)' | cmp -s - $(B)/flags || \
	echo '$(FLAGS_NOW)' > $(B)/flags)

$(B)/%.o: %.c $(B)/flags
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/%.o: $(B)/%.c
	$(call say,CC,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# What an object includes of generated headers is not known before the first
# build: these must be there before any object that may ask for them.
$(filter $(B)/processmanager/quark/% $(B)/processmanager/watch/% $(B)/profiler/%,$(OBJS) $(QUARK_OBJS)): | $(SKELS)
$(filter $(B)/reporter/%,$(OBJS)): | $(B)/reporter/profile.pb-c.h

$(B)/reporter/profile.pb-c.h $(B)/reporter/profile.pb-c.c &: reporter/profile.proto
	$(call say,PROTOC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)protoc-c --proto_path=reporter --c_out=$(B)/reporter profile.proto

$(B)/%.bpf.o: %.bpf.c
	$(call say,BPF,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) -target bpf -D__TARGET_ARCH_$(ARCH) -O2 -g -I. -Wall \
		-Wpadded -Wno-unused-function -MMD -MP -c -o $@ $<
	$(Q)llvm-strip -g $@ 2>/dev/null || true

$(B)/%.skel.h: $(B)/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $(*F)_bpf > $@.tmp && mv $@.tmp $@

# --- tests, benches, fuzzers -----------------------------------------------
include tests/module.mk

# --- the user's commands ---------------------------------------------------
DEPS := $(shell sed 's/\#.*//' packaging/deps)
DEPS_RUN := $(shell sed '/^\# ---/,$$d; s/\#.*//' packaging/deps)

deps:
	$(Q)packaging/install-deps $(DEPS)

run:
	$(Q)packaging/install-deps $(DEPS_RUN)
	$(Q)$(MAKE) --no-print-directory all
	$(Q)packaging/run build/profd "$(RUN_DIR)" "$(RUN_SECONDS)"

# Where what is installed goes: `make uninstall` removes that and nothing else.
BINDIR := $(PREFIX)/bin
SBINDIR := $(PREFIX)/sbin
LIBDIR := $(PREFIX)/lib
INSTALL_FILES = $(BINDIR)/profd $(QUARK_TOOLS:%=$(SBINDIR)/%) \
	$(LIBDIR)/libquark.so.0 $(LIBDIR)/libquark.a \
	$(LIBDIR)/pkgconfig/quark.pc $(PREFIX)/include/quark.h \
	$(foreach m,$(MANS),$(PREFIX)/share/man/man$(subst .,,$(suffix $m))/$(notdir $m)) \
	$(LIBDIR)/systemd/system/profd.service $(LIBDIR)/sysusers.d/profd.conf \
	$(LIBDIR)/tmpfiles.d/profd.conf \
	$(PREFIX)/share/bash-completion/completions/profd \
	$(PREFIX)/share/zsh/site-functions/_profd
INSTALL_CONF := $(SYSCONFDIR)/profd/profd.conf

# The unit names the profd that is installed, which need not be in /usr/local.
$(B)/profd.service: packaging/profd.service $(B)/prefix
	$(Q)sed 's,^ExecStart=/usr/local/bin/,ExecStart=$(BINDIR)/,' $< > $@

$(B)/completion.%: $(B)/profd
	$(Q)$< completion $* > $@

install: all $(B)/profd.service $(B)/completion.bash $(B)/completion.zsh
	install -d $(addprefix $(DESTDIR),$(sort $(dir $(INSTALL_FILES) $(INSTALL_CONF))))
	install -m 755 $(B)/profd $(DESTDIR)$(BINDIR)/
	install -m 755 $(QUARK_TOOLS:%=$(B)/%) $(DESTDIR)$(SBINDIR)/
	install -m 755 $(B)/libquark.so.0 $(DESTDIR)$(LIBDIR)/
	ln -sf libquark.so.0 $(DESTDIR)$(LIBDIR)/libquark.so
	install -m 644 $(B)/libquark.a $(DESTDIR)$(LIBDIR)/
	install -m 644 $(B)/quark.pc $(DESTDIR)$(LIBDIR)/pkgconfig/
	install -m 644 processmanager/quark/quark.h $(DESTDIR)$(PREFIX)/include/
	for m in $(MANS); do \
		install -m 644 $$m $(DESTDIR)$(PREFIX)/share/man/man$${m##*.}/ || exit 1; done
	install -m 644 $(B)/profd.service $(DESTDIR)$(LIBDIR)/systemd/system/
	install -m 644 packaging/profd.sysusers $(DESTDIR)$(LIBDIR)/sysusers.d/profd.conf
	install -m 644 packaging/profd.tmpfiles $(DESTDIR)$(LIBDIR)/tmpfiles.d/profd.conf
	install -m 644 $(B)/completion.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/profd
	install -m 644 $(B)/completion.zsh $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_profd
	[ -e $(DESTDIR)$(INSTALL_CONF) ] || \
		install -m 644 packaging/profd.conf $(DESTDIR)$(INSTALL_CONF)

# A configuration that was edited stays, and so do profiles.
uninstall:
	rm -f $(addprefix $(DESTDIR),$(INSTALL_FILES) $(LIBDIR)/libquark.so)
	@if [ ! -e $(DESTDIR)$(INSTALL_CONF) ]; then :; \
	elif cmp -s packaging/profd.conf $(DESTDIR)$(INSTALL_CONF); then \
		rm -f $(DESTDIR)$(INSTALL_CONF); \
		rmdir $(DESTDIR)$(dir $(INSTALL_CONF)) 2>/dev/null || :; \
	else \
		echo "kept, since it was edited: $(DESTDIR)$(INSTALL_CONF)"; \
	fi

# debhelper, and lintian for the test, are in packaging/deps.
deb: all
	$(Q)packaging/debian/build $(VERSION) '$(MAKE)' $(CURDIR)/$(B)/deb

fmt:
	$(Q)clang-format -i $$(tests/lint/sources)

lint:
	$(Q)tests/lint/lint

clean:
	rm -rf build

.PHONY: all deps run check check-built bench deb lint fmt fuzz install uninstall clean
.DELETE_ON_ERROR:
.SECONDARY:

# Not those of the other build.
-include $(shell find $(B) $(if $(SAN),,-path $(B)/san -prune -o) -name '*.d' -print 2>/dev/null)
