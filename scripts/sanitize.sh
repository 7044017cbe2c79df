#!/usr/bin/env bash
# Builds everything with a sanitizer and runs the tests.
#   scripts/sanitize.sh asan|tsan|asan-emulated [CTEST ARGUMENT]...
# asan: addresses, leaks, undefined behaviour. tsan: threads. asan-emulated: the CUDA kernels on the CPU and their tests, which the other
# two leave out. Example: scripts/sanitize.sh tsan -R 'Queue|Recorder'. Exit code: CTest's; 2 for another preset.
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
# TSan's shadow memory has fixed addresses, which address randomisation of recent kernels can occupy.
steady=()
setarch "$(uname -m)" --addr-no-randomize true 2> /dev/null && steady=(setarch "$(uname -m)" --addr-no-randomize)
exec "${steady[@]}" ctest --preset "$preset" --parallel "$(nproc)" "$@"
