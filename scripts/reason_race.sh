#!/usr/bin/env bash
# Compares, in turns, SEED with the decoders that it schedules (trees of thoughts), and FastCoT with plain decoding (chains of thought).
# FastCoT runs with the target and, if it is bundled, with the consistency model.
#   scripts/reason_race.sh OUT_DIR [SCALE]      default scale: 4x2 (the draft is not scaled, except the slow one below)
# Writes OUT_DIR/<what>-<name>.<repeat>.json (`reason --json`) and prints Markdown tables. About 19 minutes if a step takes 4 ms, 10 without
# FastCoT if it takes 6. Existing files are kept, so the same command continues a stopped run. Exit code 1, after the tables, if a tree or a
# text differs from plain decoding's.
#   DECOSCOPE_RR_REPEATS (4)    repeats; every second one runs the trees in reverse order
#   DECOSCOPE_RR_TREES (3), DECOSCOPE_RR_COUNT (15)  trees and questions that are timed
#   DECOSCOPE_RR_ANSWERS (500)  questions that are scored, at 1x1 (scale changes no token)
#   DECOSCOPE_RR_SAMPLE (400)   questions of the dev split on which a bound of FastCoT is found, within a point of accuracy
#   DECOSCOPE_RR_CHAINS=        (empty) omits FastCoT
#   DECOSCOPE_RR_DRAFT_SCALE (16x1)  scale of the slow draft
#   DECOSCOPE_RR_SETTLE (3)     seconds until a program that runs beside a measurement has loaded its model
# Columns:
#   speed-ups    ratios of wall times without prompts, each against the baseline of the same repeat; medians over the repeats. For chains
#                the time includes the tokens that FastCoT reads after a cut (guesses and trigger), which plain decoding writes itself
#   own base     the decoder that drafts and verifies in turn: speculative, mcsd of the same k_config, or speculative --batch N if a
#                verification has N texts
#   of its rows  speed-up / the speed-up if only rows and draft forwards cost time (step_costs.py), by steps measured as they occur after
#                prompts of these races (`bench step --first-steps`), before and after each repeat, because machines have phases
#   bound of SEED  the largest gain over its own base, with the base's t_d (a draft) and t_v (a verification), per text.
#                "paper": min(n, (t_d + t_v) / t_v). "here": (t_d + t_v) / max((D + m V) / n, T), one drafting thread, m texts in a
#                verification: D and V are t_d and t_v on the threads that the schedule gives each model, T the least time for one of each,
#                overlapped as far as that saves time, with each slower beside the other. `bench step` measures target and draft alone and
#                beside the other, with all threads for the target (shared) and with one (own core). At least 1, because taking turns is a
#                schedule too, except for names that end in -always (overlap=always, as published)
# The bundled draft takes 0.005 ms a forward and a target step 4 ms, so its bounds are 1.00 to 1.02: it can only show that no schedule is
# slower than its base. The trees named slow-draft use the same draft enlarged: the same tokens at a real cost.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
# shellcheck source=scripts/lanes.sh
source "$here/scripts/lanes.sh"
out=${1:?name a folder for the results}
scale=${2:-4x2}
answers=${DECOSCOPE_RR_ANSWERS:-500}
sample=${DECOSCOPE_RR_SAMPLE:-400}
count=${DECOSCOPE_RR_COUNT:-15}
n_trees=${DECOSCOPE_RR_TREES:-3}
repeats=${DECOSCOPE_RR_REPEATS:-4}
with_chains=${DECOSCOPE_RR_CHAINS-yes}
draft_scale=${DECOSCOPE_RR_DRAFT_SCALE:-16x1}
settle=${DECOSCOPE_RR_SETTLE:-3}
mkdir -p "$out"
slow=$out/slow-draft-$draft_scale
if [ ! -d "$slow" ]; then
  rm -rf "$slow.part"
  "$program" model scale demo-draft "$slow.part" --scale "$draft_scale" >&2
  mv "$slow.part" "$slow"
fi
cot=(reason cot --task kb --draft-scale 1x1 --json)
tot=(reason tot --task arith --split test --beam 2 --value written --value-temperature 0 --scale "$scale" --draft-scale 1x1 --json
  --thoughts)
