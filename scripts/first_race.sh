#!/usr/bin/env bash
# Measures the window's first race on unseen prompts of five tasks, at each scale, against plain decoding by the lane's own model.
#   scripts/first_race.sh OUT_DIR [SCALE...]      default scales: 1x1 4x2
# Writes OUT_DIR/<task>-<scale>.json (`compare --json`) and prints a Markdown table. DECOSCOPE_RACE_COUNT (100) prompts a task,
# DECOSCOPE_RACE_OPTIONS further options. Existing files are kept, so the same command continues a stopped run.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
# shellcheck source=scripts/lanes.sh
source "$here/scripts/lanes.sh"
first_race
out=${1:?name a folder for the results}
shift
scales=("${@:-1x1}")
[ $# -eq 0 ] && scales=(1x1 4x2)
count=${DECOSCOPE_RACE_COUNT:-100}
mkdir -p "$out"
for task in arith kb sql py blocks; do
  prompts="$out/$task.jsonl"
  problems "$task" "$count" > "$prompts"
  for scale in "${scales[@]}"; do
    # shellcheck disable=SC2086
    into "$out/$task-$scale.json" compare "${race[@]}" --prompt-file "$prompts" --scale "$scale" \
      --max-tokens 128 ${DECOSCOPE_RACE_OPTIONS:-} --json
  done
done
python3 - "$out" "${scales[@]}" <<'PY'
import json, sys
out, scales = sys.argv[1], sys.argv[2:]
for scale in scales:
    print(f"\nAt {scale}:\n\n| task | lane | tokens/step | tokens/s | speed-up | identical to AR |\n| --- | --- | --- | --- | --- | --- |")
    for task in ("arith", "kb", "sql", "py", "blocks"):
        for s in json.load(open(f"{out}/{task}-{scale}.json"))["summary"]:
            print(f"| {task} | {s['lane']} | {s['tokens_per_step']:.2f} | {s['tokens_per_second']:.0f} | {s['speedup']:.2f}x | "
                  f"{s['identical']} of {s['n']} |")
PY
