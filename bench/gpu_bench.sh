#!/usr/bin/env bash
# Measures everything on a GPU, one after the other: chooses Octet's kernels; times its linears, its
# quantization, its step and whole pictures; then compares its linears and its step with those of
# torch, Triton and comfy-kitchen. Results are left in build/.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/../tools/common.sh"

usage() {
  cat <<'END'
usage: bench/gpu_bench.sh [ARGUMENTS OF bench/peers.py]

Builds, chooses Octet's kernels on this machine's GPU, times its linears, its quantization, its step
and whole pictures, then its linears and one denoising step beside those of torch, Triton and
comfy-kitchen. Results: build/tune.json, build/bench_*.json, build/gpu_peers.json,
build/gpu_peers.md, build/gpu_step_ops.md and plots in build/.
Arguments such as --quick (1024 px alone, fewer rounds), --only step, --bias or --json FILE go to
bench/peers.py.
END
}

# Without a GPU the build would take minutes and then be useless.
has_gpu() {
  if have nvidia-smi && [[ "$(nvidia-smi -L 2>/dev/null)" == *"GPU "* ]]; then
    return 0
  fi
  # Containers may lack the program and still have the device.
  [ -x build/octet ] && [[ "$(build/octet devices 2>/dev/null)" =~ (^|$'\n')cuda[^\ ]*\ +[^-\ ] ]]
}

# Prints the first Python whose torch sees a GPU and that has Triton.
gpu_python() {
  local python
  for python in python3 .venv/bin/python; do
    if have "$python" && "$python" -c '
import sys, torch, triton
sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
      printf '%s\n' "$python"
      return 0
    fi
  done
  return 1
}

json=build/gpu_peers.json
shapes=ideogram4@768,1024,2048
previous=
for argument in "$@"; do
  case "$argument" in
    -h | --help)
      usage
      exit 0
      ;;
    --quick) shapes=ideogram4@1024 ;;
    --json=*) json=${argument#--json=} ;;
  esac
  if [ "$previous" = --json ]; then
    json=$argument
  fi
  previous=$argument
done
if ! has_gpu; then
  complain "gpu-bench: no NVIDIA GPU here: neither nvidia-smi nor build/octet devices shows one"
  exit 1
fi
tools/build.sh default octet octet_shared
say "choosing kernels"
build/octet tune --device cuda --shapes "$shapes" --json build/tune.json
say "linears"
build/octet bench gemm --device cuda --shapes "$shapes" --peers --json build/bench_gemm.json
say "quantization"
build/octet bench quantize --device cuda --json build/bench_quantize.json
say "one step, and whole pictures"
steps=()
for how in "1024 auto 100" "1024 int8 100" "2048 auto 5"; do
  read -r size attention count <<<"$how"
  steps+=("build/bench_step_${size}_$attention.json")
  build/octet bench step --device cuda --size "$size" --attention "$attention" --steps "$count" \
    --json "${steps[-1]}"
done
build/octet bench e2e --device cuda --json build/bench_e2e.json
python3 bench/step_shares.py "${steps[@]}" --svg build/gpu_step_ops.svg >build/gpu_step_ops.md
if ! python=$(gpu_python); then
  complain "gpu-bench: the comparison with other libraries is left out: neither python3 nor" \
    ".venv/bin/python has torch with a CUDA device and triton; pip install torch"
  exit 1
fi
say "comparing with torch, Triton and comfy-kitchen"
"$python" bench/peers.py --json build/gpu_peers.json --markdown build/gpu_peers.md \
  --plots build "$@"
say "to publish: $python bench/peers.py --from-json $json --plots docs"
