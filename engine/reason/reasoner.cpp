#include "engine/reason/reasoner.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/base/input_file.h"
#include "engine/base/text.h"
#include "engine/data/text.h"
#include "engine/decode/registry.h"
#include "engine/decode/verify/sampling_mode.h"
#include "engine/event/clock.h"
#include "engine/reason/cot.h"
#include "engine/reason/tot.h"

namespace engine {
namespace {

/// One command of the window.
class ReasoningRun {
 public:
  ReasoningRun(const StartReasoning& command,
               const ReasoningSite& site,
               const std::string& assets_dir,
               const std::string& data_dir)
      : command_(command), site_(site), assets_dir_(assets_dir), data_dir_(data_dir) {}

  void chain_of_thought() {
    const auto questions = chain_questions();
    require_some(questions.size());
    task_ = questions.front().record.task;
    const CotSettings settings = chain_settings();
    SchedulerWatch watch = site_.watch;
    watch.ended = [this](int done, int n) {
      // The total is n + 1: the texts, and one more part that report_end() reports with the result.
      site_.report(done, n + 1, fmt::format("chain of thought: {} of {} texts", done, n));
    };
    watch.ended(0, 2 * static_cast<int>(questions.size()));
    const CotReport report = answer(site_.scheduler, site_.target, questions, settings, watch);
    for (const CotItem& item : report.items)
      report_item(item.id, item.correct, item.answer,
                  (item.approximate.empty() ? "" : ", written after approximate tokens") +
                      (item.correct ? "" : fmt::format(", expected \"{}\"", item.expected)));
    report_end("Chain of thought", "rationales and answers", questions.size(), report.items.size(),
               report.n_correct());
  }

  void tree_of_thoughts() {
    const auto questions = tree_questions();
    require_some(questions.size());
    task_ = questions.front().task;
    const TotSettings settings = tree_settings(tot_task_info(task_));
    const auto on_progress = [&](const TotProgress& at) {
      site_.report(at.question * settings.depth + at.depth - 1, at.n_questions * settings.depth,
                   fmt::format("question {} of {}, level {} of {}, {} {} of {}", at.question + 1,
                               at.n_questions, at.depth, settings.depth, at.use, at.done, at.n));
    };
    const TotReport report = search(site_.scheduler, site_.target, questions, settings, site_.watch,
                                    on_progress, site_.first_search);
    for (const TotItem& item : report.items)
      report_item(item.id, item.correct, item.answer, item.correct ? "" : ", " + item.reason);
    report_end("Tree of thoughts", "thoughts, scores and answers", questions.size(),
               report.items.size(), report.n_correct());
  }

 private:
  std::vector<Question> chain_questions() const {
    if (!command_.data.empty()) return first(cot_questions_of(records()));
    check_task(command_.task, cot_task_names());
    return cot_questions(command_.task, range(1), folder());
  }
  std::vector<Record> tree_questions() const {
    if (!command_.data.empty()) return first(tot_questions_of(records(), command_.n_actions));
    const TotTaskInfo& info = tot_task_info(command_.task);
    return tot_questions(command_.task, range(info.level), command_.n_actions, folder());
  }
  std::vector<Record> records() const {
    refuse_pipe(command_.data);
    return records_from(command_.data, command_.start);
  }
  /// The first command_.count items, or all if the list is shorter.
  template <class Q>
  std::vector<Q> first(std::vector<Q> all) const {
    if (std::ssize(all) > command_.count) all.resize(static_cast<std::size_t>(command_.count));
    return all;
  }

  QuestionRange range(int own_level) const {
    return {.level = command_.level > 0 ? command_.level : own_level,
            .start = command_.start,
            .count = command_.count};
  }

  /// The folder of the open data sets. @throws Error(Usage)  if the task needs it and there is none
  std::string folder() const {
    if (is_generated(command_.task) || !data_dir_.empty()) return data_dir_;
    throw Error(
        ErrorCode::Usage,
        command_.task +
            " is an open data set, and $DECOSCOPE_DATA does not name the folder of the data "
            "sets; set it, or choose a generated task");
  }

