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

# DECODER PANEL STEP ARGUMENT...: the same for `generate --decoder DECODER` on SmolLM2 (scripts/get_model.sh smollm2).
page() {
  panel_of "$1" "$2" "$3" generate --model "$smollm2" --decoder "$1" "${@:4}"
}

smollm2=SmolLM2-135M-Instruct.Q4_1
count="Count from 1 to 20."
sum="A shop sells pens for 2 dollars and notebooks for 5 dollars. Ana buys 3 pens and 4 notebooks. How much does she pay?"
poem="Write a short poem about the sea."
prices='Repeat the following JSON, but change every price to euros: {"items": [{"name": "apple", "price": "1 dollar"}, {"name": "bread", "price": '\
'"3 dollars"}, {"name": "cheese", "price": "7 dollars"}]}'
arithmetic=$'Question:\nFelix starts with 12 carrots. Then Felix picks up 28 more carrots. Felix divides them into 5 equal bags and keeps only '\
$'one bag. What is the number of carrots that Felix has at the end?\nAnswer:\nLet\'s think step by step.\n'

picture() {
  case $1 in
    compare)  # the race that scripts/run.sh opens
      in_window --screen compare --screenshot "$pictures/compare.png" --model "$smollm2" ;;
    ar) page ar text - --max-tokens 64 --prompt "$poem" ;;
    jacobi) page jacobi trajectory - --set block=8 --max-tokens 16 --prompt "$count" ;;
    lookahead) page lookahead trajectory 18 --set window=5 --set ngram_size=4 --set n_guesses=4 --max-tokens 40 --prompt "$poem" ;;
    prompt-lookup) page prompt-lookup pool - --max-tokens 64 --prompt "$prices" ;;
    suffix) page suffix pool - --max-tokens 64 --prompt "$prices" ;;
    fastcot) page fastcot text - --set stop=bound --set bound=12 --max-tokens 40 --prompt "$sum" ;;
    speculative)
      page speculative distributions 10 --set gamma=4 --temperature 0.8 --sampling rejection --max-tokens 40 --prompt "$poem" ;;
    thoughts) panel_of thoughts thoughts - reason tot --count 1 ;;  # the sample of docs/reason_tot.md
    seed)
      head -n 3 "$here/assets/prompts/messages.jsonl" > "$work/messages.jsonl"
      panel_of seed schedule - compare --model "$smollm2" --decoders seed --set branches=3 --set overlap=always --set k_config=1,1,1 \
        --prompt-file "$work/messages.jsonl" --max-tokens 16 ;;
    mcsd) page mcsd tree 10 --set k_config=2,2,2 --max-tokens 40 --prompt "$poem" ;;
    medusa) page medusa tree 15 --set tree=rows16 --max-tokens 40 --prompt "$poem" ;;
    chimera) page chimera tree 11 --set tree=rows16 --max-tokens 40 --prompt "$poem" ;;
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
