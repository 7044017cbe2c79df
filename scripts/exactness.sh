#!/usr/bin/env bash
# Compares the lossless decoders with plain decoding, token for token: 200 unseen prompts of each task, greedy and coupled, bf16 and f32,
# and the first of them at --scale 4x2, where every decoder must also emit the tokens of 1x1. Texts of `plain` continue from their first
# eight words. Lanes whose heads or model are not bundled are skipped with a line on standard error.
#   scripts/exactness.sh OUT_DIR
# Writes OUT_DIR/<task>-<sampling>-<dtype>.json (`compare --json`) and prints a Markdown table. Suffixes of the files: -variants for other
# options, -seed for SEED, -cllm and -cllm-variants for the consistency model, -4x2 for that scale. Exit codes: 1 if an output differs or is
# missing, 2 for wrong settings.
#   DECOSCOPE_EXACT_COUNT   (200)  prompts a task; DECOSCOPE_EXACT_SCALED (5) of them at 4x2, where a step takes thirty times as long
#   DECOSCOPE_EXACT_TASKS, DECOSCOPE_EXACT_DTYPES  names; dtypes "bf16 f32", f16 is possible
#   DECOSCOPE_EXACT_DEVICE  device of all runs, also of plain decoding (cuda:0); OUT_DIR may contain the results of one device only
#   DECOSCOPE_EXACT_SHARE   2/16: the second of every sixteen settings (a task, sampling and dtype is a setting)
#   DECOSCOPE_EXACT_JSON    a JSON file to which every share adds its results
# Existing files are kept, so the same command continues a stopped run.
set -euo pipefail
unset DECOSCOPE_DATA
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
# shellcheck source=scripts/lanes.sh
source "$here/scripts/lanes.sh"
out=${1:?name a folder for the results}
count=${DECOSCOPE_EXACT_COUNT:-200}
scaled=${DECOSCOPE_EXACT_SCALED:-5}
[ "$scaled" -le "$count" ] || scaled=$count
read -ra tasks <<< "${DECOSCOPE_EXACT_TASKS:-arith kb sql py blocks write chat plain}"
read -ra dtypes <<< "${DECOSCOPE_EXACT_DTYPES:-bf16 f32}"
for dtype in "${dtypes[@]}"; do
  [[ $dtype =~ ^(bf16|f16|f32)$ ]] || {
    echo "scripts/exactness.sh: DECOSCOPE_EXACT_DTYPES: found \"$dtype\", expected bf16, f16 or f32" >&2
    exit 2
  }
done
device=${DECOSCOPE_EXACT_DEVICE:-auto}
share=${DECOSCOPE_EXACT_SHARE:-1/1}
{ [[ $share =~ ^[1-9][0-9]*/[1-9][0-9]*$ ]] && [ "${share%/*}" -le "${share#*/}" ]; } || {
  echo "scripts/exactness.sh: DECOSCOPE_EXACT_SHARE: found \"$share\", expected I/N with 1 <= I <= N" >&2
  exit 2
}
settings=() at=0
for task in "${tasks[@]}"; do
  for sampling in greedy coupled; do
    for dtype in "${dtypes[@]}"; do
      [ $((at++ % ${share#*/})) -ne $((${share%/*} - 1)) ] || settings+=("$task-$sampling-$dtype")
    done
  done
done
[ "${#settings[@]}" -gt 0 ] || { echo "scripts/exactness.sh: share $share: contains none of the $at settings" >&2 && exit 2; }
lossless_lanes
mkdir -p "$out"
if [ -s "$out/device" ]; then
  held_for=$(< "$out/device")
else
  held_for=$device
  ! compgen -G "$out/*.json" > /dev/null || held_for=auto
fi
[ "$held_for" = "$device" ] || {
  echo "scripts/exactness.sh: $out: found results of device $held_for, expected those of $device; name another folder" >&2
  exit 2
}
[ "$device" = auto ] || [ -s "$out/device" ] || echo "$device" > "$out/device"
# PROMPTS NAME OPTION...: runs every lane of one setting.
held() {
  local options=(--prompt-file "$1" "${@:3}" --max-tokens 128 --json)
  into "$out/$2.json" compare --decoders "$lanes" "${options[@]}"
  into "$out/$2-variants.json" compare --decoders "$variants" "${variant_options[@]}" "${options[@]}"
  into "$out/$2-seed.json" generate --decoder seed "${options[@]}"
  [ -n "$cllm_lanes" ] || return 0
  into "$out/$2-cllm.json" compare --decoders "$cllm_lanes" "${options[@]}"
  into "$out/$2-cllm-variants.json" compare --decoders "$cllm_variants" --set refill=slide "${options[@]}"
}
asked_task=""
for setting in "${settings[@]}"; do
  IFS=- read -r task sampling dtype <<< "$setting"
  prompts="$out/$task.jsonl"
  if [ "$task" != "$asked_task" ]; then
    # Several shares may write the same files at once.
    problems "$task" "$count" | with_beginnings > "$prompts.$$"
    mv "$prompts.$$" "$prompts"
    head -n "$scaled" "$prompts" > "$out/$task-4x2.jsonl.$$"
    mv "$out/$task-4x2.jsonl.$$" "$out/$task-4x2.jsonl"
    asked_task=$task
  fi
  options=(--dtype "$dtype")
  [ "$device" = auto ] || options+=(--device "$device")
  [ "$sampling" = coupled ] && options+=(--temperature 0.8 --top-p 0.95 --seed 7)
  held "$prompts" "$setting" "${options[@]}"
  [ "$scaled" -eq 0 ] || held "$out/$task-4x2.jsonl" "$setting-4x2" "${options[@]}" --scale 4x2
done
lanes+=${cllm_lanes:+,$cllm_lanes}
variants+=${cllm_variants:+,$cllm_variants}
python3 "$here/scripts/exactness_table.py" "$out" "$count" "$scaled" "$lanes" "$variants" "${settings[@]}"
