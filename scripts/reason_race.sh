#!/usr/bin/env bash
# Reasoning, measured: SEED under a tree of thoughts beside the decoders it schedules, and FastCoT under chain of thought beside plain
# decoding, in turns.
#   scripts/reason_race.sh OUT_DIR [SCALE]      default scale: 4x2 (the draft is never scaled)
# Writes OUT_DIR/<what>-<name>.<repeat>.json (the command line's contract) and prints Markdown tables; a file that is there is not made
# again, so the same command goes on where it was stopped. Under 20 minutes where a step takes 12 ms.
#   right      counted once, of DECOSCOPE_RR_ANSWERS questions (500), at 1x1: a scale changes no token, which is checked on those timed
#   bound      of FastCoT: found on DECOSCOPE_RR_SAMPLE questions of the dev split (400), within a point of accuracy; used on the test split
#   times      medians over DECOSCOPE_RR_REPEATS (3) of what each gives against its own baseline, of DECOSCOPE_RR_COUNT questions (15) and
#              DECOSCOPE_RR_TREES trees (3). Speed-ups are of the time that passed without reading prompts, which all read alike
#   of its rows  the speed-up / what it would be if nothing but rows of steps and forwards of the draft were paid (step_costs.py)
#   bound of SEED  what it can gain over speculative, t_d and t_v of a draft and a verification: "paper" min(n, (t_d + t_v) / t_v), of
#              speculative's own times; "here" (t_d + t_v) / max((t_d' + t_v') / n, t_v' / m, t_d'), one thread that drafts, m texts in a
#              verification, and t' what a stage takes while the other model has its share of the cores (docs/decoders/seed.md)
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
out=${1:?name a folder for the results}
scale=${2:-4x2}
answers=${DECOSCOPE_RR_ANSWERS:-500}
sample=${DECOSCOPE_RR_SAMPLE:-400}
count=${DECOSCOPE_RR_COUNT:-15}
n_trees=${DECOSCOPE_RR_TREES:-3}
repeats=${DECOSCOPE_RR_REPEATS:-3}
mkdir -p "$out"
cot=(reason cot --task kb --json)
tot=(reason tot --task arith --split test --thoughts 3 --beam 2 --scale "$scale" --json)
trees=() chains=()
tree() {  # name, options of the decoder
  [ "$repeat" -gt 1 ] || trees+=("$1")
  into "$out/tree-$1.$repeat.json" "${tot[@]}" --count "$n_trees" "${@:2}"
}
chain() {
  [ "$repeat" -gt 1 ] || chains+=("$1")
  into "$out/right-$1.1.json" "${cot[@]}" --split test --count "$answers" "${@:2}"
  into "$out/chain-$1.$repeat.json" "${cot[@]}" --split test --count "$count" --scale "$scale" "${@:2}"
}
bound_of() {  # window: the bound found for it, nothing where none was
  into "$out/bound-window-$1.json" "${cot[@]}" --split dev --count "$sample" --decoder fastcot --set window="$1" --find-bound --tolerance 1
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["bound"] or "")' "$out/bound-window-$1.json"
}
rows=1,2,3,4,5,6,8,11,12,16,24
into "$out/draft-steps.json" bench step --model demo-draft --rows 1,2,4 --json
into "$out/steps.json" bench step --scale "$scale" --rows $rows --json
for n in 1 2 4; do into "$out/memory-$n.1.json" "${tot[@]}" --count 1 --decoder seed --set branches=$n; done
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
  for window in 3 5; do
    bound=$(bound_of $window)
    [ -n "$bound" ] || continue
    chain "window-$window-bound-$bound" --decoder fastcot --set window=$window --set stop=bound --set bound="$bound"
  done
done
into "$out/steps-after.json" bench step --scale "$scale" --rows $rows --json
python3 "$here/scripts/reason_tables.py" "$out" "$repeats" "${trees[*]}" "${chains[*]}"
