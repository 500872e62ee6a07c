#!/usr/bin/env bash
# Configures one preset of CMakePresets.json and builds it.
#
#   tools/build.sh PRESET [-DOPTION=VALUE...] [TARGET...]     without a target: everything
#
# CUDA=on|off|auto|nvcc|check is OCTET_CUDA of cmake/cuda.cmake. OCTET_PYTHON=<interpreter> adds the
# target octet_python for it.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

preset=$1
shift
folder=build/$preset
[ "$preset" != default ] || folder=build

# A preset names no generator, so that a machine without Ninja builds too. CMake reads this
# variable only when it configures a folder for the first time.
if have ninja; then export CMAKE_GENERATOR=Ninja; fi
if compiler=$(native_compiler); then export CXX=$compiler; fi

# A checkout that was moved or copied still has the old path in its cache, which CMake refuses.
cache=$folder/CMakeCache.txt
if [ -f "$cache" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$cache"; then
  rm -rf "$cache" "$folder/CMakeFiles"
fi

# A folder configured with CUDA keeps it until told otherwise, although a preset would reset it. Not
# after CHECK, which the tests use: its kernels may be those of one architecture.
cuda=${CUDA:-}
case "${cuda^^}" in
  "" | ON | OFF | AUTO | NVCC | CHECK) ;;
  /*) cuda="" ;;  # other tools keep the toolkit's path in a variable of this name
  *)
    complain "CUDA is '$cuda', expected on, off, auto, nvcc or check"
    exit 2
    ;;
esac
if [ -z "$cuda" ] && [ "$preset" = default ] && [ -f "$cache" ]; then
  cuda=$(sed -n 's/^OCTET_CUDA:[A-Z]*=//p' "$cache")
  [ "$cuda" != CHECK ] || cuda=""
fi
options=()
while [[ ${1:-} == -D* ]]; do
  options+=("$1")
  shift
done
[ -z "$cuda" ] || options+=("-DOCTET_CUDA=${cuda^^}")
[ -z "${OCTET_PYTHON:-}" ] || options+=(-DOCTET_PYTHON=ON "-DPython_EXECUTABLE=$OCTET_PYTHON")

log=$folder/configure.log
mkdir -p "$folder"
# Its forty lines of findings matter only when it fails.
if ! cmake --preset "$preset" "${options[@]}" >"$log" 2>&1; then
  cat "$log" >&2
  complain "configuring $folder failed; CMake's message is above, the build's dependencies are in" \
    "docs/dependencies.md"
  exit 1
fi
grep -A 4 'CMake Warning' "$log" >&2 || true
sed -n 's/^-- octet: /octet: /p' "$log"  # what is built, and why

targets=()
[ $# -eq 0 ] || targets=(--target "$@")
cmake --build "$folder" --parallel "${JOBS:-$(nproc)}" "${targets[@]}"
