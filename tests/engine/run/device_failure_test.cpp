// The emulated GPU fails while the engine uses it. The tests check which runs end, which data is
// kept, and that the engine's next commands work.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include <gmock/gmock.h>

#include "engine/checkpoint/model_files.h"
#include "engine/event/recording/recording.h"
#include "engine/model/kv_cache.h"
#include "engine/run/run.h"
#include "kernels/cuda/cuda.h"
#include "kernels/emulation/emulation_checks.h"
#include "tests/support/engine_thread.h"
#include "tests/support/files.h"
#include "tests/support/in_environment.h"

namespace engine {
namespace {

namespace emulation = kernels::emulation;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const char* const kEmulated = "cuda:emulated";
constexpr std::int64_t kMemory = std::int64_t{4} << 30;  // of the emulated GPU at the start

/// An engine with an emulated GPU, which works again after the test.
class FailingGpu : public test::EngineThread {
 protected:
  void TearDown() override {
    EngineThread::TearDown();
    emulation::before_calls({});
    emulation::fail_call(0);
    emulation::limit_memory(kMemory);
    emulation::forget_faults();
  }
  static StartRun on(const std::string& device, int max_tokens) {
    StartRun start = race({"jacobi"}, max_tokens);
    start.lanes.front().options["block"] = "8";
    start.device = device;
    return start;
  }
  /// Starts a held run on the GPU and takes two steps; no call is made between steps.
  bool two_steps(StartRun start) {
    const int before = count<StepEnded>();
    start.start_held = true;
    commands.push(start);
    for (int n = 1; n <= 2; n++) {
      commands.push(StepOnce{});
      if (!until([&] { return count<StepEnded>() == before + n; })) return false;
    }
    return true;
  }
  /// Returns once the engine has finished all earlier commands.
  bool settled() {
    const int before = count<Held>();
    commands.push(Hold{false});
    return until([&] { return count<Held>() > before; });
  }
  /// Starts a run that must be refused. @return  the reason
  std::string refusal(const StartRun& start) {
    const int before = count<RunFailed>();
    commands.push(start);
    if (!until([&] { return count<RunFailed>() > before; })) return "expected a refusal";
    const auto& failed = std::get<RunFailed>(*std::find_if(
        all.rbegin(), all.rend(), [](const Event& e) { return std::get_if<RunFailed>(&e); }));
    EXPECT_EQ(failed.run, 0u) << failed.message;
    return failed.message;
  }
};

// CU08, CU09.
TEST_F(FailingGpu, a_permanent_fault_ends_the_run_and_the_cpu_works) {
  const std::int64_t memory = emulation::memory_in_use();
  const test::Folder folder;
  commands.push(RecordTo{folder / "failed.pdrun"});
  ASSERT_TRUE(two_steps(on(kEmulated, 16)));
  const std::size_t n_tokens = timeline.runs().back().tokens.size();
  ASSERT_GT(n_tokens, 0u);
  emulation::fail_call_for_good(5);
  commands.push(StepOnce{});
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
  const RunRecord run = timeline.runs().back();
  ASSERT_TRUE(run.failed);
  EXPECT_EQ(run.failed->code, static_cast<int>(ErrorCode::Device));
  const std::string cause = run.failed->message;
  EXPECT_THAT(cause, AllOf(HasSubstr("cuda:emulated: "), HasSubstr("cudaErrorLaunchFailure"),
                           HasSubstr("--device cpu"), Not(HasSubstr("\n"))));
  EXPECT_EQ(run.tokens.size(), n_tokens);
  EXPECT_FALSE(run.started.prompt.empty());

  // The device and its model are released.
  ASSERT_TRUE(settled());
  EXPECT_EQ(emulation::memory_in_use(), memory);
  // The device cannot be opened again. Each attempt reports the first cause once, without delay.
  for (int i = 0; i < 2; i++)
    EXPECT_THAT(refusal(on(kEmulated, 4)),
                AllOf(HasSubstr("cannot be opened again"), HasSubstr(cause), Not(HasSubstr("\n"))));
  EXPECT_EQ(count<RunFailed>(), 3);

  commands.push(on("cpu", 16));
  ASSERT_TRUE(until([&] { return n_over() == 2; }));
  EXPECT_EQ(timeline.runs().back().tokens.size(), 16u);
  // Restores the state of a new process.
  emulation::forget_faults();
  emulation::fail_call(0);
  commands.push(on(kEmulated, 2));
  ASSERT_TRUE(until([&] { return n_over() == 3; }));
  EXPECT_TRUE(timeline.runs().back().finished);

  commands.push(RecordTo{});
  ASSERT_TRUE(settled());
  Timeline recorded;
  const RecordingReport report = load_recording(folder / "failed.pdrun", recorded);
  EXPECT_TRUE(report.notices().empty());
  ASSERT_EQ(recorded.runs().size(), 3u);
  ASSERT_TRUE(recorded.runs().front().failed);
  EXPECT_EQ(recorded.runs().front().failed->message, cause);
  EXPECT_EQ(recorded.runs().front().tokens.size(), n_tokens);
}

// Errors returned by a wait, by CUDA's numbers. A GPU that also drives a display ends slow kernels
// (CU13); a GPU may lose a memory bit or disappear (CU16).
// CU08, CU13, CU16.
TEST_F(FailingGpu, an_error_at_a_wait_is_named_and_ends_the_run) {
  int n_failed = 0;
  for (const auto& [number, name] : {std::pair{702, "cudaErrorLaunchTimeout"},
                                     {710, "cudaErrorAssert"},
                                     {214, "cudaErrorECCUncorrectable"},
                                     {46, "cudaErrorDevicesUnavailable"}}) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(two_steps(on(kEmulated, 16)));
    const std::size_t n_tokens = timeline.runs().back().tokens.size();
    emulation::before_calls([number = number](const std::string& call) {
      if (call == "cudaStreamSynchronize") emulation::fail_call_for_good(1, number);
      if (call == "cudaStreamSynchronize") emulation::before_calls({});
    });
    commands.push(StepOnce{});
    n_failed++;
    ASSERT_TRUE(until([&] { return n_over() == n_failed; }));
    const RunRecord& run = timeline.runs().back();
    ASSERT_TRUE(run.failed);
    EXPECT_EQ(run.failed->code, static_cast<int>(ErrorCode::Device));
    EXPECT_THAT(run.failed->message,
                AllOf(HasSubstr(std::string("cudaStreamSynchronize: ") + name + " ("),
                      HasSubstr("the latest first: "), HasSubstr("--device cpu")));
    EXPECT_EQ(run.tokens.size(), n_tokens);
    ASSERT_TRUE(settled());
    EXPECT_THAT(refusal(on(kEmulated, 4)), HasSubstr(name));
    // Restores the state of a new process.
    emulation::forget_faults();
    emulation::fail_call(0);
  }
}

// Measures the time from the failing call to the report of its cause, and from there to the
// engine's end. CU08.
TEST_F(FailingGpu, the_cause_is_reported_in_1_s_and_the_engine_ends_in_5_s) {
  using Clock = std::chrono::steady_clock;
  std::atomic<Clock::time_point> failed{Clock::time_point()};
  ASSERT_TRUE(two_steps(on(kEmulated, 16)));
  emulation::before_calls([&](const std::string& name) {
    if (name != "cudaStreamSynchronize" || failed.load() != Clock::time_point()) return;
    failed = Clock::now();
    emulation::fail_call_for_good(1);
  });
  commands.push(StepOnce{});
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
  const Clock::time_point reported = Clock::now();
  EXPECT_TRUE(timeline.runs().back().failed);
  EXPECT_LT(reported - failed.load(), std::chrono::seconds(1));
  EngineThread::TearDown();
  EXPECT_LT(Clock::now() - reported, std::chrono::seconds(5));
}

// CU16.
TEST_F(FailingGpu, a_recovered_gpu_is_opened_again_by_the_next_run) {
  commands.push(on(kEmulated, 2));
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
  ASSERT_TRUE(settled());
  emulation::before_calls([](const std::string& name) {
    if (name == "cudaStreamSynchronize") emulation::fail_call(1);
  });
  commands.push(on(kEmulated, 2));
  ASSERT_TRUE(until([&] { return n_over() == 2; }));
  EXPECT_TRUE(timeline.runs().back().failed);
  emulation::before_calls({});
  emulation::fail_call(0);
  commands.push(on(kEmulated, 2));
  ASSERT_TRUE(until([&] { return n_over() == 3; }));
  EXPECT_TRUE(timeline.runs().back().finished);
  EXPECT_EQ(count<ModelLoaded>(), 2) << "the model was on the failed device";
}

// The driver returns this error after it lost its context during a suspension of the machine. CU17.
TEST_F(FailingGpu, a_gpu_replaced_during_suspension_ends_the_run) {
  ASSERT_TRUE(two_steps(on(kEmulated, 16)));
  std::vector<TokenId> before;
  for (const TokenRecord& token : timeline.runs().back().tokens) before.push_back(token.id);
  emulation::fail_call_for_good(1, 999);
  commands.push(StepOnce{});
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
  const RunRecord& run = timeline.runs().back();
  ASSERT_TRUE(run.failed);
  EXPECT_EQ(run.failed->code, static_cast<int>(ErrorCode::Device));
  EXPECT_THAT(run.failed->message, AllOf(HasSubstr("cudaErrorUnknown"), HasSubstr("--device cpu"),
                                         Not(HasSubstr("\n"))));
  std::vector<TokenId> kept;
  for (const TokenRecord& token : run.tokens) kept.push_back(token.id);
  EXPECT_EQ(kept, before);
}

// CU05.
TEST_F(FailingGpu, lost_memory_during_a_run_ends_only_that_run) {
  StartRun start = on(kEmulated, 80);
  const std::string question = start.prompt;
  for (int i = 0; i < 14; i++) start.prompt += question;
  ASSERT_TRUE(two_steps(start));
  const std::size_t n_tokens = timeline.runs().back().tokens.size();
  const std::size_t n_prompt = timeline.runs().back().started.prompt_tokens.size();
  ASSERT_GT(n_prompt, 7 * 64u) << "the prompt ends in the eighth page of the cache";
  ASSERT_LT(n_prompt, 8 * 64u - 40) << "two steps do not reach the ninth page";
  emulation::limit_memory(emulation::memory_in_use());
  commands.push(Hold{false});
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
  const RunRecord& run = timeline.runs().back();
  ASSERT_TRUE(run.failed) << "a ninth page was needed, and a table of more than 512 positions";
  EXPECT_EQ(run.failed->code, static_cast<int>(ErrorCode::Resources));
  EXPECT_THAT(run.failed->message,
              AllOf(testing::AnyOf(HasSubstr("were needed for cache page 9, "),
                                   HasSubstr("were needed for the table of positions, ")),
                    HasSubstr("are free"), HasSubstr("--device cpu")));
  EXPECT_GE(run.tokens.size(), n_tokens);
  // The device still works and keeps its model.
  emulation::limit_memory(kMemory);
  commands.push(on(kEmulated, 2));
  ASSERT_TRUE(until([&] { return n_over() == 2; }));
  EXPECT_TRUE(timeline.runs().back().finished);
  EXPECT_EQ(count<ModelLoaded>(), 1);
}

// CU14.
TEST_F(FailingGpu, without_graph_memory_tokens_are_the_same) {
  commands.push(on(kEmulated, 8));
  ASSERT_TRUE(until([&] { return n_over() == 1; }));
  const auto ids = [&] {
    std::vector<TokenId> found;
    for (const TokenRecord& token : timeline.runs().back().tokens) found.push_back(token.id);
    return found;
  };
  const std::vector<TokenId> expected = ids();
  emulation::before_calls([](const std::string& name) {
    if (name == "cudaGraphLaunch") emulation::fail_call_for_memory(1);
  });
  for (int n = 2; n <= 3; n++) {
    commands.push(on(kEmulated, 8));
    ASSERT_TRUE(until([&] { return n_over() == n; }));
    EXPECT_TRUE(timeline.runs().back().finished);
    EXPECT_EQ(ids(), expected);
  }
  ASSERT_TRUE(settled());
  int n_told = 0;
  for (const Notice& notice : timeline.notices())
    n_told += notice.text.find("launched one by one") != std::string::npos;
  EXPECT_EQ(n_told, 1);
}

// CU05.
TEST_F(FailingGpu, a_model_larger_than_the_gpu_is_refused_with_sizes) {
  emulation::limit_memory(emulation::memory_in_use() + 1'000'000);
  EXPECT_THAT(refusal(on(kEmulated, 2)),
              AllOf(HasSubstr("demo-target on cuda:emulated: "), HasSubstr("of memory are needed"),
                    HasSubstr("1.0 MB are available"), HasSubstr("--device cpu")));
}

/// A model of a few thousand weights.
ModelRequest tiny(const std::string& device) {
  return {.model = DECOSCOPE_SOURCE_DIR "/tests/fixtures/hf/llama_gqa",
          .device = device,
          .needs_tokenizer = false};
}

// The command line prints in one line what the window takes from the run's events.
// CU08.
TEST_F(FailingGpu, run_to_end_reports_the_failing_step) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const auto failed_by = [&](const std::function<bool(const Lane&)>& is_time, EventList& kept) {
    LoadedModel& model = store.get(tiny(kEmulated));
    std::string reported = "it did not fail";
    if (!is_time) emulation::fail_call_for_good(1);
    try {
      run_to_end(model, {.prompt_tokens = {1, 2, 3}, .max_tokens = 8, .ignore_eos = true}, 1, &kept,
                 {}, [&](const Lane& lane) {
                   if (is_time(lane)) emulation::fail_call_for_good(1);
                 });
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Device);
      reported = error.what();
    }
    emulation::forget_faults();
    emulation::fail_call(0);
    store.drop_failed_devices();
    return reported;
  };
  EventList in_a_step, in_the_prompt;
  const std::string reported =
      failed_by([](const Lane& lane) { return lane.n_steps == 2; }, in_a_step);
  ASSERT_THAT(reported, testing::EndsWith("try --device cpu; at step 2"));
  const auto& failed = std::get<RunFailed>(in_a_step.events.back());
  EXPECT_EQ(failed.message + "; at step 2", reported);
  EXPECT_THAT(failed_by({}, in_the_prompt), testing::EndsWith("try --device cpu"));
}

