#!/usr/bin/env bash
# Every decoder of the program, measured on every generated task and on the open sets: docs/measurements/all_decoders.md's tables.
#   scripts/all_decoders.sh OUT_DIR
# Speed-ups are of decode time, prompts apart, against plain decoding by the lane's own model in turns with it, at 1x1 and at 4x2 (the
# draft is never scaled). Draft heads and lanes of the consistency model where these are there, open sets where DECOSCOPE_DATA names their
# folder; standard error says what is passed over, and at the beginning about how long it takes (40 minutes on two cores where a step
# takes 12 ms at 4x2).
#   heads        with trees sized to this machine and scale (`model tree --rows auto`), so in races of their own
#   accuracy     of plain decoding by the lane's model, whose texts they all write, by `data check`
#   of its rows  the speed-up / (tokens per step x cost of one row / (cost of the step's rows + of its draft forwards + of asking its
#                heads)), with steps as dear as they are behind the task's own texts: 1 if nothing but the rows is paid. The heads' time is
#                that of a chain; what `drafting=branch` asks more shows as less than 1
# DECOSCOPE_ALL_SCALED (8) problems a task at 4x2, half as many of a set; DECOSCOPE_ALL_COUNT (20) at 1x1, likewise; DECOSCOPE_ALL_ANSWERS
# (50) are scored; DECOSCOPE_ALL_TOKENS (64) at most in a race; DECOSCOPE_ALL_TASKS, DECOSCOPE_ALL_SETS name some. Of a set the problems
# are spread over the whole of it, without prompts above 1,200 characters, which with their answers might not fit the context.
# Fails, behind its tables, where a text is not that of plain decoding. A file that is there is not made again, so the same command goes
# on where it was stopped.
set -euo pipefail
data=${DECOSCOPE_DATA:-}
unset DECOSCOPE_DATA # generated problems are of their own texts alone
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
read -ra tasks <<< "${DECOSCOPE_ALL_TASKS-arith kb sql py blocks write chat plain}"
read -ra sets <<< "${DECOSCOPE_ALL_SETS-gsm8k humaneval mbpp mt_bench vicuna_bench creative_writing blocksworld wikisql defog_sql \
  commonsenseqa strategyqa aqua taskmaster4}"
if [ -z "$data" ] && [ ${#sets[@]} -gt 0 ]; then
  echo "DECOSCOPE_DATA names no folder: the open sets are passed over" >&2
  sets=()
fi
mkdir -p "$out"

models=(demo-target)
decoders=ar,jacobi,lookahead,prompt-lookup,fastcot,speculative,mcsd,seed
slide=ar,jacobi
heads=()
if there_or_told demo-cllm its lanes are; then
  models+=(demo-cllm)
  decoders+=,ar@demo-cllm,jacobi@demo-cllm,lookahead@demo-cllm
  slide+=,jacobi@demo-cllm
fi
for kind in medusa chimera; do
  if there_or_told "demo-$kind" "$kind" is; then heads+=("$kind"); fi
done

# N: so many of the records from standard input, spread over all of them, without long prompts.
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

rows=1,2,4,6,8,10,12,16,24,32,48,64
into "$out/draft-steps.json" bench step --model demo-draft --rows 1,2,4,8,16 --json
for scale in 1x1 4x2; do
  into "$out/steps-$scale.json" bench step --scale "$scale" --rows 1,8,16 --json
  for kind in "${heads[@]}"; do
    tree=$out/tree-$kind-$scale
    [ -s "$tree-grown.json" ] || rm -f "$tree.json"
    into "$tree-grown.json" model tree "demo-$kind" --rows auto --scale "$scale" --out "$tree.json" --json
  done
done
python3 "$here/scripts/all_decoders_tables.py" estimate "$out" "$tokens" "${tasks[*]} ${sets[*]}" "${models[*]}" "${heads[*]}" >&2

race() { # task, scale, what; lanes and options
  into "$out/$1-$2-$3.json" compare --decoders "${@:4}" --prompt-file "$out/$1-$2.jsonl" --scale "$2" --max-tokens "$tokens" --json
}
for task in "${tasks[@]}" "${sets[@]}"; do
  for model in "${models[@]}"; do
    judged=$out/$task-answers-$model
    into "$judged.json" generate --decoder ar --model "$model" --prompt-file "$out/$task.jsonl" --max-tokens 320 --json
    python3 "$here/scripts/all_decoders_tables.py" answered "$out/$task.jsonl" "$judged.json" > "$judged.jsonl"
    fine=3 into "$judged-checked.json" data check "$judged.jsonl" --json
  done
  for scale in 1x1 4x2; do
    race "$task" "$scale" all "$decoders"
    race "$task" "$scale" slide "$slide" --set refill=slide
    for kind in "${heads[@]}"; do
      tree=$out/tree-$kind-$scale.json
      race "$task" "$scale" "$kind" "ar,$kind" --set tree="$tree"
      [ "$kind" = medusa ] || race "$task" "$scale" branch "ar,$kind" --set tree="$tree" --set drafting=branch
    done
    context=$(python3 -c 'import sys; from step_costs import context; print(context(sys.argv[1]))' "$out/$task-$scale-all.json")
    into "$out/$task-$scale-steps.json" bench step --scale "$scale" --context "$context" --rows $rows --json
  done
done
python3 "$here/scripts/all_decoders_tables.py" tables "$out" "${tasks[*]}" "${sets[*]}" "${heads[*]}"
