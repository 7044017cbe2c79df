// Every call of CUDA's made to fail once, beneath a load, a prompt and some steps of a decoder, by
// the emulated GPU: what is said, what is left behind, whether a trace of it can be saved, and
// whether the next run is good.
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "engine/event/clock.h"
#include "engine/event/timeline/timeline.h"
#include "engine/trace/check.h"
#include "engine/trace/export.h"
#include "kernels/cuda/cuda.h"
#include "kernels/emulation/emulation_checks.h"
#include "tests/engine/decode/catalogue.h"
#include "tests/engine/decode/tiny_transformer.h"
#include "tests/engine/schedule/in_time.h"
#include "tests/engine/schedule/lane_rounds.h"

namespace engine::test {
namespace {

namespace emulation = kernels::emulation;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// What is made to fail.
struct Swept {
  const char* name;
  Job job;
  int n_steps = 3;
  /// Draft and target work at the same time, on devices and threads of their own; to the texts' end.
  bool at_once = false;
};

Job job_of(const char* decoder, OptionValues options = {}) {
  Job job;
  job.decoder = decoder;
  job.options = std::move(options);
  job.limits.max_tokens = 100;
  return job;
}

std::vector<Swept> all_swept() {
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

/// The same for lack of memory: plain decoding, drafts and draft heads.
std::vector<Swept> all_that_want_memory() {
  std::vector<Swept> all = all_swept();
  all.resize(3);
  return all;
}

/// What a run came to: its tokens, or why it ended.
struct Ended {
  std::vector<TokenId> tokens;
  std::vector<Event> events;
  std::string message;  // empty: it did not fail
  ErrorCode code = ErrorCode::Usage;
  std::vector<std::string>
      notes;  // of devices that are closed, or the run's: a step without drafts
};

class DeviceSweep : public testing::TestWithParam<Swept> {
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

  /// Loads the target, of one layer, and what its decoder needs on a GPU of its own, reads a prompt
  /// and takes the steps.
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
  /// Two texts in rounds, whose draft model and target work at the same time.
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
  /// A trace of what was told until then is whole, and says how it ended.
  static void expect_trace_of(const Ended& ended) {
    Timeline timeline;
    for (const Event& event : ended.events) timeline.apply(event);
    EXPECT_EQ(timeline.n_inconsistent(), 0);
    if (timeline.runs().empty()) return;  // it failed before a text was begun
    std::string text;
    write_trace(timeline, {}, [&](std::string_view piece) { text += piece; });
    const TraceCheck check = check_trace_text(text);
    EXPECT_TRUE(check.ok()) << (check.ok() ? "" : check.problems.front().what);
    EXPECT_THAT(text, HasSubstr("{\"code\":" + std::to_string(static_cast<int>(ended.code)) + "}"));
  }
  /// A run in which something fails, and a good one behind it.
  Ended failed_run(const std::vector<TokenId>& expected) {
    Ended ended = run();
    failed_ = emulation::failed_call();
    sound();
    EXPECT_EQ(emulation::memory_in_use(), in_use_);
    if (ended.message.empty()) {
      // Without its drafts a step writes fewer of the same.
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
  std::string failed_;  // the call
};

class MemorySweep : public DeviceSweep {};

bool gives_back(const std::string& call) {
  return call == "cudaFree" || call.ends_with("Destroy") || call == "cudaFreeHost";
}

TEST_P(DeviceSweep, CU19_every_call_that_fails_is_named_and_the_next_run_is_good) {
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
    // Of two threads the calls come in other orders, and a few may be spared.
    if (GetParam().at_once && failed_.empty() && n > n_calls - 20) break;
    ASSERT_NE(failed_, "");
    // Memory is asked for once more, and a graph may be done without. What gives something back is
    // said by a later call, or by a note at the end.
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

TEST_P(MemorySweep, CU04_every_call_that_finds_no_memory_is_named_and_the_next_run_is_good) {
  emulation::fail_call(0);
  const std::vector<TokenId> expected = run().tokens;
  const std::int64_t n_calls = emulation::fail_call(0);
  std::set<std::string> done_without;
  for (std::int64_t n = 1; n <= n_calls; n++) {
    emulation::fail_call_for_memory(n);
    const Ended ended = failed_run(expected);
    SCOPED_TRACE("call " + std::to_string(n) + ", " + failed_ + ": " + ended.message);
    // What fails when all is given back, a note says, and a draft that costs no more than itself.
    const bool noted = ended.message.empty() && !ended.notes.empty();
    if (noted || !ended.message.empty()) {
      const std::string& said = noted ? ended.notes.front() : ended.message;
      EXPECT_THAT(said,
                  AllOf(HasSubstr("cudaErrorMemoryAllocation"), HasSubstr("cuda:emulated: ")));
      // No device is there yet whose memory could be asked for.
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

// From the n-th allocation on there is no memory: the message says for what it was wanted.
TEST_P(MemorySweep, CU04_every_allocation_from_which_on_memory_is_gone_says_what_it_was_for) {
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
    if (n_allocations < failing) break;  // there are no more
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
INSTANTIATE_TEST_SUITE_P(Decoders, MemorySweep, testing::ValuesIn(all_that_want_memory()), kName);

}  // namespace
}  // namespace engine::test
