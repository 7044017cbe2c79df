// `model score`: scores a model on generated problems, optionally for its card.
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/paths.h"
#include "app/cli/terminal.h"
#include "app/commands/attempts.h"
#include "app/commands/generation.h"
#include "app/commands/report.h"
#include "app/commands/run_code.h"
#include "engine/base/output_file.h"
#include "engine/data/record.h"
#include "engine/model/model.h"
#include "engine/store/model_store.h"
#include "engine/train/run/evaluation_file.h"
#include "engine/train/run/model_card.h"

namespace app {

int score(const ScoreOptions& options) {
  require_code_for_tasks(options.tasks, options.run_code);
  engine::ModelStore store(assets_dir(), options.model.n_threads);
  engine::LoadedModel& loaded = load(store, model_request(options.model));
  engine::EvaluationSettings settings;
  settings.tasks = options.tasks;
  if (!options.levels.empty()) settings.levels = options.levels;
  settings.n_problems = options.count;
  settings.split = engine::split_from_name(options.split);
  if (options.write && loaded.files.gguf)
    throw engine::Error(engine::ErrorCode::Usage,
                        "score --write: found a GGUF file, expected a directory, whose README.md "
                        "receives the scores; `decoscope model convert` writes one");
  if (options.write) engine::check_can_be_written(loaded.files.path + "/README.md");
  ProgressLine line("score");
  const auto progress = [&](int done, int total) {
    line.show(done, total);
    return !interrupted();
  };
  const engine::Evaluation evaluation =
      options.resume.empty() ? engine::evaluate(*loaded.model, settings, progress)
                             : engine::evaluate_on(*loaded.model, settings, options.resume,
                                                   loaded.weights_hash, progress);
  line.finish();
  const std::string markdown = engine::to_markdown(evaluation);
  Attempts attempts;
  attempts.run([&] {
    if (options.write && evaluation.complete) engine::write_scores(loaded.files.path, markdown);
  });
  attempts.run([&] { print(options.json ? engine::to_json(evaluation) + "\n" : markdown); });
  attempts.rethrow();
  if (options.write && !evaluation.complete) print_error("stopped; the card is unchanged");
  return evaluation.complete ? 0 : static_cast<int>(engine::ErrorCode::Cancelled);
}

}  // namespace app
