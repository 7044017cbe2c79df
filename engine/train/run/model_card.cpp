#include "engine/train/run/model_card.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/output_file.h"
#include "engine/base/text.h"
#include "engine/base/types.h"
#include "engine/data/chat_requests.h"
#include "engine/data/readers.h"

namespace engine {
namespace {

constexpr const char* kTraining = "## Training\n";
constexpr const char* kScores = "## Scores\n";

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// The section on training in the card of the initial model.
std::string earlier_training(const std::string& from) {
  if (from.empty()) return {};
  const std::string card = contents(from + "/README.md");
  const std::size_t begin = card.find(kTraining);
  if (begin == std::string::npos) return {};
  const std::size_t text = begin + std::string_view(kTraining).size();
  return "## Training before that\n" + card.substr(text, card.find(kScores, text) - text);
}

std::string shares_table(const std::vector<TrainingStream::Share>& shares) {
  std::string table = "| part | share of texts | mean length (characters) |\n|---|---|---|\n";
  for (const TrainingStream::Share& share : shares) {
    table += fmt::format("| {} | {:.1f} % | {:.0f} |\n", share.part, 100 * share.share_of_texts,
                         share.mean_chars);
  }
  return table;
}

// The generated tasks of a mixture, separated by commas.
std::string generated_parts(const std::vector<TrainingStream::Share>& shares) {
  std::string list;
  for (const TrainingStream::Share& share : shares) {
    if (share.part != "real" && sets_of_request_part(share.part).empty())
      list += (list.empty() ? "" : ", ") + share.part;
  }
  return list;
}

// The open sets that a mixture uses: those of its part "real", named or default, and those that
// generated parts with "open_texts" draw from.
std::vector<std::string> sets_of(const nlohmann::json& mixture) {
  std::vector<std::string> sets;
  if (!mixture.is_object()) return sets;
  for (const auto& [name, part] : mixture.items()) {
    if (!part.is_object() || part.value("weight", 0.0) == 0) continue;
    std::vector<std::string> of_part;
    if (name == "real") {
      of_part = part.value("sets", default_training_sets());
    } else if (part.value("open_texts", false)) {
      of_part = open_sets_of_task(name);
    } else {
      of_part = sets_of_request_part(name);
    }
    if (name != "write" && std::ranges::find(of_part, "commonsenseqa") != of_part.end())
      of_part.push_back("cos_e");
    sets.insert(sets.end(), of_part.begin(), of_part.end());
  }
  return sets;
}

// The mixtures in the recipes of a card, including the recipes of earlier runs.
std::vector<nlohmann::json> mixtures_in(const std::string& card) {
  constexpr std::string_view kFence = "```json\n";
  std::vector<nlohmann::json> mixtures;
  for (auto at = card.find(kFence); at != std::string::npos; at = card.find(kFence, at)) {
    at += kFence.size();
    const auto recipe =
        nlohmann::json::parse(card.substr(at, card.find("```", at) - at), nullptr, false);
    if (!recipe.is_object()) continue;
    for (const char* mixture : {"mixture", "replay_mixture"})
      if (recipe.contains(mixture)) mixtures.push_back(recipe[mixture]);
    // True for models and heads that were trained on texts of another model.
    if (const auto own = recipe.find("own_outputs"); own != recipe.end() && own->is_object())
      mixtures.push_back(own->value("mixture", nlohmann::json()));
  }
  return mixtures;
}

// The card's text about the final loss. A run that was resumed after its last step does not know
// its loss.
std::string loss_at_the_end(const TrainResult& result) {
  if (result.n_losses == 0) return "in the log (the run was already finished when it was resumed)";
  return fmt::format("{:.3f} nats a token (mean of the last {})", result.completion_loss,
                     counted(result.n_losses, "step"));
}

std::string embedding_of(const TrainRecipe& recipe) {
  if (!recipe.shares_embedding) return "embedding and head tied";
  const std::string tokens =
      recipe.output_tokens.empty()
          ? "all tokens"
          : fmt::format("the {} most frequent tokens of these texts", recipe.output_tokens.size());
  return fmt::format("embedding and output matrix of {}, which it needs; it proposes {}",
                     recipe.model.shares_embedding_of, tokens);
}

}  // namespace

std::string data_and_licences(const std::string& mixture,
                              const std::vector<TrainingStream::Share>& shares,
                              const std::vector<std::string>& sources) {
  std::string text = "## Data and licences\n\n" + shares_table(shares) + "\n";
  if (const std::string generated = generated_parts(shares); !generated.empty()) {
    text +=
        "Generated (" + generated +
        "): texts made by this program's generators (`engine/data`). Problems of the generators' "
        "dev and test splits, and published block problems, are excluded by content key.\n\n";
  }
  std::vector<nlohmann::json> mixtures;
  bool known = true;
  for (const std::string& source : sources) {
    std::vector<nlohmann::json> read;
    if (!source.empty()) read = mixtures_in(contents(source + "/README.md"));
    known = known && !read.empty();
    mixtures.insert(mixtures.end(), read.begin(), read.end());
  }
  if (!known)
    text +=
        "The training data of its initial model, or of the model that wrote its texts, is "
        "unknown.\n\n";
  mixtures.push_back(nlohmann::json::parse(mixture, nullptr, false));
  std::vector<RealSetTerms> terms = real_set_terms();
  std::erase_if(terms, [&](const RealSetTerms& t) {
    return std::none_of(mixtures.begin(), mixtures.end(), [&](const nlohmann::json& read) {
      const std::vector<std::string> sets = sets_of(read);
      return std::find(sets.begin(), sets.end(), t.set) != sets.end();
    });
  });
  if (terms.empty())
    return known ? text + "It was trained on generated texts only, not on published data sets.\n\n"
                 : text;
  text +=
      "Real texts, in its training data or that of its sources: the training parts of these "
      "published sets, "
      "each under the licence its authors give it. This directory holds none of their texts.\n\n| "
      "set | licence | published "
      "at |\n|---|---|---|\n";
  for (const RealSetTerms& t : terms)
    text += fmt::format("| {} | {} | {} |\n", t.set, t.licence, t.source);
  return text + "\n";
}

void write_model_card(const std::string& directory,
                      const TrainRecipe& recipe,
                      const TrainResult& result,
                      const std::vector<TrainingStream::Share>& shares,
                      const std::string& from,
                      const std::string& target) {
  const ModelConfig& m = recipe.model;
  const bool drafts = recipe.own_outputs.count > 0;
  std::vector<std::string> sources;
  if (!from.empty()) sources.push_back(from);
  if (drafts) sources.push_back(target);
  TrainRecipe printed = recipe;
  if (recipe.n_output_tokens > 0) printed.output_tokens.clear();  // thousands of ids
  std::string card = fmt::format("# {}\n\n", recipe.name);
  card += fmt::format(
      "A small LLaMA-style model: {} of width {} (feed-forward {}, {}), vocabulary {}, {:.2f} M "
      "parameters, {}, context {} (trained on {}). ",
      counted(m.n_layers, "layer"), m.dim, m.hidden_dim, counted(m.n_heads, "head"), m.vocab_size,
      static_cast<double>(result.parameters.size()) * 1e-6, embedding_of(recipe), m.max_seq_len,
      recipe.context);
  if (drafts) {
    card += fmt::format(
        "A draft model for {}; the scores below show how many of its drafts that model accepts. By "
        "itself it answers no questions.\n\nIt was trained on texts that {} writes greedily after "
        "{} "
        "prompts of this mixture; the "
        "mixture's own answers were not used.\n\n",
        recipe.target, recipe.target, recipe.own_outputs.count);
  } else {
    card +=
        "It was trained on generated tasks; the scores below show how many it solves. It is meant "
        "for "
        "experiments with decoding methods, or as the draft model of a larger one, and is not a "
        "general assistant.\n\n";
  }
  card += data_and_licences(drafts ? recipe.own_outputs.mixture : recipe.mixture, shares, sources);
  card += fmt::format(
      "{}\n{}- {} tokens in {} steps of {} rows, {:.0f} minutes ({:.0f} tokens/s), "
      "computed in {}\n- completion loss at the end: {}\n- rows filled {:.1f} %; {} texts cut at "
      "the context's end\n\nRecipe:\n\n```json\n{}\n```\n\n",
      kTraining, from.empty() ? "" : "- started from the weights that the run below ended with\n",
      result.tokens, result.step, recipe.batch_tokens, result.seconds / 60,
      static_cast<double>(result.tokens) / result.seconds, result.compute, loss_at_the_end(result),
      100 * result.fill, result.n_texts_cut, to_json(printed));
  card += earlier_training(from);
  card += std::string(kScores) + "\nNot evaluated yet; " +
          (drafts ? "`scripts/family_gates.sh`" : "`decoscope model score --model DIR --write`") +
          " puts the table here.\n";
  write_whole_file(directory + "/README.md", card);
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
  write_whole_file(path, card);
}

}  // namespace engine
