#include "engine/train/cllm/train.h"

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/base/output_file.h"
#include "engine/base/types.h"
#include "engine/data/mixture.h"
#include "engine/data/readers.h"
#include "engine/event/recording/training_history.h"
#include "engine/model/model.h"
#include "engine/store/weights_hash.h"
#include "engine/train/core/parameters.h"
#include "engine/train/run/checkpoint.h"
#include "engine/train/run/texts.h"
#include "kernels/train_ops.h"

namespace engine {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using nlohmann::json;

// Results of the stages besides the trajectories and the checkpoint.
struct Stages {
  double collect_seconds = 0;
  std::vector<SpeedScore> before, after;  // of each task measured so far
  std::int64_t after_step = 0;            // step of the weights that `after` measured
};

std::unique_ptr<kernels::Device> device_of(const CllmRequest& request) {
  auto gpu = open_training_device(request.device);
  return gpu ? std::move(gpu) : kernels::open_cpu(request.n_threads);
}

class CllmJob {
 public:
  CllmJob(const CllmRequest& request,
          const CllmRunCallbacks& callbacks,
          std::unique_ptr<kernels::Device> device)
      : request_(request),
        callbacks_(callbacks),
        device_(device ? std::move(device) : device_of(request)),
        recipe_(read_cllm_recipe(request.recipe)),
        files_(open_model(
            find_model(request.target.empty() ? recipe_.target : request.target, request.assets),
            {.limits = request.limits})),
        stream_(recipe_.mixture, recipe_.seed, request.data) {
    // If cuBLAS is missing, this fails now instead of after collecting.
    if (on_gpu()) kernels::train_kernels(*device_).products(*device_);
    if (!recipe_.replay_mixture.empty())
      replay_.emplace(recipe_.replay_mixture, recipe_.seed, request.data);
    const Tokenizer& tokenizer = *files_.tokenizer;
    if (!tokenizer.bos_id() || !tokenizer.eos_id()) {
      throw Error(ErrorCode::BadInput, files_.path +
                                           ": its tokenizer has no bos or no eos, and "
                                           "training needs both");
    }
    load_tensors(*files_.tensors, files_.config, parameters_);
    for (const TrainingStream::Share& share : stream_.shares())
      if (share.part != "real") tasks_.push_back(share.part);
  }

  CllmOutcome run();

 private:
  bool on_gpu() const { return !kernels::is_cpu(device_->name()); }
  bool stopped() const { return callbacks_.stop && callbacks_.stop->load(); }
  void notice(const std::string& text) const {
    if (callbacks_.notice) callbacks_.notice(text);
  }
  std::string path(const char* name) const { return request_.out + "/" + name; }
  void prepare_directory() const;
  std::unique_ptr<Model> model_of(const std::vector<float>& parameters) const;

  bool collect(TrajectoryFile& file);
  TrajectoryPrompt prompt_of(std::int64_t index) const;
  CollectedText judged(Trajectory trajectory) const;
  std::vector<Trajectory> to_learn(const std::vector<CollectedText>& texts) const;

  std::vector<SpeedScore> measured(Model& model,
                                   const std::vector<std::string>& tasks,
                                   Split split,
                                   int n_problems) const;
  bool measure_rest(Model& model, std::vector<SpeedScore>& scores);
  bool measure_before();
  NamedFigures probe(std::int64_t step, const std::vector<float>& parameters) const;
  void keep_probe_trajectory(std::int64_t step, Model& model) const;
  CllmResult train(std::vector<Trajectory> trajectories) const;

  void write_relations() const;
  void read_stages();
  void write_stages() const;

