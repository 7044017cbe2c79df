#include "engine/train/cllm/train.h"

#include <algorithm>
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

#include "engine/base/measure/remaining_time.h"
#include "engine/base/output_file.h"
#include "engine/base/types.h"
#include "engine/checkpoint/adapter/lora_adapter.h"
#include "engine/data/chat_requests.h"
#include "engine/data/mixture.h"
#include "engine/data/readers.h"
#include "engine/event/recording/training_history.h"
#include "engine/model/model.h"
#include "engine/store/weights_hash.h"
#include "engine/train/core/parameters.h"
#include "engine/train/draft/shared_embedding.h"
#include "engine/train/lora/low_rank.h"
#include "engine/train/prompts/output_prompts.h"
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
        trained_(trained_shape()) {
    // If cuBLAS is missing, this fails now instead of after collecting.
    if (on_gpu()) kernels::train_kernels(*device_).products(*device_);
    if (!recipe_.replay_mixture.empty())
      replay_.emplace(recipe_.replay_mixture, recipe_.seed, request.data);
    if (recipe_.chat)
      read_requests();
    else
      read_mixture();
  }

  CllmOutcome run();

 private:
  bool on_gpu() const { return !kernels::is_cpu(device_->name()); }
  bool stopped() const { return callbacks_.stop && callbacks_.stop->load(); }
  void notice(const std::string& text) const {
    if (callbacks_.notice) callbacks_.notice(text);
  }
  std::string path(const char* name) const { return request_.out + "/" + name; }
  ModelConfig trained_shape() const;
  void read_mixture();
  void read_requests();
  void prepare_directory() const;
  std::unique_ptr<Model> loaded(ModelFiles files) const;
  LoraAdapter adapter_of(const std::vector<float>& updates) const;
  std::unique_ptr<Model> model_of(const std::vector<float>& trained) const;

  bool collect(TrajectoryFile& file);
  std::optional<TrajectoryPrompt> prompt_of(std::int64_t index, const Model& model) const;
  CollectedText selected(Trajectory trajectory) const;
  std::vector<Trajectory> to_learn(const std::vector<CollectedText>& texts) const;

  std::vector<SpeedScore> measured(Model& model,
                                   const std::vector<std::string>& tasks,
                                   Split split,
                                   int n_problems,
                                   Model* target = nullptr) const;
  std::vector<ChatRequest> unseen_requests(const std::string& part, Split split, int most) const;
  bool measure_rest(Model& model, Model* target, std::vector<SpeedScore>& scores);
  bool measure_before();
  std::optional<std::string> probe_request() const;
  NamedFigures probe(std::int64_t step, Model& model) const;
  void keep_probe_trajectory(std::int64_t step, Model& model) const;
  CllmResult train(std::vector<Trajectory> trajectories) const;

  void write_result(const CllmOutcome& outcome) const;
  void write_relations() const;
  void read_stages();
  void write_stages() const;

  const CllmRequest& request_;
  const CllmRunCallbacks& callbacks_;
  std::unique_ptr<kernels::Device> device_;  // all stages use it
  CllmRecipe recipe_;
  ModelFiles files_;
  ModelConfig trained_;                   // of the weights in training
  std::int64_t n_prompts_ = 0;            // to answer
  std::optional<TrainingStream> stream_;  // unless the recipe has chat requests
  std::optional<OutputPrompts> requests_;
  std::optional<ChatRequests> dev_, test_;  // unseen requests
  std::optional<TrainingStream> replay_;    // set if replay_mixture is another mixture
  std::vector<std::string> tasks_;
  Stages stages_;
};

// With low-rank updates, the fixed embedding and output matrix are no weights in training.
ModelConfig CllmJob::trained_shape() const {
  ModelConfig config = files_.config;
  if (recipe_.lora.rank > 0) config.shares_embedding_of = files_.name;
  const ParameterLayout checked(config);  // refuses a model that cannot be trained
  return config;
}

