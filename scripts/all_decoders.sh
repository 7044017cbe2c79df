#!/usr/bin/env bash
# Measures every decoder on the generated tasks and on open sets: the tables of docs/measurements/all_decoders.json.
#   scripts/all_decoders.sh OUT_DIR
# A speed-up is plain decoding's decode time by the lane's own model (ar@demo-cllm for jacobi@demo-cllm) / the lane's decode time, both
# without prompts, at 1x1 and 4x2. The draft model is enlarged as its target (DECOSCOPE_DRAFT_SCALE: another scale). Standard error names the
# skipped lanes (model or heads not bundled) and open sets (no DECOSCOPE_DATA), and estimates the time. Two races per task and scale:
#   all          every decoder with its defaults; heads with trees grown for this machine and scale (`model tree --rows auto`)
#   sized        sizes chosen for this machine: jacobi with refill=slide and the widest block of 6, 8, 10, 12 and 16 whose step costs at
#                most 1.25 times one row's; prompt lookup with half as many tokens; mcsd with k_config=$DECOSCOPE_ALL_K_CONFIG (default
#                auto; empty omits mcsd); chimera with drafting=branch
# Columns:
#   right        correct answers of plain decoding by the lane's model, by `data check`
#   of its rows  speed-up / the speed-up if only rows and drafts cost time (`compare --rows-alone`); not for `seed` if a forward verified
#                several texts
# Times of a generated task at 4x2 are medians of DECOSCOPE_ALL_REPEATS (3) races; other times come from one race.
#   DECOSCOPE_ALL_SCALED   (8)   problems per task at 4x2; half as many of an open set
#   DECOSCOPE_ALL_COUNT    (20)  the same at 1x1
#   DECOSCOPE_ALL_ANSWERS  (50)  answers that are scored
#   DECOSCOPE_ALL_TOKENS   (64)  token limit of a text in a race
#   DECOSCOPE_ALL_TASKS, DECOSCOPE_ALL_SETS  names, instead of all eight tasks and thirteen sets
# Takes about 45 minutes if a step of one row takes 7.5 ms at 4x2. The problems of a set are spread evenly over the set; prompts above 1,200
# characters are left out. Existing files are kept, so the same command continues a stopped run. Exit code 1, after the tables, if a text
# differs from plain decoding's.
set -euo pipefail
data=${DECOSCOPE_DATA:-}
unset DECOSCOPE_DATA # generated problems use their own texts only
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
# shellcheck source=scripts/lanes.sh
source "$here/scripts/lanes.sh"
out=${1:?name a folder for the results}
scaled=${DECOSCOPE_ALL_SCALED:-8}
count=${DECOSCOPE_ALL_COUNT:-20}
answers=${DECOSCOPE_ALL_ANSWERS:-50}
tokens=${DECOSCOPE_ALL_TOKENS:-64}
k_config=${DECOSCOPE_ALL_K_CONFIG-auto}
repeats=${DECOSCOPE_ALL_REPEATS:-3}
read -ra tasks <<< "${DECOSCOPE_ALL_TASKS-arith kb sql py blocks write chat plain}"
read -ra sets <<< "${DECOSCOPE_ALL_SETS-gsm8k humaneval mbpp mt_bench vicuna_bench creative_writing blocksworld wikisql defog_sql \
  commonsenseqa strategyqa aqua taskmaster4}"
