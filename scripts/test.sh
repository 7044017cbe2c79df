#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests; then builds without CUDA and without the window.
# DECOSCOPE_TEST_FAST=1 leaves the second build out.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
scripts/setup.sh
scripts/build.sh tests
# What setup.sh installs is there: a test that misses it fails instead of being skipped.
export DECOSCOPE_TEST_NEEDS_ALL=1
export PATH="$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/decoscope/bin"
ctest --preset tests --parallel "$(nproc)"
if [ "${DECOSCOPE_TEST_FAST:-0}" != 1 ]; then
  # With the same flags, so that ccache has the engine's objects already.
  scripts/build.sh release --folder minimal --target decoscope --target cli_test --target cli_parse_test -DWITH_CUDA=OFF -DWITH_UI=OFF
  build/minimal/bin/cli_parse_test
  build/minimal/bin/cli_test --gtest_filter='Cli.*:CliModel*'
fi