TEST(GpuMemory, a_gpu_model_is_evicted_and_a_cpu_model_stays) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  ModelRequest held = tiny(kEmulated), other = held;
  other.dtype = "f16";
  const std::uint32_t cpu = store.get(tiny("cpu")).id;
  const LoadedModel& there = store.get(held);
  const std::uint32_t first = there.id;
  const double needed =
      gpu_memory_plan(there.model->config(), kernels::DType::F16, there.model->device().ops())
          .needed();
  // Room for another model once this one is released.
  emulation::limit_memory(emulation::memory_in_use() + static_cast<std::int64_t>(needed) - 1000);
  EXPECT_EQ(store.get(other).id, first + 1);
  emulation::limit_memory(kMemory);
  EXPECT_EQ(store.get(tiny("cpu")).id, cpu);
  EXPECT_EQ(store.get(held).id, first + 2) << "it was evicted";
}

// 5 GB, the smallest slice of a GPU (MIG).
// CU03.
TEST(GpuMemory, a_model_larger_than_a_mig_slice_is_refused) {
  emulation::limit_memory(5'100'273'664);
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  std::string reported = "expected a refusal";
  try {
    store.get({.scale = "64x16", .device = kEmulated});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Resources);
    reported = error.what();
  }
  emulation::limit_memory(kMemory);
  EXPECT_THAT(reported,
              AllOf(HasSubstr("demo-target on cuda:emulated at --scale 64x16: "),
                    HasSubstr(" GB of memory are needed"), HasSubstr("5.1 GB are available"),
                    HasSubstr("a smaller --scale"), HasSubstr("--device cpu")));
}

