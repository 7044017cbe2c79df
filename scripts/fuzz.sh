#!/usr/bin/env bash
# Builds a fuzzer with clang, AddressSanitizer and UBSan, and runs it.
#   scripts/fuzz.sh TARGET [LIBFUZZER ARGUMENT]...
# TARGET: gguf, tokenizer_json, tiktoken, template. The fuzzer starts from the seeds in tests/fuzz/corpus/TARGET and keeps new inputs in
# build/fuzz/corpus/TARGET, from which the next call continues. Arguments go to libFuzzer: -runs=1000000, -max_total_time=600. Exit code: 0, or
# libFuzzer's for a finding, whose input it writes to build/fuzz/findings.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:?name a target: gguf, tokenizer_json, tiktoken, template}
shift
scripts/build.sh fuzz --target "fuzz_$target" >&2
mkdir -p "build/fuzz/corpus/$target" build/fuzz/findings
exec "build/fuzz/bin/fuzz_$target" -artifact_prefix=build/fuzz/findings/ -rss_limit_mb=2048 -malloc_limit_mb=1024 -timeout=10 \
  -max_len=16384 "$@" "build/fuzz/corpus/$target" "tests/fuzz/corpus/$target"
