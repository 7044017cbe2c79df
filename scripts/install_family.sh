#!/usr/bin/env bash
# Copies a trained family into the bundled models, only the files that are read.
#   scripts/install_family.sh FAMILY_DIR [MODELS_DIR]      default: assets/models
# DECOSCOPE_FAMILY names the family: demo (default) or smollm2; DECOSCOPE_FAMILY_MODELS the models to install ("demo-cllm"; default: all). The
# models of demo together may have 48 MiB, those of smollm2 38 MiB, because they are part of every clone. Exit codes: 1 if a file is missing or
# the limit is exceeded (nothing changes), 2 for an unknown model.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
family=${1:?name the folder that scripts/train_family.sh wrote}
models=${2:-$here/assets/models}
name=${DECOSCOPE_FAMILY:-demo}
whole="README.md config.json generation_config.json model.safetensors tokenizer.model tokenizer_config.json"
heads="README.md accuracies.json config.json model.safetensors tree.json"
files_of() {  # MODEL
  case $1 in
    demo-target | demo-cllm) echo "$whole decoscope.json" ;;
    demo-draft) echo "$whole" ;;
    smollm2-draft) echo "README.md config.json model.safetensors" ;;
    smollm2-cllm) echo "README.md adapter_config.json adapter_model.safetensors" ;;
    *) echo "$heads" ;;
  esac
}
case $name in
  demo) all=(demo-target demo-draft demo-medusa demo-chimera demo-cllm) most=$((48 * 1024 * 1024)) ;;
  smollm2) all=(smollm2-draft smollm2-medusa smollm2-chimera smollm2-cllm) most=$((38 * 1024 * 1024)) ;;
  *) echo "$name: unknown family, expected demo or smollm2" >&2; exit 2 ;;
esac
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
  echo "the family's files have $bytes bytes, the limit is $most ($((most / 1048576)) MiB); train a smaller target or fewer heads" >&2
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
