#include "ui/prepare/option_labels.h"

#include <string_view>

namespace ui {
namespace {

struct OptionLabel {
  std::string_view decoder;  // empty: any decoder
  std::string_view option;
  std::string_view label;
};

// An entry of one decoder precedes that of any decoder.
constexpr OptionLabel kLabels[] = {
    {"lookahead", "window", "window columns"},
    {"", "ngram_size", "n-gram length"},
    {"", "n_guesses", "n-grams verified"},
    {"", "prompt_pool", "n-grams of the prompt"},
    {"", "bonus", "bonus token"},
    {"", "advance", "window shift"},
    {"", "merge", "shared rows"},
    {"lookahead", "keep", "keep n-grams"},
    {"", "ranks", "devices"},
    {"", "preset", "paper settings"},
    {"", "block", "block length"},
    {"", "refill", "block refill"},
    {"", "fill", "first guesses"},
    {"", "form", "KV caching"},
    {"", "max_ngram", "longest n-gram"},
    {"", "n_tokens", "guessed tokens"},
    {"", "variant", "match to use"},
    {"", "factor", "length factor"},
    {"suffix", "min_p", "least share"},
    {"", "shape", "guess shape"},
    {"", "earlier", "earlier texts"},
    {"", "keep_tokens", "tokens kept"},
    {"", "rows", "rows per step"},
    {"", "k", "successors kept"},
    {"", "tree", "tree of guesses"},
    {"", "pairs", "token pairs"},
    {"recycling", "prompt", "learn the prompt"},
    {"", "learn", "learned rows"},
    {"recycling", "keep", "table kept"},
    {"chimera", "keep", "cache kept"},
    {"fastcot", "window", "approximate tokens"},
    {"", "filler", "first guesses"},
    {"", "skip", "emit confirmed"},
    {"", "stop", "early stop"},
    {"", "bound", "steps to the stop"},
    {"", "probe_threshold", "attention factor"},
    {"", "gamma", "draft tokens"},
    {"medusa", "stop_below", "least path probability"},
    {"chimera", "stop_below", "least path probability"},
    {"", "stop_below", "least draft probability"},
    {"", "draft_temperature", "draft temperature"},
    {"", "draft_top_k", "draft top k"},
    {"", "draft_top_p", "draft top p"},
    {"", "draft_min_p", "draft min p"},
    {"", "k_config", "candidates per level"},
    {"", "rule", "candidate rule"},
    {"", "as_released", "as released"},
    {"", "verify", "acceptance rule"},
    {"", "epsilon", "accepted above"},
    {"", "delta", "entropy factor"},
    {"", "root", "bonus token"},
    {"chimera", "drafting", "head passes"},
    {"chimera", "cache", "k-grams cached"},
    {"", "branches", "sequences at once"},
    {"", "policy", "sequence order"},
    {"", "batch_verify", "drafts per pass"},
    {"", "overlap", "overlap drafting"},
    {"", "drafters", "drafts at once"},
    {"", "draft_threads", "draft threads"},
    {"", "target_threads", "target threads"},
};

}  // namespace

std::string option_label(const std::string& decoder, const std::string& option) {
  for (const OptionLabel& entry : kLabels)
    if (entry.option == option && (entry.decoder.empty() || entry.decoder == decoder))
      return std::string(entry.label);
  return option;
}

std::string label_with_name(const std::string& decoder, const std::string& option) {
  const std::string label = option_label(decoder, option);
  return label == option ? label : label + " (" + option + ")";
}

}  // namespace ui