void CllmJob::read_mixture() {
  const Tokenizer& tokenizer = *files_.tokenizer;
  if (!tokenizer.bos_id() || !tokenizer.eos_id()) {
    throw Error(ErrorCode::BadInput, files_.path +
                                         ": its tokenizer has no bos or no eos, and "
                                         "training needs both");
  }
  stream_.emplace(recipe_.mixture, recipe_.seed, request_.data);
  n_prompts_ = recipe_.prompts;
  for (const TrainingStream::Share& share : stream_->shares())
    if (share.part != "real") tasks_.push_back(share.part);
}

void CllmJob::read_requests() {
  const auto all = [this](Split split) {
    return ChatRequests(recipe_.mixture, recipe_.seed, request_.data, split);
  };
  requests_.emplace(
      OutputsPlan{
          .mixture = recipe_.mixture, .count = recipe_.prompts, .seed = recipe_.seed, .chat = true},
      request_.data);
  n_prompts_ = requests_->count();
  dev_.emplace(all(Split::Dev));
  test_.emplace(all(Split::Test));
  const json mixture = json::parse(recipe_.mixture);
  for (const auto& [part, options] : mixture.items())
    if (!unseen_requests(part, Split::Test, 1).empty()) tasks_.push_back(part);
}

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

/// Loads weights for decoding, rounded to bf16 as in the model that the training writes.
std::unique_ptr<Model> CllmJob::loaded(ModelFiles files) const {
  return Model::load(*device_, files, {.dtype = kernels::DType::BF16});
}

LoraAdapter CllmJob::adapter_of(const std::vector<float>& updates) const {
  const std::string& base = recipe_.lora.base.empty() ? files_.name : recipe_.lora.base;
  return LowRankLayout(trained_, recipe_.lora).adapter(updates, base);
}

/// @param trained  the weights in training, or the low-rank updates
std::unique_ptr<Model> CllmJob::model_of(const std::vector<float>& trained) const {
  ModelFiles files = files_;
  files.tensors = recipe_.lora.rank > 0
                      ? with_adapter(files_.tensors, tensors_of(files_.config), adapter_of(trained))
                      : as_tensors(trained, files_.config);
  return loaded(std::move(files));
}

// The prompt of an index; nullopt: its request overlaps an evaluation question.
std::optional<TrajectoryPrompt> CllmJob::prompt_of(std::int64_t index, const Model& model) const {
  TrajectoryPrompt prompt{.index = index};
  if (requests_) {
    const Record record = requests_->record(index);
    if (record.prompt.empty()) return std::nullopt;
    prompt.part = record.task;
    prompt.tokens = prompt_tokens(model, record.prompt, true);
    return prompt;
  }
  const TokenText text = tokenized(*files_.tokenizer, stream_->text(index));
  prompt.part = stream_->record(index).task;
  const auto answer = text.tokens.begin() + std::max(1, text.n_prompt);
  prompt.tokens.assign(text.tokens.begin(), answer);
  prompt.truth.assign(answer, text.tokens.end());
  return prompt;
}

