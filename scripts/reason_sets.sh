#!/usr/bin/env bash
# Every set that reasoning asks, the open ones and their generated twins: some questions of each by plain decoding and by the decoders
# that are to write the same, SEED under a tree of thoughts, FastCoT and SEED under chain of thought.
#   scripts/reason_sets.sh OUT_DIR
# Writes OUT_DIR/<tot or cot>-<set>-<decoder>.json (the command line's contract), prints a Markdown table and fails where a tree, a text or
# an answer differs or fewer questions were asked. DECOSCOPE_RS_COUNT questions of each set (1). The open sets are asked where
# DECOSCOPE_DATA names their folder, and passed over with a word where it does not. A file that is there is not made again, so the same
# command goes on where it was stopped.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
out=${1:?name a folder for the results}
count=${DECOSCOPE_RS_COUNT:-1}
mkdir -p "$out"
asked=()
ask() { # tot or cot, generated or open, decoders with commas between, sets
  local task decoder
  for task in "${@:4}"; do
    if [ "$2" = open ] && [ -z "${DECOSCOPE_DATA:-}" ]; then
      echo "$1 $task is passed over: DECOSCOPE_DATA names no folder of open sets" >&2
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
# What was written, without what it took.
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
if wrong: sys.exit(f"not {count} questions each that are what plain decoding writes: " + ", ".join(wrong))
PY
