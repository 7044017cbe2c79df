#!/usr/bin/env bash
# Measures the gates that a trained family must pass before it is installed: unseen problems of the dev split, greedy.
#   scripts/family_gates.sh FAMILY_DIR [OUT_DIR]      default: FAMILY_DIR/gates
# Prints a Markdown table and writes it into the target's card, and the figures of draft and consistency model into their cards. A target of
# 10 M parameters or more has higher bounds. DECOSCOPE_GATES_COUNT (500) problems a task and level, DECOSCOPE_GATES_FEW (200) problems for
# drafts, Jacobi blocks and shortened rationales. Existing files are kept, so the same command continues a stopped run. Exit code 1 if a gate
# is missed or OUT_DIR contains figures of other weights or counts.
set -euo pipefail
unset DECOSCOPE_DATA
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
family=${1:?name the folder that scripts/train_family.sh wrote}
out=${2:-$family/gates}
count=${DECOSCOPE_GATES_COUNT:-500}
few=${DECOSCOPE_GATES_FEW:-200}
target=$family/demo-target
mkdir -p "$out"
settings="$count problems a task and level, $few for drafts"
[ -s "$out/asked" ] || echo "$settings" > "$out/asked"
if [ "$(cat "$out/asked")" != "$settings" ]; then
  echo "$out: found figures of $(cat "$out/asked"), expected $settings; remove the folder" >&2
  exit 1
fi
for model in target draft; do
  into "$out/$model.json" model info "$family/demo-$model" --json
  now=$("$program" model info "$family/demo-$model" --json)
  if [ "$now" != "$(cat "$out/$model.json")" ]; then
    echo "$out: found figures of other weights; remove the folder" >&2
    exit 1
  fi
done
for task in arith kb sql py blocks write chat; do
  into "$out/score-$task.json" model score --model "$target" --task "$task" --split dev --count "$count" --json
done
# Selects problems with plans of four steps (3 or 4 blocks) and of six steps (4 blocks) from many.
for level in 1 2; do
  into "$out/blocks-$level.jsonl" data generate blocks --split dev --level "$level" --start 0 --count $((count * 16))
done
python3 "$here/scripts/family_gates.py" plans "$out" "$count"
for steps in 4 6; do
  into "$out/plans-$steps.json" generate --model "$target" --decoder ar --prompt-file "$out/plans-$steps.jsonl" --max-tokens 256 --json
  python3 "$here/scripts/family_gates.py" answers "$out/plans-$steps"
  # Exit code 3 means that some plans are wrong; the output counts them.
  "$program" data check "$out/plans-$steps.answers.jsonl" --json > "$out/plans-$steps.checked.json" || [ $? -eq 3 ]
done
for task in arith blocks chat; do
  for level in 1 2; do
    into "$out/few-$task-$level.jsonl" data generate "$task" --split dev --level "$level" --start 0 --count $((few / 2))
  done
  cat "$out/few-$task-1.jsonl" "$out/few-$task-2.jsonl" > "$out/few-$task.jsonl"
  into "$out/draft-$task.json" generate --model "$target" --draft "$family/demo-draft" --decoder speculative --set gamma=4 \
    --prompt-file "$out/few-$task.jsonl" --max-tokens 128 --json
done
cot=(reason cot --model "$target" --task kb --level 1 --split dev --count "$few" --batch 16 --decoder ar --json)
into "$out/rationale-100.json" "${cot[@]}"
for share in 0 25 50 75; do
  tokens=$(python3 "$here/scripts/family_gates.py" tokens "$out" "$share")
  into "$out/rationale-$share.json" "${cot[@]}" --max-tokens "$tokens"
done
into "$out/jacobi.json" generate --model "$target" --decoder jacobi --set block=16 --prompt-file "$out/few-arith-1.jsonl" --json
rm -f "$out/cllm.json"
[ ! -s "$family/demo-cllm/stages.json" ] || cp "$family/demo-cllm/stages.json" "$out/cllm.json"
status=0
python3 "$here/scripts/family_gates.py" table "$out" > "$out/gates.md" || status=$?
cat "$out/gates.md"
python3 "$here/scripts/card_section.py" "$target/README.md" "Gates" < "$out/gates.md"
python3 "$here/scripts/family_gates.py" draft "$out" | python3 "$here/scripts/card_section.py" "$family/demo-draft/README.md" "Scores"
of_cllm=$(python3 "$here/scripts/family_gates.py" cllm "$out")
[ -z "$of_cllm" ] || python3 "$here/scripts/card_section.py" "$family/demo-cllm/README.md" "Gates" <<< "$of_cllm"
exit "$status"
