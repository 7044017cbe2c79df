#!/usr/bin/env bash
# Installs missing packages, builds, and runs all tests; then builds without CUDA and window and runs the command line's tests again.
#   scripts/test.sh
# Tests on SmolLM2-135M-Instruct (93 MB) need its download, which DECOSCOPE_OFFLINE=1 skips; without it they are skipped.
# DECOSCOPE_TEST_FAST=1 skips the second build. Exit code: 0 if all tests passed.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
scripts/setup.sh
fetching=
if [ -z "${DECOSCOPE_OFFLINE:-}" ]; then
  scripts/get_model.sh smollm2 >/dev/null 2> >(cat >&2) &  # with a pipe it prints no progress between the build's lines
  fetching=$!
fi
scripts/build.sh tests
if [ -n "$fetching" ] && ! wait "$fetching"; then echo "test.sh: no SmolLM2: its tests will be skipped" >&2; fi
# setup.sh installed the optional programs, so a test fails instead of being skipped if one is missing.
export DECOSCOPE_TEST_NEEDS_ALL=1
export PATH="$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/decoscope/bin"
ctest --preset tests --parallel "$(nproc)"
if [ "${DECOSCOPE_TEST_FAST:-0}" != 1 ]; then
  # The same flags as above, so ccache provides the engine's object files.
  scripts/build.sh tests --folder minimal --target decoscope --target cli_test --target cli_parse_test -DWITH_CUDA=OFF -DWITH_UI=OFF
  build/minimal/bin/cli_parse_test
  build/minimal/bin/cli_test --gtest_filter='Cli.*:CliModel*'
fi