/// Prefills n_positions tokens on the model and runs a step of 120 rows.
void read_and_step(ModelStore& store, const ModelRequest& request, int n_positions) {
  Model& model = *store.get(request).model;
  std::vector<TokenId> prompt;
  for (int i = 0; i <= n_positions; i++) prompt.push_back(static_cast<TokenId>(1 + i % 90));
  Sequence text = prefilled(model, prompt, {});
  TokenTree tree;
  for (int i = 0; i < 120; i++) tree.add(static_cast<TokenId>(1 + i % 90), i / 2 - 1, RowTag{});
  const BatchItem item{.cache = &text.cache(), .tree = &tree, .prefix = text.cached_tokens()};
  model.forward(std::span(&item, 1), {});
}

/// A model shape; its random weights are in a folder.
struct Shape {
  const char* name;
  ModelConfig config;
  const char* dtype;
};
std::vector<Shape> shapes() {
  const auto shape = [](int dim, int hidden, int layers, int heads, int kv_heads, int vocab) {
    ModelConfig config;
    config.dim = dim;
    config.hidden_dim = hidden;
    config.n_layers = layers;
    config.n_heads = heads;
    config.n_kv_heads = kv_heads;
    config.head_dim = dim / heads;
    config.vocab_size = vocab;
    config.max_seq_len = 1024;
    return config;
  };
  std::vector<Shape> all = {{"deep", shape(64, 192, 12, 4, 2, 400), "bf16"},
                            {"wide_vocabulary", shape(64, 160, 2, 4, 4, 9000), "f16"},
                            {"f32", shape(96, 256, 4, 6, 2, 1000), "f32"}};
  all[0].config.tied_embeddings = true;
  return all;
}

