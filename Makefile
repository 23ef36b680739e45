# SPDX-License-Identifier: GPL-2.0-or-later
#
#   make          the two programs, build/release/hvpoke and hvpoke-vmm
#   make demo     the main job, end to end (README); VMM=qemu under QEMU
#   make check    every test; ends with "N passed, N failed, N skipped"
#   make bench    the figures; writes build/bench.json
#   make soak     a million batches, and a day of requests: writes build/soak.json
#   make help     the rest

SHELL := /bin/bash
VARIANT ?= release
jobs := $(shell nproc)
B := build/$(VARIANT)
CC ?= gcc
# A line for each file; V=1 shows the commands.
say = $(if $(V),,@printf '  %-4s %s\n' $(1) $@ && )

# What is built is built once for each variant: release, asan, tsan, faults, fuzz, coverage.
CFLAGS_release := -O2 -g
# Those for tests have fault points (patcher/fault.h), which no release has.
CFLAGS_asan := -DHVPOKE_FAULTS -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	-fno-omit-frame-pointer
CFLAGS_tsan := -DHVPOKE_FAULTS -O1 -g -fsanitize=thread -fno-omit-frame-pointer
CFLAGS_faults := -DHVPOKE_FAULTS $(CFLAGS_release)
# Counters that several threads may count; no optimization, so that a branch is one of the source's.
CFLAGS_coverage := -DHVP_INSTRUMENTED -O0 -g --coverage -fprofile-update=atomic
# Guest code has no counters.
CFLAGS_guest_coverage := -O2 -fno-profile-arcs -fno-test-coverage
CFLAGS_fuzz := $(CFLAGS_asan) -fsanitize=fuzzer-no-link
# Only clang has libFuzzer.
ifeq ($(VARIANT),fuzz)
CC := clang
endif

JSONC_CFLAGS = $(shell pkg-config --cflags json-c)
JSONC_LIBS = $(shell pkg-config --libs json-c)
# Who does not use them is not to load them.
SANDBOX_CFLAGS = $(shell pkg-config --cflags libseccomp libcap-ng)
SANDBOX_LIBS = -Wl,--as-needed $(shell pkg-config --libs libseccomp libcap-ng)

CPPFLAGS += -D_GNU_SOURCE -Iproto -Ipatcher -Isandbox -Ivmm -Iqemu
override CFLAGS += -std=gnu11 -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -pthread -fstack-protector-strong $(CFLAGS_$(VARIANT)) $(JSONC_CFLAGS) \
	$(SANDBOX_CFLAGS)
LDLIBS += $(JSONC_LIBS) $(SANDBOX_LIBS) -pthread
# Only the command line talks to libvirt.
LIBVIRT_CFLAGS = $(shell pkg-config --cflags libvirt libxml-2.0)
LIBVIRT_LIBS = $(shell pkg-config --libs libvirt libxml-2.0)

