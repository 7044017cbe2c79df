#!/usr/bin/env bash
# Builds one preset: release (default), debug, asan, tsan; all of it, or with --target NAME behind the preset that alone.
# Further arguments go to CMake's configure step.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
target=()
[ "${1:-}" = --target ] && target=(--target "$2") && shift 2
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
mkdir -p build
cmake --preset "$preset" "${launcher[@]}" "$@" > "build/configure-$preset.log" 2>&1 || { cat "build/configure-$preset.log" >&2; exit 1; }
cmake --build --preset "$preset" --parallel "$(nproc)" "${target[@]}"