  const CllmRequest& request_;
  const CllmRunCallbacks& callbacks_;
  std::unique_ptr<kernels::Device> device_;  // all stages use it
  CllmRecipe recipe_;
  ModelFiles files_;
  TrainingStream stream_;
  std::optional<TrainingStream> replay_;  // set if replay_mixture is another mixture
  std::vector<float> parameters_;         // of the target
  std::vector<std::string> tasks_;
  Stages stages_;
};

void CllmJob::prepare_directory() const {
  std::error_code failed;
  fs::create_directories(request_.out, failed);
  if (failed) {
    throw Error(ErrorCode::Resources, request_.out + ": cannot be made: " + failed.message());
  }
  const bool begun = fs::exists(path("trajectories.bin")) || fs::exists(path("checkpoint.bin"));
  if (begun && !request_.resume) {
    throw Error(
        ErrorCode::Usage,
        request_.out +
            ": this directory has a saved run; continue with --resume, or name another directory");
  }
  if (!begun && request_.resume)
    notice("nothing to resume in " + request_.out + ": starting from the beginning");
}

void CllmJob::read_stages() {
  std::ifstream file(path("stages.json"), std::ios::binary);
  if (!file || !request_.resume) return;
  std::ostringstream text;
  text << file.rdbuf();
  const json stages = json::parse(text.str(), nullptr, false);
  if (!stages.is_object()) return;  // the file is damaged: measures again
  stages_.collect_seconds = stages.value("collect_seconds", 0.0);
  if (stages.value("score_problems", 0) != recipe_.score_problems) return;
  stages_.after_step = stages.value("after_step", std::int64_t{0});
  // If there is no checkpoint, the file was copied from another run with the same target. Then only
  // the scores of the target are valid.
  const bool trained_here = fs::exists(path("checkpoint.bin"));
  for (const auto& [name, scores] :
       {std::pair("before", &stages_.before), std::pair("after", &stages_.after)})
    if (stages.contains(name) && (trained_here || scores == &stages_.before))
      *scores = speed_scores_from(stages[name].dump(), path("stages.json"));
}

void CllmJob::write_stages() const {
  json stages = {{"collect_seconds", stages_.collect_seconds},
                 {"score_problems", recipe_.score_problems},
                 {"after_step", stages_.after_step}};
  if (!stages_.before.empty()) stages["before"] = json::parse(to_json(stages_.before));
  if (!stages_.after.empty()) stages["after"] = json::parse(to_json(stages_.after));
  write_whole_file(path("stages.json"), stages.dump(2) + "\n");
}

/// Loads the weights for decoding, rounded as in the model that the training writes.
std::unique_ptr<Model> CllmJob::model_of(const std::vector<float>& parameters) const {
  ModelFiles files = files_;
  files.tensors = as_tensors(parameters, files_.config);
  return Model::load(*device_, files, {.dtype = kernels::DType::BF16});
}

TrajectoryPrompt CllmJob::prompt_of(std::int64_t index) const {
  const TokenText text = tokenized(*files_.tokenizer, stream_.text(index));
  TrajectoryPrompt prompt{.index = index, .part = stream_.record(index).task};
  const auto answer = text.tokens.begin() + std::max(1, text.n_prompt);
  prompt.tokens.assign(text.tokens.begin(), answer);
  prompt.truth.assign(answer, text.tokens.end());
  return prompt;
}

// Decides whether an answer is used for training; clears the blocks of one that is not.
CollectedText CllmJob::judged(Trajectory trajectory) const {
  CollectedText text;
  const std::string answer =
      continuation_text(*files_.tokenizer, trajectory.prompt, trajectory.output);
  const CheckResult check = check_record(stream_.record(trajectory.index), answer);
  text.checked = !check.skipped;
  const auto n_rows = trajectory.prompt.size() + trajectory.output.size() - 1;
  if (static_cast<int>(n_rows) > recipe_.context) {
    text.drop = Drop::TooLong;
  } else if (recipe_.token_run > 1 &&
             repeats_a_token(trajectory.output, recipe_.token_run, files_.config.eos_ids)) {
    text.drop = Drop::TokenRun;
  } else if (recipe_.sentence_run > 1 && repeats_a_sentence(answer, recipe_.sentence_run)) {
    text.drop = Drop::SentenceRun;
  } else if (recipe_.drop_wrong && text.checked && !check.correct) {
    text.drop = Drop::Wrong;
  }
  if (text.drop != Drop::None) {
    trajectory.blocks.clear();
    trajectory.truth.clear();
  }
  text.trajectory = std::move(trajectory);
  return text;
}

bool CllmJob::collect(TrajectoryFile& file) {
  const auto begun = Clock::now();
  const auto first = static_cast<std::int64_t>(file.size());
  const double earlier = stages_.collect_seconds;
  const auto model = model_of(parameters_);
  CollectProgress progress{.total = recipe_.prompts};
  for (const CollectedText& text : file.texts()) {
    progress.kept += text.drop == Drop::None;
    for (const BlockPoints& points : text.trajectory.blocks)
      progress.points += static_cast<std::int64_t>(points.size());
  }
  std::int64_t index = -1;
  const auto next = [&](TrajectoryPrompt& prompt) {
    do index++;
    while (index < recipe_.prompts && file.has(index));
    if (index >= recipe_.prompts) return false;
    prompt = prompt_of(index);
    // A prompt that does not fit into the context gets no answer. It is recorded as dropped, so
    // that all prompts are accounted for and collecting can end.
    if (static_cast<int>(prompt.tokens.size()) < model->max_seq_len()) return true;
    file.add({.drop = Drop::TooLong, .checked = false, .trajectory = {.index = index}});
    return true;
  };
  const auto done = [&](Trajectory trajectory) {
    const CollectedText text = judged(std::move(trajectory));
    file.add(text);
    progress.kept += text.drop == Drop::None;
    for (const BlockPoints& points : text.trajectory.blocks)
      progress.points += static_cast<std::int64_t>(points.size());
    progress.done = static_cast<std::int64_t>(file.size());
    const double now = std::chrono::duration<double>(Clock::now() - begun).count();
    stages_.collect_seconds = progress.seconds = earlier + now;
    progress.seconds_left = now * static_cast<double>(recipe_.prompts - progress.done) /
                            static_cast<double>(std::max<std::int64_t>(1, progress.done - first));
    if (callbacks_.collecting) callbacks_.collecting(progress);
  };
  collect_trajectories(*model,
                       {.block = recipe_.block,
                        .max_new_tokens = recipe_.max_new_tokens,
                        .n_lanes = recipe_.lanes,
                        .keep_points = recipe_.points > 0,
                        .seed = recipe_.seed,
                        .eos_ids = files_.config.eos_ids},
                       next, done, [&] { return stopped(); });
  write_stages();
  return static_cast<int>(file.size()) >= recipe_.prompts;
}

std::vector<Trajectory> CllmJob::to_learn(const std::vector<CollectedText>& texts) const {
  std::vector<Trajectory> trajectories;
  std::int64_t n_changed = 0;
  for (const CollectedText& text : texts) {
    if (text.drop != Drop::None || text.trajectory.index >= recipe_.prompts) continue;
    trajectories.push_back(text.trajectory);
    Trajectory& t = trajectories.back();
    for (std::size_t b = 0; recipe_.augment && b < t.blocks.size(); b++) {
      Random rng(fnv1a("augment/" + std::to_string(recipe_.seed) + "/" + std::to_string(t.index) +
                       "/" + std::to_string(b)));
      n_changed += augment(t.blocks[b], rng);
    }
  }
  if (recipe_.augment && recipe_.points > 0)
    notice(fmt::format("augmented: {} positions of points corrected", n_changed));
  if (trajectories.empty()) {
    throw Error(ErrorCode::BadInput, recipe_.name + ": no answer of " + files_.name +
                                         " can be used for training; increase prompts or "
                                         "max_new_tokens, or set drop_wrong to false");
  }
  return trajectories;
}

std::vector<SpeedScore> CllmJob::measured(Model& model,
                                          const std::vector<std::string>& tasks,
                                          Split split,
                                          int n_problems) const {
  if (tasks.empty()) return {};
  return measure_speed(model,
                       {.tasks = tasks,
                        .split = split,
                        .n_problems = n_problems,
                        .block = recipe_.block,
                        .max_tokens = recipe_.max_new_tokens,
                        .n_lanes = recipe_.lanes},
                       [&] { return stopped(); });
}

// Measures the tasks that are missing in `scores`, and saves the scores after each.
bool CllmJob::measure_rest(Model& model, std::vector<SpeedScore>& scores) {
  while (scores.size() < tasks_.size()) {
    const auto one = measured(model, {tasks_[scores.size()]}, Split::Test, recipe_.score_problems);
    if (one.empty()) return false;
    scores.push_back(one.front());
    write_stages();
  }
  return true;
}

bool CllmJob::measure_before() {
  if (stages_.before.size() >= tasks_.size()) return true;
  notice("measuring " + files_.name + " before training");
  return measure_rest(*model_of(parameters_), stages_.before);
}

// Appends the trajectory of the first unseen problem of the first task, its tokens as text.
void CllmJob::keep_probe_trajectory(std::int64_t step, Model& model) const {
  const auto record = task_generator(tasks_.front()).make(Split::Dev, 1, 0);
  if (!record) return;
  TrajectoryPrompt prompt;
  prompt.tokens = tokenized(*files_.tokenizer, {.prompt = record->prompt}).tokens;
  prompt.tokens.pop_back();  // the end token
  json blocks = json::array();
  bool given = false;
  const auto next = [&](TrajectoryPrompt& one) {
    if (given) return false;
    given = true;
    one = prompt;
    return true;
  };
  const auto done = [&](const Trajectory& t) {
    for (const BlockPoints& points : t.blocks) {
      json block = json::array();
      for (const auto& point : points) {
        json pieces = json::array();
        for (const TokenId token : point) pieces.push_back(files_.tokenizer->piece(token));
        block.push_back(std::move(pieces));
      }
      blocks.push_back(std::move(block));
    }
  };
  collect_trajectories(model,
                       {.block = recipe_.block,
                        .max_new_tokens = recipe_.max_new_tokens,
                        .n_lanes = 1,
                        .seed = recipe_.seed,
                        .eos_ids = files_.config.eos_ids},
                       next, done);
  json ends = json::array();
  for (const TokenId token : files_.config.eos_ids) ends.push_back(files_.tokenizer->piece(token));
  const json line = {
      {"step", step}, {"prompt", record->prompt}, {"ends", ends}, {"blocks", blocks}};
  std::ofstream file(path(kProbeTrajectoriesName), std::ios::app | std::ios::binary);
  file << line.dump(-1, ' ', false, json::error_handler_t::replace) << '\n' << std::flush;
  if (!file)
    throw Error(ErrorCode::Resources,
                path(kProbeTrajectoriesName) + ": cannot be written: " + std::strerror(errno));
}

NamedFigures CllmJob::probe(std::int64_t step, const std::vector<float>& parameters) const {
  const auto model = model_of(parameters);
  if (!tasks_.empty()) keep_probe_trajectory(step, *model);
  NamedFigures figures = figures_of(measured(*model, tasks_, Split::Dev, recipe_.probe_problems));
  std::string words;
  for (const auto& [name, value] : figures)
    words += fmt::format("{}{} {:.2f}", words.empty() ? "" : ", ", name, value);
  if (!words.empty()) notice(fmt::format("probe at step {}: {}", step, words));
  return figures;
}

CllmResult CllmJob::train(std::vector<Trajectory> trajectories) const {
  if (!fs::exists(path("checkpoint.bin"))) probe(0, parameters_);
  CllmTraining training;
  training.model = files_.config;
  training.parameters = parameters_;
  training.trajectories = std::move(trajectories);
  // The stream's first recipe_.prompts texts were answered; the texts after them are replayed.
  training.replay = [this](std::int64_t index) {
    const TrainingStream& stream = replay_ ? *replay_ : stream_;
    return tokenized(*files_.tokenizer, stream.text(recipe_.prompts + index));
  };
  CllmCallbacks callbacks;
  callbacks.progress = callbacks_.training;
  callbacks.notice = callbacks_.notice;
  callbacks.stop = callbacks_.stop;
  callbacks.probe = [this](std::int64_t step, const std::vector<float>& parameters) {
    return probe(step, parameters);
  };
  return train_consistency(
      recipe_, std::move(training),
      {.n_threads = request_.n_threads, .resume = true, .directory = request_.out}, callbacks,
      on_gpu() ? device_.get() : nullptr);
}

// Writes decoscope.json, with which the window compares the model with its target.
void CllmJob::write_relations() const {
  json relations = {{"before", files_.name}};
  if (!files_.draft_name.empty()) relations["draft"] = files_.draft_name;
  write_whole_file(path("decoscope.json"), relations.dump() + "\n");
}

CllmOutcome CllmJob::run() {
  prepare_directory();
  read_stages();
  CllmOutcome outcome;
  TrajectoryFile file(path("trajectories.bin"),
                      collecting_part(recipe_) + "\n" + weights_hash(files_));
  const bool collected = static_cast<int>(file.size()) >= recipe_.prompts || collect(file);
  outcome.collected = counts_of(file.texts());
  outcome.collect_seconds = stages_.collect_seconds;
  notice("collected: " + words_of(outcome.collected));
  if (!collected || stopped() || !measure_before()) return outcome;
  outcome.before = stages_.before;
  outcome.training = train(to_learn(file.texts()));
  if (!outcome.training.finished || stopped()) return outcome;
  if (outcome.training.steps_done == 0 && result_is_written(request_.out)) {
    notice(request_.out +
           " is already finished; to continue, increase epochs or minutes in the recipe");
    outcome.finished = true;
    return outcome;
  }
  notice("measuring the result");
  const auto model = model_of(outcome.training.parameters);
  if (!tasks_.empty()) {
    if (stages_.after_step != outcome.training.step) stages_.after.clear();
    stages_.after_step = outcome.training.step;
    if (!measure_rest(*model, stages_.after)) return outcome;  // stopped; the checkpoint stays
    outcome.after = stages_.after;
    keep_probe_trajectory(outcome.training.step, *model);
  }
  write_model(request_.out, files_.config, *as_tensors(outcome.training.parameters, files_.config),
              kernels::DType::BF16, files_.path);
  write_relations();
  std::ostringstream target_card;
  target_card << std::ifstream(files_.path + "/README.md", std::ios::binary).rdbuf();
  OutputFile card(path("README.md"));
  card.write(cllm_card(recipe_, files_.config, outcome, files_.name, target_card.str()));
  card.finish();
  outcome.finished = true;
  return outcome;
}

}  // namespace

CllmOutcome train_cllm(const CllmRequest& request,
                       const CllmRunCallbacks& callbacks,
                       std::unique_ptr<kernels::Device> device) {
  CllmJob job(request, callbacks, std::move(device));
  CllmOutcome outcome = job.run();
  outcome.training.parameters.clear();
  return outcome;
}

}  // namespace engine
