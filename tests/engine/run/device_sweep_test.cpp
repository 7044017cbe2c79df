// Every CUDA call of a load, a prompt and some decoder steps fails once on the emulated GPU. Checks
// the message, leaks, whether a trace can be saved, and whether the next run works.
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "engine/checkpoint/model_files.h"
#include "engine/event/clock.h"
#include "engine/event/timeline/timeline.h"
#include "engine/trace/check.h"
#include "engine/trace/export.h"
#include "kernels/cuda/cuda.h"
#include "kernels/emulation/emulation_checks.h"
#include "tests/support/deadline.h"
#include "tests/support/decode/catalogue.h"
#include "tests/support/decode/lane_rounds.h"
#include "tests/support/models/tiny_transformer.h"

namespace engine::test {
namespace {

namespace emulation = kernels::emulation;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// The decoder whose calls fail.
struct FailingDecoder {
  const char* name;
  Job job;
  int n_steps = 3;
  /// Draft and target run at the same time, on their own devices and threads, to the end of both
  /// sequences.
  bool at_once = false;
};

Job job_of(const char* decoder, OptionValues options = {}) {
  Job job;
  job.decoder = decoder;
  job.options = std::move(options);
  job.limits.max_tokens = 100;
  return job;
}

std::vector<FailingDecoder> all_swept() {
  Job rejecting = job_of("speculative", {{"gamma", "2"}});
  rejecting.sampling = {.temperature = 0.8f, .seed = 3, .mode = Sampling::Mode::Rejection};
  Job probing =
      job_of("fastcot", {{"window", "4"}, {"stop", "probe"}, {"probe_threshold", "1000"}});
  probing.probe = {{3, 4, 5}, {1}};
  Job rounds = job_of("seed", {{"k_config", "2,1"}});
  rounds.limits.max_tokens = 3;
  return {
      {"ar", job_of("ar"), 8},          {"speculative", job_of("speculative", {{"gamma", "2"}})},
      {"medusa", job_of("medusa")},     {"chimera", job_of("chimera")},
      {"rejection", rejecting},         {"fastcot_probe", probing},
      {"seed_at_once", rounds, 0, true}};
}

/// The decoders for failed allocations: plain decoding, a draft model and draft heads.
std::vector<FailingDecoder> decoders_that_allocate() {
  std::vector<FailingDecoder> all = all_swept();
  all.resize(3);
  return all;
}

/// Result of a run: its tokens, or the reason for its end.
struct Ended {
  std::vector<TokenId> tokens;
  std::vector<Event> events;
  std::string message;  // empty: no failure
  ErrorCode code = ErrorCode::Usage;
  std::vector<std::string> notes;  // of closed devices, or of the run: a step without drafts
};

class DeviceSweep : public testing::TestWithParam<FailingDecoder> {
 protected:
  void SetUp() override {
    emulation::fence_host_off(false);
    sound();
    kernels::take_notes_of_closed();
    in_use_ = emulation::memory_in_use();
  }
  void TearDown() override { sound(); }
  static void sound() {
    emulation::before_calls({});
    emulation::fail_call(0);
    emulation::forget_faults();
    emulation::limit_memory(std::int64_t{4} << 30);
  }

  static ModelConfig config() {
    ModelConfig config = tiny_config();
    config.n_layers = 1;
    return config;
  }
  static std::unique_ptr<Model> model_on(kernels::Device& device, std::uint64_t seed) {
    return tiny_transformer(device, kernels::DType::BF16, seed, config());
  }

