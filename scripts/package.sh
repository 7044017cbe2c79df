#!/usr/bin/env bash
# Builds the packages of a release: decoscope_VERSION_ARCH.deb for Debian 12, and decoscope-VERSION-ARCH.tar.xz, which brings its libraries
# and runs in any folder.
#   scripts/package.sh [CMAKE ARGUMENT]...
# Builds the preset release first, with further arguments to CMake's configure step (-DWITH_CUDA=OFF). The packages are in build/packages.
# Prints their paths. Exit codes: 4 if dpkg-dev is missing, else that of the step that failed.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v dpkg-shlibdeps >/dev/null || { echo "package: dpkg-shlibdeps is missing; install dpkg-dev" >&2; exit 4; }
scripts/build.sh release --target decoscope "$@" >&2
rm -rf build/packages
mkdir -p build/packages
log=build/packages.log
cpack --config build/release/CPackConfig.cmake -G "DEB;TXZ" -B "$PWD/build/packages" >"$log" 2>&1 || { status=$?; cat "$log" >&2; exit $status; }
rm -rf build/packages/_CPack_Packages
ls -1 build/packages/*
