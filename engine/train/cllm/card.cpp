// The model card of a consistency model, README.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/text.h"
#include "engine/train/cllm/train.h"
#include "engine/train/run/model_card.h"

namespace engine {
namespace {

// A section of the target's card, from its heading to the next heading of the same depth.
std::string section(const std::string& card, const std::string& heading) {
  const std::size_t begin = card.find(heading + "\n");
  if (begin == std::string::npos) return {};
  const std::size_t text = begin + heading.size() + 1;
  return card.substr(text, card.find("\n## ", text) - text);
}

std::string losses(const CllmResult& result) {
  if (result.n_losses == 0) return "in the log (the run was already finished when it was resumed)";
  std::string text;
  for (int part = 0; part < kLossParts; part++) {
    const double loss = result.parts[static_cast<std::size_t>(part)];
    if (loss == 0) continue;
    text += fmt::format("{}{} {:.4f}", text.empty() ? "" : ", ",
                        name_of(static_cast<LossPart>(part)), loss);
  }
  return text;
}

std::string of_all(std::int64_t n, std::int64_t all, const char* what) {
  return fmt::format("{} of {} {} ({:.1f} %)", n, all, what,
                     all ? 100 * static_cast<double>(n) / static_cast<double>(all) : 0.0);
}

// The card's sentence on the number of answers, points of trajectories and texts that did not fit
// into the context.
std::string without_room(const CllmRecipe& recipe, const CllmOutcome& outcome) {
  const RoomCounts& room = outcome.training.room;
  std::string text =
      fmt::format("- longer than {} rows: {} with their prompts omitted", recipe.context,
                  of_all(outcome.collected.n_too_long, outcome.collected.n_texts, "answers"));
  if (!room.known) return text + "; points and other texts were not counted\n";
  if (room.n_points > 0)
    text += ", " + of_all(room.n_left_out, room.n_points, "points") + " with their texts omitted";
  if (room.n_texts > 0)
    text += ", " + of_all(room.n_texts_cut, room.n_texts, "other texts") + " truncated";
  return text + "\n";
}

// The content of the folder and its use.
std::string introduction(const CllmRecipe& recipe,
                         const ModelConfig& model,
                         const std::string& target) {
  const std::string made =
      recipe.lora.rank > 0
          ? fmt::format(
                "Low-rank updates (LoRA of rank {} on {}) of {} from consistency training "
                "(Kou et al. 2024, arXiv:2403.00835). With them the model emits",
                recipe.lora.rank, fmt::join(recipe.lora.targets, ", "), target)
          : fmt::format(
                "{} after consistency training (Kou et al. 2024, arXiv:2403.00835): the "
                "same shape, tokenizer and {:.2f} M parameters, trained to emit",
                target, static_cast<double>(model.n_params()) * 1e-6);
  return fmt::format(
      "# {}\n\n{} in one step of Jacobi decoding the tokens that took it several. Decode it with "
      "`jacobi`; with `ar` it is an ordinary model.{}\n\n",
      recipe.name, made,
      recipe.lora.rank > 0
          ? fmt::format(" Open it as `--model MODEL --adapter FOLDER`, with {} as MODEL, or with "
                        "peft.",
                        target)
          : "");
}

// The origin of the prompts.
std::string data_used(const CllmRecipe& recipe, const std::string& target) {
  if (!recipe.chat)
    return fmt::format(
        "The prompts are from the training split of the recipe's mixture, and {} wrote the "
        "answers. Replayed texts are from the {} mixture.",
        target, recipe.replay_mixture.empty() ? "same" : "recipe's replay");
  return fmt::format(
      "The prompts are requests in the chat template of {}, which wrote the answers.", target);
}

// The measures before and after.
std::string measures(const CllmRecipe& recipe, const CllmOutcome& outcome) {
  if (outcome.before.empty() || outcome.after.empty())
    return "Not measured: the mixture has no generated task.\n";
  return fmt::format(
             "{}, greedy Jacobi decoding with blocks of {}. Every answer equals that of plain "
             "decoding with the same model. As in the paper, fast-forward and stationary tokens "
             "are counted after an answer is complete: the mean of its blocks, and its sum.{}\n\n",
             recipe.chat ? "Unseen requests" : "Unseen problems of levels 1 and 2", recipe.block,
             recipe.chat ? " The log-likelihood is that of the answers under the target." : "") +
         to_markdown(outcome.before, outcome.after);
}

}  // namespace

std::string cllm_card(const CllmRecipe& recipe,
                      const ModelConfig& model,
                      const CllmOutcome& outcome,
                      const std::string& target_name,
                      const std::string& target_card) {
  const CllmResult& training = outcome.training;
  const CollectCounts& collected = outcome.collected;
  std::string card = introduction(recipe, model, target_name);
  card += (recipe.chat ? data_and_licences(recipe.mixture, outcome.requests, {})
                       : std::string("## Data and licences\n\n")) +
          (recipe.points > 0 ? std::string("Trajectories: ")
                             : "Collected by plain decoding, no trajectories (`points` is 0): ") +
          words_of(collected) + ".\n\n" + data_used(recipe, target_name);
  const std::string data = section(target_card, "## Data and licences");
  card += data.empty() ? "\n\n" : fmt::format(" The training data of {}:\n{}\n", target_name, data);
  card += fmt::format(
      "## Training\n\n- collecting took {:.0f} s, training {:.0f} s\n- {} steps of {} {} and {} "
      "replayed texts, {} rows ({:.0f} rows/s), computed in {}\n{}- losses at the end, nats per "
      "row, mean of the last {}: {}\n\nRecipe:\n\n```json\n{}\n```\n\n",
      outcome.collect_seconds, training.seconds, training.step, recipe.batch_texts,
      recipe.points > 0 ? "trajectories" : "answers", recipe.replay_texts, training.rows,
      training.seconds > 0 ? static_cast<double>(training.rows) / training.seconds : 0.0,
      training.compute, without_room(recipe, outcome), counted(training.n_losses, "step"),
      losses(training), to_json(recipe));
  if (const std::string before = section(target_card, "## Training"); !before.empty())
    card += "## Training of " + target_name + "\n" + before + "\n";
  return card + "## Before and after\n\n" + measures(recipe, outcome);
}

}  // namespace engine
