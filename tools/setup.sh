#!/usr/bin/env bash
# Makes sure that the tools and libraries of one or more groups are there; installs what is missing.
#
#   tools/setup.sh build     compiler, CMake and the libraries: everything `make build` needs
#   tools/setup.sh cross     cross compiler, emulator and GoogleTest's source
#   tools/setup.sh python    .venv with the packages of tests/python/requirements.txt
#   tools/setup.sh wheel     a Python with its headers: what `pip install .` needs besides build
#   tools/setup.sh library   what other projects find the library with
#   tools/setup.sh house     a Python 3 for the checks of the source tree
#   tools/setup.sh fuzz      clang with libFuzzer
#   tools/setup.sh package   what makes a .deb
#   tools/setup.sh root      what makes a clean root to install it in
#
# A need is tested by the thing itself (a header the compiler finds, a command that runs), so a
# machine that has it from elsewhere, or without apt, passes untouched. What is missing is
# installed with apt-get, as root or through sudo, which may ask for a password on a terminal. If
# that is impossible, the last line on stderr is one sentence with the reason and the command to
# run, and the status is 1.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

APT_OPTIONS=(-o Acquire::Retries=3 -o Acquire::http::Timeout=30 -o DPkg::Lock::Timeout=120)
VENV_STAMP=.venv/octet-requirements.sha256

# Ubuntu 22.04's default g++ is 11; its g++-12 is a package of its own.
gcc_package_suffix() {
  if grep -qs '^VERSION_CODENAME=jammy' /etc/os-release; then echo "-$OLDEST_GCC"; fi
}

# --- the needs: each is one test -----------------------------------------------------------------

has_new_cmake() {
  have cmake && at_least "$OLDEST_CMAKE" "$(cmake --version | sed -n 's/^cmake version //p')"
}

# has_header COMPILER HEADER: also looks under CMAKE_PREFIX_PATH, as CMake will.
has_header() {
  local flags=() prefix prefixes
  IFS=':;' read -r -a prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}"; do flags+=("-I$prefix/include"); done
  # shellcheck disable=SC2086  # the compiler may be "ccache g++"
  printf '#if !__has_include(<%s>)\n#error missing\n#endif\n' "$2" |
    $1 -std=c++17 "${flags[@]}" -x c++ -E - >/dev/null 2>&1
}

has_native_header() { local compiler; compiler=$(native_compiler) && has_header "$compiler" "$1"; }

has_cross_compiler() {
  local compiler
  compiler=$(find_gcc "$CROSS_PREFIX") && has_header "$compiler" fmt/format.h
}

has_emulator() { have "qemu-$OTHER_ARCH" || have "qemu-$OTHER_ARCH-static"; }

has_libfuzzer() {
  have clang++ || return 1
  local folder status=0
  folder=$(mktemp -d)
  echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
    clang++ -fsanitize=fuzzer -x c++ - -o "$folder/fuzzer" >/dev/null 2>&1 || status=1
  rm -rf "$folder"
  return "$status"
}

# Prints the Debian/Ubuntu packages of a group whose need is not met, one per line.
missing_packages() {
  local suffix
  suffix=$(gcc_package_suffix)
  case "$1" in
    build)
      native_compiler >/dev/null || echo "g++$suffix"
      has_new_cmake || echo cmake
      have ninja || echo ninja-build
      [ ! -e .git ] || have git || echo git  # benchmark records name the commit
      has_native_header fmt/format.h || echo libfmt-dev
      has_native_header nlohmann/json.hpp || echo nlohmann-json3-dev
      has_native_header CLI/CLI.hpp || echo libcli11-dev
      has_native_header png.h || echo libpng-dev
      has_native_header zlib.h || echo zlib1g-dev
      has_native_header utf8proc.h || echo libutf8proc-dev
      has_native_header curl/curl.h || echo libcurl4-openssl-dev
      has_native_header openssl/evp.h || echo libssl-dev
      has_native_header sqlite3.h || echo libsqlite3-dev
      has_native_header jpeglib.h || echo libjpeg-dev
      has_native_header webp/encode.h || echo libwebp-dev
      has_native_header microhttpd.h || echo libmicrohttpd-dev
      has_native_header gtest/gtest.h || echo libgtest-dev
      ;;
    cross)
      has_cross_compiler || echo "g++$suffix-$OTHER_PACKAGE-linux-gnu"
      has_emulator || echo qemu-user
      [ -f "$GOOGLETEST_SOURCE/CMakeLists.txt" ] || echo googletest
      ;;
    python | wheel) has_python_parts || printf '%s\n' python3 python3-venv python3-dev ;;
    fonts) [ -f /usr/share/fonts/truetype/dejavu/DejaVuSerif-Bold.ttf ] || echo fonts-dejavu-core ;;
    library) have pkg-config || echo pkg-config ;;
    house) have python3 || echo python3 ;;
    fuzz) has_libfuzzer || printf '%s\n' clang libclang-rt-dev ;;
    package)
      have dpkg || return 0  # elsewhere cpack makes only an archive
      have dpkg-shlibdeps || echo dpkg-dev
      have file || echo file
      ;;
    root) have mmdebstrap || echo mmdebstrap ;;
  esac
}

# --- installing ----------------------------------------------------------------------------------

# Whether somebody is there to type a password. Asked here, since installing closes its input.
has_terminal=no
if [ -t 0 ]; then has_terminal=yes; fi

# Asks once, before apt-get: it is called twice. sudo itself talks to the terminal.
ask_password() {
  say "missing: $*; sudo needs your password to install them"
  sudo -v
}

