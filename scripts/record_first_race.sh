#!/usr/bin/env bash
# Records the race that the window's first page opens, anew: the first bundled prompt through the lanes of the first race
# (scripts/lanes.sh), at the scale on which they gain. To be run where nothing else runs, for the recording shows its times; and again
# whenever a bundled model is another, for it names the weights it was made with.
#   scripts/record_first_race.sh [FILE]      default: assets/recordings/first_race.pdrun, which it replaces once the new one is whole
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
# shellcheck source=scripts/lanes.sh
source "$here/scripts/lanes.sh"
file=${1:-"$here/assets/recordings/first_race.pdrun"}
work=$(mktemp -d "$(dirname "$file")/recording.XXXXXX") # beside it, so that it moves in one piece
trap 'rm -rf "$work"' EXIT
head -n 1 "$here/assets/prompts/bundled.jsonl" > "$work/one.jsonl"
first_race
# What a lane of another model is measured against is recorded in any case: behind the others, as in the window's own race.
[[ ${race[1]} != *@demo-cllm* ]] || race[1]+=,ar@demo-cllm
"$program" compare "${race[@]}" --prompt-file "$work/one.jsonl" --scale 4x2 --record "$work/first_race.pdrun"
"$program" trace validate "$work/first_race.pdrun"
mv "$work/first_race.pdrun" "$file"