  void require_some(std::size_t n_questions) const {
    if (n_questions > 0) return;
    throw Error(
        ErrorCode::BadInput,
        fmt::format("{}: found no question from number {} on, expected {}; choose a smaller "
                    "start or another level",
                    command_.data.empty() ? command_.task : command_.data, command_.start,
                    command_.count));
  }

  CotSettings chain_settings() const {
    refuse_pipe(command_.prompts);  // refuses a pipe, which would block the engine thread
    CotSettings settings;
    settings.decoder = command_.decoder.decoder;
    settings.options = command_.decoder.options;
    const auto of_preset = parse_options(settings.decoder, settings.options)->preset_penalty();
    settings.sampling.repetition_penalty =
        command_.repetition_penalty == 1 ? of_preset.value_or(1.0f) : command_.repetition_penalty;
    settings.max_tokens = command_.max_tokens;
    settings.keep_approximate = !command_.drop_approximate;
    settings.n_shots = command_.n_shots;
    settings.exemplars = command_.prompts.empty() ? exemplars_of(assets_dir_, task_)
                                                  : read_exemplars(command_.prompts);
    return settings;
  }

  TotSettings tree_settings(const TotTaskInfo& info) const {
    refuse_pipe(command_.prompts);
    TotSettings settings;
    settings.decoder = command_.decoder.decoder;
    settings.options = command_.decoder.options;
    settings.thoughts.temperature = command_.temperature;
    settings.thoughts.seed = command_.seed;
    settings.thoughts.mode = sampling_mode(command_.sampling);
    const DecoderInfo& decoder = decoder_named(settings.decoder);
    if (const auto why = refusal(decoder, settings.thoughts, settings.options))
      throw Error(ErrorCode::Usage, *why);
    settings.value_temperature = command_.value_temperature;
    settings.depth = command_.depth > 0 ? command_.depth : info.depth;
    settings.n_thoughts = command_.n_thoughts;
    settings.beam = command_.beam;
    settings.prompts = read_tot_prompts(
        command_.prompts.empty() ? tot_prompts_file(assets_dir_, info) : command_.prompts);
    return settings;
  }

  void notice(std::string text) const {
    site_.watch.events->push(Notice{now_ns(), Notice::Level::Info, std::move(text)});
  }

  /// @param more  further facts: approximate tokens before the answer, why the answer is wrong
  void report_item(const std::string& id,
                   bool correct,
                   const std::string& answer,
                   const std::string& more) const {
    notice(fmt::format("{}: {}: \"{}\"{}", id, correct ? "right" : "wrong",
                       escaped(trimmed(answer)), more));
  }

  /// @param texts  the kinds of texts that the runs wrote
  void report_end(const char* what,
                  const char* texts,
                  std::size_t n_questions,
                  std::size_t n_done,
                  int n_correct) const {
    const auto figures = site_.scheduler.figures();
    const auto figure = [&](const char* name) {
      const auto found = figures.find(name);
      return found == figures.end() ? 0.0 : found->second;
    };
    const std::string how_far =
        n_done < n_questions
            ? fmt::format("stopped with {} of {} questions done", n_done, n_questions)
            : fmt::format("{} of {} right", n_correct, n_done);
    const std::string words =
        fmt::format("{}, {} by {}: {}; {:.0f} texts ({}), {:.0f} tokens in {:.1f} s.", what, task_,
                    command_.decoder.decoder, how_far, figure("runs"), texts, figure("tokens"),
                    figure("wall_ms") * 1e-3);
    notice(words);
    site_.report(1, 1, words);
  }

  const StartReasoning& command_;
  const ReasoningSite& site_;
  const std::string& assets_dir_;
  const std::string& data_dir_;
  std::string task_;  // of the questions
};

}  // namespace

Reasoner reasoner(std::string assets_dir, std::string data_dir) {
  return [assets_dir = std::move(assets_dir), data_dir = std::move(data_dir)](
             const StartReasoning& command, const ReasoningSite& site) {
    ReasoningRun run(command, site, assets_dir, data_dir);
    if (command.what == StartReasoning::What::Chain)
      run.chain_of_thought();
    else
      run.tree_of_thoughts();
  };
}

}  // namespace engine
