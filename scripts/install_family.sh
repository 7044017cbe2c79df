#!/usr/bin/env bash
# Copies a trained family into the bundled models, only the files that are read.
#   scripts/install_family.sh FAMILY_DIR [MODELS_DIR]      default: assets/models
# DECOSCOPE_FAMILY_MODELS names the models to install ("demo-cllm"; default: all five). All models together may have 48 MiB, because they
# are part of every clone. Exit codes: 1 if a file is missing or the limit is exceeded (nothing changes), 2 for an unknown model.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
family=${1:?name the folder that scripts/train_family.sh wrote}
models=${2:-$here/assets/models}
most=$((48 * 1024 * 1024))
whole="README.md config.json generation_config.json model.safetensors tokenizer.model tokenizer_config.json"
heads="README.md accuracies.json config.json model.safetensors tree.json"
files_of() {  # MODEL
  case $1 in
    demo-target | demo-cllm) echo "$whole decoscope.json" ;;
    demo-draft) echo "$whole" ;;
    *) echo "$heads" ;;
  esac
}
all=(demo-target demo-draft demo-medusa demo-chimera demo-cllm)
read -ra family_models <<< "${DECOSCOPE_FAMILY_MODELS:-${all[*]}}"
for model in "${family_models[@]}"; do
  [[ " ${all[*]} " = *" $model "* ]] || { echo "$model: unknown model, expected one of ${all[*]}" >&2; exit 2; }
done
bytes=0
for model in "${all[@]}"; do  # models that are not replaced count, too
  [[ " ${family_models[*]} " = *" $model "* ]] || [ ! -d "$models/$model" ] ||
    bytes=$((bytes + $(find "$models/$model" -type f -printf '%s\n' | awk '{n += $1} END {print n + 0}')))
done
for model in "${family_models[@]}"; do
  for file in $(files_of "$model"); do
    [ -s "$family/$model/$file" ] || { echo "$family/$model/$file: missing; has the training finished?" >&2; exit 1; }
    bytes=$((bytes + $(stat -c %s "$family/$model/$file")))
  done
done
if [ "$bytes" -gt "$most" ]; then
  echo "the family's files have $bytes bytes, the limit is $most (48 MiB); train a smaller target or fewer heads" >&2
  exit 1
fi
mkdir -p "$models"
drop_new() { for model in "${family_models[@]}"; do rm -rf "$models/$model.new"; done; }
drop_new
trap drop_new EXIT
for model in "${family_models[@]}"; do
  mkdir "$models/$model.new"
  for file in $(files_of "$model"); do cp "$family/$model/$file" "$models/$model.new/"; done
done
for model in "${family_models[@]}"; do  # all copies exist, and moving them needs no further space
  rm -rf "${models:?}/$model"
  mv "$models/$model.new" "$models/$model"
done
echo "installed in $models: $bytes bytes of $most" >&2
