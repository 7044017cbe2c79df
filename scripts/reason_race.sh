#!/usr/bin/env bash
# Reasoning, measured: SEED under a tree of thoughts beside the decoders it schedules, and FastCoT under chain of thought
# beside plain decoding, in turns.
#   scripts/reason_race.sh OUT_DIR [SCALE]      default scale: 4x2 (the draft is never scaled)
# Writes OUT_DIR/<use>-<name>.<repeat>.json (the command line's contract) and prints Markdown tables: medians over the repeats of
# what each repeat gives against its own baseline. DECOSCOPE_RR_COUNT questions (default 40, trees a fifth of it),
# DECOSCOPE_RR_REPEATS (default 5).
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
program="$here/build/release/bin/decoscope"
out=${1:?name a folder for the results}
scale=${2:-4x2}
count=${DECOSCOPE_RR_COUNT:-40}
repeats=${DECOSCOPE_RR_REPEATS:-5}
mkdir -p "$out"
tree() {  # name, options of the decoder
  local name=$1
  shift
  "$program" reason tot --task arith --split test --count $((count / 5)) --thoughts 3 --beam 2 --scale "$scale" "$@" --json \
    > "$out/tree-$name.$repeat.json"
}
chain() {
  local name=$1
  shift
  "$program" reason cot --task kb --split test --count "$count" --scale "$scale" "$@" --json > "$out/chain-$name.$repeat.json"
}
for repeat in $(seq "$repeats"); do
  tree ar --decoder ar
  tree speculative --decoder speculative --set gamma=3
  tree speculative-3-texts --decoder speculative --set gamma=3 --batch 3
  tree seed-1 --decoder seed --set branches=1
  tree seed-3 --decoder seed --set branches=3
  tree seed-3-own-core --decoder seed --set branches=3 --set target_threads=1
  tree seed-3-together --decoder seed --set branches=3 --set batch_verify=3
  tree seed-6-together --decoder seed --set branches=6 --set batch_verify=6
  chain ar --decoder ar
  for window in 1 2 3 5; do chain "window-$window" --decoder fastcot --set window=$window; done
  for bound in 24 32 40; do chain "bound-$bound" --decoder fastcot --set window=3 --set stop=bound --set bound=$bound; done
done
python3 - "$out" "$repeats" <<'PY'
import glob, json, os, statistics, sys
out, repeats = sys.argv[1], int(sys.argv[2])

def runs(use):
    """Reports by name, in the order of the repeats; names in the order they were run."""
    files = sorted(glob.glob(f"{out}/{use}-*.1.json"), key=os.path.getmtime)
    names = [os.path.basename(f)[len(use) + 1:-len(".1.json")] for f in files]
    return {n: [json.load(open(f"{out}/{use}-{n}.{r}.json")) for r in range(1, repeats + 1)] for n in names}

def median(values):
    return statistics.median(values)

trees = runs("tree")
print("| decoder | tokens/step | tokens/s | against ar | against seed-1 | target busy | bound | overlap | same trees |")
print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
for name, reports in trees.items():
    speed = [r["tokens_per_second"] for r in reports]
    gain = lambda base: median([r["tokens_per_second"] / b["tokens_per_second"] for r, b in zip(reports, trees[base])])
    figure = lambda f: f"{median([r['schedule'][f] for r in reports]):.2f}" if f in reports[0]["schedule"] else "-"
    nodes = lambda r: [[n["parts"] for n in item["nodes"]] for item in r["items"]]
    same = all(nodes(r) == nodes(trees["ar"][0]) for r in reports)
    print(f"| {name} | {reports[0]['tokens_per_step']:.2f} | {median(speed):.0f} | {gain('ar'):.2f}x | {gain('seed-1'):.2f}x | "
          f"{figure('target_busy')} | {figure('rounds_bound')} | {figure('overlap')} | {'yes' if same else 'NO'} |")

chains = runs("chain")
print("\n| decoder | tokens/step | ms/question | against ar | right |\n| --- | --- | --- | --- | --- |")
for name, reports in chains.items():
    gain = median([b["seconds"] / r["seconds"] for r, b in zip(reports, chains["ar"])])
    steps = sum(item["steps"] for item in reports[0]["items"])
    print(f"| {name} | {reports[0]['tokens'] / steps:.2f} | {1e3 * median([r['seconds'] for r in reports]) / reports[0]['n']:.0f} | "
          f"{gain:.2f}x | {reports[0]['n_correct']} of {reports[0]['n']} |")
PY
