#include "app/commands/heads.h"

#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/numbers.h"
#include "app/cli/paths.h"
#include "app/cli/terminal.h"
#include "app/commands/attempts.h"
#include "app/commands/generation.h"
#include "app/commands/named_model.h"
#include "app/commands/notes.h"
#include "app/commands/report.h"
#include "app/commands/step_times.h"
#include "engine/base/fields.h"
#include "engine/base/json.h"
#include "engine/base/output_file.h"
#include "engine/base/table.h"
#include "engine/base/text.h"
#include "engine/checkpoint/heads_files.h"
#include "engine/checkpoint/non_finite.h"
#include "engine/decode/draft/rank_tree.h"
#include "engine/model/draft_heads.h"
#include "engine/model/model.h"
#include "engine/store/memory_plan.h"
#include "engine/store/model_store.h"
#include "kernels/thread_sharing.h"

namespace app {
namespace {

using engine::Error;
using engine::ErrorCode;

nlohmann::json heads_json(const engine::HeadsFiles& files) {
  const engine::HeadsConfig& c = files.config;
  nlohmann::json out = {
      {"name", files.name},
      {"path", files.path},
      {"heads_of", engine::name_of(c.kind)},
      {"base", c.base},
      {"parameters", c.n_params()},
      {"dtype", kernels::name_of(files.stored_dtype)},
      {"n_heads", c.n_heads},
      {"dim", c.dim},
      {"vocab_size", c.vocab_size},
      {"output", c.target_output ? "target" : "own"},
      {"n_outputs", c.n_outputs()},
      {"weight_bytes", number_json(engine::memory_plan(c, files.stored_dtype).weights)},
      {"notices", files.notices}};
  if (c.kind == engine::HeadsKind::Medusa) {
    out["n_layers"] = c.n_layers;
  } else {
    out["gram"] = c.gram;
    out["token_encoder"] = c.by_first_layer ? "first_layer" : "grams";
    out["residual"] = c.residual;
    out["own_embedding"] = c.own_embedding;
    out["sees_committed_grams"] = c.sees_committed_grams;
    out["hidden_dim"] = c.hidden_dim;
    out["n_attention_heads"] = c.n_attention_heads;
  }
  return out;
}

std::string heads_text(const engine::HeadsFiles& files) {
  const engine::HeadsConfig& c = files.config;
  std::vector<std::vector<std::string>> rows = {
      {"name", files.name},
      {"heads", fmt::format("{}, of {}", c.n_heads, engine::name_of(c.kind))},
      {"trained for", c.base.empty() ? "unknown" : c.base},
      {"parameters", fmt::format("{:.2f} M", static_cast<double>(c.n_params()) * 1e-6)},
      {"stored as", kernels::name_of(files.stored_dtype)},
      {"shape", fmt::format("hidden size {}, vocabulary {}", c.dim, c.vocab_size)}};
  if (c.target_output)
    rows.push_back({"output", fmt::format("the target's, {} tokens ranked", c.n_outputs())});
  if (c.kind == engine::HeadsKind::Chimera)
    rows.push_back(
        {"encoder", fmt::format("{}, {} attention heads, ff {}{}{}{}",
                                c.by_first_layer ? "the target's first layer"
                                                 : fmt::format("{}-grams", c.gram),
                                c.n_attention_heads, c.hidden_dim, c.residual ? ", residual" : "",
                                c.own_embedding ? ", own embedding" : "",
                                c.sees_committed_grams ? "" : ", states alone")});
  std::string text = engine::aligned_table(rows);
  for (const std::string& notice : files.notices) text += "note: " + notice + "\n";
  return text;
}

/// Reads the costs of rows from the output of `bench step --json`.
std::vector<engine::StepCost> step_costs(const std::string& path,
                                         const engine::FileLimits& limits) {
  const ReadingInput reading(path, "output of `bench step --json`,");
  const engine::Json document = engine::read_json_input(path, limits);
  const engine::Fields fields(document, path);
  const engine::Json* rows = fields.find("rows");
  if (!rows || rows->items.empty())
    fields.fail("rows", rows ? rows->shown() : "none", "output of `decoscope bench step --json`");
  std::vector<engine::StepCost> costs;
  for (const engine::Json& row : rows->items) {
    const engine::Fields one(row, path, "rows.");
    const auto n_rows = static_cast<int>(
        one.integer("rows", costs.empty() ? 1 : costs.back().n_rows + 1, engine::kMaxTreeRows));
    costs.push_back({n_rows, one.real("ms", 0, 1e9)});
  }
  return costs;
}

engine::HeadAccuracies accuracies_of(const std::string& path) {
  const ReadingInput reading(path, "accuracies in the format that training writes,");
  return engine::read_accuracies(path);
}

/// Measured costs of steps and heads.
struct MeasuredCosts {
  std::vector<engine::StepCost> rows;
  double heads_ms = 0;
  nlohmann::json info;  // for `model tree --json`
};

/// Loads the heads with their target, and measures the costs.
MeasuredCosts measured_costs(const ModelCommandOptions& options,
                             const std::string& heads_path,
                             const engine::HeadsConfig& heads) {
  // On a CPU, larger steps do not pay off. On a GPU rows are nearly free, so larger steps are timed
  // too.
  const StepTiming timing{.rows = {1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64}};
  ModelOptions target = options.target;
  if (target.model.empty()) target.model = heads.base;
  if (target.model.empty())
    throw Error(
        ErrorCode::Usage,
        heads_path + ": names no target model; give the model to time with --model NAME|DIR");
  engine::ModelStore store(assets_dir(), target.n_threads);
  engine::ModelRequest request = model_request(target);
  request.needs_tokenizer = false;
  request.generation = engine::GenerationUse::Silent;
  const std::string kind = engine::name_of(heads.kind);
  const engine::RunModels models =
      load(store, request, {.draft = {}, .heads = {heads_path}}, {kind});
  engine::Model& model = *models.target.model;
  MeasuredCosts costs;
  ProgressLine line("measuring steps");
  const std::optional<double> before = read_gbps(model.device());
  const StepTimes steps =
      time_steps(model, timing, [&](int done) { line.show(done, timing.repeat, "repeats"); });
  costs.heads_ms = time_heads(*models.heads_of(kind)->heads, model.config().dim, timing);
  line.finish();
  if (interrupted()) throw Error(ErrorCode::Cancelled, "cancelled; no tree was computed");
  const std::optional<double> after = read_gbps(model.device());
  nlohmann::json is_disturbed;  // null if unknown
  if (before && after) {
    is_disturbed = disturbed(*before, *after);
    if (is_disturbed) print_error("note: " + why_disturbed(*before, *after));
  }
  costs.info = {{"model", model.name()},
                {"scale", engine::name_of(model.scale())},
                {"dtype", kernels::name_of(model.dtype())},
                {"threads", kernels::active_threads(model.device())},
                {"context", timing.context},
                {"heads_ms", costs.heads_ms},
                {"disturbed", is_disturbed},
                {"rows", nlohmann::json::array()}};
  for (std::size_t i = 0; i < steps.ms.size(); i++) {
    costs.rows.push_back({timing.rows[i], steps.ms[i]});
    costs.info["rows"].push_back({{"rows", timing.rows[i]}, {"ms", steps.ms[i]}});
  }
  return costs;
}

/// Refuses options for measuring if the number of rows or the costs are given.
void check_measuring(const ModelCommandOptions& options) {
  const ModelOptions& t = options.target;
  const bool measures = options.rows == "auto" && options.costs.empty();
  if (!options.costs.empty() && options.rows != "auto")
    throw Error(ErrorCode::Usage,
                "--costs: no effect with --rows " + options.rows + "; use it with --rows auto");
  if (measures) return;
  for (const auto& [given, name] :
       {std::pair(!t.model.empty(), "--model"), std::pair(t.scale_given, "--scale"),
        std::pair(!t.dtype.empty(), "--dtype"), std::pair(t.n_threads != 0, "--threads"),
        std::pair(t.device != "auto", "--device")})
    if (given)
      throw Error(
          ErrorCode::Usage,
          std::string(name) +
              ": no effect, as nothing is measured; use it with --rows auto and without --costs");
}

/// The number of rows of a tree. For `model tree --json` also the costs from which it was chosen,
/// or null if it was given.
struct SelectedRows {
  int rows = 0;
  nlohmann::json costs;
};

SelectedRows selected_rows(const ModelCommandOptions& options,
                           const engine::HeadsFiles& files,
                           const engine::HeadAccuracies& accuracies) {
  if (options.rows != "auto") {
    const auto rows = whole_from(options.rows, 2, engine::kMaxTreeRows);
    if (!rows)
      throw Error(ErrorCode::Usage, "--rows " + options.rows + ": " +
                                        not_whole(options.rows, 2, engine::kMaxTreeRows) +
                                        ", or auto");
    return {static_cast<int>(*rows), nullptr};
  }
  if (!options.costs.empty())
    return {engine::best_rows(accuracies, step_costs(options.costs, options.target.limits), 0),
            {{"file", options.costs}}};
  MeasuredCosts costs = measured_costs(options, files.path, files.config);
  return {engine::best_rows(accuracies, costs.rows, costs.heads_ms), std::move(costs.info)};
}

/// Refuses an output file that exists and is not a token tree, before measuring.
void check_tree_output(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_regular_file(path, unknown) &&
      std::filesystem::file_size(path, unknown) > 0) {
    try {
      engine::read_rank_tree(path);
    } catch (const Error&) {
      throw Error(ErrorCode::Usage,
                  fmt::format("--out {}: exists and is not a token tree; name another file",
                              engine::escaped(path)));
    }
  }
  engine::check_can_be_written(path);
}

}  // namespace

