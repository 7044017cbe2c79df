#include "engine/reason/reasoner.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/data/text.h"
#include "engine/decode/verify/sampling_mode.h"
#include "engine/event/clock.h"
#include "engine/base/text.h"
#include "engine/base/input_file.h"
#include "engine/reason/cot.h"
#include "engine/reason/tot.h"

namespace engine {
namespace {

class Asked {
 public:
  Asked(const StartReasoning& command,
        const ReasoningSite& site,
        const std::string& assets_dir,
        const std::string& data_dir)
      : command_(command), site_(site), assets_dir_(assets_dir), data_dir_(data_dir) {}

  void chains() {
    const auto questions = chain_questions();
    require_some(questions.size());
    task_ = questions.front().record.task;
    const CotSettings settings = chain_settings();
    SchedulerWatch watch = site_.watch;
    watch.ended = [this](int done, int n) {
      // One more than there are texts: the end is told with what came of them.
      site_.tell(done, n + 1, fmt::format("chain of thought: {} of {} texts", done, n));
    };
    watch.ended(0, 2 * static_cast<int>(questions.size()));
    const CotReport report = answer(site_.scheduler, site_.target, questions, settings, watch);
    for (const CotItem& item : report.items)
      told(item.id, item.correct, item.answer,
           (item.approximate.empty() ? "" : ", asked for behind approximate tokens") +
               (item.correct ? "" : fmt::format(", expected \"{}\"", item.expected)));
    conclude("Chain of thought", "rationales and answers", questions.size(), report.items.size(),
             report.n_correct());
  }

  void trees() {
    const auto questions = tree_questions();
    require_some(questions.size());
    task_ = questions.front().task;
    const TotSettings settings = tree_settings(tot_task_info(task_));
    const auto tell = [&](const TotProgress& at) {
      site_.tell(at.question * settings.depth + at.depth - 1, at.n_questions * settings.depth,
                 fmt::format("question {} of {}, level {} of {}, {} {} of {}", at.question + 1,
                             at.n_questions, at.depth, settings.depth, at.use, at.done, at.n));
    };
    const TotReport report = search(site_.scheduler, site_.target, questions, settings, site_.watch,
                                    tell, site_.first_search);
    for (const TotItem& item : report.items)
      told(item.id, item.correct, item.answer, item.correct ? "" : ", " + item.reason);
    conclude("Tree of thoughts", "thoughts, scores and answers", questions.size(),
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
  /// As many as are asked for.
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

  /// Of the task's questions.
  std::string folder() const {
    if (is_generated(command_.task) || !data_dir_.empty()) return data_dir_;
    throw Error(ErrorCode::Usage,
                command_.task +
                    " is an open set, and $DECOSCOPE_DATA does not say in which folder the sets "
                    "are; generated tasks need none");
  }

  void require_some(std::size_t n_questions) const {
    if (n_questions > 0) return;
    throw Error(ErrorCode::BadInput,
                fmt::format("{}: found no question from number {} on, expected {}; begin earlier, "
                            "or ask for another level",
                            command_.data.empty() ? command_.task : command_.data, command_.start,
                            command_.count));
  }

  CotSettings chain_settings() const {
    refuse_pipe(command_.prompts);  // a pipe would block the engine thread
    CotSettings settings;
    settings.decoder = command_.decoder.decoder;
    settings.options = command_.decoder.options;
    settings.sampling.repetition_penalty = command_.repetition_penalty;
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

  /// @param more  what to know of it: what it rests on, why it is not right
  void told(const std::string& id,
            bool correct,
            const std::string& answer,
            const std::string& more) const {
    notice(fmt::format("{}: {}: \"{}\"{}", id, correct ? "right" : "wrong",
                       quoted_for_message(trimmed(answer)), more));
  }

  /// @param texts  what the runs wrote
  void conclude(const char* what,
                const char* texts,
                std::size_t n_asked,
                std::size_t n_done,
                int n_correct) const {
    const auto figures = site_.scheduler.figures();
    const auto figure = [&](const char* name) {
      const auto found = figures.find(name);
      return found == figures.end() ? 0.0 : found->second;
    };
    const std::string how_far =
        n_done < n_asked ? fmt::format("stopped with {} of {} questions done", n_done, n_asked)
                         : fmt::format("{} of {} right", n_correct, n_done);
    const std::string words =
        fmt::format("{}, {} by {}: {}; {:.0f} texts ({}), {:.0f} tokens in {:.1f} s.", what, task_,
                    command_.decoder.decoder, how_far, figure("runs"), texts, figure("tokens"),
                    figure("wall_ms") * 1e-3);
    notice(words);
    site_.tell(1, 1, words);
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
    Asked asked(command, site, assets_dir, data_dir);
    if (command.what == StartReasoning::What::Chain)
      asked.chains();
    else
      asked.trees();
  };
}

}  // namespace engine