  /// Loads the target (one layer) and its draft resources on their own GPU, prefills a prompt and
  /// takes the steps.
  static std::vector<TokenId> some_steps(EventSink& events) {
    const std::vector<TokenId> prompt = {3, 7, 1, 9, 4};
    events.push(RunStarted{.t = now_ns(), .run = 1, .prompt_tokens = prompt});
    const auto device = kernels::open_cuda("cuda:emulated");
    const auto model = model_on(*device, 11);
    Job job = GetParam().job;
    std::unique_ptr<Model> draft;
    std::unique_ptr<DraftHeads> heads;
    if (job.decoder == "speculative") {
      draft = model_on(*device, 12);
      job.draft = draft.get();
    }
    const HeadsOptions options{.dtype = kernels::DType::BF16,
                               .vocab_size = config().vocab_size,
                               .max_seq_len = config().max_seq_len};
    if (job.decoder == "medusa")
      heads = load_medusa(*device, random_heads_for(config(), HeadsKind::Medusa), options);
    if (job.decoder == "chimera") {
      ModelFiles target;
      target.config = config();
      target.tensors = random_tensors(config(), 11);
      heads =
          load_chimera(*device, random_heads_for(config(), HeadsKind::Chimera), target, options);
    }
    job.heads = heads.get();
    Lane lane = start(*model, prompt, job);
    Stepper stepper(*model, &events);
    Lane* const one = &lane;
    for (int i = 0; i < GetParam().n_steps; i++) stepper.step(std::span(&one, 1));
    return {lane.sequence.generated().begin(), lane.sequence.generated().end()};
  }
  /// Two sequences in SEED's rounds; draft model and target work at the same time.
  static std::vector<TokenId> rounds_of_two(EventSink& events) {
    const Deadline deadline;
    const auto device = kernels::open_cuda("cuda:emulated"),
               beside = kernels::open_cuda("cuda:emulated");
    const auto target = model_on(*device, 11), draft = model_on(*beside, 12);
    Job job = GetParam().job;
    job.draft = draft.get();
    const std::vector<Text> texts = {{{3, 7, 1, 9, 4}, job}, {{5, 2}, job}};
    const FirstComeFirstServed policy;
    FixedOverlap always(true);
    Rounds rounds(2, policy, 1, nullptr, {}, &always);
    LaneRounds work(*target, texts, 2, &events);
    run_rounds(rounds, work);
    std::vector<TokenId> both = work.tokens[0];
    both.insert(both.end(), work.tokens[1].begin(), work.tokens[1].end());
    return both;
  }
  static Ended run() {
    Ended ended;
    LockedList events;
    try {
      ended.tokens = GetParam().at_once ? rounds_of_two(events) : some_steps(events);
    } catch (const Error& error) {
      ended.message = error.what();
      ended.code = error.code();
      events.push(RunFailed{
          .t = now_ns(), .run = 1, .code = static_cast<int>(ended.code), .message = ended.message});
    }
    ended.events = std::move(events.list.events);
    for (const Event& event : ended.events)
      if (const auto* notice = std::get_if<Notice>(&event)) ended.notes.push_back(notice->text);
    for (std::string& note : kernels::take_notes_of_closed())
      ended.notes.push_back(std::move(note));
    return ended;
  }
  /// The trace of the events so far is complete and shows the end of the run.
  static void expect_trace_of(const Ended& ended) {
    Timeline timeline;
    for (const Event& event : ended.events) timeline.apply(event);
    EXPECT_EQ(timeline.n_inconsistent(), 0);
    if (timeline.runs().empty()) return;  // failed before a sequence started
    std::string text;
    write_trace(timeline, {}, [&](std::string_view piece) { text += piece; });
    const TraceCheck check = check_trace_text(text);
    EXPECT_TRUE(check.ok()) << (check.ok() ? "" : check.problems.front().what);
    EXPECT_THAT(text, HasSubstr("{\"code\":" + std::to_string(static_cast<int>(ended.code)) + "}"));
  }
  /// A run in which something fails, followed by a good one.
  Ended failed_run(const std::vector<TokenId>& expected) {
    Ended ended = run();
    failed_ = emulation::failed_call();
    sound();
    EXPECT_EQ(emulation::memory_in_use(), in_use_);
    if (ended.message.empty()) {
      // A step without drafts emits fewer of the same tokens.
      const auto n = static_cast<std::ptrdiff_t>(std::min(ended.tokens.size(), expected.size()));
      EXPECT_GE(n, 3);
      EXPECT_TRUE(std::equal(ended.tokens.begin(), ended.tokens.begin() + n, expected.begin()));
      EXPECT_TRUE(ended.notes.size() > 0 || ended.tokens == expected);
    } else {
      expect_trace_of(ended);
      EXPECT_THAT(ended.message, AllOf(HasSubstr("cuda:emulated: "), HasSubstr("--device cpu"),
                                       Not(HasSubstr("\n"))));
      EXPECT_TRUE(ended.code == ErrorCode::Device || ended.code == ErrorCode::Resources);
    }
    return ended;
  }