/// The plan must be tight: a model that fits by the plan is never refused later, and little memory
/// is reserved unused.
void expect_planned(const std::vector<Shape>& all, int n_positions) {
  const test::Folder folder;
  for (const Shape& shape : all) {
    SCOPED_TRACE(shape.name);
    const std::string directory = folder / shape.name;
    write_model(directory, shape.config, *random_tensors(shape.config, 5), kernels::DType::F32, "");
    const ModelRequest request{
        .model = directory, .dtype = shape.dtype, .device = kEmulated, .needs_tokenizer = false};
    const std::int64_t before = emulation::memory_in_use();
    emulation::memory_peak();
    double planned = 0;
    {
      ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
      read_and_step(store, request, n_positions);
      const kernels::DType dtype = *kernels::dtype_named(shape.dtype);
      kernels::Device& device = store.device(kEmulated);
      planned = gpu_memory_plan(shape.config, dtype, device.ops(), device.prompt_block()).needed();
    }
    const auto peak = static_cast<double>(emulation::memory_peak() - before);
    EXPECT_LE(peak, planned);
    EXPECT_GE(peak, 0.8 * planned);
    // With the planned memory the model loads and runs; with less than it uses it does not load.
    emulation::limit_memory(before + static_cast<std::int64_t>(planned) + 1);
    {
      ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
      EXPECT_NO_THROW(read_and_step(store, request, n_positions));
    }
    emulation::limit_memory(before + static_cast<std::int64_t>(planned) - 1);
    {
      ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
      EXPECT_THROW(store.get(request), Error);
    }
    emulation::limit_memory(kMemory);
  }
}

