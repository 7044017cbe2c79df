#include "ui/prepare/sets/run_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/command.h"
#include "engine/event/timeline/timeline.h"
#include "ui/prepare/option_labels.h"
#include "ui/prepare/recorded_setup.h"
#include "ui/prepare/status.h"

namespace ui {
namespace {

using engine::RunRecord;
using Kind = RunEntry::Kind;

bool same_set(const RunRecord& a, const RunRecord& b) {
  return a.started.place.set != 0 && a.started.place.set == b.started.place.set;
}

bool same_prompt(const RunRecord& a, const RunRecord& b) {
  return same_set(a, b) ? a.started.place.prompt == b.started.place.prompt
                        : a.started.race != 0 && a.started.race == b.started.race;
}

bool same_repeat(const RunRecord& a, const RunRecord& b) {
  return same_prompt(a, b) && a.started.place.repeat == b.started.place.repeat;
}

// Returns the runs in the order of the entries: those of a set by prompt, repeat and lane. Lanes that
// decode several prompts at once start their runs in another order.
std::vector<const RunRecord*> in_order(std::span<const RunRecord> runs) {
  struct Keyed {
    std::size_t set;  // the position of the set's first run
    int prompt, repeat, lane;
    const RunRecord* run;
  };
  std::map<std::uint32_t, std::size_t> first_of_set;
  std::vector<Keyed> all;
  for (std::size_t i = 0; i < runs.size(); i++) {
    const engine::PlaceInSet& place = runs[i].started.place;
    const std::size_t set =
        place.set == 0 ? i : first_of_set.try_emplace(place.set, i).first->second;
    all.push_back({set, place.prompt, place.repeat, runs[i].started.lane, &runs[i]});
  }
  std::ranges::stable_sort(all, {}, [](const Keyed& one) {
    return std::tuple(one.set, one.prompt, one.repeat, one.lane);
  });
  std::vector<const RunRecord*> ordered;
  for (const Keyed& one : all) ordered.push_back(one.run);
  return ordered;
}

// Makes the entries.
class Entries {
 public:
  explicit Entries(std::span<const RunRecord> runs) : runs_(in_order(runs)) {}

  std::vector<RunEntry> take() {
    while (at_ < runs_.size()) add_together();
    return std::move(entries_);
  }

 private:
  const RunRecord& run() const { return *runs_[at_]; }
  // Adds a heading, then what `add_below` adds while `belongs` holds for the next run and the first.
  template <class Belongs, class AddBelow>
  void add_heading(Kind kind, int depth, Belongs belongs, AddBelow add_below) {
    const std::size_t place = entries_.size(), first = at_;
    entries_.push_back({.kind = kind, .depth = depth, .run = run().id()});
    while (at_ < runs_.size() && belongs(*runs_[first], run())) add_below();
    entries_[place].end = entries_.size();
    entries_[place].n_runs = at_ - first;
  }
  void add_run(int depth) {
    entries_.push_back({.depth = depth, .run = run().id(), .end = entries_.size() + 1});
    ++at_;
  }
  void add_prompt(int depth) {
    const engine::RunStarted& s = run().started;
    if (s.race == 0 && s.place.set == 0) return add_run(depth);
    add_heading(Kind::Race, depth, same_prompt, [&] {
      if (s.place.n_repeats == 1 || s.race == 0) return add_run(depth + 1);
      add_heading(Kind::Repeat, depth + 1, same_repeat, [&] { add_run(depth + 2); });
    });
  }
  void add_together() {
    if (run().started.place.set == 0 || run().started.place.n_prompts == 1) return add_prompt(0);
    add_heading(Kind::Prompts, 0, same_set, [&] { add_prompt(1); });
  }

  std::vector<const RunRecord*> runs_;
  std::size_t at_ = 0;
  std::vector<RunEntry> entries_;
};

// Returns the id of the prompt, or its first line.
std::string prompt_words(const engine::RunStarted& s) {
  if (!s.prompt_id.empty()) return s.prompt_id;
  return engine::printable(s.prompt.substr(0, s.prompt.find('\n')));
}

// Returns the names of the models of the first race below a heading, each once.
std::string model_words(const engine::Timeline& timeline, std::span<const RunEntry> below) {
  std::string text;
  std::set<std::string> known;
  std::size_t n_lanes = 0;
  for (const RunEntry& entry : below) {
    if (entry.kind != Kind::Run) continue;
    if (++n_lanes > engine::kMaxLanes) break;
    const RunRecord* run = timeline.run(entry.run);
    const engine::ModelLoaded* model = run ? timeline.model(run->started.model) : nullptr;
    if (!model || !known.insert(model->name).second) continue;
    text += (text.empty() ? "" : ", ") + model->name;
  }
  return text;
}

}  // namespace

std::vector<RunEntry> run_entries(std::span<const RunRecord> runs) {
  return Entries(runs).take();
}

std::span<const RunEntry> below(std::span<const RunEntry> entries, std::size_t heading) {
  return entries.subspan(heading + 1, entries[heading].end - heading - 1);
}

std::string heading_of(const engine::Timeline& timeline,
                       std::span<const RunEntry> entries,
                       std::size_t heading) {
  const RunEntry& entry = entries[heading];
  const RunRecord* first = timeline.run(entry.run);
  if (!first) return "";
  const engine::RunStarted& s = first->started;
  constexpr const char* kDot = " \xC2\xB7 ";
  if (entry.kind == Kind::Repeat)
    return fmt::format("repeat {} of {}", s.place.repeat + 1, s.place.n_repeats);
  if (entry.kind == Kind::Prompts)
    return model_words(timeline, below(entries, heading)) + kDot +
           engine::counted(s.place.n_prompts, "prompt");
  std::string text = prompt_words(s);
  if (entry.depth == 0)
    text = model_words(timeline, below(entries, heading)) + kDot + text;
  else if (!s.place.task.empty())
    text += kDot + s.place.task;
  if (s.place.n_repeats > 1) text += kDot + engine::counted(s.place.n_repeats, "repeat");
  return text;
}

std::string differing_settings(const engine::Timeline& timeline,
                               const Catalog& catalog,
                               const RunRecord& lane,
                               const std::vector<const RunRecord*>& lanes) {
  const engine::RunStarted& s = lane.started;
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const auto& [name, value] : s.options) {
    const auto differs = [&](const RunRecord* other) {
      const auto its = other->started.options.find(name);
      return other->started.decoder == s.decoder &&
             (its == other->started.options.end() || its->second != value);
    };
    if (std::ranges::any_of(lanes, differs))
      add(option_label(s.decoder, name) + " " + value_words(catalog, s.decoder, name, value));
  }
  const auto other_model = [&](const RunRecord* other) { return other->started.model != s.model; };
  if (const engine::ModelLoaded* model = timeline.model(s.model);
      model && std::ranges::any_of(lanes, other_model))
    add(model->name);
  const auto other_draft = [&](const RunRecord* other) {
    return other->started.draft != 0 && other->started.draft != s.draft;
  };
  if (const engine::ModelLoaded* draft = timeline.model(s.draft);
      draft && std::ranges::any_of(lanes, other_draft))
    add("drafts by " + draft->name);
  return text;
}

}  // namespace ui
