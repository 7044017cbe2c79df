# Which lanes a race has, by the models that are there; sourced with `program` set.
# shellcheck shell=bash disable=SC2154,SC2034

# MODEL or draft heads: whether the program has them.
there() {
  "$program" model info "$1" > /dev/null 2>&1
}

# The first race, as the program is asked for it, into `race`: with a consistency model what each kind of decoder gains, of which
# SEED has three prompts of a file at once, and of one prompt runs as one branch. The consistency model's window is as wide as is cheap on
# two cores (docs/results.md).
first_race() {
  race=(--decoders "ar,jacobi,lookahead,prompt-lookup")
  if there demo-cllm; then race=(--decoders "ar,lookahead,jacobi@demo-cllm,seed" --set refill=slide --set block=10); fi
}

# Draft heads or a model, and what is left out without them: whether they are there, else standard error says what is passed over.
there_or_told() {
  there "$1" && return
  echo "$1 is not there: ${*:2} passed over" >&2
  return 1
}

# Every lane whose text is plain decoding's, SEED apart: as `lanes` with the defaults, and as `variants` with `variant_options`; of the
# consistency model as `cllm_lanes` and `cllm_variants` (refill=slide), empty without it.
lossless_lanes() {
  lanes=ar,jacobi,lookahead,prompt-lookup,speculative,mcsd,fastcot
  variants=jacobi,mcsd
  variant_options=(--set refill=slide --set k_config=auto)
  if there_or_told demo-medusa medusa is; then lanes+=,medusa; fi
  if there_or_told demo-chimera chimera is; then
    lanes+=,chimera
    variants+=,chimera
    variant_options+=(--set drafting=branch)
  fi
  cllm_lanes='' cllm_variants=''
  if there_or_told demo-cllm its lanes are; then
    cllm_lanes=ar@demo-cllm,jacobi@demo-cllm,lookahead@demo-cllm
    cllm_variants=jacobi@demo-cllm
  fi
}