// CU05.
TEST(GpuMemory, load_prompt_and_step_take_the_planned_memory) {
  expect_planned(shapes(), 300);
}

// A prompt in forwards of four blocks, whose matrices need a second, repacked copy.
// CU05.
TEST(GpuMemory, a_prompt_in_blocks_takes_the_planned_memory) {
  const InEnvironment asked("CUDA_PROMPTS", "cublas");
  std::vector<Shape> all = shapes();
  for (Shape& shape : all) shape.config.n_layers = 2;
  for (Shape& shape : all) shape.config.max_seq_len = 1400;
  expect_planned(all, 1024);
}

// The context is shorter than a prompt's largest forward. The prompt leaves room for one step.
// CU05.
TEST(GpuMemory, a_short_context_takes_the_planned_memory) {
  for (const int max_seq_len : {180, 640}) {
    const InEnvironment asked("CUDA_PROMPTS", max_seq_len == 640 ? "cublas" : "own");
    std::vector<Shape> all = shapes();
    for (Shape& shape : all) shape.config.n_layers = 2;
    for (Shape& shape : all) shape.config.max_seq_len = max_seq_len;
    SCOPED_TRACE(max_seq_len);
    expect_planned(all, max_seq_len - 10);
  }
}

// CU05.
TEST(GpuMemory, the_cache_grows_within_free_memory) {
  const auto device = kernels::open_cuda(kEmulated);
  constexpr KvShape kShape{.n_layers = 3, .n_kv_heads = 2, .head_dim = 16};
  KvStore store(*device, kShape);
  for (int page = 0; page < 8; page++) store.acquire();
  const std::int64_t page = store.bytes_of_page(), block = page / 6;
  const std::int64_t eight = emulation::memory_in_use();
  // Enough for one more page in each block and the copy of one block while it grows, but not for
  // eight more pages.
  emulation::limit_memory(eight + page + 8 * block);
  EXPECT_EQ(store.acquire(), 8);
  EXPECT_EQ(emulation::memory_in_use(), eight + page);
  EXPECT_THROW(store.acquire(), Error) << "there is no room for a tenth page";
  try {
    store.acquire();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Resources);
    EXPECT_THAT(error.what(), HasSubstr("were needed for cache page 10, "));
  }
  emulation::limit_memory(kMemory);
  EXPECT_EQ(store.acquire(), 9);
  EXPECT_GE(emulation::memory_in_use(), eight + 10 * page) << "the cache doubles";
}

