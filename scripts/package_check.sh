#!/usr/bin/env bash
# Checks both packages in a clean Debian 12, which debootstrap downloads into a folder of its own.
#   scripts/package_check.sh [FOLDER]
# FOLDER holds the packages (default build/packages, where scripts/package.sh makes them). Before the .deb and its dependencies are installed, the
# archive races in the terminal and draws its window. Then the .deb is installed with its dependencies; it prints its version, races in the terminal,
# draws its window, opens a recording by its MIME type, and leaves nothing behind when it is purged. Needs root, debootstrap and a network.
# Exit codes: 0 all passed, 1 a check failed (one line says which), 2 usage, 4 something is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -le 1 ] || { echo "usage: scripts/package_check.sh [FOLDER]" >&2; exit 2; }
packages=$(realpath "${1:-build/packages}")
command -v debootstrap >/dev/null || { echo "package_check: debootstrap is missing; install it" >&2; exit 4; }
[ "$(id -u)" = 0 ] || { echo "package_check: needs root, for debootstrap and chroot" >&2; exit 4; }
deb=$(ls "$packages"/decoscope_*.deb 2>/dev/null || true)
archive=$(ls "$packages"/decoscope-*.tar.xz 2>/dev/null || true)
if [ -z "$deb" ] || [ -z "$archive" ]; then
  echo "package_check: no packages in $packages; make them with scripts/package.sh" >&2
  exit 4
fi

root=$(mktemp -d)
# shellcheck disable=SC2317  # called by trap
clean_up() {
  umount "$root/dev" 2>/dev/null || true
  rm -rf --one-file-system "$root" "$root.log"
}
trap clean_up EXIT
# The mirror of this system; if none is found, debootstrap uses its own.
mirror=$(sed -nE 's/^(deb .*|URIs:) *(https?:[^ ]*debian[^ ]*).*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
  grep -v security | head -1 || true)
echo "package_check: installing Debian 12" >&2
debootstrap --variant=minbase bookworm "$root" ${mirror:+"$mirror"} >"$root.log" 2>&1 || { tail -5 "$root.log" >&2; exit 4; }
cp /etc/resolv.conf "$root/etc/"
cp /etc/apt/apt.conf.d/*prox* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
mount --bind /dev "$root/dev"
cp "$deb" "$root/root/decoscope.deb"
cp "$archive" "$root/root/decoscope.tar.xz"
cp assets/recordings/first_race.pdrun "$root/root/"

failed=0
# Runs a check in the new system and says whether it passed.
check() {
  local words=$1
  # In a PID namespace of its own: its processes end with the check, and it sees none of the host's.
  if unshare --pid --fork --kill-child --mount-proc="$root/proc" chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 bash -euc "cd /root; $2" >"$root.log" 2>&1; then
    echo "ok      $words"
  else
    echo "FAILED  $words"
    tail -5 "$root.log" | sed 's/^/        /'
    failed=1
  fi
}
window='LIBGL_ALWAYS_SOFTWARE=1 xvfb-run -a'

check "the archive races in a system without its libraries but libGL, which is the driver's" \
  'apt-get update -qq; apt-get install -y -qq --no-install-recommends xz-utils libgl1; tar xf decoscope.tar.xz; decoscope-*/bin/decoscope compare --prompt "USER: 2+3?" --decoders ar,lookahead --max-tokens 16'
check "a display and the desktop's tools can be installed" \
  'apt-get install -y -qq --no-install-recommends xvfb xauth libgl1-mesa-dri xdg-utils shared-mime-info desktop-file-utils file libfile-mimeinfo-perl'
check "the window of the archive draws" \
  "$window decoscope-*/bin/decoscope --open first_race.pdrun --screenshot archive.png && test \$(stat -c %s archive.png) -gt 20000"
check "the .deb installs with its dependencies" \
  'apt-get install -y -qq --no-install-recommends ./decoscope.deb'
check "decoscope --version prints the compiler" 'decoscope --version | grep "compiler"'
check "the installed program races" \
  'decoscope compare --prompt "USER: 2+3?" --decoders ar,lookahead --max-tokens 16'
dpkg_list='dpkg -L decoscope | grep'
check "it has a menu entry, an icon and a MIME type" \
  "$dpkg_list applications/decoscope.desktop; $dpkg_list apps/decoscope.svg; $dpkg_list mime/packages/decoscope.xml"
check "the window of the .deb draws" "$window decoscope --open first_race.pdrun --screenshot window.png && test \$(stat -c %s window.png) -gt 20000"
check "a recording has the MIME type of the program" \
  'update-mime-database /usr/share/mime; update-desktop-database; xdg-mime query filetype first_race.pdrun | grep decoscope'
# shellcheck disable=SC2016  # expanded in the new system
check "opening a recording starts the program" \
  'Xvfb :99 >/dev/null 2>&1 & sleep 3; export DISPLAY=:99 LIBGL_ALWAYS_SOFTWARE=1
   xdg-open first_race.pdrun & for i in $(seq 40); do sleep 0.5; for p in /proc/[0-9]*; do
     case $(readlink "$p/exe") in */decoscope) if grep -aq first_race "$p/cmdline"; then exit 0; fi ;; esac; done; done; exit 1'
check "the .deb is purged" 'apt-get purge -y -qq decoscope'
check "purging leaves no file behind" \
  '! find / -xdev \( -path /root -o -path /proc -o -path /var/lib/apt -o -path /var/log -o -path /var/cache \) -prune -o -iname "*decoscope*" -print | grep .'
exit $failed
