#!/usr/bin/env bash
# The lossless decoders that need no draft heads against AR, token for token: 200 unseen prompts of each task with problems,
# greedy and coupled, in bf16 and f32.
#   scripts/exactness.sh OUT_DIR
# Writes OUT_DIR/<task>-<sampling>-<dtype>.json (the command line's compare contract; -seed.json: SEED's, whose branches are the
# prompts themselves), prints a Markdown table and fails where any output differs. DECOSCOPE_EXACT_COUNT prompts a task. A file that is
# there is not made again, so the same command goes on where it was stopped.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
program="$here/build/release/bin/decoscope"
out=${1:?name a folder for the results}
count=${DECOSCOPE_EXACT_COUNT:-200}
decoders=ar,jacobi,lookahead,prompt-lookup,speculative,mcsd,fastcot
mkdir -p "$out"
into() {  # file, arguments of the program: its document, whole or not at all
  local file=$1
  shift
  [ -e "$file" ] && return
  "$program" "$@" > "$file.part"
  mv "$file.part" "$file"
}
for task in arith kb sql py blocks write chat; do
  prompts="$out/$task.jsonl"
  "$program" data generate "$task" --split test --level 1 --start 0 --count $((count / 2)) > "$prompts"
  "$program" data generate "$task" --split test --level 2 --start 0 --count $((count - count / 2)) >> "$prompts"
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
python3 - "$out" "$decoders" <<'PY'
import json, sys
out, decoders = sys.argv[1], sys.argv[2].split(",")[1:]
print("| task | sampling | dtype | " + " | ".join(decoders) + " | seed |\n" + "| --- " * (4 + len(decoders)) + "|")
differ = 0
for task in ("arith", "kb", "sql", "py", "blocks", "write", "chat"):
    for sampling in ("greedy", "coupled"):
        for dtype in ("bf16", "f32"):
            run = f"{out}/{task}-{sampling}-{dtype}"
            by_name = {s["decoder"]: s for s in json.load(open(f"{run}.json"))["summary"]}
            seed = json.load(open(f"{run}-seed.json"))
            row = [by_name[d] for d in decoders] + [{"identical": sum(r["identical_to_ar"] for r in seed), "n": len(seed)}]
            differ += sum(s["n"] - s["identical"] for s in row)
            print(f"| {task} | {sampling} | {dtype} | " + " | ".join(f"{s['identical']} of {s['n']}" for s in row) + " |")
sys.exit(differ > 0)
PY
