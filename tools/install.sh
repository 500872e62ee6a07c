#!/usr/bin/env bash
# Installs the program, its man page and completions, the library and its headers.
#
#   tools/install.sh PREFIX     DESTDIR, when set, is put before it
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

prefix=$(realpath -ms "$1")
# Only the owner of the checkout builds: `sudo make install` leaves no file of root's behind.
if [ "$(id -u)" = "$(stat -c %u .)" ]; then
  tools/setup.sh build
  tools/build.sh default octet
elif [ ! -x build/octet ]; then
  complain "there is no build/octet to install; run make build first, as the owner of this folder"
  exit 1
fi
rm -f build/install_manifest.txt  # another user's could not be written
cmake --install build --prefix "$prefix"
say "installed into ${DESTDIR:-}$prefix; build/install_manifest.txt lists the files"
