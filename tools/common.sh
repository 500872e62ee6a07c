# What the shell tools share: the place of the repository, the compilers, the other architecture.
# Sourced, never run. Every tool works from the root of the repository.
# shellcheck shell=bash disable=SC2034  # the variables are for those who source this

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL  # the calling make's job server is useless to cmake's builds
export OCTET_CONFIG=  # no tool runs with the defaults of whoever calls it

OLDEST_GCC=12
OLDEST_CMAKE=3.22

say() { printf '%s\n' "octet: $*"; }
complain() { printf '%s\n' "octet: $*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# at_least WANTED FOUND: compares dotted version numbers.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

is_new_gcc() {
  have "$1" && at_least "$OLDEST_GCC" "$("$1" -dumpfullversion 2>/dev/null || echo 0)"
}

# Prints the first of <prefix>g++, <prefix>g++-15 ... <prefix>g++-12 that is new enough. Some
# distributions have a new compiler next to an old default (Ubuntu 22.04: g++ is 11).
find_gcc() {
  local name
  for name in "$1g++" "$1g++-15" "$1g++-14" "$1g++-13" "$1g++-12"; do
    if is_new_gcc "$name"; then
      printf '%s\n' "$name"
      return 0
    fi
  done
  return 1
}

# The compiler of native builds: $CXX if the user set it, otherwise a g++ that is new enough.
native_compiler() {
  if [ -n "${CXX:-}" ]; then
    # CXX may carry a launcher ("ccache g++"): its first word is the program.
    have "${CXX%% *}" && printf '%s\n' "$CXX"
  else
    find_gcc ""
  fi
}

# Whether .venv can be made, and the package's extension be compiled for it.
has_python_parts() {
  have python3 && python3 -c '
import ensurepip, os, sysconfig, venv
os.stat(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null
}

# The architecture whose kernels are cross-compiled and run under an emulator.
case "$(uname -m)" in
  x86_64) OTHER_ARCH=aarch64 OTHER_PACKAGE=aarch64 ;;
  *) OTHER_ARCH=x86_64 OTHER_PACKAGE=x86-64 ;;
esac
CROSS_PRESET="cross-$OTHER_PACKAGE"
CROSS_PREFIX="$OTHER_ARCH-linux-gnu-"
GOOGLETEST_SOURCE=/usr/src/googletest
