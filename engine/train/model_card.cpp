#include "engine/train/model_card.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/types.h"

namespace engine {
namespace {

constexpr const char* kTraining = "## Training\n";
constexpr const char* kScores = "## Scores\n";

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path + ".part", std::ios::binary);
  file << text;
  if (!file.flush()) throw Error(ErrorCode::Resources, path + ": cannot be written");
  file.close();
  std::filesystem::rename(path + ".part", path);
}

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// How the model a run started from was itself trained, as its card says.
std::string earlier_training(const std::string& from) {
  if (from.empty()) return {};
  const std::string card = contents(from + "/README.md");
  const std::size_t begin = card.find(kTraining);
  if (begin == std::string::npos) return {};
  const std::size_t text = begin + std::string_view(kTraining).size();
  return "## Training before that\n" + card.substr(text, card.find(kScores, text) - text);
}

std::string shares_table(const TrainingStream& stream) {
  std::string table = "| part | share of texts | mean length (characters) |\n|---|---|---|\n";
  for (const TrainingStream::Share& share : stream.shares()) {
    table += fmt::format("| {} | {:.1f} % | {:.0f} |\n", share.part, 100 * share.share_of_texts,
                         share.mean_chars);
  }
  return table;
}

}  // namespace

void write_model_card(const std::string& directory,
                      const TrainRecipe& recipe,
                      const TrainResult& result,
                      const TrainingStream& stream,
                      const std::string& from) {
  const ModelConfig& m = recipe.model;
  std::string card = fmt::format("# {}\n\n", recipe.name);
  card += fmt::format(
      "A small LLaMA-style model: {} layers of width {} (feed-forward {}, {} heads), vocabulary "
      "{}, "
      "{:.2f} M parameters, embedding and head tied, context {} (trained on {}). It answers the "
      "generated tasks it was trained on and is here to be decoded, by several methods; it is no "
      "general assistant.\n\n",
      m.n_layers, m.dim, m.hidden_dim, m.n_heads, m.vocab_size,
      static_cast<double>(result.parameters.size()) * 1e-6, m.max_seq_len, recipe.context);
  card += "## Data and licences\n\n" + shares_table(stream) +
          "\nThe generated tasks (arith, kb, sql, py, blocks) are written by this project's own "
          "generators (`engine/data`) and carry the project's licence. Real sets keep the licences "
          "that lie beside them in the data folder. Evaluation problems are excluded by content "
          "key.\n\n";
  card += fmt::format(
      "{}\n{}- {} tokens in {} steps of {} rows, {:.0f} minutes ({:.0f} tokens/s), "
      "computed "
      "in {}\n- completion loss at the end: {:.3f} nats a token (mean of the last 100 steps)\n- "
      "rows "
      "filled {:.1f} %; {} texts cut at the context's end\n\nRecipe:\n\n```json\n{}\n```\n\n",
      kTraining, from.empty() ? "" : "- started from the weights that the run below ended with\n",
      result.tokens, result.step, recipe.batch_tokens, result.seconds / 60,
      static_cast<double>(result.tokens) / result.seconds, result.compute, result.completion_loss,
      100 * result.fill, result.n_texts_cut, to_json(recipe));
  card += earlier_training(from);
  card += std::string(kScores) + "\nNot evaluated yet.\n";
  write_file(directory + "/README.md", card);
}

void write_scores(const std::string& directory, const std::string& markdown) {
  const std::string path = directory + "/README.md";
  std::string card = contents(path);
  const std::size_t begin = card.find(kScores);
  const std::string section = std::string(kScores) + "\n" + markdown;
  if (begin == std::string::npos) {
    card += "\n" + section;
  } else {
    const std::size_t end = card.find("\n## ", begin + 1);
    card.replace(begin, end == std::string::npos ? std::string::npos : end - begin, section);
  }
  write_file(path, card);
}

}  // namespace engine
