#!/usr/bin/env bash
# Builds one preset.
#   scripts/build.sh [PRESET] [--target NAME]... [--folder NAME] [CMAKE ARGUMENT]...
# PRESET: release (default), tests, debug, asan, asan-emulated, tsan, cuda-all. Builds everything, or only the named targets, in build/PRESET or
# build/NAME. Further arguments go to CMake's configure step (-DWITH_UI=OFF). Prints the build's output, and the configure log if that
# step fails. Exit code: CMake's.
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
# ccache: the sloppiness settings allow precompiled headers, CCACHE_DEPEND saves a preprocessor run per file, and relative paths let a
# second build folder reuse the objects of the first.
launcher=()
command -v ccache >/dev/null &&
  launcher=("-DCMAKE_CXX_COMPILER_LAUNCHER=env;CCACHE_BASEDIR=$PWD;CCACHE_DEPEND=1;CCACHE_SLOPPINESS=pch_defines,time_macros;ccache")
mkdir -p build
log=build/configure-$folder.log
cmake --preset "$preset" -B "build/$folder" "${launcher[@]}" "$@" > "$log" 2>&1 || { cat "$log" >&2; exit 1; }
cmake --build "build/$folder" --parallel "$(nproc)" "${target[@]}"
