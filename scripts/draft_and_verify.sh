#!/usr/bin/env bash
# Draft and verify, measured: unseen problems of each task through the decoders that draft, with their defaults, against AR in turns.
#   scripts/draft_and_verify.sh OUT_DIR [SCALE...]      default scale: 4x2 (the draft is never scaled)
# Writes OUT_DIR/<task>-<scale>.<repeat>.json (the command line's compare contract), step costs, and prints Markdown tables. The speed-up
# is that of decode time, without the reading of prompts: the median of DECOSCOPE_DV_REPEATS races (3); `middle half` is where the
# speed-ups of half the problems lie, of each the median of its races. `of its rows` is the speed-up / what it would be if nothing but rows
# and drafts were paid (`compare --rows-alone`: behind each text its forwards run once more without the decoder, plain decoding's too, and
# what the draft took counts as it was): the median of the races, in brackets each.
# `mcsd` sizes its trees to the machine (k_config=auto); DECOSCOPE_DV_TREE names another.
# DECOSCOPE_DV_COUNT problems a task (default 30: some 15 minutes in all where a step takes 8 ms), DECOSCOPE_DV_OPTIONS further options,
# DECOSCOPE_DV_TASKS tasks.
# A file that is there is not made again, so the same command goes on where it was stopped.
set -euo pipefail
unset DECOSCOPE_DATA
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
out=${1:?name a folder for the results}
shift
scales=("${@:-4x2}")
count=${DECOSCOPE_DV_COUNT:-30}
repeats=${DECOSCOPE_DV_REPEATS:-3}
read -ra tasks <<< "${DECOSCOPE_DV_TASKS:-arith kb sql py blocks}"
mkdir -p "$out"
for task in "${tasks[@]}"; do
  prompts="$out/$task.jsonl"
  problems "$task" "$count" > "$prompts"
  for scale in "${scales[@]}"; do
    for repeat in $(seq "$repeats"); do
      # shellcheck disable=SC2086
      into "$out/$task-$scale.$repeat.json" compare --decoders ar,speculative,mcsd --set k_config="${DECOSCOPE_DV_TREE:-auto}" \
        --prompt-file "$prompts" --scale "$scale" --max-tokens 128 ${DECOSCOPE_DV_OPTIONS:-} \
        --rows-alone --json
    done
  done
done
python3 "$here/scripts/draft_and_verify_tables.py" "$out" "$repeats" "${tasks[*]}" "${scales[@]}"
