// `train medusa` and `train chimera` train draft heads. `train outputs` lets a target write the
// texts on which draft heads and draft models are trained.
#include "app/commands/train/heads.h"

#include <unistd.h>
#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/paths.h"
#include "app/cli/stop_flag.h"
#include "app/cli/terminal.h"
#include "app/commands/generation.h"
#include "app/commands/named_model.h"
#include "app/commands/report.h"
#include "app/commands/train/gpu_failure.h"
#include "engine/base/input_file.h"
#include "engine/base/table.h"
#include "engine/store/model_store.h"
#include "engine/train/heads/train.h"
#include "engine/train/run/output_folder.h"
#include "engine/train/run/train.h"
#include "kernels/error.h"

namespace app {
namespace {

constexpr double kSecondsBetweenLines = 10;

std::string words_of(const engine::OutputsProgress& p) {
  return fmt::format("{} of {} texts, {:.0f} tokens/s, {} left", p.done, p.all, p.tokens_per_second,
                     minutes_and_seconds(p.seconds_left));
}

std::string words_of_heads(const engine::TrainProgress& p) {
  std::string words = fmt::format("step {}, loss {:.4f}", p.step, p.loss);
  for (const auto& [name, value] : p.losses) words += fmt::format(", {} {:.3f}", name, value);
  for (const auto& [name, value] : p.probes)
    words += fmt::format(", {} {:.1f} %", name, 100 * value);
  return words + fmt::format(", {:.0f} places/s, {} left", p.tokens_per_second,
                             minutes_and_seconds(p.seconds_left));
}

/// Reports progress: a line that is updated on a terminal, else a line every ten seconds.
class ProgressReporter {
 public:
  engine::HeadsCallbacks callbacks() {
    engine::HeadsCallbacks c;
    c.training.stop = &stop_.flag;
    c.training.notice = [this](const std::string& text) {
      line_.finish();
      reported_at_ = -1e9;
      print_error(text);
    };
    c.training.progress = [this](const engine::TrainProgress& p) {
      last = p;
      report(p.done, p.seconds, words_of_heads(p));
    };
    c.writing = [this](const engine::OutputsProgress& p) {
      const double done = p.all ? static_cast<double>(p.done) / static_cast<double>(p.all) : 1;
      report(done, p.seconds, words_of(p));
    };
    return c;
  }
  void finish() { line_.finish(); }

  engine::TrainProgress last;

 private:
  void report(double done, double seconds, const std::string& words) {
    if (isatty(STDERR_FILENO)) {
      line_.show(static_cast<std::int64_t>(done * 1000), 1000, words);
    } else if (seconds - reported_at_ >= kSecondsBetweenLines) {
      reported_at_ = seconds;
      print_error(words);
    }
  }

  StopFlag stop_;
  ProgressLine line_{"train"};
  double reported_at_ = -1e9;
};

/// A loaded target.
class LoadedTarget {
 public:
  LoadedTarget(const TrainOptions& options, const std::string& named)
      : store_(assets_dir(), options.n_threads), loaded_(load(store_, request(options, named))) {}
  engine::HeadsTarget for_heads() const {
    return {*loaded_.model, loaded_.files, loaded_.weights_hash};
  }
  const std::string& directory() const { return loaded_.files.path; }
  engine::NamedTarget writer() const {
    return {*loaded_.model, loaded_.files.name, loaded_.weights_hash};
  }