trees=() chains=()
tree_calls=()
tree() { # NAME BASE|- OPTION...
  trees+=("$1=$2")
  tree_calls+=("$(printf '%q ' "${@:1:1}" "${@:3}")")
}
search() { # NAME OPTION...
  into "$out/tree-$1.$repeat.json" "${tot[@]}" 3 --count "$n_trees" "${@:2}"
}
chain() { # NAME BASELINE|- OPTION...
  [ "$repeat" -gt 1 ] || chains+=("$1=$2")
  into "$out/right-$1.1.json" "${cot[@]}" --split test --count "$answers" "${@:3}"
  into "$out/chain-$1.$repeat.json" "${cot[@]}" --split test --count "$count" --scale "$scale" "${@:3}"
}
bound_of() { # NAME OPTION...: prints the bound that was found, or nothing
  into "$out/bound-$1.json" "${cot[@]}" --split dev --count "$sample" --decoder fastcot "${@:2}" --find-bound --tolerance 1 || return
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["bound"] or "")' "$out/bound-$1.json"
}
windows() { # PREFIX WINDOWS WINDOWS_WITH_BOUND OPTION...
  local window bound
  chain "$1ar" - --decoder ar "${@:4}"
  for window in $2; do chain "$1window-$window" "$1ar" --decoder fastcot --set window="$window" "${@:4}"; done
  for window in $3; do
    bound=$(bound_of "$1window-$window" --set window="$window" "${@:4}")
    [ -n "$bound" ] || continue
    chain "$1window-$window-bound-$bound" "$1ar" --decoder fastcot --set window="$window" --set stop=bound --set bound="$bound" "${@:4}"
  done
}
working=
trap '[ -z "$working" ] || kill "$working" || true' EXIT
beside() { # FILE LOAD... -- MEASUREMENT...: measures beside a running `bench decode`
  local file=$1 load=()
  shift
  [ -s "$file" ] && return
  while [ "$1" != -- ]; do
    load+=("$1")
    shift
  done
  "$program" bench decode "${load[@]}" --max-tokens 800 --repeat 100000 --json > /dev/null &
  working=$!
  sleep "$settle"
  into "$file.alone" "${@:2}"
  kill "$working" || { # the load ended too early
    rm -f "$file.alone"
    echo "bench decode ${load[*]}: ended early" >&2
    return 1
  }
  wait "$working" 2> /dev/null || true
  working=
  mv "$file.alone" "$file"
}
rows=1,2,3,4,5,6,7,8,11,12,16,24
steps() { # NAME
  local in_race=(bench step --scale "$scale" --repeat 5 --json) plain=4,8,12,16,24,32,48,64,96 tree
  into "$out/steps.$1.json" bench step --scale "$scale" --rows $rows --json
  tree=("${in_race[@]}" --context 100 --new-prompt-tokens 20 --first-steps "4,8,12,16,24")
  into "$out/tree-plain.$1.json" "${tree[@]}" --rows 1
  into "$out/tree-draft.$1.json" "${tree[@]}" --rows 3,4,6,7 --decoder speculative --draft-forwards 3
  into "$out/tree-draft-3.$1.json" "${tree[@]}" --rows 3,4 --texts 3 --decoder speculative --draft-forwards 9
  into "$out/tree-draft-6.$1.json" "${tree[@]}" --rows 3,4 --texts 6 --decoder speculative --draft-forwards 18
  into "$out/tree-slow-draft.$1.json" "${tree[@]}" --rows 3,4 --decoder speculative --draft "$slow" --draft-forwards 3
  into "$out/chain.$1.json" "${in_race[@]}" --context 44 --rows 1,2,3,4,5,6,8,10 --first-steps $plain
}
steps 0
target=(bench step --scale "$scale" --rows "1,4,7,12,24" --repeat 25 --json)
into "$out/target-shared.json" "${target[@]}"
into "$out/target-own.json" "${target[@]}" --threads 1
for draft in draft slow-draft; do
  model=demo-draft
  [ $draft = draft ] || model=$slow
  step=(bench step --model "$model" --rows "1,2,4" --repeat 200 --json)
  into "$out/$draft-steps.json" "${step[@]}"
  into "$out/$draft-one.json" "${step[@]}" --threads 1
  for cores in shared own; do
    threads=()
    [ $cores = shared ] || threads=(--threads 1)
    beside "$out/target-$cores-beside-$draft.json" --model "$model" --threads 1 -- "${target[@]}" "${threads[@]}"
    beside "$out/$draft-one-beside-$cores.json" --scale "$scale" "${threads[@]}" -- "${step[@]}" --threads 1
  done
done
# Four thoughts, so that four branches run at once.
for n in 1 2 4; do into "$out/memory-$n.1.json" "${tot[@]}" 4 --count 1 --decoder seed --set branches=$n; done
seed_3=(--decoder seed --set branches=3)
tree ar - --decoder ar
tree speculative - --decoder speculative --set gamma=3
tree seed-1 speculative --decoder seed --set branches=1
tree seed-3 speculative "${seed_3[@]}"
tree seed-3-own-core speculative "${seed_3[@]}" --set target_threads=1
tree mcsd - --decoder mcsd --set k_config=2,1,1
tree seed-3-mcsd mcsd "${seed_3[@]}" --set k_config=2,1,1
for n in 3 6; do
  tree speculative-$n-texts - --decoder speculative --set gamma=3 --batch $n
  tree seed-$n-together speculative-$n-texts --decoder seed --set branches=$n --set batch_verify=$n
done
tree seed-3-always speculative "${seed_3[@]}" --set overlap=always
tree speculative-slow-draft - --decoder speculative --set gamma=3 --draft "$slow"
tree seed-3-slow-draft speculative-slow-draft "${seed_3[@]}" --draft "$slow"
tree seed-3-slow-draft-own-core speculative-slow-draft "${seed_3[@]}" --set target_threads=1 --draft "$slow"
for cores in "" -own-core; do
  tree "seed-3-slow-draft$cores-always" speculative-slow-draft "${seed_3[@]}" ${cores:+--set target_threads=1} --set overlap=always --draft "$slow"
done
for repeat in $(seq "$repeats"); do
  for at in "${!tree_calls[@]}"; do
    # Every second repeat runs in reverse order, so that a drift of the machine's speed favours no lane.
    [ $((repeat % 2)) -eq 1 ] || at=$((${#tree_calls[@]} - 1 - at))
    eval "search ${tree_calls[$at]}"
  done
  steps "$repeat-trees"
  if [ -n "$with_chains" ]; then
    windows "" "1 2 3 5" "3 5"
    chain window-auto ar --decoder fastcot
    if has demo-cllm; then windows cllm- "3 5 9" "5 9" --model demo-cllm; fi
    steps "$repeat"
  fi
done
python3 "$here/scripts/reason_tables.py" "$out" "$repeats" "${trees[*]}" "${chains[*]}"
