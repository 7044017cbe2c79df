#include "engine/trace/export.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/trace/describe.h"
#include "engine/base/text.h"
#include "engine/event/recording/recording_format.h"
#include "engine/event/timeline/run_slices.h"
#include "engine/trace/check.h"
#include "engine/trace/lane.h"
#include "engine/trace/schedule.h"

namespace engine {
namespace {

constexpr int kPhasesTid = 1;
constexpr int kBlocksTid = 8;
constexpr int kQueueTid = 9;
constexpr int kDraftTid = 10;
constexpr int kMaxTid = 10;
constexpr std::size_t kTellEvery = 256;  // steps, or items

/// tid of each LaneKind.
constexpr std::array<int, kLaneKinds> kTidOf{kPhasesTid, 3, 2, 4, 5, 6, 7};
constexpr std::array<const char*, kMaxTid + 1> kTidNames{"",       "phases", "target", "propose",
                                                         "verify", "commit", "pool",   "device",
                                                         "blocks", "queue",  "draft"};
/// Where viewers put each lane: the draft's forwards below the proposals they are part of.
constexpr std::array<int, kMaxTid + 1> kPlaceOf{0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 4};

int tid_of(LaneKind lane) {
  return kTidOf[static_cast<std::size_t>(lane)];
}

/// 64-bit FNV-1a: says whether two prompts are the same without saying what they are.
std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF2'9CE4'8422'2325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x0000'0100'0000'01B3;
  }
  return fmt::format("fnv1a64:{:016x}", hash);
}

/// A finite number as JSON writes it.
std::string number(double x) {
  return fmt::format("{}", x);
}

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

void count(const TraceItem& item, TraceReport& report) {
  ++report.n_events;
  switch (item.ph) {
    case 'X':
      ++report.n_slices;
      break;
    case 'b':
    case 'e':
      ++report.n_async;
      break;
    case 'i':
      ++report.n_instants;
      break;
    case 'C':
      ++report.n_counters;
      break;
    default:
      ++report.n_flows;
      break;
  }
}

std::string text_of(const TraceItem& item, int pid, int tid) {
  std::string text = fmt::format("{{\"ph\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{}", item.ph, pid,
                                 tid, as_microseconds(item.ts));
  if (item.ph == 'X') text += ",\"dur\":" + as_microseconds(item.end - item.ts);
  if (!item.cat.empty()) text += ",\"cat\":" + json_quoted(item.cat);
  text += ",\"name\":" + json_quoted(item.name);
  const bool has_id = item.ph == 's' || item.ph == 'f' || item.ph == 'b' || item.ph == 'e';
  if (has_id) {
    // Ids of flows are shared by the whole file, so the run's number is part of them.
    const std::int64_t run_part = item.cat == "token" ? static_cast<std::int64_t>(pid) << 32 : 0;
    text += fmt::format(",\"id\":{}", run_part + item.id);
  }
  if (item.ph == 'f') text += ",\"bp\":\"e\"";
  if (item.ph == 'i') text += ",\"s\":\"t\"";
  if (!item.args.empty()) text += ",\"args\":" + item.args;
  return text + "}";
}

using PutEvent = std::function<void(std::string)>;

/// A name, or the place in the order, of a process or lane.
void put_name(int pid,
              int tid,
              const char* what,
              const std::string& args,
              TraceReport& report,
              const PutEvent& put) {
  ++report.n_metadata, ++report.n_events;
  put(fmt::format("{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"{}\",\"args\":{{{}}}}}", pid,
                  tid, what, args));
}

/// @param place  among the lanes of its process
void put_lane_name(int pid,
                   int tid,
                   int place,
                   const std::string& name,
                   TraceReport& report,
                   const PutEvent& put) {
  put_name(pid, tid, "thread_name", "\"name\":" + json_quoted(name), report, put);
  put_name(pid, tid, "thread_sort_index", fmt::format("\"sort_index\":{}", place), report, put);
}

