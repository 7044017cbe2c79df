#include "engine/train/cllm/trajectories.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <utility>

#include "engine/decode/guess/jacobi_block.h"
#include "engine/decode/guess/textbook_jacobi.h"
#include "engine/decode/verify/verify.h"

namespace engine {
namespace {

// An unfinished prompt: refines one block at a time until it is a fixed point.
struct CollectLane {
  Trajectory trajectory;
  Sequence sequence;
  BlockFiller filler;
  BlockPoints points;
  std::size_t n_final = 0;  // leading tokens of the block that are final and part of the sequence
  TokenTree tree;           // rows of the current forward pass
};

Limits limits_of(const LanguageModel& model, const CollectSettings& settings) {
  return {.max_tokens = settings.max_new_tokens,
          .max_seq_len = model.max_seq_len(),
          .eos_ids = settings.eos_ids};
}

class Collection {
 public:
  Collection(LanguageModel& model, const CollectSettings& settings)
      : model_(model), settings_(settings), limits_(limits_of(model, settings)) {}

  std::size_t n_lanes() const { return lanes_.size(); }
  void add(TrajectoryPrompt prompt) {
    auto lane = std::make_unique<CollectLane>(CollectLane{
        .trajectory = {.index = prompt.index,
                       .part = std::move(prompt.part),
                       .prompt = prompt.tokens,
                       .truth = std::move(prompt.truth)},
        .sequence = Sequence(std::move(prompt.tokens), model_.make_cache()),
        .filler = BlockFiller(
            BlockFiller::Fill::Prompt,
            fnv1a(std::to_string(settings_.seed) + "/" + std::to_string(prompt.index)))});
    prefill(model_, lane->sequence);
    open_block(*lane);
    lanes_.push_back(std::move(lane));
  }
  /// Makes one Jacobi iteration of every lane in one forward pass, and passes finished answers to
  /// done.
  void iterate(const std::function<void(Trajectory)>& done);

 private:
  void open_block(CollectLane& lane) const {
    lane.points.assign(1, {});
    lane.n_final = 0;
    if (!settings_.keep_points) return;
    const int size =
        std::min(settings_.block, room_left(lane.sequence, limits_, model_.max_seq_len()));
    const int first = static_cast<int>(lane.sequence.tokens().size());
    for (int i = 0; i < size; i++)
      lane.points.front().push_back(lane.filler(lane.sequence, first + i));
  }
  void advance(CollectLane& lane, const StepOutput& out) const;

