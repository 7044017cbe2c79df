#!/usr/bin/env bash
# Makes docs/pictures: the window's first race (compare), a panel for each decoder's page, a tree of thoughts, and the pictures of docs/window.md
# (window), which a test takes. Runs the program under Xvfb.
#   scripts/pictures.sh [NAME...]      default: all; names: compare thoughts window and the decoders
# Prints each file written. Exit codes: 2 for an unknown name, 3 without a built program or Xvfb.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
program=${DECOSCOPE_PROGRAM:-"$here/build/release/bin/decoscope"}
[ -x "$program" ] || { echo "$program: not built; run scripts/build.sh release" >&2; exit 3; }
command -v xvfb-run >/dev/null || { echo "xvfb-run is missing; run scripts/setup.sh" >&2; exit 3; }
pictures=$here/docs/pictures
mkdir -p "$pictures"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

in_window() {
  xvfb-run -a -s "-screen 0 1600x1000x24" "$program" "$@"
}

# NAME PANEL STEP ARGUMENT...: records a run of the program and takes a picture of the panel at STEP (-: the end).
panel_of() {
  local name=$1 panel=$2 step=$3
  shift 3
  "$program" "$@" --record "$work/$name.pdrun" >/dev/null
  local at=()
  [ "$step" = - ] || at=(--step "$step")
  rm -f "$pictures/$name.png"
  in_window --open "$work/$name.pdrun" --screen live --panel "$panel" "${at[@]}" --screenshot "$pictures/$name.png"
}

# DECODER PANEL STEP ARGUMENT...: the same for `generate --decoder DECODER`.
page() {
  panel_of "$1" "$2" "$3" generate --decoder "$1" "${@:4}"
}

arithmetic=$'Question:\nFelix starts with 12 carrots. Then Felix picks up 28 more carrots. Felix divides them into 5 equal bags and keeps only '\
$'one bag. What is the number of carrots that Felix has at the end?\nAnswer:\nLet\'s think step by step.\n'
choice=$'Q: What does a piano have? Answer Choices: sound (A), pages (B), strings (C), docks (D), wheels (E)\nA:'

picture() {
  case $1 in
    compare)  # the race that scripts/run.sh opens; scripts/get_model.sh smollm2 downloads the model
      in_window --screen compare --screenshot "$pictures/compare.png" --model SmolLM2-135M-Instruct.Q4_1 ;;
    ar) page ar text - --prompt "$arithmetic" ;;
    jacobi) page jacobi trajectory - --set block=8 --max-tokens 16 --prompt "$arithmetic" ;;
    lookahead) page lookahead trajectory 14 --set window=5 --set ngram_size=4 --prompt "$arithmetic" ;;
    prompt-lookup) page prompt-lookup pool - --prompt "$arithmetic" ;;
    suffix) page suffix pool - --prompt "$arithmetic" ;;
    fastcot) page fastcot text - --set stop=bound --set bound=12 --prompt "$choice" ;;
    speculative)
      page speculative distributions 8 --set gamma=4 --temperature 0.8 --sampling rejection --prompt "$arithmetic" ;;
    thoughts) panel_of thoughts thoughts - reason tot --count 1 ;;  # the sample of docs/reason_tot.md
    seed)  # an enlarged draft, slow enough to be visible beside the target
      "$program" model scale demo-draft "$work/slow-draft" --scale 16x1 >/dev/null
      "$program" data generate kb --split test --count 3 > "$work/questions.jsonl"
      panel_of seed schedule - compare --decoders seed --set branches=3 --set overlap=always --set k_config=1,1,1 \
        --prompt-file "$work/questions.jsonl" --max-tokens 16 --scale 4x2 --draft-scale 1x1 --draft "$work/slow-draft" ;;
    mcsd) page mcsd tree 11 --set k_config=2,2,2 --prompt "$arithmetic" ;;
    medusa) page medusa tree 12 --set tree=rows16 --prompt "$arithmetic" ;;
    chimera) page chimera tree 2 --set tree=rows16 --prompt "$arithmetic" ;;
    cllm) panel_of cllm trajectory - generate --model demo-cllm --decoder jacobi --set block=16 --max-tokens 32 --prompt "$arithmetic" ;;
    window)
      "$here/scripts/build.sh" tests --target ui_test >&2
      DECOSCOPE_PICTURES=$pictures/window "$here/build/tests/bin/ui_test" --gtest_filter='FeaturePictures.*' --gtest_brief=1 >&2 ;;
    *) echo "pictures.sh: $1: unknown picture" >&2; exit 2 ;;
  esac
  echo "docs/pictures/$1.png"
}

if [ $# -eq 0 ]; then
  set -- compare ar jacobi lookahead prompt-lookup suffix fastcot speculative mcsd seed medusa chimera thoughts window
  [ ! -d "$here/assets/models/demo-cllm" ] || set -- "$@" cllm
fi
for name in "$@"; do picture "$name"; done