// CU04.
TEST(GpuMemory, a_failed_load_leaks_nothing_and_the_next_works) {
  const std::int64_t memory = emulation::memory_in_use();
  int n_failed = 0;
  for (int n_allocations = 1, failing = 0; failing < n_allocations; failing++) {
    ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
    int n = 0;
    emulation::before_calls([&](const std::string& name) {
      const bool allocates = name == "cudaMalloc" || name == "cudaMallocHost";
      if (allocates && n++ >= failing) emulation::fail_call_for_memory(1);
    });
    try {
      store.get(tiny(kEmulated));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Resources) << error.what();
      EXPECT_THAT(error.what(), HasSubstr("cuda:emulated"));
      EXPECT_THAT(error.what(), testing::ContainsRegex(
                                    "[0-9]+ MB (of pinned memory )?were needed for (copies to the "
                                    "device|copies from the device|the weights|a step's working "
                                    "memory), .*[0-9]+ MB of [0-9]+ MB are free; "));
      n_failed++;
      n_allocations = failing + 2;
    }
    emulation::before_calls({});
    emulation::fail_call(0);
    EXPECT_NO_THROW(store.get(tiny(kEmulated))) << "allocation " << failing;
  }
  EXPECT_GT(n_failed, 10);
  EXPECT_EQ(emulation::memory_in_use(), memory);
}

// CU06.
TEST(GpuMemory, a_cpu_run_makes_no_cuda_call) {
  emulation::fail_call(0);
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  LoadedModel& model = store.get(tiny("cpu"));
  const RunResult result = run_to_end(
      model, {.prompt_tokens = {1, 2, 3}, .max_tokens = 4, .ignore_eos = true}, 1, nullptr);
  EXPECT_EQ(result.tokens.size(), 4u);
  EXPECT_EQ(emulation::fail_call(0), 0);
}

}  // namespace
}  // namespace engine
