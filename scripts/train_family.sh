#!/usr/bin/env bash
# Trains the whole bundled family: tokenizer, target, draft model, Medusa's and Chimera's heads with their trees, consistency model.
#   scripts/train_family.sh OUT_DIR [TARGET_RECIPE]      default recipe: target-family.json of assets/recipes
#   scripts/train_family.sh --target smollm2 OUT_DIR     the parts for SmolLM2-135M-Instruct (scripts/get_model.sh smollm2 downloads it): its
#                                                        answers, draft model, draft heads and consistency adapter; recipes smollm2-*.json
# Takes hours, most of them for the target; then run scripts/family_gates.sh OUT_DIR and scripts/install_family.sh OUT_DIR. The same command
# continues after a stop (Ctrl+C, a kill, a reboot) and skips finished stages. If a recipe changes, its stage continues from its checkpoint,
# which is possible only if no more than the recipe's length changed. A stage made with another tokenizer or target is refused; remove its
# folder. The recipes may need DECOSCOPE_DATA, the folder of open texts. The cards state the time of each stage, summed over its runs; a run
# that was killed counts up to the last file that it wrote. Exit codes: 2 if something is refused, otherwise the program's.
#   DECOSCOPE_FAMILY_SCORES   (500) problems a task and level that are scored at the end
#   DECOSCOPE_FAMILY_ROWS     (16) rows a step for which the heads' trees are grown; auto: measured here at 4x2
#   DECOSCOPE_FAMILY_RECIPES  folder of recipes (assets/recipes): tokenizer-family, target-family or target-family-on, draft, medusa,
#                             chimera and cllm. assets/recipes/small trains a family in seconds without open texts, to test everything
#   DECOSCOPE_FAMILY_CLLM     recipe of the consistency model (cllm.json of that folder)
#   DECOSCOPE_FAMILY_FROM     directory of a model whose weights and tokenizer the target continues from; the default recipe is then
#                             target-family-on.json
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=scripts/measuring.sh
source "$here/scripts/measuring.sh"
recipes=${DECOSCOPE_FAMILY_RECIPES:-$here/assets/recipes}
base=
if [ "${1:-}" = --target ]; then
  base=${2:?name the target}
  shift 2
  [ "$base" = smollm2 ] || { echo "scripts/train_family.sh: --target $base: no recipes for it, expected smollm2" >&2; exit 2; }
fi
out=${1:?name a folder for the models}
from=${DECOSCOPE_FAMILY_FROM:-}
if [ -n "$from" ] && [ ! -f "$from/model.safetensors" ]; then
  echo "scripts/train_family.sh: $from: found no model.safetensors" >&2
  exit 2
fi
target_recipe=${2:-$recipes/target-family${from:+-on}.json}
cllm_recipe=${DECOSCOPE_FAMILY_CLLM:-$recipes/cllm.json}
scores=${DECOSCOPE_FAMILY_SCORES:-500}
rows=${DECOSCOPE_FAMILY_ROWS:-16}
read_by=("$target_recipe" "$recipes"/{draft,medusa,chimera}.json "$cllm_recipe")
[ -n "$from" ] || read_by+=("$recipes/tokenizer-family.json")
[ -z "$base" ] || read_by=("$recipes/$base"-{outputs,draft,medusa,chimera,cllm}.json)
for recipe in "${read_by[@]}"; do
  [ -f "$recipe" ] || { echo "scripts/train_family.sh: $recipe: no such recipe" >&2; exit 2; }
done
if [ -z "${DECOSCOPE_DATA:-}" ] && grep -qE '"real" *:|"open_texts" *: *true|"chat" *: *true' "${read_by[@]}"; then
  echo "scripts/train_family.sh: DECOSCOPE_DATA is not set; the recipes need the folder of open texts" >&2
  exit 2
fi
mkdir -p "$out"
# The program inherits the lock: it may outlive a killed script, and a second run must not start before it ends.
exec 9> "$out/.lock"
flock -n 9 || { echo "scripts/train_family.sh: $out: another run is using it" >&2; exit 2; }

hash_of() { cat -- "$@" | sha256sum; }
keep() {  # TEXT FILE
  printf '%s\n' "$1" > "$2.part"
  mv "$2.part" "$2"
}

# NAME END: adds the time from the stage's start to END to the stage's seconds.
count_piece() {  # NAME END
  local folder=$out/$1 end=$2 began
  [ -s "$folder/.began" ] || return 0
  began=$(cat "$folder/.began")
  [ "$end" -ge "$began" ] || end=$began
  keep $(($(cat "$folder/.seconds" 2> /dev/null || echo 0) + end - began)) "$folder/.seconds"
  rm -f "$folder/.began"
}