# find_root PACKAGE...: sets `as_root` to the words that run a command as root; fails if there are
# none.
find_root() {
  if [ "$(id -u)" = 0 ]; then
    as_root=(env DEBIAN_FRONTEND=noninteractive)
  elif have sudo && sudo -n true 2>/dev/null; then
    as_root=(sudo -n env DEBIAN_FRONTEND=noninteractive)
  elif have sudo && [ "$has_terminal" = yes ] && ask_password "$@"; then
    as_root=(sudo env DEBIAN_FRONTEND=noninteractive)
  else
    return 1
  fi
}

# What to do about the given packages: the one line to run, if there is one.
remedy_for() {
  local sudo=""
  if ! have apt-get; then
    echo "these are Debian's names of them"
    return
  fi
  if [ "$(id -u)" != 0 ] && have sudo; then sudo="sudo "; fi
  echo "to install them: ${sudo}apt-get install -y --no-install-recommends $*"
}

apt_updated=no
# Installs the given packages; on failure `reason` says why it could not.
apt_install() {
  if ! have apt-get; then
    reason="there is no apt-get on this machine"
    return 1
  fi
  if ! find_root "$@"; then
    reason="installing them needs root's rights"
    return 1
  fi
  say "installing: $*"
  if [ "$apt_updated" = no ]; then
    # Its failure decides nothing: one broken third-party source must not stop the install.
    "${as_root[@]}" apt-get "${APT_OPTIONS[@]}" update -qq || true
    apt_updated=yes
  fi
  # Its hundreds of lines are for someone who watches; what goes wrong comes on stderr anyway.
  local talk=/dev/null
  if [ -t 1 ]; then talk=/dev/tty; fi
  if ! "${as_root[@]}" apt-get "${APT_OPTIONS[@]}" install -y -qq --no-install-recommends "$@" \
    >"$talk"; then
    reason="apt-get could not install them (is there a network?)"
    return 1
  fi
}

# Sets `packages` to what the group lacks; fails when it lacks nothing.
is_missing() {
  mapfile -t packages < <(missing_packages "$1")
  # Ninja is only the faster of two ways to build; make, which called us, is the other.
  if [ "${packages[*]}" = ninja-build ]; then packages=(); fi
  [ "${#packages[@]}" -gt 0 ]
}

# What the build lacks without the given optional packages.
lost_without() {
  local package part lost=""
  for package in "$@"; do
    case "$package" in
      libutf8proc-dev) part="a tokenizer" ;;
      libcurl4-openssl-dev | libssl-dev) part="octet pull" ;;
      libsqlite3-dev) part="SQLite files in octet audit" ;;
      libjpeg-dev) part="JPEG pictures" ;;
      libwebp-dev) part="WebP pictures" ;;
      libmicrohttpd-dev) part="octet serve" ;;
    esac
    case "$lost" in
      *"$part"*) ;;
      *) lost+="${lost:+ and }$part" ;;
    esac
  done
  echo "$lost"
}

# Whether one of the given packages is more than optional.
needs_any_of() {
  local package
  for package in "$@"; do
    case "$package" in
      libutf8proc-dev | libcurl4-openssl-dev | libssl-dev | libsqlite3-dev) ;;
      libjpeg-dev | libwebp-dev | libmicrohttpd-dev) ;;
      *) return 0 ;;
    esac
  done
  return 1
}

provide_packages() {
  local packages reason=""
  is_missing "$1" || return 0
  apt_install "${packages[@]}" </dev/null || true
  is_missing "$1" || return 0
  if ! needs_any_of "${packages[@]}"; then
    say "without ${packages[*]}, hence without $(lost_without "${packages[@]}");" \
      "${reason:-incomplete}; $(remedy_for "${packages[@]}")"
    return 0
  fi
  complain "missing: ${packages[*]}; ${reason:-they are installed, but too old or incomplete};" \
    "$(remedy_for "${packages[@]}")"
  return 1
}

# --- the Python environment ----------------------------------------------------------------------

requirements_hash() { sha256sum tests/python/requirements.txt | cut -d ' ' -f 1; }

install_requirements() {
  local quiet=(--quiet)
  if [ -t 1 ]; then quiet=(); fi  # someone is watching: show the downloads
  # --no-compile: most modules of torch and its libraries are never imported.
  .venv/bin/python -m pip install "${quiet[@]}" --no-compile --disable-pip-version-check \
    --no-input "$@" -r tests/python/requirements.txt </dev/null
}

provide_venv() {
  if [ -f "$VENV_STAMP" ] && [ "$(cat "$VENV_STAMP")" = "$(requirements_hash)" ] &&
    .venv/bin/python -c '' 2>/dev/null; then
    return 0
  fi
  provide_packages python || return 1
  say "filling .venv from tests/python/requirements.txt (the first time takes minutes)"
  # --clear only for an environment that does not run, say one whose Python was upgraded away.
  if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then python3 -m venv --clear .venv; fi
  rm -f "$VENV_STAMP"
  # The second call is for a download that broke off. The third serves a machine without PyPI
  # whose own Python has the packages.
  if ! install_requirements && ! install_requirements; then
    if ! { python3 -m venv --system-site-packages .venv && install_requirements --no-index; }; then
      rm -rf .venv
      complain "missing: the Python packages of tests/python/requirements.txt;" \
        "pip could not install them into .venv (is PyPI reachable?)"
      return 1
    fi
  fi
  requirements_hash >"$VENV_STAMP"
}

for group in "$@"; do
  case "$group" in
    python) provide_venv ;;
    build | wheel | cross | fonts | library | house | fuzz | package | root)
      provide_packages "$group"
      ;;
    *)
      complain "setup: '$group' is not a group; groups are build, wheel, cross, python, fonts," \
        "library, house, fuzz, package and root"
      exit 2
      ;;
  esac
done
