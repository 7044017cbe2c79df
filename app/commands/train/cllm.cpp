// `train cllm`: consistency training, for fewer steps of Jacobi decoding.
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
#include "app/commands/train/gpu_failure.h"
#include "app/commands/train/heads.h"
#include "engine/train/cllm/train.h"
#include "engine/train/run/output_folder.h"
#include "kernels/device.h"
#include "kernels/error.h"

namespace app {
namespace {

std::string words_of(const engine::CollectProgress& p) {
  return fmt::format("{}/{} answers, {} kept, {} points, {} left", p.done, p.total, p.kept,
                     p.points, minutes_and_seconds(p.seconds_left));
}

std::string words_of(const engine::CllmProgress& p) {
  std::string parts;
  for (int part = 0; part < engine::kLossParts; part++) {
    parts += fmt::format(", {} {:.4f}", engine::name_of(static_cast<engine::LossPart>(part)),
                         p.parts[static_cast<std::size_t>(part)]);
  }
  return fmt::format("step {}, loss {:.4f}{}, {:.0f} rows/s, {} left", p.step, p.loss, parts,
                     p.rows_per_second, minutes_and_seconds(p.seconds_left));
}

/// Reports progress: a bar on a terminal, else a line every ten seconds.
class CllmLine {
 public:
  template <typename Progress>
  void show(double share, const Progress& p) {
    if (isatty(STDERR_FILENO)) {
      line_.show_words(share, words_of(p));
    } else if (p.seconds - printed_at_ >= 10 || p.seconds < printed_at_) {
      printed_at_ = p.seconds;
      print_error(words_of(p));
    }
  }
  void say(const std::string& text) {
    line_.finish();
    print_error(text);
  }
  void finish() { line_.finish(); }

 private:
  ProgressLine line_{"train cllm"};
  double printed_at_ = -1e9;
};

nlohmann::json scores_json(const std::vector<engine::SpeedScore>& scores) {
  return scores.empty() ? nlohmann::json(nullptr) : nlohmann::json::parse(engine::to_json(scores));
}

nlohmann::json room_json(const engine::RoomCounts& room) {
  if (!room.known) return nullptr;
  return {{"points", room.n_points},
          {"points_left_out", room.n_left_out},
          {"texts", room.n_texts},
          {"texts_cut", room.n_texts_cut}};
}

nlohmann::json document(const std::string& out, const engine::CllmOutcome& outcome) {
  const engine::CllmResult& training = outcome.training;
  const engine::CollectCounts& c = outcome.collected;
  nlohmann::json losses = nlohmann::json::object();
  for (int part = 0; part < engine::kLossParts && training.n_losses > 0; part++) {
    losses[engine::name_of(static_cast<engine::LossPart>(part))] =
        training.parts[static_cast<std::size_t>(part)];
  }
  return {{"out", out},
          {"finished", outcome.finished},
          {"collected",
           {{"answers", c.n_texts},
            {"kept", c.n_kept},
            {"not_checked", c.n_unchecked},
            {"not_ended", c.n_not_ended},
            {"wrong", c.n_wrong},
            {"token_runs", c.n_token_runs},
            {"sentence_runs", c.n_sentence_runs},
            {"too_long", c.n_too_long},
            {"evaluation", c.n_evaluation},
            {"blocks", c.n_blocks},
            {"points", c.n_points},
            {"seconds", outcome.collect_seconds}}},
          {"steps", training.step},
          {"rows", training.rows},
          {"seconds", training.seconds},
          {"losses", losses},
          {"losses_steps", training.n_losses},
          {"room", room_json(training.room)},
          {"compute",
           training.compute.empty() ? nlohmann::json(nullptr) : nlohmann::json(training.compute)},
          {"before", scores_json(outcome.before)},
          {"after", scores_json(outcome.after)}};
}

}  // namespace

int train_cllm(const TrainOptions& options, std::unique_ptr<kernels::Device> device) {
  std::string out = options.out;
  if (out.empty()) {
    out = engine::read_cllm_recipe(options.recipe).name;
    if (out.empty()) out = std::filesystem::path(options.recipe).stem().string();
  }
  const std::string target = model_folder(
      options.from.empty() ? engine::read_cllm_recipe(options.recipe).target : options.from);
  const std::string data = options.data.empty() ? data_dir_of_environment() : options.data;
  const engine::OutputFolder folder(
      out, allowed_contents(options),
      {{.what = "--recipe", .path = options.recipe, .kind = engine::InputPath::Kind::File},
       {.what = "--data", .path = data, .kind = engine::InputPath::Kind::Data},
       {.what = options.from.empty() ? "the recipe's target" : "--from", .path = target}});
  StopFlag stop;
  CllmLine line;
  engine::CllmRunCallbacks callbacks;
  callbacks.stop = &stop.flag;
  callbacks.notice = [&](const std::string& text) { line.say(text); };
  callbacks.collecting = [&](const engine::CollectProgress& p) {
    line.show(static_cast<double>(p.done) / static_cast<double>(p.total), p);
  };
  callbacks.training = [&](const engine::CllmProgress& p) { line.show(p.done, p); };
  const engine::CllmRequest request{.recipe = options.recipe,
                                    .target = target,
                                    .assets = assets_dir(),
                                    .out = out,
                                    .data = data,
                                    .resume = options.resume,
                                    .n_threads = options.n_threads,
                                    .device = options.device,
                                    .limits = options.limits};
  const engine::CllmOutcome outcome = with_advice_on_failure(
      options.device,
      {{out + "/checkpoint.bin", "the last checkpoint"},
       {out + "/trajectories.bin", "the answers collected so far"}},
      [&] { return engine::train_cllm(request, callbacks, std::move(device)); });
  line.finish();
  if (options.json) {
    print(dumped(document(out, outcome)));
  } else {
    if (!outcome.after.empty()) print(engine::to_markdown(outcome.before, outcome.after));
    print_error(outcome.finished ? "written to " + out : "saved; continue with --resume");
  }
  if (outcome.finished) note_written_name(out);
  return outcome.finished ? 0 : static_cast<int>(kernels::ErrorCode::Cancelled);
}

}  // namespace app
