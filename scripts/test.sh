#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests; then builds without CUDA and without the window.
# DECOSCOPE_TEST_FAST=1 leaves the second build out.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
scripts/setup.sh
scripts/build.sh release
# What setup.sh installs is there: a test that misses it fails instead of being skipped.
export DECOSCOPE_TEST_NEEDS_ALL=1
ctest --preset release --parallel "$(nproc)"
if [ "${DECOSCOPE_TEST_FAST:-0}" != 1 ]; then
  launcher=()
  command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  cmake -S . -B build/minimal -G Ninja -DCMAKE_BUILD_TYPE=Release -DWITH_CUDA=OFF -DWITH_UI=OFF "${launcher[@]}" \
    > build/configure-minimal.log 2>&1 || { cat build/configure-minimal.log; exit 1; }
  cmake --build build/minimal --target decoscope cli_test cli_parse_test --parallel "$(nproc)"
  build/minimal/bin/cli_parse_test
  build/minimal/bin/cli_test --gtest_filter='Cli.*:CliModel*'
fi