void put_process_name(int pid, const std::string& title, TraceReport& report, const PutEvent& put) {
  put_name(pid, 1, "process_name", "\"name\":" + json_quoted(title), report, put);
  put_name(pid, 1, "process_sort_index", fmt::format("\"sort_index\":{}", pid), report, put);
}

/// SEED's rounds over all runs, as a process after theirs.
void write_schedule(const Timeline& timeline, int pid, TraceReport& report, const PutEvent& put) {
  std::vector<ScheduleLane> lanes = schedule_lanes(timeline.runs());
  if (lanes.empty()) return;
  put_process_name(pid, "schedule of all runs", report, put);
  for (std::size_t i = 0; i < lanes.size(); i++) {
    const LaneChanges changes = settle(lanes[i].items);
    report.n_nudges += changes.n_nudges;
    report.n_left_out += changes.n_left_out;
    const int tid = static_cast<int>(i) + 1;
    if (!lanes[i].items.empty()) put_lane_name(pid, tid, tid, lanes[i].name, report, put);
  }
  for (std::size_t i = 0; i < lanes.size(); i++) {
    for (const TraceItem& item : lanes[i].items) {
      count(item, report);
      put(text_of(item, pid, static_cast<int>(i) + 1));
    }
  }
}

/// The trace of one run: its lanes filled, settled, written.
class RunTrace {
 public:
  /// @param told  of the share of this run that is done; may throw
  RunTrace(const Timeline& timeline,
           const RunRecord& run,
           const TraceOptions& options,
           int pid,
           std::function<void(double)> told)
      : timeline_(timeline), run_(run), options_(options), pid_(pid), told_(std::move(told)) {
    add_phases();
    lane(kQueueTid) = waits_of(run);
    std::size_t n = 0;
    for (const StepRecord& step : run.steps) {
      if (n++ % kTellEvery == 0) told_(0.5 * static_cast<double>(n) / run.steps.size());
      const StepId id = step.begun.step;
      if (step.complete && id >= options.first_step && id <= options.last_step) add_step(step);
    }
    add_blocks();
    add_samples();
  }

