#include "engine/trace/run_trace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/text.h"
#include "engine/event/drafted_by.h"
#include "engine/event/timeline/run_slices.h"
#include "engine/trace/lane.h"
#include "engine/trace/schedule.h"
#include "engine/trace/settings.h"

namespace engine {
namespace {

constexpr int kPhasesTid = 1;
constexpr int kBlocksTid = 8;
constexpr int kQueueTid = 9;
constexpr int kDraftTid = 10;
constexpr int kMaxTid = 10;
constexpr std::size_t kReportEvery = 256;  // steps or events between calls of progress

/// tid of each LaneKind.
constexpr std::array<int, kLaneKinds> kTidOf{kPhasesTid, 3, 2, 4, 5, 6, 7};
constexpr std::array<const char*, kMaxTid + 1> kTidNames{"",       "phases", "target", "propose",
                                                         "verify", "commit", "pool",   "device",
                                                         "blocks", "queue",  "draft"};
/// The sort index of each lane: the draft's forwards follow the proposals that they are part of.
constexpr std::array<int, kMaxTid + 1> kPlaceOf{0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 4};

int tid_of(LaneKind lane) {
  return kTidOf[static_cast<std::size_t>(lane)];
}

/// 64-bit FNV-1a hash, to compare prompts without storing them.
std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x0000'0100'0000'01B3;
  }
  return fmt::format("fnv1a64:{:016x}", hash);
}

/// A number as JSON writes it; empty if it is not finite.
std::string number(std::floating_point auto x) {
  return std::isfinite(x) ? fmt::format("{}", x) : "";
}

/// A value of a counter with several: its name, and a number().
using Value = std::pair<std::string, std::string>;

std::string kind_word(RowTag::Kind kind) {
  using enum RowTag::Kind;
  switch (kind) {
    case Current:
      return "target";
    case Window:
      return "window";
    case Guess:
      return "guess";
    case Draft:
      return "draft";
    case Block:
      return "block";
    case Probe:
      return "probe";
  }
  return "target";
}

class RunTrace {
 public:
  RunTrace(const Timeline& timeline,
           const RunRecord& run,
           const TraceOptions& options,
           int pid,
           std::function<void(double)> progress)
      : timeline_(timeline),
        run_(run),
        options_(options),
        pid_(pid),
        clock_(options.own_compute ? Clock::Compute : Clock::Wall),
        progress_(std::move(progress)) {
    add_phases();
    if (clock_ == Clock::Wall) lane(kQueueTid) = waits_of(run);
    std::size_t n = 0;
    for (const StepRecord& step : run.steps) {
      if (n++ % kReportEvery == 0)
        progress_(0.5 * static_cast<double>(n) / static_cast<double>(run.steps.size()));
      const StepId id = step.begun.step;
      if (step.complete && id >= options.first_step && id <= options.last_step) add_step(step);
    }
    add_blocks();
    if (clock_ == Clock::Wall) add_samples();
  }

  void write(TraceReport& report, TraceWriter& writer) {
    write_names(writer);
    for (int tid = 1; tid <= kMaxTid; ++tid) {
      std::vector<TraceItem>& lane = lanes_[static_cast<std::size_t>(tid)];
      const LaneChanges changes = sort_and_nest(lane);
      report.n_nudges += changes.n_nudges;
      report.n_left_out += changes.n_left_out;
    }
    drop_half_flows(report);
    std::size_t n = 0, n_items = 0;
    for (const std::vector<TraceItem>& lane : lanes_) n_items += lane.size();
    for (int tid = 1; tid <= kMaxTid; ++tid) {
      const std::vector<TraceItem>& lane = lanes_[static_cast<std::size_t>(tid)];
      for (std::size_t i = 0; i < lane.size(); ++i) {
        if (n++ % kReportEvery == 0)
          progress_(0.5 + 0.5 * static_cast<double>(n) / static_cast<double>(n_items));
        writer.event(pid_, tid, lane, i);
      }
    }
  }

