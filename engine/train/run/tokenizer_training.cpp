#include "engine/train/run/tokenizer_training.h"

#include <filesystem>

#include <sentencepiece_trainer.h>
#include <nlohmann/json.hpp>

#include "engine/base/output_file.h"

namespace engine {
namespace {

namespace fs = std::filesystem;

// Passes the sample to SentencePiece line by line. Merges cannot cross a newline, which is a symbol
// of its own, so separate lines give the same vocabulary.
class SampleLines : public sentencepiece::SentenceIterator {
 public:
  SampleLines(const std::function<std::string(std::int64_t)>& text,
              std::int64_t bytes,
              const std::function<void(bool)>& learning)
      : text_(text), learning_(learning), bytes_left_(bytes) {
    Next();
  }
  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    while (true) {
      if (at_ >= current_.size()) {
        if (bytes_left_ <= 0) {
          done_ = true;
          if (learning_) learning_(true);
          return;
        }
        current_ = text_(next_++);
        bytes_left_ -= static_cast<std::int64_t>(current_.size()) + 1;
        at_ = 0;
        continue;
      }
      const std::size_t end = std::min(current_.find('\n', at_), current_.size());
      line_ = current_.substr(at_, end - at_);
      at_ = end + 1;
      if (!line_.empty()) return;
    }
  }

 private:
  const std::function<std::string(std::int64_t)>& text_;  // both outlive the training call
  const std::function<void(bool)>& learning_;
  std::int64_t bytes_left_, next_ = 0;
  std::string current_, line_;
  std::size_t at_ = 0;
  bool done_ = false;
};

std::string tokenizer_config() {
  const nlohmann::ordered_json config = {{"tokenizer_class", "LlamaTokenizer"},
                                         {"add_bos_token", true},
                                         {"add_eos_token", false},
                                         {"add_prefix_space", false},
                                         {"bos_token", "<s>"},
                                         {"eos_token", "</s>"},
                                         {"unk_token", "<unk>"},
                                         {"pad_token", "<pad>"},
                                         {"clean_up_tokenization_spaces", false},
                                         {"legacy", false},
                                         {"sp_model_kwargs", nlohmann::ordered_json::object()}};
  return config.dump(2) + "\n";
}

}  // namespace

void learn_tokenizer(const TokenizerTraining& settings,
                     const std::function<std::string(std::int64_t)>& text,
                     const std::string& directory,
                     const std::function<void(bool)>& learning) {
  std::error_code failed;
  fs::create_directories(directory, failed);
  if (failed)
    throw Error(ErrorCode::Resources, directory + ": cannot be made: " + failed.message());
  const std::unordered_map<std::string, std::string> arguments = {
      {"model_type", "bpe"},
      {"vocab_size", std::to_string(settings.vocab_size)},
      {"split_digits", "true"},
      {"byte_fallback", "true"},
      {"character_coverage", "0.9999"},
      {"normalization_rule_name", "identity"},
      {"add_dummy_prefix", "false"},
      {"remove_extra_whitespaces", "false"},
      {"allow_whitespace_only_pieces", "true"},
      {"user_defined_symbols", "\n"},
      {"unk_id", "0"},
      {"bos_id", "1"},
      {"eos_id", "2"},
      {"pad_id", "3"},
      {"max_sentence_length", "20000"},
      {"num_threads", std::to_string(settings.n_threads)},
      {"minloglevel", "2"}};
  SampleLines lines(text, settings.sample_bytes, learning);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(arguments, &lines, &model);
  if (learning) learning(false);
  if (!status.ok()) {
    throw Error(ErrorCode::BadInput, "tokenizer: the sample is too small for a vocabulary of " +
                                         std::to_string(settings.vocab_size) + ": " +
                                         status.message() +
                                         "; try a larger sample or a smaller vocab_size");
  }
  write_whole_file(directory + "/tokenizer.model", model);
  write_whole_file(directory + "/tokenizer_config.json", tokenizer_config());
}

}  // namespace engine
