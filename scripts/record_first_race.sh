#!/usr/bin/env bash
# Records the races that the window can play: the first bundled prompt in the lanes of the first race at 4x2 and, if SmolLM2 is installed
# (scripts/get_model.sh smollm2), one of its messages in its lanes.
#   scripts/record_first_race.sh [FOLDER]    default: assets/recordings; a file is replaced when the new recording is valid
# Run it on an idle machine, because the recording shows its times, and again whenever a bundled model changes, because it names the weights.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
# shellcheck source=scripts/lanes.sh
source "$here/scripts/lanes.sh"
folder=${1:-"$here/assets/recordings"}
work=$(mktemp -d "$folder/recording.XXXXXX") # the same file system, so that mv is atomic
trap 'rm -rf "$work"' EXIT
head -n 1 "$here/assets/prompts/bundled.jsonl" > "$work/one.jsonl"
first_race
# The baseline of the lane by another model is recorded last, as in the window's race.
[[ ${race[1]} != *@demo-cllm* ]] || race[1]+=,ar@demo-cllm
"$program" compare "${race[@]}" --prompt-file "$work/one.jsonl" --scale 4x2 --record "$work/first_race.pdrun"
"$program" trace validate "$work/first_race.pdrun"
mv "$work/first_race.pdrun" "$folder/first_race.pdrun"

if has_or_skips SmolLM2-135M-Instruct.Q4_1 "the race of SmolLM2"; then
  grep '"chat/sum"' "$here/assets/prompts/messages.jsonl" > "$work/sum.jsonl"
  "$program" compare --model SmolLM2-135M-Instruct.Q4_1 --decoders ar,lookahead,suffix,speculative,medusa,chimera --prompt-file "$work/sum.jsonl" \
    --max-tokens 128 --record "$work/whole.pdrun"
  "$program" trace convert "$work/whole.pdrun" "$work/smollm2_race.pdrun" --used-tokens-only
  "$program" trace validate "$work/smollm2_race.pdrun"
  mv "$work/smollm2_race.pdrun" "$folder/smollm2_race.pdrun"
fi
