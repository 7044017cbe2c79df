#!/usr/bin/env bash
# Builds a fuzzer with clang, AddressSanitizer and UBSan, and runs it until the executions of all calls add up to a total.
#   scripts/fuzz.sh TARGET [TOTAL] [LIBFUZZER ARGUMENT]...
# TARGET: gguf, tokenizer_json, tiktoken, template. TOTAL: executions, 20000000 by default. The fuzzer starts from the seeds in
# tests/fuzz/corpus/TARGET. It keeps the last inputs, findings and the count in $XDG_CACHE_HOME/decoscope/fuzz/TARGET (~/.cache), from which the next
# call continues; a call that is stopped loses at most the count of its last slice. DECOSCOPE_FUZZ_BIN=DIR runs copies of the fuzzers in DIR
# without a build. Exit code: 0 when the total is reached, or libFuzzer's for a finding.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:?name a target: gguf, tokenizer_json, tiktoken, template}
shift
total=20000000
if [[ ${1:-} =~ ^[0-9]+$ ]]; then total=$1 && shift; fi
slice=100000 renew=300000
programs=${DECOSCOPE_FUZZ_BIN:-build/fuzz/bin}
[ -n "${DECOSCOPE_FUZZ_BIN:-}" ] || scripts/build.sh fuzz --target "fuzz_$target" >&2
kept=${XDG_CACHE_HOME:-$HOME/.cache}/decoscope/fuzz/$target
mkdir -p "$kept/corpus" "$kept/findings"
done=$(cat "$kept/executions" 2> /dev/null || echo 0)
# Faster: no search for leaks after each input, no stack traces of allocations, no entropic weights, and a quarantine of freed memory that fits
# into the cache and is larger than what an input allocates.
export ASAN_OPTIONS=malloc_context_size=0:quarantine_size_mb=2:thread_local_quarantine_size_kb=256:${ASAN_OPTIONS:-}
while [ "$done" -lt "$total" ]; do
  status=0
  # A corpus that grows collects slow inputs (templates fall from 6,000 executions a second to 700), so it is emptied at every `renew`.
  if [ $((done % renew)) -lt "$slice" ]; then rm -rf "$kept/corpus" && mkdir "$kept/corpus"; fi
  "$programs/fuzz_$target" -artifact_prefix="$kept/findings/" -rss_limit_mb=2048 -malloc_limit_mb=1024 -max_len=16384 \
    -timeout=0 -report_slow_units=1000000 -entropic=0 -detect_leaks=0 -print_final_stats=1 -verbosity=0 -runs=$slice "$@" \
    "$kept/corpus" "tests/fuzz/corpus/$target" 2> "$kept/log" || status=$?
  n=$(sed -n 's/^stat::number_of_executed_units: *//p' "$kept/log")
  done=$((done + ${n:-0}))
  echo "$done" > "$kept/executions"
  echo "$target: $done executions, $(sed -n 's/^stat::average_exec_per_sec: *//p' "$kept/log") per second"
  if [ "$status" -ne 0 ]; then cat "$kept/log" >&2 && exit "$status"; fi
done