  void write(TraceReport& report, const std::function<void(std::string)>& put) {
    write_names(report, put);
    for (int tid = 1; tid <= kMaxTid; ++tid) {
      std::vector<TraceItem>& lane = lanes_[static_cast<std::size_t>(tid)];
      const LaneChanges changes = settle(lane);
      report.n_nudges += changes.n_nudges;
      report.n_left_out += changes.n_left_out;
    }
    drop_half_flows(report);
    std::size_t n = 0, n_items = 0;
    for (const std::vector<TraceItem>& lane : lanes_) n_items += lane.size();
    for (int tid = 1; tid <= kMaxTid; ++tid) {
      for (const TraceItem& item : lanes_[static_cast<std::size_t>(tid)]) {
        if (n++ % kTellEvery == 0) told_(0.5 + 0.5 * static_cast<double>(n) / n_items);
        count(item, report);
        put(text_of(item, pid_, tid));
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
      text += std::exchange(comma, ",") + json_quoted(name) + ":" + json_quoted(value);
    }
    text += "},\"prompt_hash\":" + json_quoted(hash_of(s.prompt));
    if (s.n_approximate > 0)
      text += fmt::format(",\"first_approximate_prompt_token\":{},\"approximate_prompt_tokens\":{}",
                          s.first_approximate, s.n_approximate);
    if (!options_.prompt_text) return text + "}";
    text += ",\"prompt\":" + json_quoted(s.prompt);
    if (s.n_approximate > 0)
      text += ",\"approximate_prompt\":" +
              json_quoted(timeline_.bytes_of(run_, run_.approximate_of_prompt()));
    return text + "}";
  }

 private:
  std::vector<TraceItem>& lane(int tid) { return lanes_[static_cast<std::size_t>(tid)]; }
  Nanoseconds since_start(Nanoseconds t) const { return t - run_.started.t; }

  void add_phases() {
    for (const Slice& slice : phase_slices(run_, Clock::Wall)) {
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
                      .args = slice.kind == SliceKind::Decode ? came_to() : ""});
    }
  }

  /// What the run counted, and what its end left as it was guessed, as arguments; empty where there
  /// is neither.
  std::string came_to() const {
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
    Slice propose, commit;
    for (const LaneSlice& part : slices_of(run_, head_of(step), Clock::Wall)) {
      if (part.lane == LaneKind::Propose) propose = part.slice;
      if (part.lane == LaneKind::Commit) commit = part.slice;
      lane(tid_of(part.lane))
          .push_back({.ts = since_start(part.slice.start),
                      .end = since_start(part.slice.end),
                      .name = label_of(run_, part.lane, part.slice),
                      .cat = name_of(part.lane),
                      .args = args_of(step, part.lane)});
    }
    add_draft_forwards(step);
    if (step.verified.n_accepted > 0) add_flow(propose, commit);
    add_counters(step, commit);
  }

  void add_draft_forwards(const StepRecord& step) {
    for (std::size_t i = 0; i < step.drafted.forwards.size(); i++) {
      const DraftForward& forward = step.drafted.forwards[i];
      const Nanoseconds begun = since_start(step.begun.t);
      lane(kDraftTid).push_back({.ts = begun + forward.begun,
                                 .end = begun + forward.ended,
                                 .name = fmt::format("draft forward {}", forward.n_rows),
                                 .cat = "draft",
                                 .args = fmt::format("{{\"step\":{},\"level\":{},\"rows\":{}}}",
                                                     step.begun.step, i + 1, forward.n_rows)});
    }
  }

  /// Strictly inside both slices, or not at all.
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

  /// -1 stands for what is not known, which has no counter.
  void add_known(Nanoseconds t, const std::string& name, double value) {
    if (value >= 0) add_counter(t, name, value);
  }

  /// One counter of as many values as the device has threads: viewers draw each.
  void add_threads(Nanoseconds t, const std::string& name, const std::vector<double>& percent) {
    std::string values;
    for (std::size_t i = 0; i < percent.size(); i++) {
      if (!std::isfinite(percent[i]) || percent[i] < 0) continue;
      values += fmt::format("{}\"thread {}\":{}", values.empty() ? "" : ",", i, number(percent[i]));
    }
    if (values.empty()) return;
    lane(kPhasesTid)
        .push_back({.ph = 'C', .ts = t, .name = name, .cat = {}, .args = "{" + values + "}"});
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
  }

  std::string args_of(const StepRecord& step, LaneKind kind) const {
    const Verified& v = step.verified;
    const Committed& c = step.committed;
    std::string args = fmt::format("{{\"step\":{}", step.begun.step);
    if (kind == LaneKind::Propose) args += fmt::format(",\"drafted\":{}", v.n_proposed);
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

  /// What a step's tokens add to the text; in a damaged recording, the bytes of the tokens alone.
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

  /// Block trajectories as b/e, one after the other; their iterations as instants.
  void add_blocks() {
    std::vector<TraceItem>& blocks = lane(kBlocksTid);
    std::optional<BlockRefined> last;
    const auto end_open = [&](Nanoseconds t) {
      if (!last) return;
      blocks.push_back(
          {.ph = 'e', .ts = t, .name = "block", .cat = "block", .args = {}, .id = block_id(*last)});
    };
    for (const StepRecord& step : run_.steps) {
      const StepId id = step.begun.step;
      if (!step.complete || id < options_.first_step || id > options_.last_step) continue;
      for (const BlockRefined& block : step.blocks) {
        const Nanoseconds t = since_start(block.t);
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
      }
    }
    if (last) end_open(since_start(last->t) + 1);
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

  /// A flow whose other end had no room says nothing and is an error to viewers.
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

  void write_names(TraceReport& report, const std::function<void(std::string)>& put) const {
    const RunStarted& s = run_.started;
    const char letter = static_cast<char>('A' + std::min(s.lane, 25));
    std::string title = fmt::format("run {} {}", s.run, s.decoder);
    if (s.race != 0) title = fmt::format("{} {} (race {})", letter, s.decoder, s.race);
    put_process_name(pid_, title, report, put);
    for (int tid = 1; tid <= kMaxTid; ++tid) {
      const auto at = static_cast<std::size_t>(tid);
      if (!lanes_[at].empty()) put_lane_name(pid_, tid, kPlaceOf[at], kTidNames[at], report, put);
    }
  }

  const Timeline& timeline_;  // both outlive the export
  const RunRecord& run_;
  const TraceOptions& options_;
  int pid_;
  std::function<void(double)> told_;
  std::array<std::vector<TraceItem>, kMaxTid + 1> lanes_;
  std::int64_t n_flow_ids_ = 0;
};

[[noreturn]] void give_up() {
  throw Error(ErrorCode::Cancelled, "the trace was not exported, as asked");
}

/// All runs asked for failed to have one thing: a line in the trace that makes it recognisable.
std::string empty_process() {
  return R"({"ph":"M","pid":1,"tid":1,"name":"process_name","args":{"name":"no run"}})";
}

}  // namespace