// Decides whether an answer is used for training; clears the blocks of one that is not.
CollectedText CllmJob::selected(Trajectory trajectory) const {
  CollectedText text;
  const std::string answer =
      continuation_text(*files_.tokenizer, trajectory.prompt, trajectory.output);
  CheckResult check{.skipped = true};
  if (stream_) check = check_record(stream_->record(trajectory.index), answer);
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
  // A file from a recipe with more prompts also has answers to prompts after the last one.
  const std::int64_t first = file.count_below(n_prompts_);
  const double earlier = stages_.collect_seconds;
  const auto model = loaded(files_);
  if (recipe_.chat) expect_chat_template(*model, files_.name);
  CollectProgress progress{.total = n_prompts_};
  for (const CollectedText& text : file.texts()) {
    progress.kept += text.drop == Drop::None;
    for (const BlockPoints& points : text.trajectory.blocks)
      progress.points += static_cast<std::int64_t>(points.size());
  }
  std::int64_t index = -1;
  const int longest = std::min(model->max_seq_len(), recipe_.context);
  const auto next = [&](TrajectoryPrompt& prompt) {
    for (index++; index < n_prompts_; index++) {
      if (file.has(index)) continue;
      auto found = prompt_of(index, *model);
      if (found && static_cast<int>(found->tokens.size()) < longest) {
        prompt = std::move(*found);
        return true;
      }
      // A prompt that gets no answer is recorded as dropped, so that all prompts are accounted for
      // and collecting can end.
      file.add({.drop = found ? Drop::TooLong : Drop::Evaluation,
                .checked = false,
                .trajectory = {.index = index}});
    }
    return false;
  };
  const auto done = [&](Trajectory trajectory) {
    const CollectedText text = selected(std::move(trajectory));
    file.add(text);
    progress.kept += text.drop == Drop::None;
    for (const BlockPoints& points : text.trajectory.blocks)
      progress.points += static_cast<std::int64_t>(points.size());
    progress.done = file.count_below(n_prompts_);
    const double now = std::chrono::duration<double>(Clock::now() - begun).count();
    stages_.collect_seconds = progress.seconds = earlier + now;
    progress.seconds_left =
        remaining_seconds(static_cast<double>(progress.done), static_cast<double>(n_prompts_),
                          static_cast<double>(progress.done - first), now);
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
  return file.count_below(n_prompts_) == n_prompts_;
}

std::vector<Trajectory> CllmJob::to_learn(const std::vector<CollectedText>& texts) const {
  std::vector<Trajectory> trajectories;
  std::int64_t n_changed = 0;
  for (const CollectedText& text : texts) {
    if (text.drop != Drop::None || text.trajectory.index >= n_prompts_) continue;
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
                                          int n_problems,
                                          Model* target) const {
  if (tasks.empty()) return {};
  const SpeedSettings settings{.tasks = tasks,
                               .split = split,
                               .n_problems = n_problems,
                               .block = recipe_.block,
                               .max_tokens = recipe_.max_new_tokens,
                               .n_lanes = recipe_.lanes};
  const auto stop = [&] { return stopped(); };
  if (!recipe_.chat) return measure_speed(model, settings, stop);
  std::vector<SpeedPrompt> prompts;
  for (const std::string& part : tasks)
    for (const ChatRequest& request : unseen_requests(part, split, n_problems))
      prompts.push_back({part, prompt_tokens(model, request.text, true)});
  return measure_speed(model, prompts, settings, target, stop);
}

std::vector<ChatRequest> CllmJob::unseen_requests(const std::string& part,
                                                  Split split,
                                                  int most) const {
  std::vector<ChatRequest> found;
  for (const ChatRequest& request : (split == Split::Dev ? dev_ : test_)->list())
    if (request.part == part && std::ssize(found) < most) found.push_back(request);
  return found;
}

// Measures the tasks that are missing in `scores`, and saves the scores after each.
// @param target  for the log-likelihood of answers to requests
bool CllmJob::measure_rest(Model& model, Model* target, std::vector<SpeedScore>& scores) {
  while (scores.size() < tasks_.size()) {
    const auto one =
        measured(model, {tasks_[scores.size()]}, Split::Test, recipe_.score_problems, target);
    if (one.empty()) return false;
    scores.push_back(one.front());
    write_stages();
  }
  return true;
}

bool CllmJob::measure_before() {
  if (stages_.before.size() >= tasks_.size()) return true;
  notice("measuring " + files_.name + " before training");
  const auto target = loaded(files_);
  return measure_rest(*target, target.get(), stages_.before);
}

// The first unseen prompt of the first task; nullopt: there is none.
std::optional<std::string> CllmJob::probe_request() const {
  if (tasks_.empty()) return std::nullopt;
  if (recipe_.chat) {
    const auto requests = unseen_requests(tasks_.front(), Split::Dev, 1);
    return requests.empty() ? std::nullopt : std::optional(requests.front().text);
  }
  const auto record = task_generator(tasks_.front()).make(Split::Dev, 1, 0);
  return record ? std::optional(record->prompt) : std::nullopt;
}

// Appends the trajectory of probe_request(), its tokens as text.
void CllmJob::keep_probe_trajectory(std::int64_t step, Model& model) const {
  const auto text = probe_request();
  if (!text) return;
  TrajectoryPrompt prompt;
  prompt.tokens = prompt_tokens(model, *text, recipe_.chat);
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
  const json line = {{"step", step}, {"prompt", *text}, {"ends", ends}, {"blocks", blocks}};
  std::ofstream file(path(kProbeTrajectoriesName), std::ios::app | std::ios::binary);
  file << line.dump(-1, ' ', false, json::error_handler_t::replace) << '\n' << std::flush;
  if (!file)
    throw Error(ErrorCode::Resources,
                path(kProbeTrajectoriesName) + ": cannot be written: " + std::strerror(errno));
}

NamedFigures CllmJob::probe(std::int64_t step, Model& model) const {
  keep_probe_trajectory(step, model);
  NamedFigures figures = figures_of(measured(model, tasks_, Split::Dev, recipe_.probe_problems));
  std::string words;
  for (const auto& [name, value] : figures)
    words += fmt::format("{}{} {:.2f}", words.empty() ? "" : ", ", name, value);
  if (!words.empty()) notice(fmt::format("probe at step {}: {}", step, words));
  return figures;
}

CllmResult CllmJob::train(std::vector<Trajectory> trajectories) const {
  if (!fs::exists(path("checkpoint.bin"))) probe(0, *loaded(files_));
  CllmTraining training;
  SharedEmbedding shared;
  training.model = trained_;
  if (recipe_.lora.rank > 0) {
    shared = shared_embedding(files_, {});
    training.shared = &shared;
  }
  load_tensors(*files_.tensors, trained_, training.parameters);
  training.trajectories = std::move(trajectories);
  // The stream's first recipe_.prompts texts were answered; the texts after them are replayed.
  training.replay = [this](std::int64_t index) {
    const TrainingStream& stream = replay_ ? *replay_ : *stream_;
    return tokenized(*files_.tokenizer, stream.text(recipe_.prompts + index));
  };
  CllmCallbacks callbacks;
  callbacks.progress = callbacks_.training;
  callbacks.notice = callbacks_.notice;
  callbacks.stop = callbacks_.stop;
  callbacks.probe = [this](std::int64_t step, const std::vector<float>& trained) {
    return probe(step, *model_of(trained));
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

void CllmJob::write_result(const CllmOutcome& outcome) const {
  if (recipe_.lora.rank > 0)
    write_adapter(request_.out, adapter_of(outcome.training.parameters), kernels::DType::BF16);
  else
    write_model(request_.out, files_.config,
                *as_tensors(outcome.training.parameters, files_.config), kernels::DType::BF16,
                files_.path);
  write_relations();
  std::ostringstream target_card;
  target_card << std::ifstream(files_.path + "/README.md", std::ios::binary).rdbuf();
  OutputFile card(path("README.md"));
  card.write(cllm_card(recipe_, files_.config, outcome, files_.name, target_card.str()));
  card.finish();
}

CllmOutcome CllmJob::run() {
  prepare_directory();
  read_stages();
  CllmOutcome outcome;
  std::string origin = collecting_part(recipe_) + "\n" + weights_hash(files_);
  if (requests_) {
    outcome.requests = requests_->shares();
    origin += "\n" + requests_->hash();
    notice(requests_->summary());
  }
  TrajectoryFile file(path("trajectories.bin"), origin);
  const bool collected = file.count_below(n_prompts_) == n_prompts_ || collect(file);
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
    const auto target = recipe_.chat ? loaded(files_) : nullptr;
    if (!measure_rest(*model, target.get(), stages_.after))
      return outcome;  // stopped; the checkpoint stays
    outcome.after = stages_.after;
    keep_probe_trajectory(outcome.training.step, *model);
  }
  write_result(outcome);
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
