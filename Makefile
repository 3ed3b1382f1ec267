# SPDX-License-Identifier: GPL-2.0
#
# Entry points. `make help` says what each one does.

KDIR ?= /lib/modules/$(shell uname -r)/build
OUT ?= build/module

# Modules for a kernel that clang built have to be built by clang, too.
llvm := $(if $(shell grep -sx CONFIG_CC_IS_CLANG=y $(KDIR)/include/config/auto.conf),LLVM=1)
kbuild = $(MAKE) --no-print-directory -C $(KDIR) M=$(CURDIR) MO=$(abspath $(OUT)) $(llvm)

modules:
	@test -f $(KDIR)/include/config/auto.conf || { \
		echo "KDIR=$(KDIR) is not a prepared kernel tree: see 'make help'" >&2; exit 1; }
	@grep -qx CONFIG_RUST=y $(KDIR)/include/config/auto.conf || { \
		echo "the kernel of KDIR=$(KDIR) was built without Rust (CONFIG_RUST):" \
			"the module needs another kernel" >&2; exit 1; }
	@test -f $(KDIR)/rust/libkernel.rmeta || { \
		echo "$(KDIR) has no Rust metadata (rust/libkernel.rmeta). For Debian's" \
			"kernels, scripts/prepare makes a tree that has it" >&2; exit 1; }
	+$(kbuild) modules

modules_install: modules
	+$(kbuild) modules_install

demo test check bench fuzz deb peers rust-analyzer series:
	scripts/$@

conformance:
	scripts/conformance

soak:
	FULL=1 scripts/test

shell:
	qemu/run

clean:
	rm -rf build kunit/host/target

distclean: clean
	bash -c '. scripts/lib/lib.sh && remove "$$cache"'

help:
	@echo 'make KDIR=...   builds the module against a prepared kernel tree with Rust, or'
	@echo '                without KDIR against the running kernel. The result is in'
	@echo '                $(OUT)/, or in OUT=... CLIPPY=1 and W=1 add warnings.'
	@echo 'make modules_install   builds the module, and installs it under /lib/modules'
	@echo
	@echo 'The following commands first make a Debian tree and kernels in'
	@echo '$${XDG_CACHE_HOME:-~/.cache}/rpcrdma_cm. They write nothing outside of that and this directory:'
	@echo
	@echo 'make demo       boots a stock Debian kernel in QEMU, mounts NFS over RDMA there'
	@echo '                and shows what the connections negotiated. VERBOSE=1 prints every'
	@echo '                file'
	@echo 'make shell      opens a shell in that guest'
	@echo 'make deb        builds Debian packages of the module (dkms) and of the programs'
	@echo 'make test       runs the host tests, KUnit and the scripts of qemu/tests'
	@echo 'make soak       runs all tests in their full form, also with other series of'
	@echo '                kernels and on arm64, which takes hours. RESUME=1 goes on with it'
	@echo 'make fuzz       fuzzes all parsers, for FUZZ_SECONDS=300. Ctrl-C ends it earlier'
	@echo 'make bench      measures the cost of observing NFS over RDMA, of many connections'
	@echo '                and of parsing, and the savings of RFC 8797. Prints a table, and'
	@echo '                draws into build/bench'
	@echo 'make peers      measures other implementations, each in a guest of its own: Linux'
	@echo '                6.1 and later, NFS-Ganesha. Writes the tables of docs/peers.md'
	@echo 'make conformance   builds the suite for other implementations, tools/conformance'
	@echo 'make check      checks formatting, lints, warnings, layers, documents, and that'
	@echo '                the pure code cannot panic. scripts/check --fast takes less'
	@echo '                than a minute'
	@echo 'make series     writes the module and the fixes of reports/ as patch series against the'
	@echo '                kernel, into build/series, and checks each patch (docs/upstream.md)'
	@echo 'make rust-analyzer   writes rust-project.json for editors'
	@echo
	@echo 'SERIES=X.Y in front of any of these takes another series of Debian'\''s kernels'
	@echo
	@echo 'make clean      removes the build directory'
	@echo 'make distclean  also removes the cached lab and kernels'

.PHONY: modules modules_install demo test conformance soak check bench fuzz deb peers rust-analyzer series shell clean distclean help
