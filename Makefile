# The front door. CMake does the building (CMakePresets.json); this file only knows the commands.
# Variables: CUDA (on, off; default: on where a GPU and nvcc are), JOBS (parallel compiles, default:
# all cores), CXX (the compiler), CTEST_ARGS (say, "-L cpu" or "-R Gemm"), PEERS_ARGS (of gpu-bench,
# say "--quick"), MODEL, BASE and FIDELITY_ARGS (of fidelity), PREFIX and DESTDIR (of install),
# PYTHONS (of wheel: the interpreters).
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help build demo install package wheel release test release-test asan-test tsan-test
.PHONY: cross-test gpu-test gpu-sanitize gpu-bench fuzz bench-cpu fidelity format clean
export JOBS CTEST_ARGS CUDA PYTHONS
# `make` has a CXX of its own, always set: pass on only one that the user chose.
ifneq ($(origin CXX),default)
export CXX
endif

FUZZ_SECONDS ?= 60
PREFIX ?= /usr/local
MODEL ?= models/demo-bf16
BASE ?= models/demo

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | \
		while IFS="$$(printf '\t')" read -r target text; do \
			printf '  make %-12s %s\n' "$$target" "$$text"; done

build: ## install what is missing and build the program: build/octet
	@tools/setup.sh build
	@tools/build.sh default octet

demo: build ## build, then render demo.png with the small model in models/demo
	@build/octet demo

install: ## install program and library into PREFIX (default /usr/local); DESTDIR is honoured
	@tools/install.sh "$(PREFIX)"

package: ## an archive and, on Debian and Ubuntu, .deb packages: build/packages
	@tools/setup.sh build package
	@tools/build.sh default octet
	@cd build && cpack

wheel: ## Python wheels for other machines, CPU and, where nvcc is, CUDA: build/packages
	@tools/setup.sh build wheel
	@tools/wheel.sh

release: ## everything that is given out, with sha256sums: archive, .deb, wheels: build/packages
	@tools/setup.sh build package wheel
	@rm -rf build/packages build/release/packages
	@tools/build.sh release octet
	@cd build/release && cpack
	@tools/wheel.sh
	@mv $$(find build/release/packages -maxdepth 1 -type f) build/packages
	@cd build/packages && sha256sum * >../sha256sums && mv ../sha256sums . && cat sha256sums

test: ## everything that can be tested on this machine; ends with a summary
	@tools/run_tests.sh

release-test: ## the same with kernels for all GPUs, and the sanitizers on the tests' own code
	@tools/run_tests.sh --whole

asan-test: ## only the tests under the address and undefined-behaviour sanitizers
	@tools/run_tests.sh asan

tsan-test: ## the tests of what has threads under the thread sanitizer; not part of `make test`
	@tools/run_tests.sh tsan

cross-test: ## only the kernels of the other architecture (aarch64 or x86-64), under qemu
	@tools/run_tests.sh cross

gpu-test: ## for a machine with a GPU: the build with CUDA and its tests
	@tools/run_tests.sh cuda

gpu-sanitize: ## for a machine with a GPU: its tests under compute-sanitizer's four tools
	@tools/run_tests.sh sanitize

fuzz: ## sixty seconds of broken files for each fuzz target (FUZZ_SECONDS=n: another time)
	@tools/setup.sh build fuzz
	@tools/build.sh fuzz fuzzers
	@build/fuzz/write_seeds build/fuzz/seeds
	@for target in safetensors index caption tokenizer gguf dialect recipe trace http request; do \
		[ -x build/fuzz/$${target}_fuzzer ] || continue; \
		mkdir -p build/fuzz/corpus/$$target && \
		build/fuzz/$${target}_fuzzer -max_total_time=$(FUZZ_SECONDS) -dict=tests/fuzz/json.dict \
			-artifact_prefix=build/fuzz/ -print_final_stats=1 \
			build/fuzz/corpus/$$target build/fuzz/seeds/$$target || exit 1; done

bench-cpu: build ## the CPU's INT8 GEMM beside onnxruntime's and torch's
	@tools/setup.sh python
	@.venv/bin/python bench/cpu_peers.py

fidelity: build ## what each way to quantize costs the pictures of MODEL: docs/fidelity.md
	@tools/setup.sh python
	@.venv/bin/python -m pip install -q -r tools/fidelity/requirements.txt
	@.venv/bin/python tools/fidelity/run.py "$(MODEL)" --base "$(BASE)" $(FIDELITY_ARGS)

gpu-bench: ## for a machine with a GPU: kernels and one step beside torch, FP8, Triton
	@tools/setup.sh build
	@bench/gpu_bench.sh $(PEERS_ARGS)

format: ## clang-format every C++ and CUDA file
	@command -v clang-format >/dev/null || \
		{ echo 'octet: missing: clang-format; to install it: apt-get install clang-format' >&2; exit 1; }
	@find src include apps tests bench -regex '.*\.\(h\|cpp\|cuh?\)' -exec clang-format -i {} +

clean: ## remove build/ (the Python environment .venv stays)
	@rm -rf build
