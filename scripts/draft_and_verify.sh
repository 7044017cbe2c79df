#!/usr/bin/env bash
# Draft and verify, measured: unseen problems of each task through the decoders that draft, with their defaults, against AR in turns.
#   scripts/draft_and_verify.sh OUT_DIR [SCALE...]      default scale: 4x2 (the draft is never scaled)
# Writes OUT_DIR/<task>-<scale>.<repeat>.json (the command line's compare contract), step costs, and prints Markdown tables. The speed-up
# is that of decode time, without the reading of prompts: the median of DECOSCOPE_DV_REPEATS races (3); `middle half` is where the
# speed-ups of half the problems lie, of each the median of its races. `of its rows` is the speed-up / (tokens per step x cost of a step
# of plain decoding / (cost of the step's rows + cost of its draft forwards)): 1 if nothing but the rows is paid. Costs are of steps as
# races have them (`bench step --behind`): the first so many behind a prompt of the task's length, as many as a text has on average, the
# draft's forwards between them. Machines have phases, so steps are timed between the races: each race is held against the mean of what
# they took before it and behind it, and `of its rows` is the median of the races, in brackets each.
# `mcsd` sizes its trees to the machine (k_config=auto); DECOSCOPE_DV_TREE names another.
# DECOSCOPE_DV_COUNT problems a task (default 30: some 15 minutes in all where a step takes 8 ms), DECOSCOPE_DV_OPTIONS further options,
# DECOSCOPE_DV_TASKS tasks.
# A file that is there is not made again, so the same command goes on where it was stopped.
set -euo pipefail
unset DECOSCOPE_DATA
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
out=${1:?name a folder for the results}
shift
scales=("${@:-4x2}")
count=${DECOSCOPE_DV_COUNT:-30}
repeats=${DECOSCOPE_DV_REPEATS:-3}
read -ra tasks <<< "${DECOSCOPE_DV_TASKS:-arith kb sql py blocks}"
mkdir -p "$out"
steps() { # NAME SCALE PROMPT_TOKENS
  local step=(bench step --scale "$2" --context "$3" --repeat 5 --json)
  into "$out/plain-$1.json" "${step[@]}" --rows 1 --behind 8,16,32,64,96,128
  into "$out/steps-$1.json" "${step[@]}" --rows 2,3,4,5,6,7,8,10,15 --behind 4,8,16,24,32,48,64 --decoder speculative --draft-forwards 4
}
for task in "${tasks[@]}"; do
  prompts="$out/$task.jsonl"
  problems "$task" "$count" > "$prompts"
  # A scale changes no token: how long the prompts are is seen at 1x1.
  into "$out/$task-texts.json" compare --decoders ar --prompt-file "$prompts" --max-tokens 128 --json
  prompt=$(python3 -c 'import sys; from step_costs import prompt_length; print(prompt_length(sys.argv[1]))' "$out/$task-texts.json")
  for scale in "${scales[@]}"; do
    steps "$task-$scale.0" "$scale" "$prompt"
    for repeat in $(seq "$repeats"); do
      # shellcheck disable=SC2086
      into "$out/$task-$scale.$repeat.json" compare --decoders ar,speculative,mcsd --set k_config="${DECOSCOPE_DV_TREE:-auto}" \
        --prompt-file "$prompts" --scale "$scale" --max-tokens 128 ${DECOSCOPE_DV_OPTIONS:-} --json
      steps "$task-$scale.$repeat" "$scale" "$prompt"
    done
  done
done
python3 "$here/scripts/draft_and_verify_tables.py" "$out" "$repeats" "${tasks[*]}" "${scales[@]}"
