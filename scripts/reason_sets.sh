#!/usr/bin/env bash
# Runs a few questions of every set of `reason` by plain decoding and by the decoders that must give the same: SEED in trees of thoughts,
# FastCoT and SEED in chains of thought.
#   scripts/reason_sets.sh OUT_DIR
# Writes OUT_DIR/<tot or cot>-<set>-<decoder>.json (`reason --json`) and prints a Markdown table. DECOSCOPE_RS_COUNT (1) questions of each set.
# Open sets are skipped with a line on standard error if DECOSCOPE_DATA is not set. Existing files are kept, so the same command continues a
# stopped run. Exit code 1 if a tree, text or answer differs or is missing.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
out=${1:?name a folder for the results}
count=${DECOSCOPE_RS_COUNT:-1}
mkdir -p "$out"
asked=()
ask() { # tot|cot generated|open DECODER,... SET...: runs the questions of each SET with each DECODER
  local task decoder
  for task in "${@:4}"; do
    if [ "$2" = open ] && [ -z "${DECOSCOPE_DATA:-}" ]; then
      echo "reason_sets.sh: DECOSCOPE_DATA is not set: skipping $1 $task" >&2
      continue
    fi
    for decoder in ${3//,/ }; do
      into "$out/$1-$task-$decoder.json" reason "$1" --task "$task" --split test --count "$count" --decoder "$decoder" --json
    done
    asked+=("$1/$task/$3")
  done
}
ask tot generated ar,seed arith write blocks
ask tot open ar,seed gsm8k creative_writing blocksworld
ask cot generated ar,fastcot,seed kb arith
ask cot open ar,fastcot,seed commonsenseqa strategyqa aqua
python3 - "$out" "$count" "${asked[@]}" <<'PY'
import json, sys
out, count = sys.argv[1], int(sys.argv[2])
# The results without times.
written = lambda item: {name: item.get(name) for name in ("id", "text", "answer", "path", "nodes")}
print("| search | set | decoder | n | right | identical |\n" + "| --- " * 6 + "|")
wrong = []
for one in sys.argv[3:]:
    search, task, decoders = one.split("/")
    plain = None
    for decoder in decoders.split(","):
        report = json.load(open(f"{out}/{search}-{task}-{decoder}.json"))
        items = [written(item) for item in report["items"]]
        plain = plain or items
        same = sum(a == b for a, b in zip(items, plain))
        if same < count or len(items) != count: wrong.append(f"{search} {task} {decoder}")
        print(f"| {search} | {task} ({report['data']}) | {decoder} | {len(items)} | {report['n_correct']} | {same} of {len(items)} |")
if wrong: sys.exit(f"differ from plain decoding, or fewer than {count} questions: " + ", ".join(wrong))
PY
