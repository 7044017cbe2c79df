#!/usr/bin/env bash
# Checks and measures the CUDA kernels on a real GPU, in two steps, because a machine with a GPU often has no build tools:
#   scripts/gpu_check.sh pack FOLDER [--limit MIB] [--built BUILD]
#                                        on a machine with nvcc: builds the programs and packs them with their libraries and this script. A
#                                        FOLDER inside the checkout links to its assets, any other contains them. Prints the size; exit code
#                                        1 if it exceeds --limit. --built packs an existing build folder
#   FOLDER/gpu_check.sh run [PART...]    on the machine with the GPU (needs python3): runs parts, by default all, the most informative first
#   FOLDER/gpu_check.sh run --minutes N  the parts that fit and have not passed
#   FOLDER/gpu_check.sh run --together [SECONDS] PART...   at the same time, for machines with many cores; not for parts that measure
#   FOLDER/gpu_check.sh list [N]         the parts (that fit in N minutes), their time and result (gpu_parts.py)
#   FOLDER/gpu_check.sh parts            their names
#   FOLDER/gpu_check.sh unpack WORK      unpacks into WORK, which keeps results and the large model
#   FOLDER/gpu_check.sh decoscope ARGS   runs the packed program
# Parts; each takes at most 10 minutes, and without a GPU prints one line and ends with status 5:
#   kernels, decoders   all tests of kernels; of decoders in every dtype against plain decoding
#   exact               scripts/exactness.sh on the device, every dtype, in 24 shares that can be continued
#   soak, cancel, rows  2,000 generations, which must leave the free memory as it was; 1,000 cancelled runs, of which 99 % must end within a
#                       step and 0.1 s; bits of a row in 10,000 forwards of 1 to 17 rows
#   same                1,000 runs of one prompt beside other prompts give one output; the test detects an altered prompt or order of sums
#   faults              each CUDA call fails once: the program must name the call, or continue with a note
#   memcheck, racecheck, initcheck, synccheck      compute-sanitizer over the kernels' tests and 32 tokens of the bundled model
#                       PART:2/8 of kernels, decoders, exact, faults and the sanitizers is the second of eight shares
#   shape               7B-shaped random weights (13.5 GB) in FOLDER/7B or DECOSCOPE_GPU_MODEL, for the parts below
#   bench               steps of 1 to 120 rows at context 512 against the bound by copies (gpu_model.py), tokens/s of plain decoding
#   prompts             prompts of 2,049 and 2,304 tokens read by the kernels that compute steps, and by cuBLAS; then all decoders after such prompts
#   speeds              every decoder against plain decoding on the bundled prompts: tokens/s and equal tokens
#   products            single matrix products
#   training            all tests of training; losses of 300,000 tokens and of a consistency model against the CPU's; tokens/s of 14 M
#                       weights. cuBLAS: DECOSCOPE_CUBLAS, the machine's, or pip's; otherwise plain products
#   peers               a step of one row against eager `generate` of transformers, if installed, and published figures; needs bench
# run writes FOLDER/results/PART.log and collects FOLDER/results/gpu_check.json. A part fails if a test fails, a sanitizer reports, or a
# target of speed is missed.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd -P)
packed_file=$here/gpu_check.tar.xz

# BYTES: prints them in MiB.
mib() {
  awk -v bytes="$1" 'BEGIN { printf "%.1f", bytes / 1048576 }'
}
bytes_in() {
  find "$@" -type f -printf '%s\n' | awk '{ all += $1 } END { printf "%d", all }'
}

