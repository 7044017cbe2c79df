#!/usr/bin/env bash
# Trains the whole bundled family from nothing: tokenizer, target, draft, Medusa's and Chimera's heads, consistency model.
#   scripts/train_family.sh OUT_DIR [TARGET_RECIPE]      default recipe: assets/recipes/target-family.json
# Each stage goes on where it was stopped (Ctrl+C, a lost machine), and one that is done is not done again; so the same command
# leads on from everywhere. Needs the folder of open texts (DECOSCOPE_DATA). What each stage took stands in its model's card.
# Hours: the target takes most of them. DECOSCOPE_FAMILY_SCORES problems a task and level are asked at the end (default 500).
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
program="$here/build/release/bin/decoscope"
recipes="$here/assets/recipes"
out=${1:?name a folder for the models}
target_recipe=${2:-$recipes/target-family.json}
scores=${DECOSCOPE_FAMILY_SCORES:-500}
[ -n "${DECOSCOPE_DATA:-}" ] || { echo "scripts/train_family.sh: DECOSCOPE_DATA: not set, expected the folder of open texts" >&2; exit 2; }
mkdir -p "$out"

stage() {  # name, arguments of `decoscope train`
  local name=$1
  shift
  [ -e "$out/$name.done" ] && return
  echo "scripts/train_family.sh: $name, $(date +%H:%M)" >&2
  "$program" train "$@" --out "$out/$name" --resume
  touch "$out/$name.done"
}

if [ ! -e "$out/tokenizer/tokenizer.model" ]; then  # minutes, and nothing to resume
  "$program" train tokenizer --recipe "$recipes/tokenizer-family.json" --out "$out/tokenizer"
fi
stage demo-target target --recipe "$target_recipe" --tokenizer "$out/tokenizer"
target=(--target "$out/demo-target")
stage demo-draft draft --recipe "$recipes/draft.json" "${target[@]}" --tokenizer "$out/demo-target"
stage texts outputs --recipe "$recipes/medusa.json" "${target[@]}"
texts=(--texts "$out/texts/own_outputs.jsonl")
stage demo-medusa medusa --recipe "$recipes/medusa.json" "${target[@]}" "${texts[@]}"
stage demo-chimera chimera --recipe "$recipes/chimera.json" "${target[@]}" "${texts[@]}"
stage demo-cllm cllm --recipe "$recipes/cllm.json" --from "$out/demo-target"

for model in demo-target demo-cllm; do
  [ -e "$out/$model.scored" ] && continue
  "$program" model score --model "$out/$model" --count "$scores" --write
  touch "$out/$model.scored"
done
du -sh "$out"/demo-* >&2
