#include "engine/decode/ranks/lookahead_ranks.h"

#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "engine/decode/registry.h"

namespace engine {
namespace {

/// Time between two calls of keep_going() while waiting for the ranks.
constexpr std::chrono::milliseconds kReadyPeriod{100};

/// Returns the exception that is being handled, for the caller of rank 0. Adds the rank and its
/// device to the message of an Error.
std::exception_ptr failure_of_rank(int rank, const std::string& device) {
  try {
    throw;
  } catch (const Error& error) {
    return std::make_exception_ptr(
        Error(error.code(), fmt::format("rank {} on {}: {}", rank, device, error.what())));
  } catch (...) {
    return std::current_exception();
  }
}

/// Releases a lock and takes it again at the end of the scope.
class Meanwhile {
 public:
  explicit Meanwhile(std::unique_lock<std::mutex>& lock) : lock_(lock) { lock_.unlock(); }
  ~Meanwhile() { lock_.lock(); }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;

 private:
  std::unique_lock<std::mutex>& lock_;
};

}  // namespace

void follow(LanguageModel& target,
            Exchange& exchange,
            const RankedRun& run,
            const FollowHooks& hooks) {
  DecoderContext context{.target = target,
                         .sampling = run.context.sampling,
                         .limits = run.context.limits,
                         .texts = run.context.texts,
                         .n_processes = run.context.n_processes};
  // only rank 0 checks stop strings: when one is complete, it makes no further step
  context.limits.text_end = nullptr;
  LookaheadRank model(target, exchange);
  Sequence prompt(run.prompt, target.make_cache());
  prefill(target, prompt, 256,
          [&](int, int) { return !hooks.keep_reading || hooks.keep_reading(); });
  Lane lane{.sequence = ranked(prompt),
            .decoder = make_decoder(*run.options, context),
            .sampling = context.sampling,
            .limits = context.limits};
  lane.decoder->begin(lane.sequence);
  if (hooks.ready) hooks.ready();
  Stepper stepper(model, nullptr);
  Lane* const lanes[] = {&lane};
  const auto wait_for_step = [&model] { return model.wait_for_step(); };
  while (hooks.wait ? hooks.wait(wait_for_step) : wait_for_step()) stepper.step(lanes);
}

std::map<std::string, std::int64_t> counts_of(const LookaheadRankTotals& totals) {
  std::map<std::string, std::int64_t> counts{{"rows_again", totals.n_again},
                                             {"won_elsewhere", totals.n_won_elsewhere},
                                             {"exchanged_numbers", totals.n_sent}};
  for (std::size_t rank = 0; rank < totals.n_rows.size(); rank++)
    counts[fmt::format("rank_rows_{}", rank)] = totals.n_rows[rank];
  return counts;
}

std::map<std::string, double> figures_of(const LookaheadRankTotals& totals) {
  return {{"ranks", static_cast<double>(totals.n_rows.size())},
          {"exchange_ms", static_cast<double>(totals.exchanging) * 1e-6},
          {"longest_rank_ms", static_cast<double>(totals.longest) * 1e-6}};
}

LookaheadRanks::LookaheadRanks(LanguageModel& model,
                               std::vector<RankPlace> others,
                               RankedRun run,
                               std::function<void(bool)> at_work)
    : model_(model),
      others_(std::move(others)),
      run_(std::move(run)),
      at_work_(std::move(at_work)),
      exchange_(static_cast<int>(others_.size()) + 1),
      first_(model, exchange_.of(0)) {
  try {
    for (int rank = 1; rank < exchange_.of(0).n_ranks(); rank++) start(rank);
  } catch (...) {
    close();
    throw;
  }
}

LookaheadRanks::~LookaheadRanks() {
  close();
}

void LookaheadRanks::start(int rank) {
  try {
    threads_.emplace_back([this, rank] { serve(rank); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::Resources, fmt::format("threads: cannot start that of rank {} ({}); use "
                                                  "fewer ranks",
                                                  rank, error.what()));
  }
}

void LookaheadRanks::close() {
  exchange_.close();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void LookaheadRanks::serve(int rank) {
  try {
    run_steps(rank);
  } catch (const ExchangeClosed&) {
  } catch (...) {
    exchange_.fail(failure_of_rank(rank, others_[static_cast<std::size_t>(rank - 1)].device));
  }
  // wakes wait_until_ready(), which then checks whether the exchange has ended
  const std::lock_guard lock(ready_mutex_);
  ready_.notify_one();
}

void LookaheadRanks::run_steps(int rank) {
  const RankPlace& place = others_[static_cast<std::size_t>(rank - 1)];
  std::unique_lock at_work(place.at_work);
  const auto ready = [this] {
    const std::lock_guard lock(ready_mutex_);
    n_ready_++;
    ready_.notify_one();
  };
  const auto wait = [&](const std::function<bool()>& wait_for_step) {
    const Meanwhile others_work(at_work);
    return wait_for_step();
  };
  follow(place.model, exchange_.of(rank), run_,
         {.keep_reading = [this] { return !exchange_.ended(); }, .ready = ready, .wait = wait});
}

void LookaheadRanks::wait_until_ready(const std::function<bool()>& keep_going) {
  const auto is_over = [this] {
    return n_ready_ == static_cast<int>(others_.size()) || exchange_.ended();
  };
  {
    std::unique_lock lock(ready_mutex_);
    while (!ready_.wait_for(lock, kReadyPeriod, is_over)) {
      if (keep_going && !keep_going())
        throw Error(ErrorCode::Cancelled, "prefill: stopped while other ranks read the prompt");
    }
  }
  exchange_.check();
}

std::vector<StepOutput> LookaheadRanks::forward(std::span<const BatchItem> items, Wants wants) {
  if (!at_work_) return first_.forward(items, wants);
  struct AtWork {
    explicit AtWork(const std::function<void(bool)>& report) : report_(report) { report_(true); }
    ~AtWork() { report_(false); }
    const std::function<void(bool)>& report_;
  } const at_work(at_work_);
  return first_.forward(items, wants);
}

Sequence LookaheadRanks::attach(Sequence sequence) {
  return ranked(sequence);
}

Sequence LookaheadRanks::detach(Sequence sequence) {
  return sequence.over(static_cast<LookaheadRankCache&>(sequence.cache()).own().fork());
}

std::map<std::string, std::int64_t> LookaheadRanks::counts() const {
  return counts_of(first_.totals());
}

std::map<std::string, double> LookaheadRanks::figures() const {
  return figures_of(first_.totals());
}

}  // namespace engine