 private:
  static engine::ModelRequest request(const TrainOptions& options, const std::string& named) {
    engine::ModelRequest request;
    request.model = model_folder(options.target.empty() ? named : options.target);
    request.device = options.device;
    request.limits = options.limits;
    return request;
  }
  engine::ModelStore store_;
  engine::LoadedModel& loaded_;
};

/// Loads a target and generates its texts.
OwnTexts write_texts(const TrainOptions& options,
                     const std::string& target,
                     const engine::OutputsPlan& plan,
                     const std::string& path,
                     const std::string& data) {
  return with_advice_on_failure(options.device, {{path, "the texts written so far"}}, [&] {
    const LoadedTarget loaded(options, target);
    ProgressReporter reporter;
    const bool complete = engine::make_own_texts(loaded.writer(), plan, path, data, options.resume,
                                                 reporter.callbacks());
    reporter.finish();
    return OwnTexts{true, complete, path, loaded.directory()};
  });
}

std::string data_folder(const TrainOptions& options) {
  return options.data.empty() ? data_dir_of_environment() : options.data;
}

std::string out_of(const TrainOptions& options, const std::string& name) {
  if (!options.out.empty()) return options.out;
  return name.empty() ? std::filesystem::path(options.recipe).stem().string() : name;
}

void refuse_export(const TrainOptions& options) {
  if (!options.export_only) return;
  throw kernels::Error(
      kernels::ErrorCode::Usage,
      "--export: for targets and drafts only; heads are written at the end of training");
}

nlohmann::json accuracies_of(const engine::HeadsRanks& ranks) {
  auto heads = nlohmann::json::array();
  for (int head = 0; head < static_cast<int>(ranks.n.size()); head++) {
    auto tops = nlohmann::json::array();
    for (int best = 1; best <= 5; best++) tops.push_back(ranks.top(head, best));
    heads.push_back(std::move(tops));
  }
  return heads;
}

nlohmann::json heads_document(const std::string& out, const engine::HeadsTraining& training) {
  const engine::HeadsResult& result = training.result;
  nlohmann::json losses = nlohmann::json::object();
  for (const auto& [name, value] : result.losses) losses[name] = value;
  nlohmann::json document = {{"out", out},
                             {"finished", result.finished},
                             {"steps", result.step},
                             {"places", result.tokens},
                             {"seconds", result.seconds},
                             {"losses", losses},
                             {"compute", nullptr},
                             {"accuracies", nullptr},
                             {"prompts", nullptr}};
  if (!result.compute.empty()) document["compute"] = result.compute;
  if (result.finished) {
    document["accuracies"] = accuracies_of(result.ranks.all);
    document["prompts"] = training.n_prompts;
  }
  return document;
}

std::string accuracies_for_people(const engine::HeadsRanks& ranks) {
  std::vector<std::vector<std::string>> rows = {
      {"head", "top-1", "top-2", "top-3", "top-4", "top-5"}};
  for (int head = 0; head < static_cast<int>(ranks.n.size()); head++) {
    rows.push_back({fmt::format("{}", head + 1)});
    for (int best = 1; best <= 5; best++)
      rows.back().push_back(fmt::format("{:.1f} %", 100 * ranks.top(head, best)));
  }
  return engine::aligned_table(rows);
}

/// The directory of the target that wrote given texts; empty if it is not on this machine.
std::string directory_if_here(const std::string& named) {
  try {
    return model_folder(named);
  } catch (const kernels::Error&) {
    return {};
  }
}

/// The input files of training heads and of generating texts.
std::vector<engine::InputPath> read_by(const TrainOptions& options, const std::string& target) {
  using Kind = engine::InputPath::Kind;
  return {{.what = "--recipe", .path = options.recipe, .kind = Kind::File},
          {.what = "--data", .path = data_folder(options), .kind = Kind::Data},
          {.what = "--texts", .path = options.texts, .kind = Kind::File},
          {.what = options.target.empty() ? "the recipe's target" : "--target",
           .path = directory_if_here(options.target.empty() ? target : options.target)}};
}

}  // namespace

std::string generating_target(const TrainOptions& options) {
  const engine::TrainRecipe recipe = engine::read_train_recipe(options.recipe);
  if (recipe.own_outputs.count == 0) return {};
  return directory_if_here(options.target.empty() ? recipe.target : options.target);
}

engine::Existing allowed_contents(const TrainOptions& options) {
  if (options.what == "tokenizer") return engine::Existing::Nothing;
  return options.resume ? engine::Existing::ARun : engine::Existing::NoRun;
}

int train_heads(const TrainOptions& options, std::unique_ptr<kernels::Device> device) {
  refuse_export(options);
  engine::refuse_pipe(options.texts);
  const auto kind =
      options.what == "medusa" ? engine::HeadsKind::Medusa : engine::HeadsKind::Chimera;
  const engine::HeadsRecipe recipe = engine::read_heads_recipe(options.recipe, kind);
  const std::string out = out_of(options, recipe.name);
  const engine::HeadsRequest request{.recipe = options.recipe,
                                     .kind = kind,
                                     .out = out,
                                     .texts = options.texts,
                                     .data = data_folder(options),
                                     .resume = options.resume,
                                     .n_threads = options.n_threads,
                                     .device = options.device};
  const engine::OutputFolder folder(out, allowed_contents(options),
                                    read_by(options, recipe.target));
  const engine::HeadsTraining training = with_advice_on_failure(
      options.device,
      {{out + "/checkpoint.bin", "the last checkpoint"},
       {out + "/probe_outputs.jsonl", "the texts written so far"},
       {engine::own_texts_path(out), "the texts written so far"}},
      [&] {
        const LoadedTarget target(options, recipe.target);
        ProgressReporter reporter;
        auto made = engine::make_heads(request, target.for_heads(), reporter.callbacks(),
                                       std::move(device));
        reporter.finish();
        return made;
      });
  const engine::HeadsResult& result = training.result;
  if (options.json) {
    print(dumped(heads_document(out, training)));
  } else if (result.finished) {
    print(accuracies_for_people(result.ranks.all));
    print_error(fmt::format(
        "fraction of the target's tokens among a head's best, on {} unseen prompts; written to {}",
        training.n_prompts, out));
    note_written_name(out);
  } else {
    print_error("saved in " + out + "; continue with --resume");
  }
  return result.finished ? 0 : static_cast<int>(kernels::ErrorCode::Cancelled);
}

int train_outputs(const TrainOptions& options) {
  refuse_export(options);
  engine::refuse_pipe(options.texts);
  const engine::OutputsRecipe recipe = engine::read_outputs_recipe(options.recipe);
  const std::string out = out_of(options, recipe.name);
  const std::string path = options.texts.empty() ? engine::own_texts_path(out) : options.texts;
  auto inputs = read_by(options, recipe.target);
  std::erase_if(inputs, [](const engine::InputPath& input) { return input.what == "--texts"; });
  engine::refuse_inputs_as_output_file(path, inputs);
  const bool complete =
      write_texts(options, recipe.target, recipe.plan, path, data_folder(options)).complete;
  const auto texts = engine::read_own_outputs(path, recipe.plan, nullptr);
  std::int64_t tokens = 0, ended = 0, right = 0, checked = 0;
  for (const engine::OwnOutput& text : texts) {
    tokens += std::ssize(text.tokens) - text.n_prompt;
    ended += text.ended;
    checked += text.right.has_value();
    right += text.right == true;
  }
  if (options.json) {
    nlohmann::json document = {{"file", path},     {"finished", complete}, {"texts", texts.size()},
                               {"tokens", tokens}, {"ended", ended},       {"checked", checked},
                               {"right", nullptr}};
    if (checked > 0) document["right"] = right;
    print(dumped(document));
  } else {
    print_error(fmt::format("{} texts of {} tokens, {} complete; {} {}", texts.size(), tokens,
                            ended, complete ? "written to" : "saved in", path));
    if (!complete) print_error("continue with --resume");
  }
  return complete ? 0 : static_cast<int>(kernels::ErrorCode::Cancelled);
}

OwnTexts own_texts_of(const TrainOptions& options, const engine::TrainRequest& request) {
  const engine::TrainRecipe recipe = engine::read_train_recipe(request.recipe);
  if (recipe.own_outputs.count == 0) return {};
  if (!options.texts.empty()) {
    const std::string& named = options.target.empty() ? recipe.target : options.target;
    return {true, true, options.texts, directory_if_here(named)};
  }
  const OwnTexts texts = write_texts(options, recipe.target, recipe.own_outputs,
                                     engine::own_texts_path(request.out), request.data);
  if (!texts.complete) print_error("saved in " + request.out + "; continue with --resume");
  return texts;
}

}  // namespace app
