#!/usr/bin/env bash
# Checks with cuobjdump that the program contains code for every GPU architecture of the preset cuda-all.
#   scripts/check_archs.sh [PROGRAM [ARCH...]]
# PROGRAM: a built program (default: builds the preset without a window). ARCH: architectures such as 90 (default: the preset's). Examines
# the linked program, because the linker may drop code of an object file. CUOBJDUMP names cuobjdump if it is not on PATH. Prints a line per
# architecture. Exit codes: 1 if one is missing, 2 without cuobjdump or a program.
set -euo pipefail
cd "$(dirname "$0")/.."
refuse() {
  echo "scripts/check_archs.sh: $*" >&2
  exit 2
}
cuobjdump=${CUOBJDUMP:-cuobjdump}
command -v "$cuobjdump" > /dev/null || refuse "$cuobjdump: not found; install PyPI's nvidia-cuda-cuobjdump, or set CUOBJDUMP"
program=${1:-}
if [ -z "$program" ]; then
  scripts/build.sh cuda-all --target decoscope -DWITH_UI=OFF -DCUDA_EMULATION=OFF >&2
  program=build/cuda-all/bin/decoscope
fi
version=$("$program" --version 2> /dev/null) || true
[[ $version == "decoscope "* ]] || refuse "$program: --version does not print decoscope; expected a built program"
if [ $# -gt 1 ]; then
  archs=${*:2}
else
  archs=$(python3 -c '
import json
for preset in json.load(open("CMakePresets.json"))["configurePresets"]:
    if preset["name"] == "cuda-all":
        print(preset["cacheVariables"]["DECOSCOPE_CUDA_ARCHS"].replace(";", " "))')
fi
echo "$program: $version"
elf=$("$cuobjdump" --list-elf "$program" 2> /dev/null || true)
ptx=$("$cuobjdump" --list-ptx "$program" 2> /dev/null || true)
missing=()
for arch in $archs; do
  n=$(grep -c "\.sm_${arch}[a-z]*\.cubin" <<< "$elf" || true)
  echo "sm_$arch: $n"
  [ "$n" -gt 0 ] || missing+=("sm_$arch")
done
n=$(grep -c '\.ptx' <<< "$ptx" || true)
echo "PTX: $n"
[ "$n" -gt 0 ] || missing+=(PTX)
[ ${#missing[@]} = 0 ] || { echo "scripts/check_archs.sh: $program: no code for ${missing[*]}" >&2; exit 1; }