  std::string metadata() const {
    const ModelLoaded* model = timeline_.model(run_.started.model);
    const RunStarted& s = run_.started;
    std::string text =
        fmt::format("{{\"pid\":{},\"run\":{},\"method\":{}", pid_, s.run, json_quoted(s.decoder));
    if (model) {
      text += fmt::format(",\"model\":{},\"scale\":{},\"dtype\":{},\"device\":{},\"ops\":{}",
                          json_quoted(model->name), json_quoted(model->scale),
                          json_quoted(model->dtype), json_quoted(model->device),
                          json_quoted(model->ops));
      if (!model->weights_hash.empty()) {
        text += ",\"weights_hash\":" + json_quoted(model->weights_hash);
      }
    }
    if (const ModelLoaded* draft = timeline_.model(s.draft)) {
      text += ",\"draft\":" + json_quoted(draft->name);
    }
    text += fmt::format(",\"seed\":{},\"sampling\":{},\"max_tokens\":{}", s.seed,
                        json_quoted(s.sampling), s.max_tokens);
    const std::array<std::pair<const char*, float>, 4> settings{
        {{"temperature", s.temperature},
         {"top_p", s.top_p},
         {"min_p", s.min_p},
         {"repetition_penalty", s.repetition_penalty}}};
    for (const auto& [name, value] : settings) {
      if (std::isfinite(value)) text += fmt::format(",\"{}\":{}", name, value);
    }
    text += fmt::format(",\"top_k\":{},\"parameters\":{{", s.top_k);
    const char* comma = "";
    for (const auto& [name, value] : s.options) {
      text +=
          std::exchange(comma, ",") + json_quoted(name) + ":" + json_quoted(without_folders(value));
    }
    text += "},\"prompt_hash\":" + json_quoted(hash_of(s.prompt));
    if (s.read_as != ReadAs::Unknown)
      text += s.read_as == ReadAs::Chat ? ",\"read_as\":\"chat\"" : ",\"read_as\":\"raw\"";
    if (!s.pool.empty()) text += ",\"pool\":" + json_quoted(without_folders(s.pool));
    if (s.n_approximate > 0)
      text += fmt::format(",\"first_approximate_prompt_token\":{},\"approximate_prompt_tokens\":{}",
                          s.first_approximate, s.n_approximate);
    if (!options_.prompt_text) return text + "}";
    text += ",\"prompt\":" + json_quoted(s.prompt);
    if (!s.system.empty()) text += ",\"system\":" + json_quoted(s.system);
    if (s.n_approximate > 0)
      text += ",\"approximate_prompt\":" +
              json_quoted(timeline_.bytes_of(run_, run_.approximate_of_prompt()));
    return text + "}";
  }

 private:
  std::vector<TraceItem>& lane(int tid) { return lanes_[static_cast<std::size_t>(tid)]; }
  /// The time in the trace of a time on the clock.
  Nanoseconds since_start(Nanoseconds t) const {
    return clock_ == Clock::Wall ? t - run_.started.t : t;
  }
  /// The time in the trace of a wall time within a step.
  Nanoseconds since_start(const StepRecord& step, Nanoseconds wall) const {
    if (clock_ == Clock::Wall) return since_start(wall);
    const StepEnded& e = step.ended;
    return step.begun.compute +
           std::clamp<Nanoseconds>(wall - step.begun.t, 0,
                                   e.propose + e.forward + e.verify + e.commit);
  }

  void add_phases() {
    for (const Slice& slice : phase_slices(run_, clock_)) {
      const std::string name = label_of(run_, LaneKind::Phases, slice);
      if (slice.kind == SliceKind::Failed) {
        lane(kPhasesTid)
            .push_back({.ph = 'i',
                        .ts = since_start(slice.start),
                        .name = name,
                        .cat = "phase",
                        .args = fmt::format("{{\"code\":{}}}", run_.failed->code)});
        continue;
      }
      lane(kPhasesTid)
          .push_back({.ts = since_start(slice.start),
                      .end = since_start(slice.end),
                      .name = name,
                      .cat = "phase",
                      .args = slice.kind == SliceKind::Decode ? results_args() : ""});
    }
  }