# Builds code for DECOSCOPE_CUDA_ARCHS (default 90: H100 and H200; from 80) and PTX. The runtime is a shared library, so that fail_calls can
# be loaded before it.
build_for_gpus() {
  archs=${DECOSCOPE_CUDA_ARCHS:-90}
  scripts/build.sh tests --folder gpu --target decoscope --target kernels_emulated_test --target engine_emulated_test \
    --target train_emulated_test --target fail_calls \
    -DWITH_CUDA=ON -DCUDA_EMULATION=ON -DWITH_UI=OFF -DDECOSCOPE_SHARED_CUDART=ON "-DDECOSCOPE_CUDA_ARCHS=$archs"
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  for_archs=()
  for arch in ${archs//;/ }; do
    for_archs+=(-gencode "arch=compute_$arch,code=[sm_$arch,compute_$arch]")
  done
  "$nvcc" -std=c++20 -O2 -I. "${for_archs[@]}" -o build/gpu/bin/gpu_probe tests/kernels/cuda/gpu/gpu_probe.cu
}

# BUILD TO: copies the programs without symbols, and the libraries that they load.
gather() { # BUILD TO
  mkdir -p "$2/bin" "$2/lib" "$2/scripts"
  for program in decoscope kernels_emulated_test engine_emulated_test train_emulated_test gpu_probe; do
    [ -x "$1/bin/$program" ] || { echo "gpu_check: $1/bin/$program: not found; pack without --built builds it" >&2 && return 2; }
    cp -L "$1/bin/$program" "$2/bin/"
    ldd "$1/bin/$program" | awk '/=> \//{print $3} /ld-linux/{print $1}' | xargs -I{} cp -L {} "$2/lib/"
  done
  find "$1" -name libfail_calls.so -exec cp -L {} "$2/lib/" \;
  chmod -R u+w "$2"
  strip "$2"/bin/*
  strip --strip-unneeded "$2"/lib/*
  for name in model parts peers prompts results training; do
    cp "scripts/gpu_$name.py" "$2/"
  done
  cp scripts/eager_floor.py "$2/"
  cp scripts/{exactness,measuring,lanes}.sh scripts/exactness_table.py "$2/scripts/"
  # shellcheck disable=SC2016
  printf '#!/bin/sh\nunset DECOSCOPE_PROGRAM\nexec "$(dirname "$0")/gpu_check.sh" decoscope "$@"\n' > "$2/program" # for exactness.sh
  chmod +x "$2/program"
}

pack() { # FOLDER [--limit MIB] [--built BUILD]
  folder="" limit="" built=""
  while [ $# -gt 0 ]; do
    case $1:${2:+given} in
      --limit:given) limit=$2 && shift ;;
      --built:given) built=$(cd "$2" && pwd -P) && shift ;;
      [!-]*:*) folder=$1 ;;
      *) echo "gpu_check: pack: found \"$1\", expected FOLDER, --limit MIB or --built BUILD" >&2 && return 2 ;;
    esac
    shift
  done
  [ -n "$folder" ] || { echo "gpu_check: pack: expected a FOLDER" >&2 && return 2; }
  folder=$(mkdir -p "$folder" && cd "$folder" && pwd -P)
  [ -z "$(ls -A "$folder")" ] || [ -e "$folder/gpu_check.tar.xz" ] ||
    { echo "gpu_check: $folder: found other files, expected an empty folder or an older pack" >&2 && return 2; }
  cd "$here/.."
  checkout=$(pwd -P)
  if [ -z "$built" ]; then
    build_for_gpus
    built=$checkout/build/gpu
  fi
  staged=$(mktemp -d)
  trap 'rm -rf "$staged"' EXIT
  gather "$built" "$staged"
  rm -rf "${folder:?}"/{bin,lib,assets} # left by an older pack
  case $folder in
    "$checkout"/*) ln -s "$(realpath --relative-to="$folder" assets)" "$folder/assets" ;;
    *)
      mkdir "$staged/assets"
      cp -r assets/{data,models,prompts,recipes,shapes,trees} "$staged/assets/" ;;
  esac
  cp scripts/gpu_check.sh "$folder/"
  # xz's preset 9, because its dictionary is larger than a program: so the code that the programs share is stored once.
  python3 - "$folder/gpu_check.tar.xz" "$staged" <<'PYTHON'
import os, sys, tarfile
with tarfile.open(sys.argv[1], "w:xz", preset=9) as pack:
    for name in sorted(os.listdir(sys.argv[2])):
        pack.add(os.path.join(sys.argv[2], name), arcname=name)
PYTHON
  bytes=$(bytes_in "$folder/gpu_check.sh" "$folder/gpu_check.tar.xz")
  echo "$folder: $(mib "$bytes") MiB packed, $(mib "$(bytes_in "$staged")") unpacked"
  [ -z "$limit" ] || awk -v bytes="$bytes" -v limit="$limit" 'BEGIN { exit !(bytes <= limit * 1048576) }' ||
    { echo "gpu_check: $folder: $(mib "$bytes") MiB packed, more than --limit $limit" >&2 && return 1; }
}

unpack() { # WORK
  to=$(mkdir -p "$1" && cd "$1" && pwd -P)
  [ -s "$packed_file" ] || { echo "gpu_check: $packed_file: not found; run gpu_check.sh pack" >&2 && return 2; }
  python3 -W ignore -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$packed_file" "$to"
  [ "$to" = "$here" ] || cp "$here/gpu_check.sh" "$to/"
  [ -e "$to/assets" ] || ln -sfn "$(realpath -m "$here/assets")" "$to/assets"
  [ -d "$to/assets/models" ] ||
    { echo "gpu_check: $(realpath -m "$to/assets"): not found; the pack needs the checkout in which it was made" >&2 && return 2; }
}

# PROGRAM ARGUMENT...: runs a packed program with the packed libraries and the machine's driver.
model=${DECOSCOPE_GPU_MODEL:-$here/7B}
driver_folder() {
  driver=$(ldconfig -p | awk '/libcuda\.so\.1/{print $NF; exit}')
  dirname "${driver:-/usr/lib/libcuda.so}"
}
packed() {
  program=$1 && shift
  # shellcheck disable=SC2211
  "$here"/lib/ld-linux-*.so.* ${preload:+--preload "$preload"} --library-path "$here/lib:$(driver_folder)" "$here/bin/$program" "$@"
}
decoscope() {
  if [ -n "${DECOSCOPE_PROGRAM:-}" ]; then
    "$DECOSCOPE_PROGRAM" "$@"
  else
    DECOSCOPE_ASSETS="$here/assets" packed decoscope "$@"
  fi
}
# PART: returns 5 with one line if the program finds no usable GPU.
expect_gpu() { # PART
  mkdir -p "$here/results"
  devices=$(decoscope devices --json | tee "$here/results/devices.json") ||
    { echo "gpu_check: $1: \`decoscope devices\` failed" >&2 && return 5; }
  DEVICES=$devices python3 - "$1" <<'PYTHON'
import json, os, sys
first = next((one for one in json.loads(os.environ["DEVICES"]) if one["name"] == "cuda:0"), {"available": False, "reason": "not listed"})
if not first["available"]:
    print(f"gpu_check: {sys.argv[1]}: no GPU: {first['reason']}", file=sys.stderr)
    sys.exit(5)
PYTHON
}
# PROGRAM [FILTER]: runs the tests of the device; returns 5 if there are none.
tests_of() { # PROGRAM [FILTER]
  filter=${2:-'*cuda_0*'}
  packed "$1" --gtest_list_tests --gtest_filter="$filter" | grep "^  " > /dev/null ||
    { echo "gpu_check: $1: found no test of a GPU; see \`decoscope devices\`" >&2 && return 5; }
  DECOSCOPE_ASSETS="$here/assets" packed "$1" --gtest_filter="$filter" --gtest_brief=1
}
few_tokens() { # N MORE...
  decoscope generate --model demo-draft --prompt "Question: " --max-tokens "$@" --ignore-eos --device cuda:0
}

# A prompt of more than one block, read by cuBLAS.
long_prompt() {
  CUDA_PROMPTS=cublas decoscope generate --model demo-draft --prompt "Question: $(seq -s ' and ' 100 165)" --max-tokens 2 --ignore-eos \
    --device cuda:0
}

# One step of training.
one_step() {
  rm -rf "$here/results/learned"
  decoscope train target --recipe "$here/results/step.json" --out "$here/results/learned" --device cuda:0
}

# CALL FILE: checks that the messages in FILE name the call; a launch is named by its kernel and grid.
names_call() { # CALL FILE
  word=${1%_v2}
  [ "$word" != cudaLaunchKernel ] || word="(grid "
  grep -qF -- "$word" "$2" || { echo "$1: the messages do not name it" && return 1; }
}

# COMMAND: runs it once for each CUDA call of this share of the calls, and makes that call fail. The program must end with code 4 or 5 and at
# most four lines that name the call, or continue with a note.
faults_of() { # arguments: few 4, long_prompt or one_step
  local n n_calls bad code failed
  preload="$here/lib/libfail_calls.so" log="$here/results/calls"
  DECOSCOPE_FAIL_CALL=0 DECOSCOPE_FAIL_LOG="$log" "$here/gpu_check.sh" "$@" > /dev/null
  read -r n_calls _ < "$log"
  echo "$*: $n_calls calls, share $share of $n_shares"
  [ "$n_calls" -gt 40 ] || { echo "too few calls: fail_calls was not loaded before the runtime" >&2 && return 1; }
  n=$share bad=0
  while [ "$n" -le "$n_calls" ]; do
    code=0
    DECOSCOPE_FAIL_CALL=$n DECOSCOPE_FAIL_LOG="$log" timeout 60 "$here/gpu_check.sh" "$@" \
      > /dev/null 2> "$here/results/failed" || code=$?
    failed=$(cut -d' ' -f2 "$log" 2> /dev/null || echo "-")
    echo "$n $failed: $code $(head -n 1 "$here/results/failed")"
    case $failed:$code in
      # If a release fails, the program only prints a note. It runs without the size of free memory, too.
      cudaFree:0 | cudaFreeHost:0 | *Destroy:0 | cublasDestroy_v2:0) grep -q "note: cuda:0: $failed: " "$here/results/failed" || bad=1 ;;
      cudaMemGetInfo:0) ;;
      -:*) echo "call $n did not happen" && bad=1 ;;
      *:4 | *:5)
        [ "$(wc -l < "$here/results/failed")" -le 4 ] || bad=1
        names_call "$failed" "$here/results/failed" || bad=1 ;;
      *) bad=1 ;;
    esac
    n=$((n + n_shares))
  done
  return "$bad"
}
# Further checks: a CPU run makes no CUDA call; an allocation that fails once is repeated; after a permanent error, such as the one of a bad
# address, the program ends soon and its recording is readable.
faults_besides() ( # a subshell, because of its exports
  preload="$here/lib/libfail_calls.so" log="$here/results/calls" record="$here/results/failed.pdrun" bad=0
  export DECOSCOPE_FAIL_LOG="$log"
  rm -f "$log" # stays absent if no CUDA call is made
  DECOSCOPE_FAIL_CALL=0 decoscope generate --model demo-draft --prompt "Question: " --max-tokens 4 --device cpu > /dev/null
  [ ! -e "$log" ] || [ "$(cat "$log")" = "0 -" ] || { echo "a CPU run made CUDA calls: $(cat "$log")" && bad=1; }
  DECOSCOPE_FAIL_CALL=0 few_tokens 4 > /dev/null
  read -r n_calls _ < "$log"
  for n in $(seq 1 $((n_calls / 20 + 1)) "$n_calls"); do
    code=0
    DECOSCOPE_FAIL_CALL=$n DECOSCOPE_FAIL_ERROR=2 timeout 60 "$here/gpu_check.sh" few 4 > /dev/null 2> "$here/results/failed" || code=$?
    echo "$n out of memory: $code $(head -n 1 "$here/results/failed")"
    case $code in 0 | 4 | 5) ;; *) bad=1 ;; esac
  done
  code=0
  DECOSCOPE_FAIL_CALL=$((n_calls * 3 / 4)) DECOSCOPE_FAIL_ERROR=700 DECOSCOPE_FAIL_FOR_GOOD=1 \
    timeout 10 "$here/gpu_check.sh" few 4 --record "$record" > /dev/null 2> "$here/results/failed" || code=$?
  echo "a permanent error: $code $(head -n 1 "$here/results/failed")"
  [ "$code" = 5 ] && grep -qF cudaErrorIllegalAddress "$here/results/failed" || bad=1
  DECOSCOPE_FAIL_CALL=0 decoscope trace info "$record" || bad=1
  exit "$bad"
)
faults() {
  code=0
  [ "$share" != 1 ] || faults_besides || code=1
  faults_of few 4 || code=1
  DECOSCOPE_FAIL_CUBLAS=$DECOSCOPE_CUBLAS
  [ "$DECOSCOPE_CUBLAS" = own ] || DECOSCOPE_CUBLAS="$here/lib/libfail_calls.so"
  export DECOSCOPE_CUBLAS DECOSCOPE_FAIL_CUBLAS
  python3 "$here/gpu_training.py" recipes "$here/results"
  faults_of one_step || code=1
  faults_of long_prompt || code=1
  return "$code"
}

# Prints the path of this machine's cuBLAS library, or "own" if it has none.
cublas_here() {
  [ -z "${DECOSCOPE_CUBLAS:-}" ] || { echo "$DECOSCOPE_CUBLAS" && return; }
  of_pip='import glob, site; print(*[f for p in site.getsitepackages() for f in glob.glob(p + "/nvidia/c*/lib/libcublas.so.1[23]")])'
  for file in $(ldconfig -p | awk '/libcublas\.so\.1[23]/{print $NF}') /usr/local/cuda/lib64/libcublas.so.1[23] $(python3 -c "$of_pip"); do
    [ ! -e "$file" ] || { echo "$file" && return; }
  done
  echo own
}
training() {
  echo "products: $DECOSCOPE_CUBLAS"
  tests_of train_emulated_test
  runs="$here/results/training"
  rm -rf "$runs" && mkdir -p "$runs"
  python3 "$here/gpu_training.py" recipes "$runs"
  decoscope train target --recipe "$runs/small.json" --out "$runs/cpu" --device cpu
  decoscope train target --recipe "$runs/small.json" --out "$runs/gpu" --device cuda:0
  decoscope train target --recipe "$runs/large.json" --out "$runs/large" --device cuda:0
  # Both devices learn the answers that the CPU collected.
  decoscope train cllm --recipe "$runs/cllm.json" --out "$runs/cllm-cpu" --device cpu
  mkdir "$runs/cllm-gpu" && cp "$runs/cllm-cpu/trajectories.bin" "$runs/cllm-gpu/"
  decoscope train cllm --recipe "$runs/cllm.json" --out "$runs/cllm-gpu" --device cuda:0 --resume
  python3 "$here/gpu_training.py" compare "$runs" "$here/results/training.json"
}

# PROMPTS RESULT OPTION...: runs every decoder whose models are bundled; fails if tokens differ from plain decoding's.
every_decoder() { # PROMPTS RESULT MORE...
  prompts=$1 result=$2 && shift 2
  lanes=ar,jacobi,fastcot,lookahead,prompt-lookup,suffix,speculative,mcsd,seed
  for heads in medusa chimera; do
    [ ! -d "$here/assets/models/demo-$heads" ] || lanes="$lanes,$heads"
  done
  decoscope compare --decoders "$lanes" --prompt-file "$prompts" --device cuda:0 --json "$@" > "$result"
  python3 - "$result" <<'PYTHON'
import json, sys
found = json.load(open(sys.argv[1]))
for row in found["summary"]:
    print(row)
other = [(r["decoder"], r["id"]) for r in found["results"] if r["identical_to_ar"] is False]
print("tokens differ from ar:", other or "none")
sys.exit(1 if other else 0)
PYTHON
}

speeds() {
  every_decoder "$here/assets/prompts/bundled.jsonl" "$here/results/speeds.json" --max-tokens 96 --repeat 3
}

# Times prompts read by the program's own kernels and by cuBLAS, then checks exactness after prompts read by cuBLAS.
prompts() {
  [ "$DECOSCOPE_CUBLAS" != own ] || { echo "cuBLAS: not found; name its file in DECOSCOPE_CUBLAS" >&2 && return 5; }
  for tokens in 2049 2304; do
    for way in own cublas; do
      CUDA_PROMPTS=$way decoscope bench decode --model "$model" --context "$tokens" --max-tokens 2 --repeat 5 --device cuda:0 --json \
        > "$here/results/prompts.$tokens.$way.json"
    done
  done
  code=0
  python3 "$here/gpu_prompts.py" compare "$here"/results/prompts.*.own.json "$here"/results/prompts.*.cublas.json \
    --out "$here/results/prompts.json" || code=1
  python3 "$here/gpu_prompts.py" texts "$here/results/long.jsonl"
  CUDA_PROMPTS=cublas every_decoder "$here/results/long.jsonl" "$here/results/long.json" --max-tokens 64 || code=1
  return "$code"
}

# Runs the settings of this share that have no results yet. All shares write to one document.
exact() {
  DECOSCOPE_PROGRAM=${DECOSCOPE_PROGRAM:-$here/program} DECOSCOPE_EXACT_DEVICE=cuda:0 DECOSCOPE_EXACT_DTYPES="bf16 f16 f32" \
    DECOSCOPE_EXACT_SHARE=$share/$n_shares DECOSCOPE_EXACT_JSON="$here/results/exact.json" "$here/scripts/exactness.sh" "$here/results/exact"
}

# PART[:SHARE/N]: "faults:2/8" is a share; without one the whole part.
shared_part() { # PART[:SHARE/N]
  share=1 n_shares=1
  case $1 in
    *:*)
      part_of=${1#*:}
      share=${part_of%/*} n_shares=${part_of#*/}
      { [ "$share" -ge 1 ] && [ "$share" -le "$n_shares" ]; } 2> /dev/null ||
        { echo "gpu_check: $1: expected PART:SHARE/N with 1 <= SHARE <= N" >&2 && return 2; }
      case ${1%%:*} in
        kernels | decoders | exact | faults | memcheck | racecheck | initcheck | synccheck) ;;
        *) echo "gpu_check: $1: only kernels, decoders, exact, faults and the sanitizers have shares" >&2 && return 2 ;;
      esac ;;
  esac
  part "${1%%:*}"
}
part() {
  all_parts=$(python3 "$here/gpu_parts.py" names)
  case " $all_parts " in
    *" $1"[:\ ]*) ;;
    *) echo "gpu_check: $1: expected one of $all_parts" >&2 && return 2 ;;
  esac
  [ "$1" = exact ] || [ "$n_shares" = 1 ] || export GTEST_TOTAL_SHARDS="$n_shares" GTEST_SHARD_INDEX=$((share - 1))
  [ "$1" = peers ] || expect_gpu "$1" || return
  DECOSCOPE_CUBLAS=$(cublas_here)
  export DECOSCOPE_CUBLAS
  case $1 in
    kernels) tests_of kernels_emulated_test ;;
    decoders) tests_of engine_emulated_test '*cuda_0*-*.Soak*:*.Cancel*:*.RowBits*:*.SamePrompt*' ;;
    exact) exact ;;
    soak) DECOSCOPE_SOAK=${DECOSCOPE_SOAK:-2000} tests_of engine_emulated_test '*.Soak*cuda_0*' ;;
    cancel) DECOSCOPE_CANCELS=${DECOSCOPE_CANCELS:-1000} tests_of engine_emulated_test '*.Cancel*cuda_0*' ;;
    rows) DECOSCOPE_ROW_FORWARDS=${DECOSCOPE_ROW_FORWARDS:-10000} tests_of engine_emulated_test '*.RowBits*cuda_0*' ;;
    same) DECOSCOPE_SAME_PROMPTS=${DECOSCOPE_SAME_PROMPTS:-1000} tests_of engine_emulated_test '*.SamePrompt*cuda_0*' ;;
    faults) faults ;;
    memcheck | racecheck | initcheck | synccheck)
      command -v compute-sanitizer > /dev/null || { echo "gpu_check: compute-sanitizer: not found; CUDA's toolkit has it" >&2 && return 5; }
      export DECOSCOPE_CUBLAS=own
      tool=$1 leaks=""
      [ "$tool" != memcheck ] || leaks="--leak-check full"
      code=0
      for command in kernels tokens; do
        [ "$command" = kernels ] || [ "$share" = 1 ] || continue
        set -- kernels_emulated_test --gtest_filter='*cuda_0*-*Wrecked*' --gtest_brief=1
        [ "$command" = kernels ] ||
          set -- decoscope generate --model demo-draft --prompt "Question: " --max-tokens 32 --ignore-eos --device cuda:0
        program=$1 && shift
        # shellcheck disable=SC2086
        DECOSCOPE_ASSETS="$here/assets" compute-sanitizer --tool "$tool" $leaks --error-exitcode 9 "$here"/lib/ld-linux-*.so.* \
          --library-path "$here/lib:$(driver_folder)" "$here/bin/$program" "$@" || code=$?
      done
      return "$code" ;;
    shape)
      [ -s "$model/config.json" ] ||
        { decoscope model random --config "$here/assets/shapes/7B.json" "$model.part" && mv "$model.part" "$model"; } ;;
    bench)
      [ -s "$model/config.json" ] || { echo "$model: not found; run the part shape first" >&2 && return 2; }
      packed gpu_probe > "$here/results/probe.json"
      decoscope bench probe --json > "$here/results/machine.json"
      decoscope bench step --model "$model" --rows 1,2,4,8,16,32,64,120 --context 512 --device cuda:0 --json > "$here/results/step.json"
      decoscope bench decode --model "$model" --context 512 --max-tokens 128 --repeat 3 --device cuda:0 --json > "$here/results/decode.json"
      python3 "$here/gpu_model.py" "$here/results/probe.json" "$here/results/step.json" "$here/results/model.json" ;;
    prompts)
      [ -s "$model/config.json" ] || { echo "$model: not found; run the part shape first" >&2 && return 2; }
      prompts ;;
    speeds) speeds ;;
    products) decoscope bench kernels --rows 1,8,32,120 --device cuda:0 --json > "$here/results/kernels.json" ;;
    training) training ;;
    peers)
      [ -s "$here/results/step.json" ] || { echo "$here/results/step.json: not found; run the part bench first" >&2 && return 2; }
      [ -s "$model/config.json" ] || { echo "$model: not found; run the part shape first" >&2 && return 2; }
      python3 "$here/eager_floor.py" "$model" > "$here/results/floor.json"
      python3 "$here/gpu_peers.py" "$here/results/step.json" "$here/results/floor.json" "$here/results/peers.json" ;;
  esac
}

