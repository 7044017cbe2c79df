#!/usr/bin/env bash
# Whether the program of preset cuda-all holds code for every GPU it names: builds it (no window), lists what is in it with cuobjdump.
#   scripts/check_archs.sh [PROGRAM]      of this program, if one is given, instead of a built one
# CUOBJDUMP names cuobjdump where it is not on the PATH (PyPI: nvidia-cuda-cuobjdump). Prints the archs; fails where one is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
cuobjdump=${CUOBJDUMP:-cuobjdump}
command -v "$cuobjdump" > /dev/null || {
  echo "scripts/check_archs.sh: $cuobjdump: not found; PyPI's nvidia-cuda-cuobjdump has it, CUOBJDUMP names it" >&2
  exit 2
}
archs=$(python3 -c '
import json
for preset in json.load(open("CMakePresets.json"))["configurePresets"]:
    if preset["name"] == "cuda-all":
        print(preset["cacheVariables"]["DECOSCOPE_CUDA_ARCHS"].replace(";", " "))')
program=${1:-}
if [ -z "$program" ]; then
  scripts/build.sh cuda-all --target decoscope -DWITH_UI=OFF -DCUDA_EMULATION=OFF >&2
  program=build/cuda-all/bin/decoscope
fi
elf=$("$cuobjdump" --list-elf "$program")
ptx=$("$cuobjdump" --list-ptx "$program" 2> /dev/null || true)
missing=0
for arch in $archs; do
  n=$(grep -c "\.sm_${arch}[a-z]*\.cubin" <<< "$elf" || true)
  echo "sm_$arch: $n"
  [ "$n" -gt 0 ] || missing=1
done
n=$(grep -c '\.ptx' <<< "$ptx" || true)
echo "PTX: $n"
[ "$n" -gt 0 ] || missing=1
[ "$missing" = 0 ] || { echo "scripts/check_archs.sh: $program: not all that CMakePresets.json names is in it" >&2; exit 1; }