bool names_heads(const std::string& name_or_path, const engine::FileLimits& limits) {
  const std::string directory = model_folder(name_or_path);
  return engine::heads_kind(directory, limits).has_value();
}

std::vector<std::string> scan_heads(const ModelCommandOptions& options) {
  const engine::HeadsFiles files =
      engine::open_heads(model_folder(options.path), nullptr, options.limits);
  return engine::non_finite_faults(
      *engine::stoppable(files.tensors, interrupted, "not all weights were checked"),
      engine::tensors_of(files.config));
}

int heads_info(const ModelCommandOptions& options) {
  const engine::HeadsFiles files =
      engine::open_heads(model_folder(options.path), nullptr, options.limits);
  if (options.json) {
    nlohmann::json out = heads_json(files);
    if (options.what == "validate") out["valid"] = true;
    print(dumped(out));
  } else if (options.what == "validate") {
    print(fmt::format("{}: valid, {} notices\n", files.path, files.notices.size()));
    for (const std::string& notice : files.notices) print("note: " + for_terminal(notice) + "\n");
  } else {
    print(heads_text(files));
  }
  return 0;
}

int random_heads(const ModelCommandOptions& options) {
  const engine::ModelFiles target = engine::open_model(
      model_folder(options.base), {.needs_tokenizer = false, .limits = options.limits});
  engine::HeadsConfig config;
  config.kind = options.heads == "medusa" ? engine::HeadsKind::Medusa : engine::HeadsKind::Chimera;
  config.base = target.name;
  config.n_heads = options.n_heads;
  config.dim = target.config.dim;
  config.vocab_size = target.config.vocab_size;
  config.hidden_dim = target.config.hidden_dim;
  config.n_attention_heads = target.config.n_heads;
  config.norm_eps = target.config.norm_eps;
  config.rope_theta = target.config.rope.theta;
  const bool fits = config.dim % config.n_attention_heads == 0 && config.head_dim() % 2 == 0;
  if (!fits) config.n_attention_heads = 1;
  kernels::DType dtype = target.stored_dtype;
  if (!options.dtype.empty()) dtype = *kernels::dtype_named(options.dtype);
  engine::write_heads(options.out, config, *engine::random_heads(config, options.seed), dtype);
  ModelCommandOptions made = options;
  made.path = options.out;
  return heads_info(made);
}

