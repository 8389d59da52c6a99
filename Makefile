# SPDX-License-Identifier: MIT
# The front door. meson.build is the build; this installs what it needs, calls it, and calls the tests.
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)
MESON_ARGS ?=

.PHONY: all build lib setup demo test check soak bench fuzz docs install uninstall clean help

all: setup build

help:
	@echo 'make demo     install what is missing, build, and show what resha does'
	@echo 'make test     the tests: ends with a line "N passed, N failed"'
	@echo 'make check    the whole matrix: gcc and clang, sanitizers, Valgrind, AArch64, long seeds'
	@echo 'make soak     an hour of new seeds in the simulated world (SOAK_SECONDS)'
	@echo 'make bench    the benchmarks, against their peers'
	@echo 'make fuzz     every fuzz target for FUZZ_SECONDS each (30)'
	@echo 'make docs     build and check what the documentation shows'
	@echo 'make lib      build only what is installed: the libraries and the command'
	@echo 'make install  PREFIX=/usr/local DESTDIR= (as root, if only root may write there)'
	@echo 'make clean    remove what was built'

setup:
	@tools/setup

# Warnings are errors for developers (meson setup) and in make check, not for a user's newer compiler.
$(BUILD)/build.ninja:
	@log=$$(meson setup $(BUILD) -Dwerror=false $(MESON_ARGS)) || { echo "$$log"; exit 1; }

build: $(BUILD)/build.ninja
	@ninja -C $(BUILD) -j$(JOBS) $(TARGETS)

# Only the command: a newcomer does not wait for the tests to be compiled.
demo: setup
	@$(MAKE) --no-print-directory build TARGETS=cli/resha
	@$(BUILD)/cli/resha demo

test: setup
	@$(MAKE) --no-print-directory build
	@tools/run-tests -C $(BUILD) --no-suite slow --no-suite bench

check:
	@tools/setup check
	@tools/check

soak: setup
	@$(MAKE) --no-print-directory build
	@tools/soak -C $(BUILD)

bench:
	@tools/setup bench
	@$(MAKE) --no-print-directory build
	@bench/run -C $(BUILD) all

fuzz:
	@tools/setup check
	@tools/fuzz

docs: setup
	@$(MAKE) --no-print-directory build
	@tools/run-tests -C $(BUILD) --suite docs

# Ninja first renews its own file: the names of targets may have changed.
lib: setup
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@log=$$(ninja -C $(BUILD) build.ninja) || { echo "$$log"; exit 1; }
	@targets=$$(tools/installed-targets $(BUILD)) && ninja -C $(BUILD) -j$(JOBS) $$targets

# Run by the user who builds, or by root after that: only what changed is built again.
install: setup
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@meson configure $(BUILD) -Dprefix=$(PREFIX)
	@$(MAKE) --no-print-directory lib
	@DESTDIR='$(DESTDIR)' meson install -C $(BUILD) --no-rebuild
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi
	@case '$(DESTDIR)$(PREFIX)' in /usr|/usr/local) ;; *) \
		lib=$$(dirname "$$(dirname "$$(find '$(DESTDIR)$(PREFIX)' -name resha.pc -print -quit)")"); \
		echo "to build and run with it: export PKG_CONFIG_PATH=$$lib/pkgconfig LD_LIBRARY_PATH=$$lib" \
			'PATH=$(DESTDIR)$(PREFIX)/bin:$$PATH' ;; esac

uninstall:
	@ninja -C $(BUILD) uninstall

clean:
	@rm -rf $(BUILD) build-check-* build-fuzz
