#include "app/commands/run_code.h"

#include <algorithm>

#include "app/cli/terminal.h"
#include "engine/data/readers.h"
#include "engine/data/sandbox/python_paths.h"
#include "engine/data/sandbox/run_python.h"
#include "engine/train/cllm/recipe.h"
#include "engine/train/heads/recipe.h"
#include "engine/train/run/recipe.h"
#include "kernels/error.h"

namespace app {
namespace {

enum class CodeUse { None, Figures, Selection };

/// The use of code in texts that a target writes: checkers may run it to select texts.
CodeUse use_in(const engine::OutputsPlan& plan, bool written_before) {
  return plan.check && !written_before && engine::mixes_code(plan.mixture) ? CodeUse::Selection
                                                                           : CodeUse::None;
}

CodeUse use_in_model(const engine::TrainRecipe& recipe, bool written_before) {
  if (recipe.own_outputs.count > 0 &&
      use_in(recipe.own_outputs, written_before) == CodeUse::Selection)
    return CodeUse::Selection;
  const bool probes = recipe.probe_minutes > 0 && engine::mixes_code(recipe.mixture);
  return probes ? CodeUse::Figures : CodeUse::None;
}

CodeUse use_in_cllm(const engine::CllmRecipe& recipe) {
  if (!engine::mixes_code(recipe.mixture)) return CodeUse::None;
  return recipe.drop_wrong ? CodeUse::Selection : CodeUse::Figures;
}

CodeUse use_in(const TrainOptions& options) {
  const bool written_before = !options.texts.empty();
  if (options.export_only || options.what == "tokenizer") return CodeUse::None;
  if (options.what == "cllm") return use_in_cllm(engine::read_cllm_recipe(options.recipe));
  if (options.what == "outputs")
    return use_in(engine::read_outputs_recipe(options.recipe).plan, false);
  if (options.what == "medusa" || options.what == "chimera") {
    const auto kind =
        options.what == "medusa" ? engine::HeadsKind::Medusa : engine::HeadsKind::Chimera;
    return use_in(engine::read_heads_recipe(options.recipe, kind).outputs, written_before);
  }
  return use_in_model(engine::read_train_recipe(options.recipe), written_before);
}

}  // namespace

std::string apply_run_code(bool run_code) {
  engine::allow_code_without_isolation(run_code);
  const std::string problem = engine::isolation_problem();
  if (!engine::python_paths())
    print_error("note: Python answers are not checked, as there is no working python3 on the PATH");
  if (problem.empty()) return {};
  if (run_code) {
    print_error("note: the code of answers runs without isolation, with your permissions: " +
                problem);
    return {};
  }
  return "the code of answers is not run, as it cannot be isolated: " + problem +
         "; install bubblewrap (Debian package bubblewrap) or allow it user namespaces, or give "
         "--run-code to run the code with your permissions";
}

void require_code_for_tasks(const std::vector<std::string>& tasks, bool run_code) {
  const auto has = [&](const char* task) { return std::ranges::find(tasks, task) != tasks.end(); };
  const bool needed = tasks.empty() || has("py");
  if (!needed && !has("chat")) return;
  const std::string refused = apply_run_code(run_code);
  if (refused.empty()) return;
  if (needed)
    throw engine::Error(engine::ErrorCode::Resources,
                        "task py: " + refused + "; --task names other tasks");
  print_error("note: task chat: coding answers are not checked: " + refused);
}

void require_code_for_training(const TrainOptions& options) {
  const CodeUse use = use_in(options);
  if (use == CodeUse::None) return;
  const std::string refused = apply_run_code(options.run_code);
  if (refused.empty()) return;
  if (use == CodeUse::Selection)
    throw engine::Error(engine::ErrorCode::Resources,
                        options.recipe + ": checkers select the training texts: " + refused);
  print_error("note: accuracies do not include answers of py: " + refused);
}

}  // namespace app
