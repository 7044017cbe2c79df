#include "ui/prepare/thought_tree.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/event/timeline/timeline.h"

namespace ui {
namespace {

using engine::SearchRecord;
using engine::ThoughtFate;
using engine::ThoughtRecord;
using Kind = ThoughtBox::Kind;

class Maker {
 public:
  explicit Maker(const SearchRecord& search) : search_(search) {
    for (std::size_t i = 0; i < search.thoughts.size(); ++i)
      children_[search.thoughts[i].made.parent].push_back(static_cast<int>(i));
    if (!answered()) return;
    chain_.push_back(0);
    for (const ThoughtRecord* thought : search.chain_to(search.ended->node))
      chain_.push_back(thought->made.node);
  }

  ThoughtLayout made() {
    std::size_t first = 0;  // index of the first box of the column
    layout_.boxes.push_back({.on_chain = answered()});
    for (int column = 1; first < layout_.boxes.size(); ++column) {
      const std::size_t end = layout_.boxes.size();
      for (std::size_t parent = first; parent < end; ++parent)
        add_below(static_cast<int>(parent), column);
      layout_.n_lines = std::max(layout_.n_lines, static_cast<int>(end - first));
      layout_.n_columns = column;
      first = end;
    }
    place();
    return std::move(layout_);
  }

 private:
  bool answered() const { return search_.ended && !search_.ended->stopped; }
  int node_of(const ThoughtBox& box) const {
    return box.thought < 0 ? 0 : search_.thoughts[static_cast<std::size_t>(box.thought)].made.node;
  }

  void add_below(int parent, int column) {
    const ThoughtBox above = layout_.boxes[static_cast<std::size_t>(parent)];
    if (above.kind == Kind::Answer) return;
    const int node = node_of(above);
    if (const auto found = children_.find(node); found != children_.end())
      for (const int child : found->second) {
        const ThoughtRecord& thought = search_.thoughts[static_cast<std::size_t>(child)];
        const Mean result = fate_of(thought);
        count(result);
        layout_.boxes.push_back(
            {.kind = Kind::Thought,
             .thought = child,
             .parent = parent,
             .column = column,
             .mean = result,
             .on_chain = std::ranges::binary_search(chain_, thought.made.node)});
      }
    if (answered() && search_.ended->node == node)
      layout_.boxes.push_back({.kind = Kind::Answer,
                               .parent = parent,
                               .column = column,
                               .mean = search_.ended->correct ? Mean::Accepted : Mean::Rejected,
                               .on_chain = true});
  }

  void count(Mean result) {
    layout_.n_kept += result == Mean::Accepted;
    layout_.n_pruned += result == Mean::Rejected;
    layout_.n_unreadable += result == Mean::Unused;
    layout_.n_open += result == Mean::Guess;
  }

  // Centres each column on its parents, within the height of the tallest column.
  void place() {
    const auto lines = static_cast<float>(layout_.n_lines);
    std::vector<ThoughtBox>& boxes = layout_.boxes;
    for (std::size_t first = 0; first < boxes.size();) {
      std::size_t end = first;
      float parents = 0;
      for (; end < boxes.size() && boxes[end].column == boxes[first].column; ++end)
        if (boxes[end].parent >= 0)
          parents += boxes[static_cast<std::size_t>(boxes[end].parent)].line;
      const auto n = static_cast<float>(end - first);
      const float centre = first == 0 ? (lines - 1) / 2 : parents / n;
      const float top = std::clamp(centre - (n - 1) / 2, 0.0f, lines - n);
      for (std::size_t i = first; i < end; ++i) boxes[i].line = top + static_cast<float>(i - first);
      first = end;
    }
  }

