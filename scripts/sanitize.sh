#!/usr/bin/env bash
# Builds everything with a sanitizer and runs all tests: scripts/sanitize.sh asan (addresses, leaks, undefined behaviour)
# or tsan (threads), or asan-emulated: the CUDA kernels on the CPU, which those two leave out, and all tests of them. Further
# arguments go to CTest: scripts/sanitize.sh tsan -R 'Queue|Recorder'.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-asan}
shift || true
case $preset in
  asan | tsan | asan-emulated) ;;
  *) echo "scripts/sanitize.sh: preset: found $preset, expected asan, tsan or asan-emulated" >&2 && exit 2 ;;
esac
scripts/setup.sh
scripts/build.sh "$preset"
export DECOSCOPE_TEST_NEEDS_ALL=1  # setup.sh installed it
# TSan's shadow memory has fixed places, which randomised addresses of a recent kernel can take.
steady=()
setarch "$(uname -m)" --addr-no-randomize true 2> /dev/null && steady=(setarch "$(uname -m)" --addr-no-randomize)
exec "${steady[@]}" ctest --preset "$preset" --parallel "$(nproc)" "$@"
