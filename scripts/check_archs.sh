#!/usr/bin/env bash
# Whether the program of preset cuda-all holds code for every GPU it names: builds it (no window), lists what is in it with cuobjdump.
#   scripts/check_archs.sh [PROGRAM [ARCH...]]      of this program, if one is given, instead of a built one; of these archs (90 100)
#                                                   instead of the preset's
# It is the program itself that is looked at, linked and started once: an object file, whose code the linker may yet leave out, is
# refused. CUOBJDUMP names cuobjdump where it is not on the PATH (PyPI: nvidia-cuda-cuobjdump). Prints the archs; fails where one is
# missing (1), where there is no cuobjdump or no program to look at (2).
set -euo pipefail
cd "$(dirname "$0")/.."
refuse() {
  echo "scripts/check_archs.sh: $*" >&2
  exit 2
}
cuobjdump=${CUOBJDUMP:-cuobjdump}
command -v "$cuobjdump" > /dev/null || refuse "$cuobjdump: not found; PyPI's nvidia-cuda-cuobjdump has it, CUOBJDUMP names it"
program=${1:-}
if [ -z "$program" ]; then
  scripts/build.sh cuda-all --target decoscope -DWITH_UI=OFF -DCUDA_EMULATION=OFF >&2
  program=build/cuda-all/bin/decoscope
fi
version=$("$program" --version 2> /dev/null) || true
[[ $version == "decoscope "* ]] || refuse "$program: found no program that says it is decoscope, expected a built one"
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
[ ${#missing[@]} = 0 ] || { echo "scripts/check_archs.sh: $program: ${missing[*]} not in it" >&2; exit 1; }