  std::int64_t in_use_ = 0;
  std::string failed_;  // name of the failing call
};

class MemorySweep : public DeviceSweep {};

bool gives_back(const std::string& call) {
  return call == "cudaFree" || call.ends_with("Destroy") || call == "cudaFreeHost";
}

// CU19.
TEST_P(DeviceSweep, every_failing_call_is_named_and_the_next_run_works) {
  emulation::fail_call(0);
  const std::vector<TokenId> expected = run().tokens;
  const std::int64_t n_calls = emulation::fail_call(0);
  ASSERT_GT(n_calls, 150);
  ASSERT_GE(expected.size(), 3u);
  std::set<std::string> named;
  for (std::int64_t n = 1; n <= n_calls; n++) {
    emulation::fail_call(n);
    const Ended ended = failed_run(expected);
    SCOPED_TRACE("call " + std::to_string(n) + ", " + failed_ + ": " + ended.message);
    // With two threads the order of calls varies, and a few may be absent.
    if (GetParam().at_once && failed_.empty() && n > n_calls - 20) break;
    ASSERT_NE(failed_, "");
    // A failed allocation is retried, and a graph is optional. A failed free is reported by a later
    // call or by a note at the end.
    const bool done_without = failed_ == "cudaMalloc" || failed_ == "cudaGraphInstantiateWithFlags";
    std::string said = ended.message;
    if (said.empty() && !done_without) {
      ASSERT_EQ(ended.notes.size(), 1u);
      said = ended.notes.front();
    }
    ASSERT_EQ(said.empty(), done_without);
    if (n % 16 == 0 || n == n_calls) {
      ASSERT_EQ(run().tokens, expected) << "the next run";
    }
    if (done_without) continue;
    EXPECT_THAT(said, HasSubstr("cudaError"));
    // A launch is named by its kernel.
    EXPECT_THAT(said, HasSubstr(failed_ == "cudaLaunchKernel" ? "(grid " : failed_));
    named.insert(failed_);
  }
  for (const char* call :
       {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaStreamCreateWithFlags",
        "cudaMallocHost", "cudaFree", "cudaFreeHost", "cudaStreamDestroy", "cudaEventDestroy"})
    EXPECT_TRUE(named.contains(call)) << call;
}

// CU04.
TEST_P(MemorySweep, every_failed_allocation_call_is_named) {
  emulation::fail_call(0);
  const std::vector<TokenId> expected = run().tokens;
  const std::int64_t n_calls = emulation::fail_call(0);
  std::set<std::string> done_without;
  for (std::int64_t n = 1; n <= n_calls; n++) {
    emulation::fail_call_for_memory(n);
    const Ended ended = failed_run(expected);
    SCOPED_TRACE("call " + std::to_string(n) + ", " + failed_ + ": " + ended.message);
    // A failed free and a failed draft are only noted.
    const bool noted = ended.message.empty() && !ended.notes.empty();
    if (noted || !ended.message.empty()) {
      const std::string& said = noted ? ended.notes.front() : ended.message;
      EXPECT_THAT(said,
                  AllOf(HasSubstr("cudaErrorMemoryAllocation"), HasSubstr("cuda:emulated: ")));
      // No device is open yet whose free memory could be reported.
      if (failed_ != "cudaGetDeviceProperties") {
        EXPECT_THAT(said, testing::ContainsRegex("[0-9]+ MB of [0-9]+ MB are free"));
      }
    }
    if (gives_back(failed_)) {
      EXPECT_TRUE(noted || !ended.message.empty());
    } else if (ended.message.empty() && (!noted || failed_.starts_with("cudaGraph"))) {
      done_without.insert(failed_);
    }
    if (n % 16 == 0 || n == n_calls) {
      ASSERT_EQ(run().tokens, expected) << "the next run";
    }
  }
  EXPECT_TRUE(done_without.contains("cudaMalloc"));
  for (const char* call : {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize"})
    EXPECT_FALSE(done_without.contains(call)) << call;
}

// From the n-th allocation on there is no memory: the message names the purpose of the allocation.
// CU04.
TEST_P(MemorySweep, every_allocation_names_its_purpose_on_failure) {
  const std::vector<TokenId> expected = run().tokens;
  std::set<std::string> purposes;
  std::int64_t n_allocations = 0;
  for (std::int64_t failing = 1; failing == 1 || failing <= n_allocations; failing++) {
    n_allocations = 0;
    emulation::before_calls([&](const std::string& name) {
      if (name == "cudaMalloc" && ++n_allocations == failing)
        emulation::limit_memory(emulation::memory_in_use());
    });
    const Ended ended = failed_run(expected);
    SCOPED_TRACE("allocation " + std::to_string(failing) + ": " + ended.message);
    if (n_allocations < failing) break;  // past the last allocation
    std::string said = ended.message;
    if (said.empty() && !ended.notes.empty()) said = ended.notes.front();
    EXPECT_TRUE(ended.message.empty() || ended.code == ErrorCode::Resources);
    const auto at = said.find("were needed for ");
    ASSERT_NE(at, std::string::npos) << said;
    const std::string rest = said.substr(at + 16);
    purposes.insert(rest.substr(0, rest.find(',')));
    EXPECT_THAT(rest, HasSubstr(" are free"));
    if (failing % 16 == 0) {
      ASSERT_EQ(run().tokens, expected) << "the next run";
    }
    n_allocations = failing + 1;
  }
  EXPECT_THAT(purposes,
              testing::IsSupersetOf({"the weights", "a step's rows", "a step's logits",
                                     "a step's keys and values", "cache page 1",
                                     "the table of positions", "a step's working memory"}));
  EXPECT_EQ(purposes.contains("draft heads"), GetParam().job.decoder == "medusa");
}

const auto kName = [](const auto& of) { return std::string(of.param.name); };
INSTANTIATE_TEST_SUITE_P(Decoders, DeviceSweep, testing::ValuesIn(all_swept()), kName);
INSTANTIATE_TEST_SUITE_P(Decoders, MemorySweep, testing::ValuesIn(decoders_that_allocate()), kName);

}  // namespace
}  // namespace engine::test