  /// The run's metrics and the approximate tokens at its end as arguments; empty if there are none.
  std::string results_args() const {
    if (!run_.finished) return "";
    std::string args;
    for (const auto& [name, value] : run_.finished->metrics)
      args += (args.empty() ? "\"metrics\":{" : ",") + json_quoted(name) + ":" + number(value);
    if (!args.empty()) args += "}";
    if (const std::vector<TokenId>& ids = run_.finished->approximate; !ids.empty())
      args +=
          fmt::format("{}\"approximate_tokens\":[{}],\"approximate\":{}", args.empty() ? "" : ",",
                      fmt::join(ids, ","), json_quoted(timeline_.bytes_of(run_, ids)));
    return args.empty() ? "" : "{" + args + "}";
  }

  void add_step(const StepRecord& step) {
    Slice propose, forward, commit;
    for (const LaneSlice& part : slices_of(run_, head_of(step), clock_)) {
      if (part.lane == LaneKind::Propose) propose = part.slice;
      if (part.lane == LaneKind::Commit) commit = part.slice;
      if (part.lane == LaneKind::Target) forward = part.slice;
      lane(tid_of(part.lane))
          .push_back({.ts = since_start(part.slice.start),
                      .end = since_start(part.slice.end),
                      .name = label_of(run_, part.lane, part.slice),
                      .cat = name_of(part.lane),
                      .args = args_of(step, part.lane)});
    }
    add_draft_forwards(step);
    add_exchange(step, forward);
    if (step.verified.n_accepted > 0) add_flow(propose, commit);
    add_counters(step, commit);
  }

  void add_draft_forwards(const StepRecord& step) {
    for (std::size_t i = 0; i < step.drafted.forwards.size(); i++) {
      const DraftForward& forward = step.drafted.forwards[i];
      const Nanoseconds begun = since_start(step, step.begun.t);
      lane(kDraftTid).push_back({.ts = begun + forward.begun,
                                 .end = begun + forward.ended,
                                 .name = fmt::format("draft forward {}", forward.n_rows),
                                 .cat = "draft",
                                 .args = fmt::format("{{\"step\":{},\"level\":{},\"rows\":{}}}",
                                                     step.begun.step, i + 1, forward.n_rows)});
    }
  }

  /// Adds a flow strictly inside both slices; none if either is too short.
  void add_flow(const Slice& from, const Slice& to) {
    if (from.end - from.start < 3 || to.end - to.start < 3) return;
    const std::int64_t id = ++n_flow_ids_;
    lane(tid_of(LaneKind::Propose))
        .push_back({.ph = 's',
                    .ts = since_start(from.end) - 1,
                    .name = "token",
                    .cat = "token",
                    .args = {},
                    .id = id});
    lane(tid_of(LaneKind::Commit))
        .push_back({.ph = 'f',
                    .ts = since_start(to.start) + 1,
                    .name = "token",
                    .cat = "token",
                    .args = {},
                    .id = id});
  }

  void add_counter(Nanoseconds t, const std::string& name, double value) {
    if (!std::isfinite(value)) return;
    lane(kPhasesTid)
        .push_back({.ph = 'C',
                    .ts = t,
                    .name = name,
                    .cat = {},
                    .args = "{\"value\":" + number(value) + "}"});
  }

  /// Adds a counter, unless the value is -1 (unknown).
  void add_known(Nanoseconds t, const std::string& name, double value) {
    if (value >= 0) add_counter(t, name, value);
  }

  /// Adds a counter with several values; those that are not finite are left out.
  void add_values(Nanoseconds t, const std::string& name, const std::vector<Value>& values) {
    std::string args;
    for (const auto& [series, value] : values) {
      if (value.empty()) continue;
      args += fmt::format("{}{}:{}", args.empty() ? "" : ",", json_quoted(series), value);
    }
    if (args.empty()) return;
    lane(kPhasesTid)
        .push_back({.ph = 'C', .ts = t, .name = name, .cat = {}, .args = "{" + args + "}"});
  }

  /// Adds a counter with one value per thread of the device; -1 is unknown.
  void add_threads(Nanoseconds t, const std::string& name, const std::vector<double>& percent) {
    std::vector<Value> values;
    for (std::size_t i = 0; i < percent.size(); i++)
      if (percent[i] >= 0) values.emplace_back(fmt::format("thread {}", i), number(percent[i]));
    add_values(t, name, values);
  }