std::string TraceReport::summary() const {
  return fmt::format(
      "{} events: {} slices, {} block ends, {} instants, {} counters, {} flow ends, {} names; "
      "{} times moved by 0.001, {} left out; {} bytes",
      n_events, n_slices, n_async, n_instants, n_counters, n_flows, n_metadata, n_nudges,
      n_left_out, n_bytes);
}

namespace {

/// The numbers of the runs, the first ones alone where they are many.
std::string runs_words(const Timeline& timeline) {
  constexpr std::size_t kMostNamed = 12;
  const std::size_t n = timeline.runs().size();
  if (n == 0) return "a recording with runs; this one has none";
  std::string words;
  for (std::size_t i = 0; i < std::min(n, kMostNamed); ++i)
    words += fmt::format("{}{}", i > 0 ? ", " : "", timeline.runs()[i].id());
  return n > kMostNamed ? fmt::format("one of {} runs ({}, ...)", n, words) : "one of " + words;
}

/// Which steps a run has: "run 1 has steps 0 to 39".
std::string steps_words(const RunRecord& run) {
  std::optional<StepId> first;
  StepId last = 0;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const StepHead step = run.steps.head(i);
    if (!step.complete) continue;
    if (!first) first = step.begun.step;
    last = step.begun.step;
  }
  return first ? fmt::format("run {} has steps {} to {}", run.id(), *first, last)
               : fmt::format("run {} has no steps", run.id());
}

bool has_step_within(const RunRecord& run, StepId first, StepId last) {
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const StepHead step = run.steps.head(i);
    if (step.complete && step.begun.step >= first && step.begun.step <= last) return true;
  }
  return false;
}

/// A run or a range of steps that is asked for must be there.
void refuse_what_is_not_there(const Timeline& timeline, const TraceOptions& options) {
  if (options.run && !timeline.run(*options.run)) {
    throw Error(ErrorCode::Usage,
                fmt::format("run: found {}, expected {}", *options.run, runs_words(timeline)));
  }
  if (options.first_step > options.last_step) {
    throw Error(ErrorCode::Usage,
                fmt::format("steps: found first {} and last {}, expected the first no later than "
                            "the last",
                            options.first_step, options.last_step));
  }
  if (asks_for_all_steps(options)) return;
  const RunRecord* longest = nullptr;
  for (const RunRecord& run : timeline.runs()) {
    if (options.run && *options.run != run.id()) continue;
    if (has_step_within(run, options.first_step, options.last_step)) return;
    if (!longest || run.steps.size() > longest->steps.size()) longest = &run;
  }
  throw Error(ErrorCode::Usage,
              fmt::format("steps: found none from {} to {}, expected some; {}", options.first_step,
                          options.last_step,
                          longest ? steps_words(*longest) : "the recording has no runs"));
}

}  // namespace

