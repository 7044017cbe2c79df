#include "engine/event/timeline/timeline.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/base/utf8.h"

namespace engine {
namespace {

constexpr const char* kBaselineDecoder = "ar";

bool same_model(const ModelLoaded& a, const ModelLoaded& b) {
  return a.name == b.name && a.dtype == b.dtype && a.cache_type == b.cache_type &&
         a.device == b.device && a.ops == b.ops && a.scale == b.scale && a.n_params == b.n_params &&
         a.n_threads == b.n_threads && a.weights_hash == b.weights_hash;
}

bool same_settings(const RunStarted& a, const RunStarted& b) {
  return a.prompt_tokens == b.prompt_tokens && a.prompt == b.prompt &&
         a.temperature == b.temperature && a.top_p == b.top_p && a.min_p == b.min_p &&
         a.repetition_penalty == b.repetition_penalty && a.top_k == b.top_k && a.seed == b.seed &&
         a.sampling == b.sampling && a.max_tokens == b.max_tokens && a.ignore_eos == b.ignore_eos &&
         a.stop_texts == b.stop_texts && a.stop_ids == b.stop_ids;
}

/// True if the run reached its own end: not stopped by the user or a bound, not failed.
bool ran_through(const RunRecord& run) {
  if (!run.finished || run.failed) return false;
  const std::string& reason = run.finished->stop_reason;
  return reason != "stopped" && reason != "bound" && reason != "probe" && reason != "text";
}

/// The mean share of processor time that this program got during a run; -1 if a GPU computed, or if
/// the samples cover less than 0.3 s.
double processor_share(const Timeline& timeline, const RunRecord& run) {
  constexpr double kLeastNs = 0.3e9;
  double busy = 0, all = 0;
  for (const Sampled& sample : timeline.samples()) {
    const bool inside = sample.t - sample.period >= run.started.t && sample.t <= run.last_event;
    if (!inside || of_gpu(sample) || sample.busy_percent < 0) continue;
    busy += sample.busy_percent / 100 * static_cast<double>(sample.period);
    all += static_cast<double>(sample.period);
  }
  return all >= kLeastNs ? busy / all : -1;
}

/// Why a run must not be compared with its baseline: the two got different shares of the processor.
/// Empty if it may be.
std::string other_load(const Timeline& timeline, const RunRecord& run, const RunRecord& baseline) {
  constexpr double kLeastRatio = 0.75;
  // Lanes of one race alternate.
  const bool same_race = run.started.race != 0 && run.started.race == baseline.started.race;
  if (&baseline == &run || same_race) return "";
  const double own = processor_share(timeline, run), of = processor_share(timeline, baseline);
  if (own < 0 || of < 0 || std::min(own, of) >= kLeastRatio * std::max(own, of)) return "";
  return fmt::format(
      "Run {} used {:.0f} % of the processor, this run {:.0f} %: the machine may have been loaded "
      "differently. Run plain decoding again.",
      baseline.id(), 100 * of, 100 * own);
}

double ratio(double over, double under) {
  return under > 0 ? over / under : 0;
}

std::size_t memory_of(const SearchRecord& search) {
  std::size_t n = search.begun.question.capacity();
  for (const ThoughtRecord& thought : search.thoughts) {
    n += sizeof thought + thought.made.text.capacity();
    if (thought.valued) n += thought.valued->text.capacity();
    for (const ThoughtJudged& judged : thought.judged) n += sizeof judged + judged.text.capacity();
  }
  return n + sizeof search;
}

int as_count(std::int64_t n) {
  return static_cast<int>(std::min<std::int64_t>(n, std::numeric_limits<int>::max()));
}

}  // namespace

bool of_gpu(const Sampled& sample) {
  return sample.device.starts_with("cuda:") && sample.device != "cuda:emulated";
}

Nanoseconds RunRecord::decode_compute() const {
  return totals.compute;
}

double RunRecord::tokens_per_second() const {
  return ratio(static_cast<double>(totals.n_tokens), static_cast<double>(totals.compute) * 1e-9);
}

double RunRecord::tokens_per_step() const {
  return ratio(static_cast<double>(totals.n_tokens), static_cast<double>(totals.n_steps));
}

int RunRecord::n_proposed() const {
  return as_count(totals.n_proposed);
}

int RunRecord::n_accepted() const {
  return as_count(totals.n_accepted);
}

int RunRecord::n_rejected() const {
  return as_count(totals.n_rejected);
}

int RunRecord::n_unused() const {
  return as_count(totals.n_unused);
}

double RunRecord::acceptance_rate() const {
  return ratio(static_cast<double>(totals.n_accepted), static_cast<double>(totals.n_proposed));
}

std::int64_t RunRecord::n_rows() const {
  return totals.n_rows;
}

const PayloadDropped* RunRecord::dropped_at(PayloadKind kind, StepId step) const {
  const auto found = std::ranges::find_if(dropped, [&](const PayloadDropped& drop) {
    return drop.kind == engine::name_of(kind) && drop.first_step <= step && step <= drop.last_step;
  });
  return found == dropped.end() ? nullptr : &*found;
}

const ThoughtRecord* SearchRecord::thought(int node) const {
  const auto found = std::ranges::lower_bound(
      thoughts, node, {}, [](const ThoughtRecord& thought) { return thought.made.node; });
  return found == thoughts.end() || found->made.node != node ? nullptr : &*found;
}

std::vector<const ThoughtRecord*> SearchRecord::chain_to(int node) const {
  std::vector<const ThoughtRecord*> chain;
  for (const ThoughtRecord* at = thought(node); at; at = thought(at->made.parent))
    chain.push_back(at);
  std::ranges::reverse(chain);
  return chain;
}

const RunRecord* Timeline::run(RunId id) const {
  const auto found = run_index_.find(id);
  return found == run_index_.end() ? nullptr : &runs_[found->second];
}

const ModelLoaded* Timeline::model(std::uint32_t id) const {
  const auto found = models_.find(id);
  return found == models_.end() ? nullptr : &found->second;
}

std::size_t Timeline::bytes() const {
  const auto of = [](const auto& xs) { return xs.capacity() * sizeof xs[0]; };
  std::size_t n = sizeof *this + of(runs_) + of(samples_) + of(notices_) + of(phases_) + of(holds_);
  for (const RunRecord& run : runs_) {
    n += run.steps.bytes() + of(run.tokens) + of(run.phases) + of(run.dropped) + of(run.queueing);
    n += run.started.prompt.capacity() + of(run.started.prompt_tokens) + of(run.early_blocks);
  }
  for (const auto& [id, model] : models_) {
    n += sizeof model + of(model.pieces);
    for (const std::string& piece : model.pieces) n += piece.capacity();
  }
  for (const Sampled& sample : samples_) {
    n += of(sample.thread_busy_percent) + sample.reason.capacity();
    for (const auto& [field, why] : sample.absent)
      n += sizeof field + field.capacity() + sizeof why + why.capacity();
  }
  for (const Notice& notice : notices_) n += notice.text.capacity();
  for (const SearchRecord& search : searches_) n += memory_of(search);
  return n;
}

std::vector<const RunRecord*> Timeline::race(std::uint32_t id) const {
  std::vector<const RunRecord*> lanes;
  for (const RunRecord& run : runs_) {
    if (id != 0 && run.started.race == id) lanes.push_back(&run);
  }
  std::ranges::stable_sort(lanes, {}, [](const RunRecord* run) { return run->started.lane; });
  return lanes;
}

std::string Timeline::bytes_of(const RunRecord& run, std::span<const TokenId> ids) const {
  const ModelLoaded* loaded = model(run.started.model);
  std::string bytes;
  for (const TokenId id : ids) {
    const bool known = loaded && id >= 0 && id < std::ssize(loaded->pieces);
    bytes += known ? loaded->pieces[static_cast<std::size_t>(id)] : fmt::format("<token {}>", id);
  }
  return bytes;
}

bool Timeline::drops_space_of(const RunRecord& run, std::size_t index) const {
  const ModelLoaded* loaded = model(run.started.model);
  const auto bytes = [&](TokenId id) { return bytes_of(run, {&id, 1}); };
  if (!loaded || !loaded->drops_first_space || !bytes(run.tokens[index].id).starts_with(' '))
    return false;
  const auto gives_none = [&](TokenId id) { return bytes(id).empty(); };
  const auto before = std::span(run.tokens).first(index);
  return std::ranges::all_of(run.started.prompt_tokens, gives_none) &&
         std::ranges::all_of(before, gives_none, &TokenRecord::id);
}

std::string Timeline::generated_bytes(const RunRecord& run, std::size_t index) const {
  std::string bytes = bytes_of(run, {&run.tokens[index].id, 1});
  if (drops_space_of(run, index)) bytes.erase(0, 1);
  return bytes;
}

std::string Timeline::generated_text(const RunRecord& run, std::size_t first, std::size_t n) const {
  // Number of earlier tokens to decode. A character has at most four bytes, so these suffice.
  constexpr std::size_t kBefore = 16;
  const auto keep_open = [](std::string& bytes) {
    bytes.erase(0, bytes.size() - open_bytes_at_end(bytes));
  };
  const std::span<const TokenId> prompt = run.started.prompt_tokens;
  std::string text = bytes_of(run, prompt.last(std::min(prompt.size(), kBefore)));
  keep_open(text);
  std::size_t n_of_prompt = text.size();  // bytes of a character that the prompt begins
  for (std::size_t i = first - std::min(first, kBefore); i < first; ++i) {
    text += generated_bytes(run, i);
    if (open_bytes_at_end(text) != text.size()) n_of_prompt = 0;
    keep_open(text);
  }
  for (std::size_t i = first; i < first + n; ++i) text += generated_bytes(run, i);
  const bool at_end = first + n == run.tokens.size();
  if (!at_end) text.resize(text.size() - open_bytes_at_end(text));
  if (!text.empty() && !begins_with_character(text)) text.erase(0, n_of_prompt);
  return text;
}

std::string Timeline::text_of(const RunRecord& run, TokenId id) const {
  return printable(bytes_of(run, {&id, 1}));
}

std::string Timeline::text_of(const RunRecord& run, std::span<const TokenId> ids) const {
  return printable(bytes_of(run, ids));
}

std::string Timeline::name_of(const RunRecord& run, TokenId id) const {
  const std::string text = text_of(run, id);
  const ModelLoaded* loaded = model(run.started.model);
  if (!text.empty() || !loaded) return text;
  const auto named = std::ranges::find(loaded->special_ids, id) - loaded->special_ids.begin();
  if (named < std::ssize(loaded->special_ids) && named < std::ssize(loaded->special_names))
    return printable(loaded->special_names[static_cast<std::size_t>(named)]);
  // Old recordings have no names of control symbols.
  const bool ends = std::ranges::find(loaded->eos_ids, id) != loaded->eos_ids.end();
  return ends ? "<end>" : fmt::format("<token {}>", id);
}

std::string Timeline::plain_text_of(const RunRecord& run, std::span<const TokenId> ids) const {
  return printable(bytes_of(run, ids), LineBreaks::Kept);
}

const RunRecord* Timeline::baseline_of(const RunRecord& run) const {
  const ModelLoaded* loaded = model(run.started.model);
  if (!loaded) return nullptr;
  if (run.started.decoder == kBaselineDecoder && ran_through(run)) return &run;
  const RunRecord* best = nullptr;
  const auto same_race = [&](const RunRecord& r) {
    return r.started.race != 0 && r.started.race == run.started.race;
  };
  for (const RunRecord& other : runs_) {
    const ModelLoaded* its_model = model(other.started.model);
    if (other.started.decoder != kBaselineDecoder || !ran_through(other) || !its_model) continue;
    if (!same_model(*loaded, *its_model) || !same_settings(run.started, other.started)) continue;
    if (other.decode_compute() <= 0) continue;
    if (!best || same_race(other) || !same_race(*best)) best = &other;
  }
  return best;
}

std::optional<double> Timeline::speedup(const RunRecord& run) const {
  if (!ran_through(run) || run.decode_compute() <= 0 || !run.queueing.empty()) return std::nullopt;
  const RunRecord* baseline = baseline_of(run);
  if (!baseline || baseline->decode_compute() <= 0) return std::nullopt;
  if (!other_load(*this, run, *baseline).empty()) return std::nullopt;
  return static_cast<double>(baseline->decode_compute()) /
         static_cast<double>(run.decode_compute());
}

std::string Timeline::why_other_load(const RunRecord& run) const {
  const RunRecord* baseline = baseline_of(run);
  return baseline ? other_load(*this, run, *baseline) : "";
}

}  // namespace engine