  /// Adds the size that the decoder chose for a step, with the expected and the measured result.
  void add_choice(const StepRecord& step, Nanoseconds t) {
    const SizeDecision& chosen = step.drafted.decision;
    if (!chosen.is_chosen()) return;
    const StepEnded& e = step.ended;
    const int n_rows = std::max(step.begun.n_rows, step.drafted.tree.n_rows());
    add_values(t, "choice_size",
               {{"size", std::to_string(chosen.size)}, {"rows", std::to_string(n_rows)}});
    add_values(t + 1, "choice_tokens",
               {{"expected", number(chosen.tokens)},
                {"measured", std::to_string(step.committed.tokens.size())}});
    add_values(t + 2, "choice_ms",
               {{"expected", number(chosen.ms)},
                {"measured",
                 number(static_cast<double>(e.propose + e.forward + e.verify + e.commit) / 1e6)},
                {"plain step", number(chosen.plain_ms)}});
  }

  /// Adds the exchange between the ranks that shared a step's rows: the end of the forward's slice,
  /// which begins with the wait for the slowest rank.
  void add_exchange(const StepRecord& step, const Slice& forward) {
    if (step.verified.exchange.empty()) return;
    const RankExchange& exchange = step.verified.exchange.front();
    const Nanoseconds end = since_start(forward.end);
    const Nanoseconds begin = std::max(since_start(forward.start), end - exchange.time);
    const Nanoseconds wait = std::min(exchange.wait_of(0), end - begin);
    std::vector<double> forward_us;
    for (const Nanoseconds ns : exchange.forward)
      forward_us.push_back(static_cast<double>(ns) / 1e3);
    const std::string args =
        fmt::format("{{\"step\":{},\"bytes\":{},\"rank_forward_us\":[{}]}}", step.begun.step,
                    exchange.n_bytes, fmt::join(forward_us, ","));
    std::vector<TraceItem>& target = lane(tid_of(LaneKind::Target));
    target.push_back(
        {.ts = begin, .end = end, .name = "exchange", .cat = "exchange", .args = args});
    if (wait > 0)
      target.push_back({.ts = begin,
                        .end = begin + wait,
                        .name = "wait ranks",
                        .cat = "exchange",
                        .args = fmt::format("{{\"step\":{}}}", step.begun.step)});
    add_counter(end, "exchanged_bytes", static_cast<double>(exchange.n_bytes));
    std::vector<Value> waits;
    for (std::size_t rank = 0; rank < exchange.forward.size(); rank++)
      waits.emplace_back(fmt::format("rank {}", rank),
                         number(static_cast<double>(exchange.wait_of(rank)) / 1e6));
    add_values(end + 1, "rank_wait_ms", waits);
  }

  void add_counters(const StepRecord& step, const Slice& commit) {
    const Nanoseconds t = since_start(commit.end);
    add_counter(t, "tokens_per_step", static_cast<double>(step.committed.tokens.size()));
    if (step.verified.n_proposed > 0) {
      add_counter(t + 1, "acceptance_rate",
                  static_cast<double>(step.verified.n_accepted) / step.verified.n_proposed);
    }
    const ModelLoaded* model = timeline_.model(run_.started.model);
    if (model && model->kv_bytes_per_token > 0) {
      add_counter(t + 2, "kv_bytes",
                  static_cast<double>(model->kv_bytes_per_token) * step.ended.kv_len);
    }
    add_choice(step, t + 3);
  }

