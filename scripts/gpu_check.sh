#!/usr/bin/env bash
# Checks and measures the CUDA path on a real GPU, in two steps, because a machine that has one often has nothing else:
#   scripts/gpu_check.sh pack FOLDER   where this project builds and nvcc is: builds, and puts all that the check needs there
#                                      (programs, the shared libraries they load, the bundled models); about 40 MB
#   FOLDER/gpu_check.sh run [PART]     where the GPU is: kernels, decoders, sanitizer, bench; each some minutes, all by default
# run writes FOLDER/results/PART.log, and FOLDER/results/gpu_check.json of all parts that were run.
set -euo pipefail

pack() {
  folder=$(mkdir -p "$1" && cd "$1" && pwd)
  cd "$(dirname "$0")/.."
  scripts/build.sh release --folder gpu --target decoscope -DWITH_CUDA=ON -DCUDA_EMULATION=ON -DWITH_UI=OFF
  scripts/build.sh release --folder gpu --target kernels_emulated_test -DWITH_CUDA=ON
  scripts/build.sh release --folder gpu --target engine_emulated_test -DWITH_CUDA=ON
  mkdir -p "$folder/bin" "$folder/lib" "$folder/assets"
  for program in decoscope kernels_emulated_test engine_emulated_test; do
    cp "build/gpu/bin/$program" "$folder/bin/"
    ldd "build/gpu/bin/$program" | awk '/=> \//{print $3} /ld-linux/{print $1}' | xargs -I{} cp -L {} "$folder/lib/"
  done
  cp -r assets/models assets/prompts "$folder/assets/"
  cp scripts/gpu_check.sh "$folder/"
  du -sh "$folder"
}

# A program of the folder with the folder's own libraries; the driver's stand where the machine has them.
here=$(cd "$(dirname "$0")" && pwd)
packed() {
  program=$1 && shift
  driver=$(ldconfig -p | awk '/libcuda\.so\.1/{print $NF; exit}')
  "$here"/lib/ld-linux-*.so.* --library-path "$here/lib:$(dirname "${driver:-/usr/lib/libcuda.so}")" "$here/bin/$program" "$@"
}
measured() {
  DECOSCOPE_ASSETS="$here/assets" packed decoscope "$@" --device cuda:0 --json
}

part() {
  case $1 in
    kernels) packed kernels_emulated_test --gtest_filter='*cuda_0*' --gtest_brief=1 ;;
    decoders) packed engine_emulated_test --gtest_filter='*cuda_0*' --gtest_brief=1 ;;
    sanitizer)
      for tool in memcheck racecheck initcheck synccheck; do
        echo "== $tool"
        driver=$(ldconfig -p | awk '/libcuda\.so\.1/{print $NF; exit}')
        compute-sanitizer --tool "$tool" --error-exitcode 9 "$here"/lib/ld-linux-*.so.* \
          --library-path "$here/lib:$(dirname "$driver")" "$here/bin/kernels_emulated_test" --gtest_filter='*cuda_0*' --gtest_brief=1
      done ;;
    bench)
      measured bench kernels --rows 1,8,32,120 > "$here/results/kernels.json"
      measured bench step --rows 1,2,4,8,16,32,64,120 --context 512 > "$here/results/step.json" ;;
    *) echo "gpu_check: $1: expected kernels, decoders, sanitizer or bench" >&2 && return 2 ;;
  esac
}

run() {
  mkdir -p "$here/results"
  for name in ${1:-kernels decoders sanitizer bench}; do
    echo "== $name"
    begun=$(date +%s) code=0
    # A subshell of its own, so that -e holds in it.
    (set -euo pipefail; part "$name") > "$here/results/$name.log" 2>&1 || code=$?
    echo "$code $(($(date +%s) - begun))" > "$here/results/$name.code"
    tail -n 3 "$here/results/$name.log"
  done
  python3 - "$here/results" <<'PYTHON'
import glob, json, os, subprocess, sys
folder = sys.argv[1]
told = {"gpu": subprocess.run(["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True).stdout.strip(), "parts": {}}
for path in sorted(glob.glob(folder + "/*.code")):
    code, seconds = open(path).read().split()
    told["parts"][os.path.basename(path)[:-5]] = {"passed": code == "0", "seconds": int(seconds)}
for name in ("kernels", "step"):
    path = f"{folder}/{name}.json"
    if os.path.exists(path) and os.path.getsize(path):
        told["bench_" + name] = json.load(open(path))
json.dump(told, open(folder + "/gpu_check.json", "w"), indent=2)
print(json.dumps(told["parts"], indent=2))
sys.exit(0 if all(p["passed"] for p in told["parts"].values()) else 1)
PYTHON
}

case ${1:-} in
  pack) pack "${2:?a folder}" ;;
  run) run "${2:-}" ;;
  *) sed -n '2,7s/^# \?//p' "$0" >&2 && exit 2 ;;
esac
