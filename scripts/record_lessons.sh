#!/usr/bin/env bash
# Records the runs of the bundled lessons again.
#   scripts/record_lessons.sh [OUT]
# OUT: the folder of the recordings (default: assets/lessons); files of the same name are replaced. Uses build/release/bin/decoscope, or
# $DECOSCOPE, and SmolLM2 (scripts/get_model.sh smollm2). Afterwards `decoscope lesson check` computes the answers of every lesson.
# Exit code: that of the command that failed.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${DECOSCOPE:-build/release/bin/decoscope}
out=${1:-assets/lessons}
model=SmolLM2-135M-Instruct.Q4_1
poem="Write a short poem about the sea."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# record NAME COMMAND ARGUMENT...: runs `decoscope COMMAND` and stores a recording without the texts of unused tokens.
record() {
  local name=$1
  shift
  "$program" "$@" --record "$work/$name.pdrun"
  "$program" trace convert "$work/$name.pdrun" "$work/small-$name.pdrun" --used-tokens-only
  mv "$work/small-$name.pdrun" "$out/$name.pdrun"
}

head -n 1 assets/prompts/bundled.jsonl > "$work/sum.jsonl"
grep '"chat/sum"' assets/prompts/messages.jsonl > "$work/money.jsonl"
cat > "$work/two.jsonl" <<'END'
{"id": "count", "messages": [{"role": "user", "content": "Count from 1 to 20."}]}
{"id": "hello", "messages": [{"role": "user", "content": "Repeat the word hello ten times."}]}
END

record 1_why_one_token_is_slow compare --model "$model" --decoders ar,medusa --set tree=rows16 --prompt "$poem" --max-tokens 24
record 2_draft_and_verify compare --model "$model" --decoders ar,speculative --set gamma=4 --prompt "$poem" --max-tokens 40
record 3_why_nothing_is_lost generate --model "$model" --decoder speculative --sampling rejection --temperature 1 --seed 3 \
  --set gamma=3 --prompt "$poem" --max-tokens 24
record 4_jacobi compare --model "$model" --decoders ar,jacobi --set block=8 --prompt "Count from 1 to 20." --max-tokens 40
record 5_consistency_models compare --model demo-cllm --decoders ar,jacobi --set block=16 --prompt-file "$work/sum.jsonl" --max-tokens 48
record 6_lookahead compare --model "$model" --decoders ar,lookahead --set window=5 --set ngram_size=3 --set n_guesses=3 \
  --prompt "$poem" --max-tokens 40
record 7_trees compare --model "$model" --decoders ar,medusa,chimera --set tree=rows8 --prompt-file "$work/money.jsonl" --max-tokens 40
record 8_scheduling_and_fastcot compare --model "$model" --decoders ar,seed,fastcot --set k_config=1,1,1 --set overlap=always \
  --set branches=2 --set window=6 --set stop=bound --set bound=14 --prompt-file "$work/two.jsonl" --max-tokens 24

for lesson in assets/lessons/*.json; do
  cp "$lesson" "$work"
  cp "$out/$(basename "${lesson%.json}").pdrun" "$work"
  "$program" lesson check "$work/$(basename "$lesson")"
done
