#!/usr/bin/env bash
# Records the race that the window's first page opens: the first bundled prompt through the lanes of the first race, at 4x2.
#   scripts/record_first_race.sh [FILE]      default: assets/recordings/first_race.pdrun, replaced when the new recording is valid
# Run it on an idle machine, because the recording shows its times, and again whenever a bundled model changes, because it names the weights.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
# shellcheck source=scripts/lanes.sh
source "$here/scripts/lanes.sh"
file=${1:-"$here/assets/recordings/first_race.pdrun"}
work=$(mktemp -d "$(dirname "$file")/recording.XXXXXX") # the same file system, so that mv is atomic
trap 'rm -rf "$work"' EXIT
head -n 1 "$here/assets/prompts/bundled.jsonl" > "$work/one.jsonl"
first_race
# The baseline of the lane by another model is recorded last, as in the window's race.
[[ ${race[1]} != *@demo-cllm* ]] || race[1]+=,ar@demo-cllm
"$program" compare "${race[@]}" --prompt-file "$work/one.jsonl" --scale 4x2 --record "$work/first_race.pdrun"
"$program" trace validate "$work/first_race.pdrun"
mv "$work/first_race.pdrun" "$file"
