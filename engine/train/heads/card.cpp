#include "engine/train/heads/card.h"

#include <fmt/format.h>

#include "engine/base/output_file.h"
#include "engine/data/mixture.h"
#include "engine/train/run/model_card.h"

namespace engine {
namespace {

std::string description_of(const HeadsRecipe& recipe, const HeadsConfig& c) {
  const std::string size =
      fmt::format("{:.2f} M parameters", static_cast<double>(c.n_params()) * 1e-6);
  const std::string output =
      c.target_output
          ? fmt::format("the target's output matrix, of which they rank {} of {} tokens",
                        c.n_outputs(), c.vocab_size)
          : "an output matrix of its own";
  if (c.kind == HeadsKind::Medusa) {
    return fmt::format(
        "Medusa heads for {}: {} of them, each of {} residual layer{} and {}, {}. Head 1 predicts "
        "the token after the one that the target picks, and so on.",
        c.base, c.n_heads, c.n_layers, c.n_layers == 1 ? "" : "s", output, size);
  }
  return fmt::format(
      "Chimera heads for {}: {} of them over {} and one transformer block "
      "(width {}, feed-forward {}, {} heads). Their input is {}; each ends in {}; {}. The rows of "
      "the block attend "
      "to {} of the text.",
      c.base, c.n_heads,
      c.by_first_layer ? "the target's first layer as the encoder of tokens"
                       : fmt::format("an encoder of {}-grams ({})", c.gram,
                                     recipe.finetune_first_layer ? "with its own embedding"
                                                                 : "on the target's embedding"),
      c.dim, c.hidden_dim, c.n_attention_heads,
      c.residual ? "the hidden state and the encoder's output" : "the encoder's output alone",
      output, size,
      !c.sees_committed_grams ? "the hidden states alone"
      : c.by_first_layer      ? "the hidden states and the encoded tokens"
                              : "the hidden states and the k-grams");
}

std::string losses_list(const NamedFigures& losses) {
  if (losses.empty()) return "in the log (the run was already finished when it was resumed)";
  std::string list;
  for (const auto& [name, value] : losses)
    list += fmt::format("{}{} {:.3f}", list.empty() ? "" : ", ", name, value);
  return list;
}

}  // namespace

std::string accuracy_table(const HeadsRanks& ranks) {
  std::string table =
      "| head | top-1 | top-2 | top-3 | top-4 | top-5 |\n|---|---|---|---|---|---|\n";
  for (int head = 0; head < static_cast<int>(ranks.n.size()); head++) {
    table += fmt::format("| {} |", head + 1);
    for (int best = 1; best <= 5; best++)
      table += fmt::format(" {:.1f} % |", 100 * ranks.top(head, best));
    table += "\n";
  }
  return table;
}

void write_heads_card(const std::string& directory,
                      const HeadsTraining& training,
                      const std::string& target,
                      const std::string& data) {
  const HeadsRecipe& recipe = training.recipe;
  const HeadsResult& result = training.result;
  std::string card = fmt::format(
      "# {}\n\n{} They work only with that model's weights, which verify their drafts, so "
      "they change its speed and never its output.\n\n",
      recipe.name, description_of(recipe, training.config));
  card += fmt::format(
      "They were trained on texts that {} writes greedily after prompts of this mixture ({} "
      "prompts, at most {} tokens each{}); the mixture's own answers were not used.\n\n",
      training.config.base, recipe.outputs.count, recipe.outputs.max_tokens,
      recipe.outputs.drop_wrong ? "; without answers that the task's checker rejects" : "");
  card +=
      data_and_licences(recipe.outputs.mixture, shares_of_prompts(recipe.outputs, data), {target});
  card += fmt::format(
      "## Training\n\n- {} steps of {} texts, {} positions in all, {:.1f} minutes ({:.0f} "
      "positions/s), computed in {}\n- losses at the end, means of the last steps, nats per token: "
      "{}\n- hidden states of all texts: {:.0f} MB in bf16, {}\n\nRecipe:\n\n```json\n{}\n```\n\n",
      result.step, recipe.batch_texts, result.tokens, result.seconds / 60,
      result.seconds > 0 ? static_cast<double>(result.tokens) / result.seconds : 0, result.compute,
      losses_list(result.losses), static_cast<double>(result.hidden_bytes) * 1e-6,
      result.hidden_kept ? "kept in memory" : "recomputed in every step", to_json(recipe));
  card += fmt::format(
      "## Accuracies\n\nShare of positions at which the target's token is among the most likely "
      "tokens of a head, in greedy texts after {} unseen prompts of the dev split. The head reads "
      "the tokens of the text.\n\n{}\nThe same where the likeliest tokens of all heads before were "
      "right, as on the way down a tree:\n\n{}",
      training.n_prompts, accuracy_table(result.ranks.all),
      accuracy_table(result.ranks.after_right));
  if (result.self_fed)
    card +=
        "\nThe same at all positions, but the heads read their own guesses (free-running):\n\n" +
        accuracy_table(*result.self_fed);
  write_whole_file(directory + "/README.md", card);
}

}  // namespace engine