# NAME RECIPE [FILE...] -- ARGUMENT...: runs the program once per content of the recipe; refuses changed FILEs.
stage() {
  local name=$1 recipe=$2 now of from=()
  shift 2
  while [ "$1" != -- ]; do
    from+=("$1")
    shift
  done
  shift
  now=$(hash_of "$recipe")
  mkdir -p "$out/$name"
  if [ ${#from[@]} -gt 0 ]; then
    of=$(hash_of "${from[@]}")
    [ -s "$out/$name/.of" ] || keep "$of" "$out/$name/.of"
    if [ "$(cat "$out/$name/.of")" != "$of" ]; then
      echo "scripts/train_family.sh: $out/$name: made from another version of ${from[*]}; remove it to train it again" >&2
      exit 2
    fi
  fi
  [ "$(cat "$out/$name/.done" 2> /dev/null)" != "$now" ] || return 0
  case $name in
    # A tokenizer starts over: removes what an unfinished stage left.
    tokenizer) rm -f "$out/$name"/tokenizer.model "$out/$name"/tokenizer_config.json ;;
    # Measurements start from the beginning, so the time of an unfinished attempt does not count.
    scores-* | tree-*) [ ! -s "$out/$name/.done" ] || rm -f "$out/$name/.seconds" "$out/$name/.done" ;;
  esac
  echo "scripts/train_family.sh: $name, $(date +%H:%M)" >&2
  count_piece "$name" "$(find "$out/$name" -type f -printf '%T@\n' | sort -n | tail -n 1 | cut -d. -f1)"
  rm -f "$out/$name"/*.part[0-9]*  # incomplete files of a killed run
  keep "$(date +%s)" "$out/$name/.began"
  "$program" "$@" || {
    local status=$?
    count_piece "$name" "$(date +%s)"
    echo "scripts/train_family.sh: $name ended with status $status; run the same command to continue" >&2
    exit "$status"
  }
  count_piece "$name" "$(date +%s)"
  keep "$now" "$out/$name/.done"
}
trained() {  # NAME RECIPE [FILE...] -- KIND ARGUMENTS
  local name=$1 words=()
  while [ "$1" != -- ]; do
    words+=("$1")
    shift
  done
  shift
  stage "${words[@]}" -- train "$1" --recipe "${words[1]}" "${@:2}" --out "$out/$name" --resume
}

# MODEL STAGE...: writes the stages' seconds into the model's card.
took() {  # MODEL STAGE...
  local model=$1 name
  shift
  {
    echo "Wall-clock seconds, including what a stage wrote and measured beside its training."
    echo
    printf '| stage | seconds |\n| --- | --- |\n'
    for name in "$@"; do echo "| $name | $(cat "$out/$name/.seconds") |"; done
  } | python3 "$here/scripts/card_section.py" "$out/$model/README.md" "Time"
}

# PREFIX TARGET FILE: both kinds of draft heads with their trees, trained on the target's answers.
train_heads() {
  local heads measured=()
  [ "$rows" != auto ] || measured=(--model "$2")
  [ "$rows" != auto ] || [ -n "$base" ] || measured+=(--scale 4x2)
  for heads in medusa chimera; do
    trained "$1-$heads" "$recipes/${base:+$base-}$heads.json" "$3" -- "$heads" --target "$2" --texts "$out/texts/own_outputs.jsonl"
    keep "$rows" "$out/rows"
    stage "tree-$heads" <(cat "$out/rows" "$out/$1-$heads/accuracies.json") -- \
      model tree "$out/$1-$heads" --rows "$rows" "${measured[@]}" --out "$out/$1-$heads/tree.json"
    took "$1-$heads" texts "$1-$heads" "tree-$heads"
  done
}

if [ -n "$base" ]; then
  weights=$("$here/scripts/get_model.sh" --path "$base")
  [ -f "$weights" ] || { echo "scripts/train_family.sh: $weights: not found; run scripts/get_model.sh $base" >&2; exit 2; }
  trained texts "$recipes/$base-outputs.json" "$weights" -- outputs --target "$weights"
  trained "$base-draft" "$recipes/$base-draft.json" "$weights" -- draft --target "$weights" --texts "$out/texts/own_outputs.jsonl"
  took "$base-draft" texts "$base-draft"
  train_heads "$base" "$weights" "$weights"
  trained "$base-cllm" "$recipes/$base-cllm.json" "$weights" -- cllm --from "$weights"
  took "$base-cllm" "$base-cllm"
  echo "scripts/train_family.sh: done; next: DECOSCOPE_FAMILY=$base scripts/install_family.sh $out" >&2
  exit
fi
if [ -n "$from" ]; then
  trained demo-target "$target_recipe" "$from/model.safetensors" "$from/tokenizer.model" -- target --tokenizer "$from" --from "$from"
else
  stage tokenizer "$recipes/tokenizer-family.json" -- train tokenizer --recipe "$recipes/tokenizer-family.json" --out "$out/tokenizer"
  trained demo-target "$target_recipe" "$out/tokenizer/tokenizer.model" -- target --tokenizer "$out/tokenizer"
fi
weights=$out/demo-target/model.safetensors
target=(--target "$out/demo-target")
# Writes the card before the consistency model is trained, because that training copies these names into its card.
keep '{"draft": "demo-draft", "medusa": "demo-medusa", "chimera": "demo-chimera"}' "$out/demo-target/decoscope.json"
trained demo-draft "$recipes/draft.json" "$weights" -- draft "${target[@]}" --tokenizer "$out/demo-target"
trained texts "$recipes/medusa.json" "$weights" -- outputs "${target[@]}"
train_heads demo "$out/demo-target" "$weights"
trained demo-cllm "$cllm_recipe" "$weights" -- cllm --from "$out/demo-target"
for model in demo-target demo-cllm; do
  stage "scores-$model" <(cat "$out/$model/model.safetensors"; echo "$scores") -- \
    model score --model "$out/$model" --count "$scores" --resume "$out/scores-$model/figures.jsonl" --write
done
tokenizer=(tokenizer)
[ -z "$from" ] || tokenizer=()
took demo-target "${tokenizer[@]}" demo-target scores-demo-target
took demo-draft demo-draft
took demo-cllm demo-cllm scores-demo-cllm
echo "scripts/train_family.sh: done; next: scripts/family_gates.sh $out" >&2
