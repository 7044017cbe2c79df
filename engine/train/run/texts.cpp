#include "engine/train/run/texts.h"

#include "engine/base/refuse.h"
#include "engine/base/types.h"
#include "engine/checkpoint/other_formats.h"
#include "engine/tokenizer/sentencepiece.h"

namespace engine {

TokenText tokenized(const Tokenizer& tokenizer, const TrainingText& text) {
  TokenText out;
  out.tokens.push_back(*tokenizer.bos_id());
  const auto prompt = tokenizer.encode(text.prompt, false);
  out.tokens.insert(out.tokens.end(), prompt.begin(), prompt.end());
  // The begin token alone is not a prompt, so the first token of a plain text has full weight.
  out.n_prompt = prompt.empty() ? 0 : static_cast<int>(out.tokens.size());
  // A completion is tokenized as the continuation of its prompt.
  const TextReading reading{.add_special = false, .continues = !prompt.empty()};
  const auto completion = tokenizer.encode(text.completion, reading);
  if (text.answer_size > 0) {
    const auto tokens_to = [&](std::size_t bytes) {
      return static_cast<int>(out.tokens.size() +
                              tokenizer.encode(text.completion.substr(0, bytes), reading).size());
    };
    out.answer_begin = tokens_to(text.answer_begin);
    out.answer_end = tokens_to(text.answer_begin + text.answer_size);
  }
  out.tokens.insert(out.tokens.end(), completion.begin(), completion.end());
  out.tokens.push_back(*tokenizer.eos_id());
  return out;
}

std::unique_ptr<Tokenizer> training_tokenizer(const std::string& directory,
                                              const FileLimits& limits) {
  if (const OtherFormat other = recognise_path(directory); other.is_known())
    refuse(directory, "tokenizer", other.found,
           "a directory with tokenizer.model; " + other.advice);
  std::vector<std::string> notices;  // ignored, because loading the model reports them
  auto tokenizer = open_tokenizer(directory, limits, notices);
  if (!tokenizer->bos_id() || !tokenizer->eos_id()) {
    throw Error(ErrorCode::BadInput, directory +
                                         "/tokenizer.model: has no bos or eos, training needs "
                                         "both; make one with `train tokenizer`");
  }
  return tokenizer;
}

}  // namespace engine