run_one() { # PART: runs it for at most $most seconds
  begun=$(date +%s) code=0
  file="$here/results/$(echo "$1" | tr ':/' '..')" # faults:2/8 -> faults.2.8
  timeout "$most" "$here/gpu_check.sh" part "$1" > "$file.log" 2>&1 || code=$?
  [ "$code" != 124 ] || echo "gpu_check: $1: took longer than $most s" >> "$file.log"
  echo "$code $(($(date +%s) - begun))" > "$file.code"
  echo "== $1" && tail -n 3 "$file.log"
}
run() { # [PART...] | --minutes N | --together [SECONDS] PART...
  mkdir -p "$here/results"
  most=590 end=""
  if [ "${1:-}" = --minutes ]; then
    end=$(($(date +%s) + 60 * ${2:?minutes}))
    # shellcheck disable=SC2046
    set -- $(python3 "$here/gpu_parts.py" fit "$here/results" "$2")
    [ $# -gt 0 ] || { echo "gpu_check: every part that fits into these minutes has passed" >&2 && return 2; }
  fi
  # shellcheck disable=SC2046
  [ $# -gt 0 ] || set -- $(python3 "$here/gpu_parts.py" names)
  if [ "${1:-}" = --together ]; then
    shift
    [[ ! ${1:-} =~ ^[0-9]+$ ]] || { most=$1 && shift; }
    [ $# -gt 0 ] || { echo "gpu_check: run --together: expected a PART" >&2 && return 2; }
    for name in "$@"; do
      run_one "$name" &
    done
    wait
  else
    for name in "$@"; do
      [ -z "$end" ] || most=$((end - $(date +%s) < 590 ? end - $(date +%s) : 590))
      [ "$most" -ge 10 ] || { echo "== $name: no time left" && continue; }
      run_one "$name"
    done
  fi
  python3 "$here/gpu_results.py" "$here/results"
}

verb=${1:-}
# Unpacks a pack in place at its first use, unless it was unpacked before.
[ "$verb" = pack ] || [ "$verb" = unpack ] || [ -d "$here/bin" ] || [ ! -e "$packed_file" ] || unpack "$here"
case $verb in
  pack) shift && pack "$@" ;;
  unpack) unpack "${2:?a folder}" ;;
  run) shift && run "$@" ;;
  list) python3 "$here/gpu_parts.py" list "$here/results" ${2:+"$2"} ;;
  parts) python3 "$here/gpu_parts.py" names ;;
  decoscope) shift && decoscope "$@" ;;
  part) shared_part "${2:?a name}" ;; # called by run, with a time limit
  few) preload="$here/lib/libfail_calls.so" && few_tokens "${@:2}" ;; # called by faults
  long_prompt) preload="$here/lib/libfail_calls.so" && long_prompt ;;
  one_step) preload="$here/lib/libfail_calls.so" && one_step ;;
  *) sed -n '2,/^set /{/^set /d;s/^# \?//;p}' "$0" >&2 && exit 2 ;;
esac
