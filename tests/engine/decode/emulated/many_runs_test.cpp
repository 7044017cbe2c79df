// Many runs on every available CUDA device: leaked memory, cancellation at any time, equal bits of
// rows and of whole runs in any batch, non-finite numbers. Environment variables set the numbers of
// runs; the parts soak, cancel, rows and same of scripts/gpu_check.sh set them to thousands.
//   DECOSCOPE_SOAK, DECOSCOPE_CANCELS, DECOSCOPE_ROW_FORWARDS, DECOSCOPE_SAME_PROMPTS
//   30, 40, 200 and 150 by default
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "engine/run/run.h"
#include "engine/store/model_store.h"
#include "kernels/cuda/cuda.h"
#include "tests/support/assets_folder.h"
#include "tests/support/decode/catalogue.h"
#include "tests/support/files.h"
#include "tests/support/gpu_here.h"
#include "tests/support/in_environment.h"
#include "tests/support/models/lane.h"
#include "tests/support/models/tiny_transformer.h"

namespace engine::test {
namespace {

using Clock = std::chrono::steady_clock;
using testing::HasSubstr;

int from_environment(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

class DeviceLong : public testing::TestWithParam<std::string> {};

// The driver allocates memory for graphs in large pieces. Without graphs free memory must be equal
// to the byte; with graphs it may not fall below the minimum of the first half.
TEST_P(DeviceLong, Soak_all_memory_is_freed_after_every_generation) {
  const int n = from_environment("DECOSCOPE_SOAK", 30);
  const bool is_emulated = GetParam() == "cuda:emulated";
  for (const char* graphs : {"off", "on"}) {
    const InEnvironment are("CUDA_GRAPHS", graphs);
    SCOPED_TRACE(std::string("graphs ") + graphs);
    const bool to_the_byte = is_emulated || graphs == std::string("off");
    std::unique_ptr<kernels::Device> opened = kernels::open_cuda(GetParam());
    kernels::Device& device = *opened;
    Loaded on(Subject{Subject::Kind::Tiny, kernels::DType::BF16}, 0, {}, std::move(opened));
    const std::vector<Job> settings = plain_settings();
    std::vector<std::vector<TokenId>> texts(settings.size());
    const auto generate = [&](std::size_t i) {
      Job job = settings[i];
      job.limits.max_tokens = 10;
      job.draft = &on.draft();
      job.heads = on.heads(job.decoder);
      return run(on.model(), on.prompt(static_cast<int>(i)), job).tokens;
    };
    for (std::size_t i = 0; i < settings.size(); i++)
      texts[i] = generate(i);  // allocates what later generations reuse
    const std::int64_t free = *device.free_bytes();
    std::int64_t least[2] = {std::numeric_limits<std::int64_t>::max(),
                             std::numeric_limits<std::int64_t>::max()};
    for (int i = 0; i < n; i++) {
      // A different decoder each time, in an order that repeats only after all pairs.
      const auto setting = static_cast<std::size_t>(i * (1 + i / 13)) % settings.size();
      ASSERT_EQ(generate(setting), texts[setting]) << "generation " << i;
      const std::int64_t now = *device.free_bytes();
      least[2 * i / n] = std::min(least[2 * i / n], now);
      if (to_the_byte) {
        ASSERT_EQ(now, free) << "generation " << i;
      }
    }
    EXPECT_GE(least[1], std::min(least[0], free));
  }
}

TEST_P(DeviceLong, Cancel_ends_a_run_within_a_step_and_100_ms) {
  const int n = from_environment("DECOSCOPE_CANCELS", 40);
  const Folder folder;
  ModelConfig config = tiny_config();
  config.vocab_size = 128;
  config.max_seq_len = 512;
  write_model(folder / "small", config, *random_tensors(config, 3), kernels::DType::F32, "");
  ModelStore store(assets_folder(), 1);
  LoadedModel& model =
      store.get({.model = folder / "small", .device = GetParam(), .needs_tokenizer = false});
  RunRequest request{.max_tokens = 140, .ignore_eos = true};
  for (int i = 0; i < 110; i++) request.prompt_tokens.push_back(3 + i * 7 % 120);
  const char* const decoders[] = {"ar", "jacobi", "lookahead"};
  const auto generate = [&](int i, const std::function<bool()>& stop, Clock::duration* longest) {
    request.decoder = decoders[i % 3];
    Clock::time_point begun = Clock::now();
    // Called between steps, and around the prompt's forward.
    const auto step = [&] {
      if (longest) *longest = std::max(*longest, Clock::now() - begun);
      begun = Clock::now();
      return stop && stop();
    };
    return run_to_end(model, request, 1, nullptr, step);
  };
  Clock::duration step{}, whole{};
  std::vector<std::vector<TokenId>> texts;
  for (int i = 0; i < 3; i++) {
    const Clock::time_point begun = Clock::now();
    texts.push_back(generate(i, {}, &step).tokens);
    whole = std::max(whole, Clock::now() - begun);
  }
  Dice dice(17);
  std::vector<double> took;
  int n_stopped = 0;
  for (int i = 0; i < n; i++) {
    std::atomic<bool> stop{false};
    std::atomic<Clock::duration::rep> asked_at{0};
    const auto delay = whole * dice(0, 1000) / 1000;
    std::thread person([&] {
      std::this_thread::sleep_for(delay);
      asked_at = Clock::now().time_since_epoch().count();
      stop = true;
    });
    std::vector<TokenId> tokens;
    bool is_stopped = false;
    try {
      const RunResult result = generate(
          i, [&] { return stop.load(); }, &step);
      tokens = result.tokens;
      is_stopped = result.stop_reason == "stopped";
    } catch (const Error& error) {  // during prefill
      EXPECT_EQ(error.code(), ErrorCode::Cancelled);
      is_stopped = true;
    }
    const Clock::time_point ended = Clock::now();
    person.join();
    if (!is_stopped) continue;
    n_stopped++;
    took.push_back(
        std::chrono::duration<double>(ended.time_since_epoch() - Clock::duration(asked_at.load()))
            .count());
    const std::vector<TokenId>& text = texts[static_cast<std::size_t>(i % 3)];
    EXPECT_EQ(tokens, std::vector<TokenId>(text.begin(), text.begin() + std::ssize(tokens)))
        << "cancel " << i;
  }
  ASSERT_GT(n_stopped, n / 4);
  std::ranges::sort(took);
  const double p99 = took[took.size() * 99 / 100];
  EXPECT_LE(p99, std::chrono::duration<double>(step).count() + 0.1)
      << n_stopped << " cancels; the longest step took "
      << std::chrono::duration<double>(step).count() << " s";
  // The next runs are not affected.
  for (int i = 0; i < 3; i++) EXPECT_EQ(generate(i, {}, nullptr).tokens, texts[std::size_t(i)]);
}

TEST_P(DeviceLong, RowBits_do_not_depend_on_the_number_of_rows) {
  constexpr int kMost = 17;
  const int n = from_environment("DECOSCOPE_ROW_FORWARDS", 200);
  const auto device = kernels::open_cuda(GetParam());
  Dice dice(23);
  for (int at = 0; at < n;) {
    const auto dtype = std::vector{kernels::DType::BF16, kernels::DType::F32,
                                   kernels::DType::F16}[std::size_t(dice(0, 2))];
    const auto model = tiny_transformer(*device, dtype, static_cast<std::uint64_t>(dice(1, 9)));
    Lane lane(*model);
    lane.append(dice.text(dice(1, 100), model->vocab_size()));
    TokenTree tree;
    for (int r = 0; r < kMost; r++)
      tree.add(static_cast<TokenId>(dice(1, model->vocab_size() - 1)), dice(-1, r - 1), RowTag{});
    const StepOutput all = lane.forward(tree);
    for (int m = 1; m <= kMost && at < n; m++, at++) {
      TokenTree fewer;
      for (int r = 0; r < m; r++)
        fewer.add(tree.token[std::size_t(r)], tree.parent[std::size_t(r)], RowTag{});
      const StepOutput some = lane.forward(fewer);
      for (int r = 0; r < m; r++) {
        expect_same_row(some, r, all, r);
        ASSERT_FALSE(HasFailure()) << "forward " << at << ", row " << r << " of " << m;
      }
    }
  }
}

/// Output of a run: its tokens, and the bits of each choice's margin.
using Written = std::pair<std::vector<TokenId>, std::vector<std::uint32_t>>;

/// Runs a prompt in random batches: 1 to 8 copies and up to 4 other sequences in random order, with
/// random decoders and prefill chunks, so that they end at different times.
class RandomBatches {
 public:
  RandomBatches(LanguageModel& model, std::uint64_t seed) : model_(model), dice_(seed) {}
  /// @param prompt  of run i
  /// @return        the distinct outputs of n runs
  std::set<Written> outputs(int n, const std::function<std::vector<TokenId>(int i)>& prompt) {
    std::set<Written> all;
    for (int at = 0; at < n;) {
      std::vector<engine::Lane> lanes;
      std::vector<bool> counts;
      const int n_same = std::min(dice_(1, 8), n - at), n_other = dice_(0, 4);
      for (int same = 0, other = 0; same < n_same || other < n_other;) {
        const bool is_same = same < n_same && (other == n_other || dice_(0, 1) == 0);
        lanes.push_back(
            started(is_same ? prompt(at + same) : dice_.text(dice_(1, 80), model_.vocab_size())));
        counts.push_back(is_same);
        (is_same ? same : other)++;
      }
      finish(lanes);
      for (std::size_t i = 0; i < lanes.size(); i++)
        if (counts[i]) all.insert(written_by(lanes[i]));
      at += n_same;
    }
    return all;
  }

 private:
  engine::Lane started(std::vector<TokenId> prompt) {
    const char* const decoders[] = {"ar", "jacobi", "lookahead", "prompt-lookup"};
    const DecoderContext context{.target = model_, .limits = {.max_tokens = 12}};
    engine::Lane lane = make_lane(1, model_, std::move(prompt), decoders[dice_(0, 3)], context);
    prefill(model_, lane.sequence, dice_(1, 70));
    lane.decoder->begin(lane.sequence);
    return lane;
  }
  void finish(std::vector<engine::Lane>& lanes) {
    Stepper stepper(model_, nullptr);
    while (true) {
      std::vector<engine::Lane*> going;
      for (engine::Lane& lane : lanes)
        if (!lane.sequence.finished()) going.push_back(&lane);
      if (going.empty()) return;
      stepper.step(going);
    }
  }
  static Written written_by(const engine::Lane& lane) {
    const auto tokens = lane.sequence.generated();
    Written written{{tokens.begin(), tokens.end()}, {}};
    for (const float margin : lane.margins)
      written.second.push_back(std::bit_cast<std::uint32_t>(margin));
    EXPECT_EQ(written.second.size(), tokens.size());
    return written;
  }

  LanguageModel& model_;
  Dice dice_;
};

// Prompts cross a boundary of attention's chunks of 64 positions.
TEST_P(DeviceLong, SamePrompt_gives_the_same_output_in_any_batch) {
  const int n = from_environment("DECOSCOPE_SAME_PROMPTS", 150);
  const auto device = kernels::open_cuda(GetParam());
  for (const auto dtype : {kernels::DType::BF16, kernels::DType::F32}) {
    SCOPED_TRACE(kernels::name_of(dtype));
    const auto model = tiny_transformer(*device, dtype, 11);
    Dice dice(31);
    const std::vector<TokenId> prompt = dice.text(58, model->vocab_size());
    RandomBatches company(*model, 37);
    const int n_here = dtype == kernels::DType::BF16 ? n : n / 5;
    EXPECT_EQ(company.outputs(n_here, [&](int) { return prompt; }).size(), 1u) << n_here;
    // A changed token at either end of the prompt must change the output.
    std::vector<TokenId> altered = prompt;
    altered.front() = altered.front() == 5 ? 6 : 5;
    const auto seen = company.outputs(10, [&](int i) { return i == 7 ? altered : prompt; });
    EXPECT_EQ(seen.size(), 2u);
  }
}

// A control for the test above: prefilled by our kernels or by cuBLAS, the prompt has correct sums
// in two orders, so the outputs must differ.
TEST_P(DeviceLong, SamePrompt_with_another_sum_order_is_detected) {
  const InEnvironment own("DECOSCOPE_CUBLAS", "own");
  ModelConfig config = tiny_config();
  config.max_seq_len = 1024;
  config.head_dim = 32;  // sums of more than one chunk of 64
  config.dim = config.n_heads * config.head_dim;
  Dice dice(41);
  const std::vector<TokenId> prompt = dice.text(300, config.vocab_size);
  std::set<Written> all;
  for (const char* way : {"own", "cublas"}) {
    const InEnvironment prompts("CUDA_PROMPTS", way);
    const auto device = kernels::open_cuda(GetParam());
    const auto model = tiny_transformer(*device, kernels::DType::F32, 11, config);
    const auto found = RandomBatches(*model, 43).outputs(4, [&](int) { return prompt; });
    EXPECT_EQ(found.size(), 1u) << way << ": outputs differ within one way of prefilling";
    all.insert(found.begin(), found.end());
  }
  EXPECT_EQ(all.size(), 2u);
}

/// Random weights; one token's embedding contains a NaN.
class WithNan : public TensorSource {
 public:
  WithNan(std::shared_ptr<const TensorSource> from, TokenId token)
      : from_(std::move(from)), token_(token) {}
  bool has(const std::string& name) const override { return from_->has(name); }
  std::vector<std::string> names() const override { return from_->names(); }
  std::string path() const override { return from_->path(); }
  Tensor read(const std::string& name) const override {
    Tensor tensor = from_->read(name);
    if (name != "model.embed_tokens.weight") return tensor;
    const auto* values = static_cast<const float*>(tensor.data);
    auto copy = std::make_shared<std::vector<float>>(values, values + tensor.n_elements());
    (*copy)[static_cast<std::size_t>(token_ * tensor.shape[1])] =
        std::numeric_limits<float>::quiet_NaN();
    tensor.data = copy->data();
    tensor.hold = std::move(copy);
    return tensor;
  }

 private:
  std::shared_ptr<const TensorSource> from_;
  TokenId token_;
};

TEST_P(DeviceLong, NonFinite_logits_name_their_row_with_and_without_graphs) {
  constexpr TokenId kNan = 6;
  for (const char* graphs : {"on", "off"}) {
    for (const int n_rows : {1, 5}) {  // plain decoding, and a verified draft
      SCOPED_TRACE(std::string("graphs ") + graphs + ", " + std::to_string(n_rows) + " rows");
      const InEnvironment are("CUDA_GRAPHS", graphs);
      const auto device = kernels::open_cuda(GetParam());
      ModelFiles files;
      files.path = files.name = "tiny";
      files.config = tiny_config();
      files.tensors = std::make_shared<WithNan>(random_tensors(files.config, 11), kNan);
      const auto model = Model::load(*device, files, {.dtype = kernels::DType::BF16});
      Lane lane(*model);
      lane.append(std::vector<TokenId>{3, 7, 1, 9});
      const auto tree_of = [&](TokenId last) {
        std::vector<TokenId> tokens(static_cast<std::size_t>(n_rows), 4);
        tokens.back() = last;
        return chain_tree(tokens);
      };
      const TokenTree good = tree_of(5), bad = tree_of(kNan);
      std::vector<TokenId> expected;
      for (int i = 0; i < 6; i++) {
        const bool is_bad = i == 3 || i == 4;  // the kernels are a graph by then
        try {
          const StepOutput out = lane.forward(is_bad ? bad : good, {});
          EXPECT_FALSE(is_bad) << "step " << i;
          std::vector<TokenId> picked;
          for (const kernels::Picked& one : out.picked) picked.push_back(one.id);
          if (expected.empty()) expected = picked;
          EXPECT_EQ(picked, expected) << "step " << i;
        } catch (const Error& error) {
          EXPECT_TRUE(is_bad) << error.what();
          EXPECT_EQ(error.code(), ErrorCode::BadInput);
          EXPECT_THAT(error.what(),
                      HasSubstr("non-finite logits at row " + std::to_string(n_rows - 1)));
        }
      }
      // The same error if tokens are drawn from the logits on the device.
      const auto cache = model->make_cache();
      const kernels::DeviceBuffer distribution(*device, std::int64_t{model->vocab_size()} * 8,
                                               "a test");
      const DrawRequest request{.uniforms = {0.5},
                                .distribution = static_cast<double*>(distribution.data())};
      BatchItem item{.cache = cache.get(), .tree = &bad};
      item.sampling.temperature = 1;
      item.draw = &request;
      try {
        model->forward(std::span(&item, 1), {.draws = true});
        ADD_FAILURE() << "expected an error, got none";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::BadInput);
        EXPECT_THAT(error.what(),
                    HasSubstr("non-finite logits at row " + std::to_string(n_rows - 1)));
      }
      EXPECT_EQ(device->failure(), "");
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceLong);
INSTANTIATE_TEST_SUITE_P(Devices,
                         DeviceLong,
                         testing::ValuesIn(kernels::test::cuda_devices_here()),
                         kernels::test::name_of_device);

}  // namespace
}  // namespace engine::test
