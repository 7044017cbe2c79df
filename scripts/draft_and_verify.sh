#!/usr/bin/env bash
# Measures speculative decoding (`speculative`, `mcsd`) against plain decoding on unseen problems of each task.
#   scripts/draft_and_verify.sh OUT_DIR [SCALE...]      default scale: 4x2, of both models (DECOSCOPE_DRAFT_SCALE: of the draft)
# Writes OUT_DIR/<task>-<scale>.<repeat>.json (`compare --json`) and prints Markdown tables. Columns:
#   speed-up     of decode time without prompts, median of the races
#   middle half  range of the speed-ups of the middle half of the problems, each the median of its races
#   of its rows  speed-up / the speed-up if only rows and drafts cost time (`compare --rows-alone`): the median, in brackets each race
# DECOSCOPE_DV_COUNT (30) problems a task, DECOSCOPE_DV_REPEATS (3) races, DECOSCOPE_DV_TREE (auto) k_config of mcsd, DECOSCOPE_DV_TASKS
# tasks, DECOSCOPE_DV_OPTIONS further options. About 15 minutes if a step takes 8 ms. Existing files are kept, so the same command
# continues a stopped run.
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
        --prompt-file "$prompts" --scale "$scale" --draft-scale "${DECOSCOPE_DRAFT_SCALE:-$scale}" --max-tokens 128 ${DECOSCOPE_DV_OPTIONS:-} \
        --rows-alone --json
    done
  done
done
python3 "$here/scripts/draft_and_verify_tables.py" "$out" "$repeats" "${tasks[*]}" "${scales[@]}"