patcher_srcs := $(wildcard patcher/*.c)
sandbox_srcs := $(wildcard sandbox/*.c)
cli_srcs := $(wildcard patcher/cli/*.c)
vmm_srcs := $(filter-out vmm/main.c,$(wildcard vmm/*.c))
qemu_srcs := $(filter-out qemu/main.c,$(wildcard qemu/*.c))
unit_srcs := $(wildcard tests/unit/test_*.c)
unit_lib_srcs := $(filter-out $(unit_srcs),$(wildcard tests/unit/*.c))
kvm_srcs := $(wildcard tests/kvm/test_*.c)
kvm_lib_srcs := $(filter-out $(kvm_srcs),$(wildcard tests/kvm/*.c))
qemu_test_srcs := $(wildcard tests/qemu/test_*.c)
qemu_test_lib_srcs := $(filter-out $(qemu_test_srcs),$(wildcard tests/qemu/*.c))
failing_srcs := $(wildcard tests/failing/test_*.c)
fuzz_srcs := $(wildcard tests/fuzz/fuzz_*.c)
bench_lib_srcs := tests/bench/figures.c
bench_srcs := $(filter-out $(bench_lib_srcs),$(wildcard tests/bench/*.c))
soak_srcs := tests/soak/batches.c tests/soak/day.c
soak_lib_srcs := $(filter-out $(soak_srcs),$(wildcard tests/soak/*.c))

objs = $(patsubst %.c,$(B)/%.o,$(1))
unit_bins := $(patsubst %.c,$(B)/%,$(unit_srcs))
kvm_bins := $(patsubst %.c,$(B)/%,$(kvm_srcs))
qemu_bins := $(patsubst %.c,$(B)/%,$(qemu_test_srcs))
bench_bins := $(patsubst %.c,$(B)/%,$(bench_srcs))
soak_bins := $(patsubst %.c,$(B)/%,$(soak_srcs))
failing_bins := $(patsubst %.c,$(B)/%,$(failing_srcs))
fuzz_bins := $(patsubst %.c,$(B)/%,$(fuzz_srcs))

programs := $(B)/hvpoke $(B)/hvpoke-vmm $(B)/hvpoked
played_kvm := $(B)/tests/kvm/libplayedkvm.so

.PHONY: all
all: deps-build
	@$(MAKE) --no-print-directory -j$(jobs) programs

.PHONY: programs
programs: $(programs)
# The oracle of the Linux tests: libc and <elf.h> only, nothing of ours.
$(B)/tests/linux/sites: $(B)/tests/linux/sites.o
	$(call say,LINK)$(CC) $(CFLAGS) -o $@ $^
unit-tests: $(unit_bins)
kvm-tests: $(kvm_bins) $(played_kvm)
failing-tests: $(failing_bins) $(addprefix $(B)/failing/,hvpoke hvpoke-vmm hvpoked) $(played_kvm)
qemu-tests: $(qemu_bins) $(B)/hvpoked $(B)/hvpoke $(B)/tests/qemu/guest.elf
bench-bins: $(bench_bins) $(B)/hvpoked $(B)/tests/qemu/guest.elf
soak-bins: $(soak_bins) $(B)/hvpoked $(B)/hvpoke-vmm $(played_kvm)
linux-tests: $(B)/tests/linux/sites
# With VARIANT=fuzz.
fuzz-targets: $(fuzz_bins)
.PHONY: linux-tests fuzz-targets unit-tests kvm-tests failing-tests qemu-tests bench-bins soak-bins

$(B)/libhvpoke.a: $(call objs,$(patcher_srcs) $(sandbox_srcs))
$(B)/libhvvmm.a: $(call objs,$(vmm_srcs))
$(B)/libguest.a: $(call objs,$(kvm_lib_srcs))
$(B)/libunit.a: $(call objs,$(unit_lib_srcs))
$(B)/libhvpoked.a: $(call objs,$(qemu_srcs))
$(B)/libbench.a: $(call objs,$(bench_lib_srcs))
$(B)/libsoak.a: $(call objs,$(soak_lib_srcs))
$(B)/libqemutest.a: $(call objs,$(qemu_test_lib_srcs))
%.a:
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^

$(B)/patcher/cli/%.o: override CFLAGS += $(LIBVIRT_CFLAGS)
$(B)/hvpoke: $(call objs,$(cli_srcs)) $(B)/libhvpoke.a
	$(call say,LINK)$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS) $(LIBVIRT_LIBS)
$(B)/hvpoke-vmm: $(B)/vmm/main.o $(B)/libhvvmm.a $(B)/libhvpoke.a
	$(call say,LINK)$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS)
$(B)/hvpoked: $(B)/qemu/main.o $(B)/libhvpoked.a $(B)/libhvpoke.a
	$(call say,LINK)$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS)

$(unit_bins): $(B)/%: $(B)/%.o $(B)/libunit.a $(B)/libhvvmm.a $(B)/libhvpoke.a
	$(call say,LINK)$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS) -lcmocka
# Of the command line, what can be tested without libvirt.
$(B)/tests/unit/test_domain_xml: $(call objs,patcher/cli/domain_xml.c patcher/cli/difference.c)
$(B)/tests/unit/test_domain_xml: LDLIBS += $(LIBVIRT_LIBS)
$(B)/tests/unit/test_domain_xml.o: override CFLAGS += $(LIBVIRT_CFLAGS)
$(kvm_bins): $(B)/%: $(B)/%.o $(B)/libguest.a $(B)/libhvvmm.a $(B)/libhvpoke.a
	$(call say,LINK)$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS) -lcmocka
$(qemu_bins): $(B)/%: $(B)/%.o $(B)/libqemutest.a $(B)/libhvpoked.a $(B)/libhvpoke.a
	$(call say,LINK)$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS) -lcmocka
$(bench_bins): $(B)/%: $(B)/%.o $(B)/libbench.a $(B)/libguest.a $(B)/libqemutest.a \
		$(B)/libhvvmm.a $(B)/libhvpoked.a $(B)/libhvpoke.a
	$(call say,LINK)$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

# The same objects, with the calls that tests/failing can make fail led there.
failing := $(B)/tests/failing/failing.o
failing_calls := $(B)/failing/calls
$(failing_calls): $(failing)
	@mkdir -p $(@D)
	$(call say,NM)nm $< | sed -n 's/.* T failing_\(.*\)/\1 failing_\1/p' | \
		grep -v -e begin -e end -e call$$ >$@
$(B)/failing/%.a: $(B)/%.a $(failing_calls)
	$(call say,LEAD)objcopy --redefine-syms=$(failing_calls) $< $@
$(B)/failing/%.o: $(B)/%.o $(failing_calls)
	@mkdir -p $(@D)
	$(call say,LEAD)objcopy --redefine-syms=$(failing_calls) $< $@
failing_libs := $(addprefix $(B)/failing/lib,hvvmm.a hvpoked.a hvpoke.a)
$(B)/failing/hvpoke: $(patsubst %.c,$(B)/failing/%.o,$(cli_srcs)) $(failing_libs) $(failing)
	$(call say,LINK)$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS) $(LIBVIRT_LIBS)
$(B)/failing/hvpoke-vmm: $(B)/failing/vmm/main.o $(failing_libs) $(failing)
	$(call say,LINK)$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS)
$(B)/failing/hvpoked: $(B)/failing/qemu/main.o $(failing_libs) $(failing)
	$(call say,LINK)$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS)
$(failing_bins): $(B)/%: $(B)/%.o $(B)/tests/failing/each_call.o $(failing_libs) $(failing)
	$(call say,LINK)$(CC) $(CFLAGS) -o $@ -Wl,--start-group $^ -Wl,--end-group $(LDLIBS) -lcmocka
$(filter-out %/test_hvpoked,$(failing_bins)): $(B)/libunit.a $(B)/libguest.a
$(B)/tests/failing/test_hvpoked: $(B)/libqemutest.a

# What a target stands in for, besides calling it: the linker sends those calls to the target.
$(fuzz_bins): wrapped :=
$(B)/tests/fuzz/fuzz_batch: wrapped := clock_gettime hvp_copy_in hvp_audit_answered \
	hvp_audit_batch hvp_audit_unanswered
$(B)/tests/fuzz/fuzz_control: wrapped := clock_gettime
$(B)/tests/fuzz/fuzz_client: wrapped := clock_gettime connect poll
$(B)/tests/fuzz/fuzz_config $(B)/tests/fuzz/fuzz_loader: $(B)/libhvvmm.a
fuzz_of_hvpoked := $(addprefix $(B)/tests/fuzz/fuzz_,ivshmem journal qmp)
$(fuzz_of_hvpoked): wrapped := clock_gettime fopen hvp_audit_open open poll \
	process_memory pthread_create send
$(fuzz_of_hvpoked): $(B)/tests/fuzz/qemu_world.o $(B)/libhvpoked.a
$(B)/tests/fuzz/fuzz_batch: $(call objs,tests/fuzz/batch_guest.c tests/fuzz/batch_model.c)
$(fuzz_bins): $(B)/%: $(B)/%.o $(B)/tests/fuzz/input.o $(B)/libhvpoke.a
	$(call say,LINK)$(CC) $(CFLAGS) -fsanitize=fuzzer $(wrapped:%=-Wl,--wrap=%) -o $@ \
		-Wl,--start-group $^ -Wl,--end-group $(LDLIBS)

$(soak_bins): $(B)/%: $(B)/%.o $(B)/libsoak.a $(B)/libguest.a $(B)/libqemutest.a \
		$(B)/libhvvmm.a $(B)/libhvpoked.a $(B)/libhvpoke.a
	$(call say,LINK)$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

# Guest code stands in the tests' own files and is copied into guest memory: it
# must not call into the host program (stack protector, sanitizers, SSE), and its
# exceptions push their frames where a red zone would be.
$(B)/tests/kvm/%.o $(B)/tests/bench/%.o $(B)/tests/soak/%.o $(B)/tests/failing/test_vm.o: \
	override CFLAGS += -fno-stack-protector -fcf-protection=none \
	-mno-red-zone $(CFLAGS_guest_$(VARIANT))

# Loaded before libc where there is no /dev/kvm. One command: it is no part of the programs.

$(played_kvm): $(wildcard tests/kvm/played/*) vmm/pause.h
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CPPFLAGS) -std=gnu11 -O2 -g -Wall -Wextra -Werror -fPIC -shared \
		-ftls-model=initial-exec -o $@ $(filter %.c,$^) -pthread -ldl

# A guest for QEMU: 32 bits, and nothing of the host's (types.h apart).
$(B)/tests/qemu/guest.elf: $(wildcard tests/qemu/guest/*) $(wildcard proto/*.h) tests/bench/gap.h
	@mkdir -p $(@D)
	$(call say,CC)$(CC) -m32 -march=i686 -std=gnu11 -O2 -Wall -Wextra -Werror -ffreestanding -fno-pic \
		-fno-stack-protector -fcf-protection=none -mno-sse -mno-mmx \
		-fno-asynchronous-unwind-tables -isystem /usr/include/x86_64-linux-gnu -Iproto \
		-DSITES=2048 -nostdlib -static -Wl,--build-id=none -Wl,-m,elf_i386 \
		-T tests/qemu/guest/guest.ld -o $@ tests/qemu/guest/start.S tests/qemu/guest/guest.c

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

-include $(shell find build -name '*.d' 2>/dev/null)

deps_targets := deps-build deps-check deps-bench deps-demo deps-fuzz deps-lint deps-coverage
.PHONY: $(deps_targets)
$(deps_targets): deps-%:
	@scripts/deps.sh $*

.PHONY: modules
modules:
	@scripts/build-modules.sh

.PHONY: demo check bench fuzz soak mutants lint coverage
demo: deps-demo
	@$(MAKE) --no-print-directory -j$(jobs) programs
	@VMM=$(VMM) scripts/demo.sh
check: deps-check
	@scripts/check.sh
bench: deps-bench
	@$(MAKE) --no-print-directory -j$(jobs) programs bench-bins
	@scripts/bench.sh
fuzz: deps-fuzz
	@$(MAKE) --no-print-directory -j$(jobs) VARIANT=fuzz fuzz-targets
	@scripts/fuzz.sh run "$(TARGET)" "$(SECONDS)"
mutants: deps-check
	@scripts/mutants.sh
soak: deps-check
	@$(MAKE) --no-print-directory -j$(jobs) soak-bins
	@scripts/soak.sh
lint: deps-lint
	@scripts/lint.sh
coverage: deps-coverage
	@scripts/coverage.sh

PREFIX ?= /usr/local
.PHONY: install
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 755 $(programs) $(DESTDIR)$(PREFIX)/bin
	install -m 644 docs/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/man/man8 $(DESTDIR)$(PREFIX)/lib/systemd/system
	install -m 644 docs/man/*.8 $(DESTDIR)$(PREFIX)/share/man/man8
	sed 's,/usr/local/bin,$(PREFIX)/bin,' configs/hvpoked.service \
		>$(DESTDIR)$(PREFIX)/lib/systemd/system/hvpoked.service
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install -m 644 configs/completion/hvpoke.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/hvpoke

.PHONY: clean help
clean:
	rm -rf build
help:
	@sed -n 's/^#   //p' Makefile
	@echo 'make fuzz     an hour for each fuzz target; TARGET=x SECONDS=n: one, n seconds'
	@echo 'make mutants  take out protections, one by one, and see their tests fail'
	@echo 'make lint     clang-format, clang-tidy, sparse, checkpatch'
	@echo 'make coverage gcov of patcher/ and of the pause and doorbell path, with bounds'
	@echo 'make modules  hvpoke.ko for every kernel whose headers are installed'
	@echo 'make install  into PREFIX (/usr/local)'
	@echo 'make clean    remove build/ (caches stay outside of the tree)'