int head_tree(const ModelCommandOptions& options) {
  check_measuring(options);
  if (!options.out.empty()) check_tree_output(options.out);
  const std::string directory = model_folder(options.path);
  const engine::HeadsFiles files = engine::open_heads(directory, nullptr, options.target.limits);
  const std::string from =
      options.accuracies.empty() ? directory + "/accuracies.json" : options.accuracies;
  engine::HeadAccuracies accuracies = accuracies_of(from);
  const auto n_heads = static_cast<std::size_t>(files.config.n_heads);
  if (accuracies.size() > n_heads) accuracies.resize(n_heads);
  const SelectedRows selected = selected_rows(options, files, accuracies);
  const engine::RankTree tree = engine::grow_rank_tree(accuracies, selected.rows);
  const double expected = engine::expected_tokens(tree, accuracies);
  const std::string source = fmt::format(
      "computed for {} rows per step from the measured accuracies of {}; {:.3f} expected "
      "tokens/step",
      tree.n_nodes() + 1, files.name, expected);
  const std::string text = engine::json_of(tree, source);
  Attempts attempts;
  attempts.run([&] {
    if (!options.out.empty()) engine::write_whole_file(options.out, text);
  });
  attempts.run([&] {
    if (!options.json) return print(options.out.empty() ? text : "");
    nlohmann::json paths = nlohmann::json::array();
    for (int node = 0; node < tree.n_nodes(); node++) paths.push_back(tree.path(node));
    print(dumped({{"heads", files.name},
                  {"rows", tree.n_nodes() + 1},
                  {"depth", tree.max_depth()},
                  {"expected_tokens", expected},
                  {"paths", paths},
                  {"costs", selected.costs},
                  {"out", options.out}}));
  });
  attempts.rethrow();
  if (!options.json)
    print_error(fmt::format("note: {} rows, depth {}: {:.2f} expected tokens/step",
                            tree.n_nodes() + 1, tree.max_depth(), expected));
  return 0;
}

}  // namespace app