  std::string args_of(const StepRecord& step, LaneKind kind) const {
    const Verified& v = step.verified;
    const Committed& c = step.committed;
    std::string args = fmt::format("{{\"step\":{}", step.begun.step);
    if (kind == LaneKind::Propose)
      args += fmt::format(",\"drafted\":{}", v.n_proposed) + sources_args(step.drafted);
    if (kind == LaneKind::Target) {
      if (step.begun.n_rows > 0) args += fmt::format(",\"rows\":{}", step.begun.n_rows);
      args += fmt::format(",\"kv_len\":{}", step.begun.kv_len);
    }
    if (kind == LaneKind::Verify) {
      args +=
          fmt::format(",\"drafted\":{},\"accepted\":{},\"rejected\":{},\"unused\":{},\"bonus\":{}",
                      v.n_proposed, v.n_accepted, v.n_rejected, v.n_unused, head_of(step).n_bonus);
      std::vector<float> scores;
      std::ranges::copy_if(v.probe, std::back_inserter(scores),
                           [](float score) { return score >= 0 && std::isfinite(score); });
      if (!scores.empty()) args += fmt::format(",\"probe_scores\":[{}]", fmt::join(scores, ","));
    }
    if (kind == LaneKind::Commit && !c.tokens.empty()) {
      std::string provenance;
      for (const RowTag& tag : c.origin) {
        provenance += (provenance.empty() ? "" : " ") + kind_word(tag.kind);
      }
      args +=
          fmt::format(",\"positions\":[{},{}],\"tokens\":[{}],\"text\":{},\"provenance\":{}",
                      c.first_pos, c.first_pos + std::ssize(c.tokens) - 1, fmt::join(c.tokens, ","),
                      json_quoted(committed_text(c)), json_quoted(provenance));
    }
    if (kind == LaneKind::Pool && step.pool) {
      args += fmt::format(",\"added\":{},\"evicted\":{},\"tried\":{},\"ngrams\":{}",
                          step.pool->added.size(), step.pool->evicted.size(),
                          step.pool->tried.size(), step.pool->n_ngrams);
    }
    return args + "}";
  }

  /// The sources of the guesses that a step copied ("prompt 12", "run 3 40"), in the order of the
  /// rows; empty if it copied none.
  static std::string sources_args(const Drafted& drafted) {
    std::vector<std::string> sources;
    for (const GuessSource& source : drafted.sources) {
      if (source.kind == GuessSource::Kind::None) continue;
      const bool earlier = source.kind == GuessSource::Kind::Earlier;
      const std::string text = earlier ? fmt::format("run {}", source.run) : word_of(source.kind);
      sources.push_back(fmt::format("\"{} {}\"", text, source.pos));
    }
    if (sources.empty()) return "";
    return fmt::format(",\"copied_from\":[{}]", fmt::join(sources, ","));
  }

  /// The text of a step's tokens; in a damaged recording each token's bytes.
  std::string committed_text(const Committed& c) const {
    const auto at = std::ranges::lower_bound(run_.tokens, c.first_pos, {}, &TokenRecord::pos);
    const auto n = std::ssize(c.tokens);
    const bool is_there =
        run_.tokens.end() - at >= n &&
        std::ranges::equal(c.tokens, std::ranges::subrange(at, at + n), {}, {}, &TokenRecord::id);
    if (!is_there) return timeline_.bytes_of(run_, c.tokens);
    return timeline_.generated_text(run_, static_cast<std::size_t>(at - run_.tokens.begin()),
                                    static_cast<std::size_t>(n));
  }

  /// Adds block trajectories as b/e pairs in order, and their iterations as instants.
  void add_blocks() {
    std::vector<TraceItem>& blocks = lane(kBlocksTid);
    std::optional<BlockRefined> last;
    Nanoseconds last_t = 0;
    const auto end_open = [&](Nanoseconds t) {
      if (!last) return;
      blocks.push_back(
          {.ph = 'e', .ts = t, .name = "block", .cat = "block", .args = {}, .id = block_id(*last)});
    };
    for (const StepRecord& step : run_.steps) {
      const StepId id = step.begun.step;
      if (!step.complete || id < options_.first_step || id > options_.last_step) continue;
      for (const BlockRefined& block : step.blocks) {
        const Nanoseconds t = since_start(step, block.t);
        if (!last || last->block != block.block) {
          end_open(t);
          blocks.push_back({.ph = 'b',
                            .ts = t,
                            .name = "block",
                            .cat = "block",
                            .args = fmt::format("{{\"step\":{},\"block\":{}}}", id, block.block),
                            .id = block_id(block)});
        }
        blocks.push_back({.ph = 'i',
                          .ts = t,
                          .name = block.converged ? "block converged" : "block iteration",
                          .cat = "block",
                          .args = fmt::format("{{\"step\":{},\"iteration\":{},\"final\":{},"
                                              "\"positions\":[{},{}],\"tokens\":[{}]}}",
                                              id, block.iteration, block.n_final, block.first_pos,
                                              block.first_pos + std::ssize(block.tokens) - 1,
                                              fmt::join(block.tokens, ","))});
        last = block;
        last_t = t;
      }
    }
    if (last) end_open(last_t + 1);
  }