bool asks_for_all_steps(const TraceOptions& options) {
  return options.first_step <= 0 && options.last_step == TraceOptions{}.last_step;
}

TraceReport write_trace(const Timeline& timeline,
                        const TraceOptions& options,
                        const std::function<void(std::string_view)>& write) {
  refuse_what_is_not_there(timeline, options);
  TraceReport report;
  const auto put_line = [&](const std::string& event) {
    write(report.n_events <= 1 ? "\n" : ",\n");
    write(event);
  };
  write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  std::string runs, only;
  int pid = 0;
  const double n_runs = options.run ? 1 : static_cast<double>(timeline.runs().size());
  for (const RunRecord& run : timeline.runs()) {
    if (options.run && *options.run != run.id()) continue;
    ++pid;
    RunTrace trace(timeline, run, options, pid, [&options, pid, n_runs](double share) {
      if (options.progress && !options.progress((pid - 1 + share) / n_runs)) give_up();
    });
    trace.write(report, put_line);
    const std::string about = trace.metadata();
    runs += (runs.empty() ? "" : ",") + about;
    // What viewers show of a trace's metadata lies at its top: there too, where one run is all.
    only = pid == 1 ? about.substr(1, about.size() - 2) + "," : "";
  }
  const bool whole = !options.run && asks_for_all_steps(options);
  if (whole) write_schedule(timeline, pid + 1, report, put_line);
  if (pid == 0) {
    ++report.n_metadata, ++report.n_events;
    put_line(empty_process());
  }
  write(
      fmt::format("\n],\"metadata\":{{\"profile\":\"PD-1\",\"app\":\"decoscope\","
                  "\"app_version\":{},\"clock\":\"engine_steady\",\"nudged_times\":{},"
                  "\"left_out\":{},\"events\":{},{}\"runs\":[{}]}}}}\n",
                  json_quoted(program_version()), report.n_nudges, report.n_left_out,
                  report.n_events, only, runs));
  for (const RunRecord& run : timeline.runs()) {
    if (options.run && *options.run != run.id()) continue;
    for (const PayloadDropped& drop : run.dropped) {
      report.notices.push_back(fmt::format("run {}: {}", run.id(), describe(drop)));
    }
  }
  if (report.n_events > options.warn_above) {
    report.notices.push_back(fmt::format(
        "{} events are more than viewers take well ({}); export a range of steps or one "
        "run instead",
        report.n_events, options.warn_above));
  }
  return report;
}

namespace {

/// What reading a written trace finds. Given up here, too, no file is left.
/// The self-check: the file is what was written, and keeps the profile's rules.
void read_again(const TraceReport& report, const TraceOptions& options) {
  const TraceCheck found =
      check_trace(report.path, [&] { return options.progress && !options.progress(1); });
  ensure(found.problems.empty(), "an exported trace breaks a rule of its own profile");
  ensure(found.n_events == report.n_events && found.n_slices == report.n_slices &&
             found.n_counters == report.n_counters && found.n_flows == report.n_flows,
         "an exported trace does not read as it was written");
}

}  // namespace

TraceReport export_trace(const Timeline& timeline,
                         const std::string& path,
                         const TraceOptions& options) {
  OutputFile file(path, options.write, options.if_exists);
  TraceReport report =
      write_trace(timeline, options, [&](std::string_view bytes) { file.write(bytes); });
  file.finish();
  report.n_bytes = file.n_bytes();
  report.path = file.path();
  try {
    read_again(report, options);
  } catch (const Error& error) {
    std::error_code ignored;
    std::filesystem::remove(report.path, ignored);
    if (error.code() == ErrorCode::Cancelled) give_up();
    throw;
  }
  return report;
}

}  // namespace engine