  const SearchRecord& search_;
  std::map<int, std::vector<int>>
      children_;            // indices of thoughts by parent node; 0 is the question
  std::vector<int> chain_;  // nodes on the chain to the answer, ascending
  ThoughtLayout layout_;
};

// Replaces every run of blanks and line feeds by one blank.
std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : engine::printable(text, engine::LineBreaks::Kept)) {
    const bool blank = c == '\n' || c == '\t' || c == ' ';
    if (!blank)
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

// Returns the index after the first line of a text with several lines, else after the first sentence.
std::size_t end_of_first_part(const std::string& text) {
  const std::size_t line = text.find('\n');
  if (line != std::string::npos) return line;
  for (std::size_t i = 0; i + 1 < text.size(); ++i)
    if ((text[i] == '?' || text[i] == '.' || text[i] == '!') && text[i + 1] == ' ') return i + 1;
  return text.size();
}

const char* result_words(Mean result) {
  if (result == Mean::Accepted) return "kept";
  if (result == Mean::Rejected) return "pruned";
  return result == Mean::Unused ? "unreadable" : "not valued yet";
}

std::string answer_facts(const engine::SearchEnded& ended) {
  std::string text = ended.answer.empty() ? "No answer." : ended.answer;
  text += ended.correct ? "\n\ncorrect" : "\n\nwrong";
  if (!ended.reason.empty()) text += ": " + ended.reason;
  return text;
}

std::string value_facts(const engine::ThoughtValued& valued) {
  std::string text = valued.read ? fmt::format("value {:.3g} of 10", valued.value)
                                 : "value 0: the reply contained none";
  if (!valued.text.empty()) text += fmt::format("\n\"{}\"", one_line(valued.text));
  return text;
}

std::string thought_facts(const ThoughtRecord& thought) {
  std::string text = thought.made.text.empty() ? "No text." : thought.made.text;
  text += fmt::format("\n\n{}", result_words(fate_of(thought)));
  if (thought.judged.size() > 1) text += fmt::format(", after {} levels", thought.judged.size());
  const bool complete =
      thought.judged.empty() ? thought.made.complete : thought.judged.back().complete;
  if (complete) text += "; its chain is complete";
  if (thought.valued) text += "\n" + value_facts(*thought.valued);
  if (!thought.judged.empty() && !thought.judged.back().text.empty())
    text += "\n\nContinuation:\n" + thought.judged.back().text;
  return text;
}

}  // namespace

Mean fate_of(const ThoughtRecord& thought) {
  if (thought.judged.empty()) return thought.made.readable ? Mean::Guess : Mean::Unused;
  const ThoughtFate fate = thought.judged.back().fate;
  if (fate == ThoughtFate::Kept) return Mean::Accepted;
  return fate == ThoughtFate::Pruned ? Mean::Rejected : Mean::Unused;
}

ThoughtLayout thought_layout(const SearchRecord& search) {
  return Maker(search).made();
}

std::vector<engine::RunId> runs_of(const SearchRecord& search, const ThoughtBox& box) {
  std::vector<engine::RunId> runs;
  const auto add = [&runs](engine::RunId run) {
    if (run != 0 && std::ranges::find(runs, run) == runs.end()) runs.push_back(run);
  };
  if (box.kind == Kind::Answer && search.ended) add(search.ended->by);
  if (box.kind != Kind::Thought) return runs;
  const ThoughtRecord& thought = search.thoughts[static_cast<std::size_t>(box.thought)];
  for (const engine::RunId run : thought.made.runs) add(run);
  if (thought.valued) add(thought.valued->by);
  for (const engine::ThoughtJudged& judged : thought.judged)
    for (const engine::RunId run : judged.runs) add(run);
  return runs;
}

engine::RunId run_after(std::span<const engine::RunId> runs, engine::RunId shown) {
  if (runs.empty()) return 0;
  const auto at = std::ranges::find(runs, shown);
  return at == runs.end() || at + 1 == runs.end() ? runs.front() : at[1];
}

int box_of(const ThoughtLayout& layout, const SearchRecord& search, engine::RunId run) {
  for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
    const auto runs = runs_of(search, layout.boxes[i]);
    if (std::ranges::find(runs, run) != runs.end()) return static_cast<int>(i);
  }
  return -1;
}

