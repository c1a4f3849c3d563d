# Targets for those who link or change the library. Cargo builds everything else.

PREFIX ?= dist
CC ?= cc
LD ?= ld
OBJCOPY ?= objcopy
AR ?= ar

# Features of the archive; capi,cuda proves on GPUs too and needs nvcc.
FEATURES ?= capi

# Of LLVM 20, for the kernels.
CLANG_FORMAT ?= clang-format

TARGET ?= $(or $(CARGO_TARGET_DIR),target)

.PHONY: test dist go go-test header lint

# All tests: Rust, the kernels on an emulated GPU, the archive with C and C++ programs, the Go package, a crate outside
# the workspace. The parameters that the Rust tests make serve the others.
test:
	CUPOREP_CUDA_ARCH=none cargo test --locked --release --features emulator
	$(MAKE) dist PREFIX='$(TARGET)/dist'
	tests/dist/run.sh '$(TARGET)/dist' '$(TARGET)/tmp/parameters-1'
	$(MAKE) go-test
	set -e; xz -dc tests/fixtures/StackedDrg2KiBV1_1-000/c1.json.xz > '$(TARGET)/tmp/c1.json'; \
	export CARGO_TARGET_DIR='$(abspath $(TARGET))'; cd tests/rlib-user; \
	cargo run --locked --release -- "$$CARGO_TARGET_DIR/tmp/c1.json" 963860 3454089 "$$CARGO_TARGET_DIR/tmp/parameters-1"

# The static archive, header and pkg-config file, below PREFIX. Cargo cannot hide the symbols of a static library, so
# all objects become one, of which only ours stay global: a program can link other Rust archives and other copies of
# blst beside it. --force-group-allocation is what keeps unwinding whole. CARGO_BUILD_TARGET is respected.
dist:
	@mkdir -p '$(PREFIX)/lib/pkgconfig' '$(PREFIX)/include'
	set -e; archive=$$(cargo rustc --locked --release --lib --crate-type staticlib --no-default-features --features '$(FEATURES)' \
	    --message-format json-render-diagnostics | sed -n 's/.*"filenames":\["\([^"]*libcuporep\.a\)"\].*/\1/p' | tail -n 1); \
	test -f "$$archive"; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	$(LD) -r --force-group-allocation --whole-archive "$$archive" -o "$$work/all.o"; \
	$(OBJCOPY) --wildcard --strip-debug --remove-section=.llvmbc --remove-section=.llvmcmd \
	    --keep-global-symbol=prove_porep --keep-global-symbol='cuporep_*' "$$work/all.o" "$$work/cuporep.o"; \
	rm -f '$(PREFIX)/lib/libcuporep.a'; $(AR) rcs '$(PREFIX)/lib/libcuporep.a' "$$work/cuporep.o"
	cp include/cuporep.h '$(PREFIX)/include/cuporep.h'
	printf '%s\n' 'prefix=$(abspath $(PREFIX))' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' \
	    'Name: cuporep' 'Description: Groth16 seal proofs for Filecoin storage providers' \
	    "Version: $$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)" \
	    'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lcuporep' 'Libs.private: -lm -ldl -lpthread' \
	    > '$(PREFIX)/lib/pkgconfig/cuporep.pc'

# The archive of `make dist`, beside the Go package that links it.
go:
	set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; $(MAKE) dist PREFIX="$$work"; \
	cp "$$work/lib/libcuporep.a" go/libcuporep.a

# Everything that is tested of the Go package; makes 1.1 GB of insecure parameters below the target directory once.
go-test: go
	go/test.sh

# Renews the committed header, and the Go package's copy, from the sources.
header:
	set -e; out=$$(cargo build --locked --release --lib --message-format json-render-diagnostics | \
	    sed -n 's/.*"reason":"build-script-executed".*[/#]cuporep[#@].*"out_dir":"\([^"]*\)".*/\1/p' | tail -n 1); \
	cp "$$out/cuporep.h" include/cuporep.h; cp include/cuporep.h go/cuporep.h

lint:
	cargo fmt --check
	$(CLANG_FORMAT) --dry-run -Werror kernels/*.cu kernels/*.cuh kernels/host/* kernels/tests/*
	cargo clippy --locked -- -D warnings
	CUPOREP_CUDA_ARCH=none cargo clippy --locked --features cuda -- -D warnings
	CUPOREP_CUDA_ARCH=none cargo clippy --locked --all-targets --features emulator -- -D warnings
	CUPOREP_CUDA_ARCH=none RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --features emulator
	$(CC) -std=c99 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c include/cuporep.h
	$(CC) -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ include/cuporep.h