  std::int64_t block_id(const BlockRefined& block) const {
    return (static_cast<std::int64_t>(pid_) << 32) + block.block;
  }

  void add_samples() {
    std::vector<Sampled> own;
    for (const Sampled& sample : timeline_.samples()) {
      const bool during = sample.t - sample.period >= run_.started.t && sample.t <= run_.last_event;
      if (!during) continue;
      const std::string prefix = of_gpu(sample) ? "gpu" : "cpu";
      const Nanoseconds t = since_start(sample.t);
      add_known(t, prefix + "_busy_percent", sample.busy_percent);
      add_threads(t, prefix + "_thread_busy_percent", sample.thread_busy_percent);
      add_known(t, "cpu_mem_bytes", static_cast<double>(sample.memory_bytes));
      add_known(t, "gpu_mem_bytes", static_cast<double>(sample.gpu_memory_used_bytes));
      add_known(t, "gpu_memory_busy_percent", sample.gpu_memory_busy_percent);
      add_known(t, "gpu_clock_mhz", sample.gpu_clock_mhz);
      add_known(t, "gpu_memory_clock_mhz", sample.gpu_memory_clock_mhz);
      add_known(t, "gpu_power_w", sample.gpu_power_w);
      own.push_back(sample);
    }
    for (const Slice& slice : device_slices(own)) {
      lane(tid_of(LaneKind::Device))
          .push_back({.ts = since_start(slice.start),
                      .end = since_start(slice.end),
                      .name = label_of(run_, LaneKind::Device, slice),
                      .cat = "device",
                      .args = {}});
    }
  }

  /// Removes a flow whose other end did not fit: viewers report half a flow as an error.
  void drop_half_flows(TraceReport& report) {
    std::map<std::int64_t, int> ends;
    const auto is_flow = [](const TraceItem& item) { return item.ph == 's' || item.ph == 'f'; };
    for (const auto& items : lanes_) {
      for (const TraceItem& item : items) ends[item.id] += is_flow(item) ? 1 : 0;
    }
    for (auto& items : lanes_) {
      report.n_left_out += static_cast<std::int64_t>(std::erase_if(
          items, [&](const TraceItem& item) { return is_flow(item) && ends[item.id] != 2; }));
    }
  }

  void write_names(TraceWriter& writer) const {
    const RunStarted& s = run_.started;
    const char letter = static_cast<char>('A' + std::min(s.lane, 25));
    std::string title = fmt::format("run {} {}", s.run, s.decoder);
    if (s.race != 0) title = fmt::format("{} {} (race {})", letter, s.decoder, s.race);
    writer.process(pid_, title);
    for (int tid = 1; tid <= kMaxTid; ++tid) {
      const auto at = static_cast<std::size_t>(tid);
      if (!lanes_[at].empty()) writer.lane(pid_, tid, kPlaceOf[at], kTidNames[at]);
    }
  }

  const Timeline& timeline_;  // both outlive the export
  const RunRecord& run_;
  const TraceOptions& options_;
  int pid_;
  Clock clock_;
  std::function<void(double)> progress_;
  std::array<std::vector<TraceItem>, kMaxTid + 1> lanes_;
  std::int64_t n_flow_ids_ = 0;
};

}  // namespace

void write_run(const Timeline& timeline,
               const RunRecord& run,
               const TraceOptions& options,
               int pid,
               TraceReport& report,
               TraceWriter& writer,
               const std::function<void(double)>& progress) {
  RunTrace trace(timeline, run, options, pid, progress);
  trace.write(report, writer);
  writer.about(pid, trace.metadata());
}

}  // namespace engine