const SearchRecord* search_of(std::span<const SearchRecord> searches, engine::RunId run) {
  const auto wrote = [run](const std::vector<engine::RunId>& runs) {
    return std::ranges::find(runs, run) != runs.end();
  };
  const auto wrote_of = [&](const ThoughtRecord& thought) {
    return wrote(thought.made.runs) || (thought.valued && thought.valued->by == run) ||
           std::ranges::any_of(thought.judged, wrote, &engine::ThoughtJudged::runs);
  };
  if (run == 0) return nullptr;
  for (const SearchRecord& search : searches)
    if ((search.ended && search.ended->by == run) || std::ranges::any_of(search.thoughts, wrote_of))
      return &search;
  return nullptr;
}

BoxWords words_of(const SearchRecord& search, const ThoughtBox& box) {
  if (box.kind == Kind::Question) return {one_line(search.begun.question), ""};
  if (box.kind == Kind::Answer) {
    const std::string answer = one_line(search.ended->answer);
    const std::string why = one_line(search.ended->reason);
    return {answer.empty() ? "no answer" : answer, search.ended->correct ? "correct"
                                                   : why.empty()         ? "wrong"
                                                                         : "wrong: " + why};
  }
  const ThoughtRecord& thought = search.thoughts[static_cast<std::size_t>(box.thought)];
  const std::size_t end = end_of_first_part(thought.made.text);
  BoxWords words{one_line(thought.made.text.substr(0, end)),
                 one_line(thought.made.text.substr(end))};
  if (words.first.empty()) std::swap(words.first, words.second);
  if (words.first.empty()) words.first = "no text";
  if (words.second.empty() && !thought.judged.empty())
    words.second = one_line(thought.judged.back().text);
  return words;
}

std::string value_words(const ThoughtRecord& thought) {
  if (thought.valued)
    return thought.valued->read ? fmt::format("{:.3g}", thought.valued->value) : "?";
  return fate_of(thought) == Mean::Guess && !thought.made.complete ? "..." : "-";
}

std::string facts_of(const SearchRecord& search, const ThoughtBox& box) {
  std::string text = search.begun.question;
  if (box.kind == Kind::Answer) text = answer_facts(*search.ended);
  if (box.kind == Kind::Thought)
    text = thought_facts(search.thoughts[static_cast<std::size_t>(box.thought)]);
  text = engine::printable(text, engine::LineBreaks::Kept);
  const auto runs = runs_of(search, box);
  if (runs.empty()) return text;
  text += "\n\nwritten by ";
  for (std::size_t i = 0; i < runs.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? (runs.size() > 1 ? "runs " : "run ") : ", ", runs[i]);
  return text +
         (runs.size() > 1 ? "\nClick: show the first run, then the next" : "\nClick: show the run");
}

std::string search_words(const SearchRecord& search, const ThoughtLayout& layout) {
  int depth = 0;
  for (const ThoughtRecord& thought : search.thoughts) depth = std::max(depth, thought.made.depth);
  std::string text =
      fmt::format("{}: depth {} of {} \xC2\xB7 {}", search.begun.id, depth, search.begun.depth,
                  engine::counted(std::ssize(search.thoughts), "thought"));
  const char* before = ": ";
  for (const auto& [n, result] :
       {std::pair{layout.n_kept, Mean::Accepted}, std::pair{layout.n_pruned, Mean::Rejected},
        std::pair{layout.n_unreadable, Mean::Unused}, std::pair{layout.n_open, Mean::Guess}}) {
    if (n == 0) continue;
    text += fmt::format("{}{} {}", std::exchange(before, ", "), n, result_words(result));
  }
  return text;
}

std::string settings_words(const engine::SearchBegun& begun) {
  return fmt::format(
      "{} per node, the best {} of a level are continued; values by the model, 0 to 10",
      engine::counted(begun.n_thoughts, "thought"), begun.beam);
}

}  // namespace ui