if [ -z "$data" ] && [ ${#sets[@]} -gt 0 ]; then
  echo "all_decoders.sh: DECOSCOPE_DATA is not set: skipping the open sets" >&2
  sets=()
fi
mkdir -p "$out"
tables() {
  python3 "$here/scripts/all_decoders_tables.py" "$@"
}

models=(demo-target)
heads=()
sized_heads=()
all=ar,jacobi,lookahead,prompt-lookup,suffix,fastcot,speculative,mcsd,seed
sized=ar,jacobi,prompt-lookup
sized_options=(--set refill=slide)
if [ -n "$k_config" ]; then
  sized+=,mcsd
  sized_options+=(--set "k_config=$k_config")
fi
for kind in medusa chimera; do
  has_or_skips "demo-$kind" "$kind" || continue
  heads+=("$kind")
  all+=,$kind
  [ "$kind" = medusa ] || { sized+=,$kind && sized_heads=("$kind") && sized_options+=(--set drafting=branch); }
done
if has_or_skips demo-cllm "its lanes"; then
  models+=(demo-cllm)
  all+=,ar@demo-cllm,jacobi@demo-cllm
  sized+=,ar@demo-cllm,jacobi@demo-cllm,lookahead@demo-cllm
fi

# N: selects N records of standard input, evenly spread, without long prompts.
spread() {
  python3 -c '
import json, sys
lines = [line for line in sys.stdin if len(json.loads(line)["prompt"]) <= 1200]
n = min(int(sys.argv[1]), len(lines))
for i in range(n):
    print(lines[i * len(lines) // n], end="")' "$1"
}
for task in "${tasks[@]}"; do
  problems "$task" "$answers" | with_beginnings | spread "$answers" > "$out/$task.jsonl"
  spread "$count" < "$out/$task.jsonl" > "$out/$task-1x1.jsonl"
  spread "$scaled" < "$out/$task.jsonl" > "$out/$task-4x2.jsonl"
done
for set in "${sets[@]}"; do
  "$program" data generate "$set" --split test --data "$data" --count 100000 | spread "$answers" > "$out/$set.jsonl"
  spread $((count / 2)) < "$out/$set.jsonl" > "$out/$set-1x1.jsonl"
  spread $((scaled / 2)) < "$out/$set.jsonl" > "$out/$set-4x2.jsonl"
done

# KIND SCALE: copies the bundled heads to a folder and grows their tree for this machine and scale.
grow() {
  local folder=$out/heads-$2/demo-$1 grown=$out/heads-$2/$1-grown.json bundled
  [ ! -s "$grown" ] || return 0
  bundled=$("$program" model info "demo-$1" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["path"])')
  mkdir -p "$folder"
  cp "$bundled"/* "$folder/"
  rm -f "$folder/tree.json"
  into "$grown" model tree "demo-$1" --rows auto --scale "$2" --out "$folder/tree.json" --json
}
for scale in 1x1 4x2; do
  into "$out/steps-$scale-1.json" bench step --scale "$scale" --rows 1,2,5,6,8,10,12,16,24 --json
  for kind in "${heads[@]}"; do grow "$kind" "$scale"; done
  into "$out/steps-$scale-2.json" bench step --scale "$scale" --rows 1,2,5,6,8,10,12,16,24 --json
done
tables estimate "$out" "$tokens" "${tasks[*]} ${sets[*]}" "$all,$sized" "${#models[@]}" >&2

# SCALE KIND...: sets `named` to the option --heads with these folders; empty without a kind.
name_heads() {
  named=()
  [ $# -gt 1 ] || return 0
  local IFS=, folders=("${@:2}")
  folders=("${folders[@]/#/"$out/heads-$1/demo-"}")
  named=(--heads "${folders[*]}")
}
# TASK SCALE RACE REPEAT LANES OPTION...: runs one race.
race() {
  into "$out/$1-$2-$3.$4.json" compare --decoders "${@:5}" --prompt-file "$out/$1-$2.jsonl" --scale "$2" \
    --draft-scale "${DECOSCOPE_DRAFT_SCALE:-$2}" --max-tokens "$tokens" --rows-alone --json
}
n_tasks=0
for task in "${tasks[@]}" "${sets[@]}"; do
  n_tasks=$((n_tasks + 1))
  for model in "${models[@]}"; do
    replies=$out/$task-answers-$model
    into "$replies.json" generate --decoder ar --model "$model" --prompt-file "$out/$task.jsonl" --max-tokens 320 --json
    tables answered "$out/$task.jsonl" "$replies.json" > "$replies.jsonl"
    also_ok=3 into "$replies-checked.json" data check "$replies.jsonl" --json
  done
  for scale in 1x1 4x2; do
    read -r block n_tokens <<< "$(tables sizes "$out" "$scale")"
    races=1
    [ "$scale" = 1x1 ] || [ $n_tasks -gt ${#tasks[@]} ] || races=$repeats
    for repeat in $(seq "$races"); do
      name_heads "$scale" "${heads[@]}"
      race "$task" "$scale" all "$repeat" "$all" "${named[@]}"
      name_heads "$scale" "${sized_heads[@]}"
      race "$task" "$scale" sized "$repeat" "$sized" "${named[@]}" "${sized_options[@]}" --set "block=$block" --set "n_tokens=$n_tokens"
    done
  done
done
tables tables "$out" "${tasks[*]}" "${sets[*]}" "${heads[*]}"
