#!/usr/bin/env bash
# Draft and verify, measured: unseen problems of each task through the decoders that draft, with their defaults, against AR in turns.
#   scripts/draft_and_verify.sh OUT_DIR [SCALE...]      default scale: 4x2 (the draft is never scaled)
# Writes OUT_DIR/<task>-<scale>.json (the command line's compare contract), step costs, and prints Markdown tables. The speed-up is that
# of decode time, without the reading of prompts; of each problem the median of DECOSCOPE_DV_REPEATS runs (3), which take turns. `middle
# half` is where the speed-ups of half the problems lie. `of its rows` is the speed-up / (tokens per step x cost of one row / (cost of the
# step's rows + cost of its draft forwards)), with steps as dear as they are behind as many tokens as a step of the task has before it on
# average: 1 if nothing but the rows is paid. DECOSCOPE_DV_COUNT problems a task (default 30: some ten minutes in all where a step takes
# 12 ms), DECOSCOPE_DV_OPTIONS further options, DECOSCOPE_DV_TASKS tasks.
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
rows=1,2,3,4,5,6,7,8,10,12,14,16,20,24
into "$out/draft-steps.json" bench step --model demo-draft --rows 1,2,4,8,16 --json
for scale in "${scales[@]}"; do
  for task in "${tasks[@]}"; do
    prompts="$out/$task.jsonl"
    problems "$task" "$count" > "$prompts"
    # shellcheck disable=SC2086
    into "$out/$task-$scale.json" compare --decoders ar,speculative,mcsd --prompt-file "$prompts" --scale "$scale" --max-tokens 128 \
      --repeat "$repeats" ${DECOSCOPE_DV_OPTIONS:-} --json
    context=$(python3 -c 'import sys; from step_costs import context; print(context(sys.argv[1]))' "$out/$task-$scale.json")
    into "$out/steps-$task-$scale.json" bench step --scale "$scale" --context "$context" --rows $rows --json
  done
done
python3 - "$out" "${tasks[*]}" "${scales[@]}" <<'PY'
import json, statistics, sys
from step_costs import at, context, costs, listed, of_its_rows
out, tasks, scales = sys.argv[1], sys.argv[2].split(), sys.argv[3:]
draft = costs(f"{out}/draft-steps.json")
def middle_half(runs):
    gains = [r["speedup"] for r in runs if r["speedup"] is not None]
    if len(gains) < 2: return "-"
    low, _, high = statistics.quantiles(gains, n=4)
    return f"{low:.2f} to {high:.2f}"
for scale in scales:
    print(f"\nAt {scale}. A forward of the draft in ms by rows: {listed(draft)}")
    for task in tasks:
        print(f"A step of the target behind {context(f'{out}/{task}-{scale}.json')} tokens, as {task} has them: "
              f"{listed(costs(f'{out}/steps-{task}-{scale}.json'))}")
    print("\n| task | decoder | tokens/step | rows/step | draft forwards/step | accepted | speed-up | middle half | of its rows | "
          "identical to AR |")
    print("| --- " * 10 + "|")
    for task in tasks:
        data = json.load(open(f"{out}/{task}-{scale}.json"))
        target = costs(f"{out}/steps-{task}-{scale}.json")
        for s in data["summary"]:
            if s["decoder"] == "ar": continue
            runs = [r for r in data["results"] if r["decoder"] == s["decoder"]]
            steps = sum(r["steps"] for r in runs)
            sum_of = lambda name: sum(r["metrics"][name] for r in runs)
            n_rows, forwards = sum_of("rows") / steps, sum_of("draft_forwards") / steps
            draft_rows = sum_of("draft_rows") / max(1, sum_of("draft_forwards"))
            step_ms = at(target, n_rows) + forwards * at(draft, draft_rows)
            of_rows = of_its_rows(s["speedup"], s["tokens_per_step"], target, step_ms)
            accepted = sum_of("accepted") / max(1, sum_of("proposed"))
            print(f"| {task} | {s['decoder']} | {s['tokens_per_step']:.2f} | {n_rows:.1f} | {forwards:.1f} | {accepted:.2f} | "
                  f"{s['speedup']:.2f}x | {middle_half(runs)} | {of_rows:.2f} | {s['identical']} of {s['n']} |")
PY
