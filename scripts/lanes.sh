# Functions that choose the lanes of races by the bundled models. A script sets `program` and sources this file.
# shellcheck shell=bash disable=SC2154,SC2034

# NAME: succeeds if the program has this model or these draft heads.
has() {
  "$program" model info "$1" > /dev/null 2>&1
}

# Sets `race` to the options of the first race. With the consistency model it shows each kind of decoder; its sliding window of 10 suits two
# cores (docs/results.md). SEED decodes three prompts of a file at once.
first_race() {
  race=(--decoders "ar,jacobi,lookahead,prompt-lookup")
  if has demo-cllm; then race=(--decoders "ar,lookahead,jacobi@demo-cllm,seed" --set refill=slide --set block=10); fi
}

# NAME LANES: succeeds if the program has the model or heads; otherwise says on standard error which lanes are skipped.
has_or_skips() {
  has "$1" && return
  echo "$1: not found: skipping $2" >&2
  return 1
}

# Sets the names of all lossless lanes except SEED: `lanes` (default options), `variants` (with `variant_options`), and for the consistency
# model `cllm_lanes` and `cllm_variants` (refill=slide), which are empty if it is not bundled.
lossless_lanes() {
  lanes=ar,jacobi,lookahead,prompt-lookup,suffix,recycling,speculative,mcsd,fastcot
  variants=jacobi,mcsd
  variant_options=(--set refill=slide --set k_config=2,2,1,1)
  if has_or_skips demo-medusa medusa; then lanes+=,medusa; fi
  if has_or_skips demo-chimera chimera; then
    lanes+=,chimera
    variants+=,chimera
    variant_options+=(--set drafting=branch)
  fi
  cllm_lanes='' cllm_variants=''
  if has_or_skips demo-cllm "its lanes"; then
    cllm_lanes=ar@demo-cllm,jacobi@demo-cllm,lookahead@demo-cllm
    cllm_variants=jacobi@demo-cllm
  fi
}