  LanguageModel& model_;
  const CollectSettings& settings_;
  Limits limits_;
  std::vector<std::unique_ptr<CollectLane>> lanes_;
};

// Appends the block's new state unless it equals the last one, and commits the tokens that became final. A block ends
// when all of its tokens are final, or when the answer ends in it.
void Collection::advance(CollectLane& lane, const StepOutput& out) const {
  Decision decision = verify_exact_match(lane.tree, out);
  if (settings_.keep_points) {
    std::vector<TokenId> refined = lane.points.back();
    std::ranges::copy(picks_of(out), refined.begin() + static_cast<std::ptrdiff_t>(lane.n_final));
    if (refined != lane.points.back()) lane.points.push_back(std::move(refined));
  }
  lane.n_final += decision.emitted.size();
  const StopReason stop = cut(decision, lane.sequence, limits_);
  lane.sequence.commit(decision, stop);
  const bool ends = stop != StopReason::None || lane.n_final >= lane.points.front().size();
  if (ends && settings_.keep_points) lane.trajectory.blocks.push_back(std::move(lane.points));
  if (ends && stop == StopReason::None) open_block(lane);
}

void Collection::iterate(const std::function<void(Trajectory)>& done) {
  std::vector<BatchItem> items;
  for (const auto& lane : lanes_) {
    const std::span<const TokenId> state = lane->points.back();
    lane->tree = block_rows(lane->sequence.last(), state.subspan(lane->n_final));
    BatchItem item;
    item.cache = &lane->sequence.cache();
    item.tree = &lane->tree;
    item.prefix = lane->sequence.cached_tokens();
    items.push_back(item);
  }
  const std::vector<StepOutput> out = model_.forward(items, Wants{});
  for (std::size_t i = 0; i < lanes_.size(); i++) advance(*lanes_[i], out[i]);
  for (const auto& lane : lanes_) {
    if (!lane->sequence.finished()) continue;
    const auto output = lane->sequence.generated();
    lane->trajectory.output.assign(output.begin(), output.end());
    lane->trajectory.ended = lane->sequence.stop_reason() == StopReason::Eos;
    done(std::move(lane->trajectory));
  }
  std::erase_if(lanes_, [](const auto& lane) { return lane->sequence.finished(); });
}

}  // namespace

int collect_trajectories(LanguageModel& model,
                         const CollectSettings& settings,
                         const std::function<bool(TrajectoryPrompt&)>& next,
                         const std::function<void(Trajectory)>& done,
                         const std::function<bool()>& stop) {
  ensure(settings.block > 0 && settings.max_new_tokens > 0 && settings.n_lanes > 0,
         "block, max_new_tokens and n_lanes must be at least 1");
  Collection collection(model, settings);
  int n_passed = 0;
  bool more = true;
  for (;;) {
    while (more && static_cast<int>(collection.n_lanes()) < settings.n_lanes) {
      if (stop && stop()) return n_passed;
      TrajectoryPrompt prompt;
      more = next(prompt);
      if (!more) break;
      const bool fits =
          !prompt.tokens.empty() && static_cast<int>(prompt.tokens.size()) < model.max_seq_len();
      fits ? collection.add(std::move(prompt)) : void(n_passed++);
    }
    if (collection.n_lanes() == 0 || (stop && stop())) return n_passed;
    collection.iterate(done);
  }
}

bool repeats_a_token(std::span<const TokenId> tokens, int n, std::span<const TokenId> eos_ids) {
  int run = 0;
  for (std::size_t i = 0; i < tokens.size(); i++) {
    if (std::ranges::find(eos_ids, tokens[i]) != eos_ids.end()) return false;
    run = i > 0 && tokens[i] == tokens[i - 1] ? run + 1 : 1;
    if (run >= n) return true;
  }
  return false;
}

bool repeats_a_sentence(std::string_view text, int n) {
  const auto is_end = [&](std::size_t i) {
    const char c = text[i];
    if (c == '\n') return true;
    return (c == '.' || c == '!' || c == '?') && (i + 1 == text.size() || text[i + 1] == ' ');
  };
  const auto n_words = [](std::string_view sentence) {
    int words = 0;
    bool inside = false;
    for (const char c : sentence) {
      const bool is_space = std::isspace(static_cast<unsigned char>(c)) != 0;
      if (!is_space && !inside) words++;
      inside = !is_space;
    }
    return words;
  };
  std::string_view before;
  int run = 0;
  for (std::size_t begin = 0, i = 0; i <= text.size(); i++) {
    if (i < text.size() && !is_end(i)) continue;
    std::string_view sentence = text.substr(begin, i - begin);
    while (sentence.starts_with(' ')) sentence.remove_prefix(1);
    begin = i + 1;
    if (sentence.empty()) continue;
    run = sentence == before ? run + 1 : 1;
    before = sentence;
    if (run >= n && n_words(sentence) >= 3) return true;
  }
  return false;
}

int augment(BlockPoints& points, Random& rng) {
  int n_changed = 0;
  const std::vector<TokenId>& fixed_point = points.back();
  for (std::size_t t = 0; t + 2 < points.size(); t++) {
    std::vector<TokenId>& point = points[t];
    std::vector<std::size_t> wrong;
    for (std::size_t i = 0; i < point.size(); i++) {
      if (point[i] != fixed_point[i]) wrong.push_back(i);
    }
    if (wrong.size() < 2) continue;
    for (std::size_t draw = 0; draw < wrong.size() / 2; draw++) {
      const std::size_t at =
          wrong[1 + static_cast<std::size_t>(rng.below(static_cast<int>(wrong.size()) - 1))];
      n_changed += point[at] != fixed_point[at];
      point[at] = fixed_point[at];
    }
  }
  return n_changed;
}

int n_correct_prefix(std::span<const TokenId> point, std::span<const TokenId> fixed_point) {
  return static_cast<int>(std::ranges::mismatch(point, fixed_point).in1 - point.begin());
}

}  // namespace engine
