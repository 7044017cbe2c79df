#!/usr/bin/env bash
# Builds one preset: release (default), debug, asan, asan-emulated, tsan; all of it, or with --target NAME behind the preset that alone.
# --folder NAME builds in build/NAME instead of the preset's own folder. Further arguments go to CMake's configure step.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
target=()
folder=$preset
while [ $# -gt 0 ]; do
  case $1 in
    --target) target+=(--target "$2") && shift 2 ;;
    --folder) folder=$2 && shift 2 ;;
    *) break ;;
  esac
done
# The sloppiness lets ccache keep what is compiled with a precompiled header; depending on the compiler's own list of headers
# saves it a preprocessor run a file; paths told from the tree's root let a second build folder find what the first compiled.
launcher=()
command -v ccache >/dev/null &&
  launcher=("-DCMAKE_CXX_COMPILER_LAUNCHER=env;CCACHE_BASEDIR=$PWD;CCACHE_DEPEND=1;CCACHE_SLOPPINESS=pch_defines,time_macros;ccache")
mkdir -p build
log=build/configure-$folder.log
cmake --preset "$preset" -B "build/$folder" "${launcher[@]}" "$@" > "$log" 2>&1 || { cat "$log" >&2; exit 1; }
cmake --build "build/$folder" --parallel "$(nproc)" "${target[@]}"
