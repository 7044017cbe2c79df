#!/usr/bin/env bash
# Draft and verify, measured: unseen problems of each task through the decoders that draft, against AR in turns.
#   scripts/draft_and_verify.sh OUT_DIR [SCALE...]      default scale: 4x2 (the draft is never scaled)
# Writes OUT_DIR/<task>-<scale>.json (the command line's compare contract), step costs, and prints Markdown tables. `of its rows` is
# the speed-up / (tokens per step x cost of one row / (cost of the step's rows + cost of its draft forwards)): 1 if nothing but the
# rows is paid. DECOSCOPE_DV_COUNT problems a task (default 40), DECOSCOPE_DV_OPTIONS further options, DECOSCOPE_DV_TASKS tasks.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
program="$here/build/release/bin/decoscope"
out=${1:?name a folder for the results}
shift
scales=("${@:-4x2}")
count=${DECOSCOPE_DV_COUNT:-40}
read -ra tasks <<< "${DECOSCOPE_DV_TASKS:-arith kb sql py blocks}"
mkdir -p "$out"
rows=1,2,3,4,5,6,7,8,10,12,14,16,20,24
"$program" bench step --model demo-draft --rows 1,2,4,8,16 --json > "$out/draft-steps.json"
for scale in "${scales[@]}"; do
  "$program" bench step --scale "$scale" --rows $rows --json > "$out/steps-$scale.json"
  for task in "${tasks[@]}"; do
    prompts="$out/$task.jsonl"
    "$program" data generate "$task" --split test --level 1 --start 0 --count $((count / 2)) > "$prompts"
    "$program" data generate "$task" --split test --level 2 --start 0 --count $((count - count / 2)) >> "$prompts"
    # shellcheck disable=SC2086
    "$program" compare --decoders ar,speculative,mcsd --prompt-file "$prompts" --scale "$scale" --max-tokens 128 \
      ${DECOSCOPE_DV_OPTIONS:-} --json > "$out/$task-$scale.json"
  done
  "$program" bench step --scale "$scale" --rows $rows --json > "$out/steps-after-$scale.json"
done
python3 - "$out" "${tasks[*]}" "${scales[@]}" <<'PY'
import json, statistics, sys
out, tasks, scales = sys.argv[1], sys.argv[2].split(), sys.argv[3:]

def costs(*names):
    """Milliseconds by rows, the mean over the files."""
    of = [{r["rows"]: r["ms"] for r in json.load(open(f"{out}/{name}.json"))["rows"]} for name in names]
    return {rows: statistics.mean(o[rows] for o in of) for rows in of[0]}

def at(cost, rows):
    known = sorted(cost)
    if rows <= known[0]: return cost[known[0]]
    for a, b in zip(known, known[1:]):
        if rows <= b: return cost[a] + (cost[b] - cost[a]) * (rows - a) / (b - a)
    return cost[known[-1]] * rows / known[-1]

draft = costs("draft-steps")
for scale in scales:
    target = costs(f"steps-{scale}", f"steps-after-{scale}")
    print(f"\nAt {scale}: a step of the target in ms by rows: " + ", ".join(f"{r}: {ms:.2f}" for r, ms in target.items()))
    print("The draft: " + ", ".join(f"{r}: {ms:.3f}" for r, ms in draft.items()))
    print("\n| task | decoder | tokens/step | rows/step | draft forwards/step | accepted | speed-up | of its rows | identical to AR |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for task in tasks:
        data = json.load(open(f"{out}/{task}-{scale}.json"))
        for s in data["summary"]:
            if s["decoder"] == "ar": continue
            runs = [r for r in data["results"] if r["decoder"] == s["decoder"]]
            steps = sum(r["steps"] for r in runs)
            sum_of = lambda name: sum(r["metrics"][name] for r in runs)
            n_rows, forwards = sum_of("rows") / steps, sum_of("draft_forwards") / steps
            draft_rows = sum_of("draft_rows") / max(1, sum_of("draft_forwards"))
            paid = s["tokens_per_step"] * target[1] / (at(target, n_rows) + forwards * at(draft, draft_rows))
            accepted = sum_of("accepted") / max(1, sum_of("proposed"))
            print(f"| {task} | {s['decoder']} | {s['tokens_per_step']:.2f} | {n_rows:.1f} | {forwards:.1f} | {accepted:.2f} | "
                  f"{s['speedup']:.2f}x | {s['speedup'] / paid:.2f} | {s['identical']} of {s['n']} |")
PY
