# SPDX-License-Identifier: GPL-2.0
#
# Entry points only; `make help` says what each does.

KDIR ?= /lib/modules/$(shell uname -r)/build
OUT ?= build/module

# A kernel built by clang wants clang for its modules.
llvm := $(if $(shell grep -sx CONFIG_CC_IS_CLANG=y $(KDIR)/include/config/auto.conf),LLVM=1)
kbuild = $(MAKE) --no-print-directory -C $(KDIR) M=$(CURDIR) MO=$(abspath $(OUT)) $(llvm)

modules:
	@test -f $(KDIR)/include/config/auto.conf || { \
		echo "$(KDIR) is no prepared kernel tree: say KDIR=..., or try 'make help'" >&2; exit 1; }
	@grep -qx CONFIG_RUST=y $(KDIR)/include/config/auto.conf || { \
		echo "the kernel of $(KDIR) is built without Rust (CONFIG_RUST)" >&2; exit 1; }
	@test -f $(KDIR)/rust/libkernel.rmeta || { \
		echo "$(KDIR) has no Rust metadata (rust/libkernel.rmeta). For a kernel of" \
			"Debian's, scripts/prepare makes a tree that has" >&2; exit 1; }
	+$(kbuild) modules

modules_install: modules
	+$(kbuild) modules_install

demo test check bench fuzz peers:
	scripts/$@

soak:
	FULL=1 scripts/test

shell:
	qemu/run

clean:
	rm -rf build kunit/host/target

distclean: clean
	bash -c '. scripts/lib.sh && remove "$$cache"'

help:
	@echo 'make KDIR=...   the module, against any prepared Rust-enabled kernel tree;'
	@echo '                without KDIR: against the running kernel. Into $(OUT)/,'
	@echo '                another OUT=... if you like. CLIPPY=1 and W=1 work.'
	@echo 'make modules_install   ... and installs it under /lib/modules'
	@echo
	@echo 'These make what they need first, a Debian tree and kernels, in'
	@echo '$${XDG_CACHE_HOME:-~/.cache}/rpcrdma_cm; nothing else on this machine changes:'
	@echo
	@echo 'make demo       boots a stock Debian kernel in QEMU, mounts NFS over RDMA there'
	@echo '                and shows what the connections negotiated;'
	@echo '                VERBOSE=1 prints every file'
	@echo 'make shell      a shell in that guest'
	@echo 'make test       host tests, KUnit and the scripts of qemu/tests, in some minutes'
	@echo 'make soak       those that would take longer; other series of kernels, arm64'
	@echo 'make fuzz       fuzzers of all that parses, for FUZZ_SECONDS=... or until Ctrl-C'
	@echo 'make bench      what observing costs NFS over RDMA; what RFC 8797 spares calls;'
	@echo '                what it takes to parse; what many connections cost. In a table,'
	@echo '                and drawn in build/bench'
	@echo 'make peers      what other implementations do, each on a machine of its own: Linux'
	@echo '                6.1 and later, NFS-Ganesha. Writes the tables of docs/peers.md'
	@echo 'make check      formatting, lints, warnings, layers, no panic in the pure code,'
	@echo '                documents'
	@echo
	@echo 'SERIES=X.Y      takes another series of Debian'\''s kernels for these'
	@echo
	@echo 'make clean      removes what was built here'
	@echo 'make distclean  also the cached lab and kernels'

.PHONY: modules modules_install demo test soak check bench fuzz peers shell clean distclean help
