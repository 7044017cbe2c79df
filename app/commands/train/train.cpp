#include <unistd.h>
#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "app/cli/paths.h"
#include "app/cli/stop_flag.h"
#include "app/cli/terminal.h"
#include "app/commands/named_model.h"
#include "app/commands/report.h"
#include "app/commands/run_code.h"
#include "app/commands/train/gpu_failure.h"
#include "app/commands/train/heads.h"
#include "engine/base/text.h"
#include "engine/train/run/output_folder.h"
#include "engine/train/run/train.h"
#include "kernels/cuda/cuda.h"
#include "kernels/error.h"

namespace app {
namespace {

std::string progress_text(const engine::TrainProgress& p) {
  return fmt::format(
      "step {}, {:.2f} M tokens, loss {:.4f}, completion {:.4f}, {:.0f} tokens/s, {} left", p.step,
      static_cast<double>(p.tokens) * 1e-6, p.loss, p.completion_loss, p.tokens_per_second,
      minutes_and_seconds(p.seconds_left));
}

std::string recipe_name(const TrainOptions& options) {
  const std::string name = options.what == "tokenizer"
                               ? engine::read_tokenizer_recipe(options.recipe).name
                               : engine::read_train_recipe(options.recipe).name;
  return name.empty() ? std::filesystem::path(options.recipe).stem().string() : name;
}

/// The document of --json for all kinds of training; members that do not apply are null.
nlohmann::json document(const std::string& out) {
  return {{"out", out},         {"finished", nullptr},
          {"steps", nullptr},   {"tokens", nullptr},
          {"seconds", nullptr}, {"completion_loss", nullptr},
          {"compute", nullptr}, {"completion_loss_steps", nullptr}};
}

int train_tokenizer(const TrainOptions& options,
                    const engine::TrainRequest& request,
                    engine::TrainCallbacks callbacks) {
  callbacks.unstoppable = [](bool begins) {
    end_when_interrupted(begins);
    if (begins && interrupted())
      throw kernels::Error(kernels::ErrorCode::Cancelled,
                           "tokenizer: stopped; nothing was written");
  };
  const engine::TokenizerResult result = engine::train_tokenizer(request, callbacks);
  if (!options.json) return 0;
  nlohmann::json written = document(request.out);
  written.update({{"finished", true},
                  {"seconds", result.seconds},
                  {"vocab_size", result.vocab_size},
                  {"sample_bytes", result.sample_bytes}});
  print(dumped(written));
  return 0;
}

/// The input files of `train tokenizer`, `target` and `draft`, except the training texts.
std::vector<engine::InputPath> read_by(const TrainOptions& options,
                                       const engine::TrainRequest& request) {
  using Kind = engine::InputPath::Kind;
  std::vector<engine::InputPath> inputs = {
      {.what = "--recipe", .path = options.recipe, .kind = Kind::File},
      {.what = "--data", .path = request.data, .kind = Kind::Data}};
  if (options.what == "tokenizer") return inputs;
  inputs.push_back({.what = "--tokenizer", .path = request.tokenizer});
  inputs.push_back({.what = "--from", .path = request.from});
  inputs.push_back({.what = "--texts", .path = options.texts, .kind = Kind::File});
  inputs.push_back({.what = "--target", .path = generating_target(options)});
  return inputs;
}

int export_checkpoint(const TrainOptions& options, const engine::TrainRequest& request) {
  const engine::ExportResult result = engine::export_checkpoint(request);
  print_error("the last checkpoint is written to " + request.out);
  note_written_name(request.out);
  if (!options.json) return 0;
  nlohmann::json written = document(request.out);
  written.update({{"steps", result.step},
                  {"tokens", result.tokens},
                  {"seconds", result.seconds},
                  {"compute", result.compute}});
  print(dumped(written));
  return 0;
}

int stopped_before_the_first_step(const TrainOptions& options, const std::string& out) {
  if (options.json) {
    nlohmann::json written = document(out);
    written["finished"] = false;
    print(dumped(written));
  }
  return static_cast<int>(kernels::ErrorCode::Cancelled);
}

/// Opens the device, before anything is read or written.
/// @return  null: the CPU
std::unique_ptr<kernels::Device> opened_device(const TrainOptions& options) {
  if (!kernels::is_cpu(options.device) && options.what == "tokenizer")
    throw kernels::Error(kernels::ErrorCode::Usage, "train tokenizer: --device " + options.device +
                                                        ": a tokenizer is trained on the CPU only");
  return engine::open_training_device(options.device);
}

}  // namespace

int train(const TrainOptions& options) {
  auto device = opened_device(options);
  require_code_for_training(options);
  if (options.what == "cllm") return train_cllm(options, std::move(device));
  if (options.what == "medusa" || options.what == "chimera")
    return train_heads(options, std::move(device));
  if (options.what == "outputs") return train_outputs(options);
  const std::string out = options.out.empty() ? recipe_name(options) : options.out;
  engine::TrainRequest request{
      .recipe = options.recipe,
      .tokenizer = options.tokenizer,
      .out = out,
      .data = options.data.empty() ? data_dir_of_environment() : options.data,
      .from = options.from,
      .target = options.what == "tokenizer" ? std::string() : generating_target(options),
      .resume = options.resume,
      .n_threads = options.n_threads,
      .device = options.device,
      .limits = options.limits};
  StopFlag stop;
  ProgressLine line("train");
  engine::TrainProgress last;
  double printed_at = -1e9;
  engine::TrainCallbacks callbacks;
  callbacks.stop = &stop.flag;
  callbacks.notice = [&](const std::string& text) {
    line.finish();
    print_error(text);
  };
  callbacks.progress = [&](const engine::TrainProgress& p) {
    last = p;
    if (isatty(STDERR_FILENO)) {
      line.show(static_cast<std::int64_t>(p.done * 1000), 1000, progress_text(p));
    } else if (p.seconds - printed_at >= 10) {
      printed_at = p.seconds;
      print_error(progress_text(p));
    }
  };
  if (!options.tokenizer.empty()) note_folder_is_used("--tokenizer", options.tokenizer);
  if (!options.from.empty()) note_folder_is_used("--from", options.from);
  if (request.tokenizer.empty() && options.what != "tokenizer")
    request.tokenizer = (std::filesystem::path(assets_dir()) / "models/demo-target").string();
  if (options.export_only) return export_checkpoint(options, request);
  const engine::OutputFolder folder(out, allowed_contents(options), read_by(options, request));
  if (options.what == "tokenizer") return train_tokenizer(options, request, callbacks);
  engine::check_checkpoint(request);
  if (const auto texts = own_texts_of(options, request); texts.wanted) {
    request.own_texts = texts.path;
    request.target = texts.target;
    if (!texts.complete) return stopped_before_the_first_step(options, out);
  }
  const engine::TrainResult result = with_advice_on_failure(
      options.device, {{out + "/checkpoint.bin", "the last checkpoint"}},
      [&] { return engine::train_model(request, callbacks, std::move(device)); });
  line.finish();
  if (result.n_skipped_steps > 0)
    print_error(fmt::format("note: {} skipped: the loss or its gradient was not finite",
                            engine::counted(result.n_skipped_steps, "step")));
  if (options.json) {
    nlohmann::json written = document(out);
    written.update({{"finished", result.finished},
                    {"steps", result.step},
                    {"tokens", result.tokens},
                    {"seconds", result.seconds},
                    {"completion_loss_steps", result.n_losses},
                    {"compute", result.compute}});
    if (result.n_losses > 0) written["completion_loss"] = result.completion_loss;
    print(dumped(written));
  } else if (last.step > 0) {  // without a step the run was already finished
    print_error(
        fmt::format("{}; {}", progress_text(last),
                    result.finished ? "written to " + out : "saved; continue with --resume"));
  }
  if (result.finished) note_written_name(out);
  return result.finished ? 0 : static_cast<int>(kernels::ErrorCode::Cancelled);
}

}  // namespace app
