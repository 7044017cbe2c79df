#!/usr/bin/env bash
# The lossless decoders that need no draft heads against AR, token for token: 200 unseen prompts of each task, greedy and coupled, in
# bf16 and f32. `plain` has texts and no prompts: of each text its first eight words are given, and they go on freely.
#   scripts/exactness.sh OUT_DIR
# Writes OUT_DIR/<task>-<sampling>-<dtype>.json (the command line's compare contract; -seed.json: SEED's, whose branches are the
# prompts themselves), prints a Markdown table and fails where any output differs, or where one was not made. DECOSCOPE_EXACT_COUNT
# prompts a task, the same whether or not there are open sets. A file that is there is not made again, so the same command goes on where
# it was stopped.
set -euo pipefail
unset DECOSCOPE_DATA
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
out=${1:?name a folder for the results}
count=${DECOSCOPE_EXACT_COUNT:-200}
decoders=ar,jacobi,lookahead,prompt-lookup,speculative,mcsd,fastcot
tasks=(arith kb sql py blocks write chat plain)
mkdir -p "$out"
# Records whose prompt is empty, with their text's beginning for it.
with_beginnings() {
  python3 -c '
import json, sys
for line in sys.stdin:
    record = json.loads(line)
    if not record["prompt"]:
        record["prompt"] = " ".join(record["completion"].split()[:8])
    print(json.dumps(record))'
}
for task in "${tasks[@]}"; do
  prompts="$out/$task.jsonl"
  problems "$task" "$count" | with_beginnings > "$prompts"
  for dtype in bf16 f32; do
    for sampling in greedy coupled; do
      options=()
      [ "$sampling" = coupled ] && options=(--temperature 0.8 --top-p 0.95 --seed 7)
      options+=(--prompt-file "$prompts" --dtype "$dtype" --max-tokens 128 --json)
      into "$out/$task-$sampling-$dtype.json" compare --decoders "$decoders" "${options[@]}"
      into "$out/$task-$sampling-$dtype-seed.json" generate --decoder seed "${options[@]}"
    done
  done
done
python3 - "$out" "$count" "$decoders" "${tasks[@]}" <<'PY'
import json, sys
out, count, decoders = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(",")[1:]
print("| task | sampling | dtype | " + " | ".join(decoders) + " | seed |\n" + "| --- " * (4 + len(decoders)) + "|")
differ, missing = 0, []
for task in sys.argv[4:]:
    for sampling in ("greedy", "coupled"):
        for dtype in ("bf16", "f32"):
            run = f"{out}/{task}-{sampling}-{dtype}"
            by_name = {s["decoder"]: s for s in json.load(open(f"{run}.json"))["summary"]}
            seed = json.load(open(f"{run}-seed.json"))
            row = [by_name[d] for d in decoders] + [{"identical": sum(r["identical_to_ar"] for r in seed), "n": len(seed)}]
            differ += sum(s["n"] - s["identical"] for s in row)
            missing += [f"{run}: {name} {s['n']}" for name, s in zip(decoders + ["seed"], row) if s["n"] != count]
            print(f"| {task} | {sampling} | {dtype} | " + " | ".join(f"{s['identical']} of {s['n']}" for s in row) + " |")
if missing:
    sys.exit(f"expected {count} outputs each, found: " + ", ".join(missing))
sys.exit(differ > 0)
PY
