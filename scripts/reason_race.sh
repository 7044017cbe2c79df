#!/usr/bin/env bash
# Reasoning, measured: SEED under a tree of thoughts beside the decoders it schedules, and FastCoT under chain of thought beside plain
# decoding, in turns; FastCoT by the target and, where it is there, by the consistency model, each against plain decoding by its own.
#   scripts/reason_race.sh OUT_DIR [SCALE]      default scale: 4x2 (the draft is never scaled, but for the slow one below)
# Writes OUT_DIR/<what>-<name>.<repeat>.json (the command line's contract) and prints Markdown tables; a file that is there is not made
# again, so the same command goes on where it was stopped. About 19 minutes where a step takes 4 ms, 10 without FastCoT where it takes 6.
# Fails, behind its tables, where a tree or a text is not that of plain decoding. With DECOSCOPE_RR_CHAINS= (nothing) FastCoT is left out.
#   right      counted once, of DECOSCOPE_RR_ANSWERS questions (500), at 1x1: a scale changes no token, which is checked on those timed
#   bound      of FastCoT: found on DECOSCOPE_RR_SAMPLE questions of the dev split (400), within a point of accuracy; used on the test split
#   times      medians over DECOSCOPE_RR_REPEATS (4; every second time the trees from the last to the first) of what each gives against
#              its own baseline, of DECOSCOPE_RR_COUNT questions (15) and DECOSCOPE_RR_TREES trees (3). Speed-ups are of the time that
#              passed without reading prompts, but that of chains counts what FastCoT reads behind a cut, its guesses and the trigger,
#              which plain decoding writes itself
#   of its rows  the speed-up / what it would be if nothing but rows of steps and forwards of the draft were paid (step_costs.py), by
#              steps as these races have them (`bench step --behind`): the first so many behind each prompt as a text has, as many texts
#              in a forward, the draft's forwards between; of a tree's prompts 20 tokens of 100 read anew, of a question all 44, as
#              recordings of them have it. Machines have phases: steps are timed before and behind each repeat's trees and chains, and
#              each repeat is held against the mean of the two beside it
#   own base   the decoder that does in turn what the schedule does at the same time: speculative, mcsd of the same k_config, or
#              speculative --batch N where a verification judges N texts
#   bound of SEED  what it can gain over its own base, whose t_d and t_v are those of a draft and a verification, a text each.
#              "paper": min(n, (t_d + t_v) / t_v). "here": the same on these cores, (t_d + t_v) / max((D + m V) / n, T), with one thread
#              that drafts and m texts in a verification. D and V are t_d and t_v on the threads that each has in the schedule, and T is
#              the least time in which one of each is done: at the same time as far as that saves any, each then slower than alone, and the
#              rest of the longer one alone. How much slower is no figure of the schedule judged: `bench step` measures target and draft
#              alone and beside the other, which decodes on and on, with all threads for the target (shared) and with one (own core). Never
#              less than 1, for taking turns is a schedule too, but where a name ends in -always: overlap=always, as published, takes none
# With the bundled draft, of which a forward takes 0.005 ms and a step of the target 4, both bounds are 1.00 to 1.02: there is nothing
# to overlap, and what says something is that no schedule is slower than its own base. The trees named slow-draft have the same draft
# enlarged (DECOSCOPE_RR_DRAFT_SCALE, 16x1: the same tokens, a real cost), for which the bound has a meaning.
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
settle=${DECOSCOPE_RR_SETTLE:-3} # seconds until what works beside a measurement is loaded
mkdir -p "$out"
slow=$out/slow-draft-$draft_scale
if [ ! -d "$slow" ]; then
  rm -rf "$slow.part"
  "$program" model scale demo-draft "$slow.part" --scale "$draft_scale" >&2
  mv "$slow.part" "$slow"
fi
cot=(reason cot --task kb --json)
tot=(reason tot --task arith --split test --beam 2 --scale "$scale" --json --thoughts)
trees=() chains=()
tree_calls=()
tree() { # name, its own base or -, options of the decoder
  trees+=("$1=$2")
  tree_calls+=("$(printf '%q ' "${@:1:1}" "${@:3}")")
}
search() { # name, options of the decoder
  into "$out/tree-$1.$repeat.json" "${tot[@]}" 3 --count "$n_trees" "${@:2}"
}
chain() { # name, its own plain decoding or -, options
  [ "$repeat" -gt 1 ] || chains+=("$1=$2")
  into "$out/right-$1.1.json" "${cot[@]}" --split test --count "$answers" "${@:3}"
  into "$out/chain-$1.$repeat.json" "${cot[@]}" --split test --count "$count" --scale "$scale" "${@:3}"
}
bound_of() { # name, options: the bound found for it, nothing where none was
  into "$out/bound-$1.json" "${cot[@]}" --split dev --count "$sample" --decoder fastcot "${@:2}" --find-bound --tolerance 1 || return
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["bound"] or "")' "$out/bound-$1.json"
}
windows() { # what the names begin with, windows, windows that a bound is found for, options
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
beside() { # file, what works beside it, --, what is measured
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
  kill "$working" || { # it had ended, and so was not beside it
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
  tree=("${in_race[@]}" --context 100 --anew 20 --behind "4,8,12,16,24")
  into "$out/tree-plain.$1.json" "${tree[@]}" --rows 1
  into "$out/tree-draft.$1.json" "${tree[@]}" --rows 3,4,6,7 --decoder speculative --draft-forwards 3
  into "$out/tree-draft-3.$1.json" "${tree[@]}" --rows 3,4 --texts 3 --decoder speculative --draft-forwards 9
  into "$out/tree-draft-6.$1.json" "${tree[@]}" --rows 3,4 --texts 6 --decoder speculative --draft-forwards 18
  into "$out/tree-slow-draft.$1.json" "${tree[@]}" --rows 3,4 --decoder speculative --draft "$slow" --draft-forwards 3
  into "$out/chain.$1.json" "${in_race[@]}" --context 44 --rows 1,2,3,4,5,6,8,10 --behind $plain
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
# Four thoughts, so that four branches are under way at once.
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
    # A machine that grows slower or faster favours nobody: every second time from the last to the first.
    [ $((repeat % 2)) -eq 1 ] || at=$((${#tree_calls[@]} - 1 - at))
    eval "search ${tree_calls[$at]}"
  done
  steps "$repeat-trees"
  if [ -n "$with_chains" ]; then
    windows "" "1 2 3 5" "3 5"
    chain adapt-1.25 ar --decoder fastcot --set window=5 --set adapt=1.25
    if there demo-cllm; then windows cllm- "3 5 9" "5 9" --model demo-cllm; fi
    steps "$repeat"
  fi
done
python3 "$here/scripts/reason_tables.py" "$out" "$repeats" "${trees[*]}" "${chains[*]}"
