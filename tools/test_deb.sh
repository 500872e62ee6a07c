#!/usr/bin/env bash
# Makes the .deb of build/, installs it into a clean root of this machine's distribution, runs the
# program there and removes it again.
#
#   tools/test_deb.sh     after `make build`; 0: passed, 77: no root can be made here, other: failed
#
# mmdebstrap makes the root (30 MB to fetch, half a minute) and runs the checks in it; nothing of it
# stays, whatever happens. It needs root's rights, a sudo without a password, or user namespaces.
set -euo pipefail
# shellcheck source=tools/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

as_root=()
if [ "$(id -u)" != 0 ] && have sudo && sudo -n true 2>/dev/null; then as_root=(sudo -n); fi

# All temporary files are in one folder, the root as well: what mmdebstrap leaves when it is killed
# goes with it. Not in build/: the user _apt and those of another namespace must get there.
work=$(mktemp -d)
trap '"${as_root[@]}" rm -rf --one-file-system "$work"' EXIT
chmod 755 "$work"

(cd build && cpack -G DEB -B "$work/packages")
package=("$work"/packages/octet_*.deb)
[ "${#package[@]}" = 1 ] || { complain "cpack made ${#package[@]} packages octet"; exit 1; }

# What runs inside. The commands of a user, and where other programs look for our pages.
cat >"$work/checks.sh" <<'CHECKS'
set -eux
export DEBIAN_FRONTEND=noninteractive HOME=/tmp
apt-get install -y -qq --no-install-recommends /octet.deb >/dev/null
cd /tmp
octet --version
octet devices
octet demo --quiet
head -c 4 demo.png | grep -q PNG
grep -q '^\.TH OCTET 1' /usr/share/man/man1/octet.1
bash -c '. /usr/share/bash-completion/completions/octet && complete -p octet'
grep -q '^#compdef octet' /usr/share/zsh/vendor-completions/_octet
test -s /usr/share/fish/vendor_completions.d/octet.fish
apt-get remove -y -qq octet >/dev/null
test ! -e /usr/bin/octet
test ! -e /usr/share/octet
CHECKS

# shellcheck source=/dev/null
. /etc/os-release
components=main
[ "$ID" != ubuntu ] || components=main,universe
status=0
# shellcheck disable=SC2016  # $1, the root, is for mmdebstrap's shell
"${as_root[@]}" env TMPDIR="$work" timeout 1800 mmdebstrap --variant=apt \
  --components="$components" \
  --customize-hook="upload '${package[0]}' /octet.deb" \
  --customize-hook="upload '$work/checks.sh' /checks.sh" \
  --customize-hook='echo "octet: a clean root is made"; chroot "$1" sh /checks.sh' \
  "$VERSION_CODENAME" /dev/null 2>&1 | tee "$work/log" || status=$?
if [ "$status" = 0 ]; then
  say "the package installs, runs and goes in a clean $PRETTY_NAME"
elif grep -q '^octet: a clean root is made' "$work/log"; then
  complain "the package fails in a clean $PRETTY_NAME; the last command above says where"
  exit 1
else
  reason=$(grep '^E: ' "$work/log" || tail -n 1 "$work/log")
  complain "no clean root to test the package in: $(tail -n 1 <<<"$reason")"
  exit 77
fi
