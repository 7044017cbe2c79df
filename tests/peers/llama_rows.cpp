// Measures a step of llama.cpp as `decoscope bench step` measures ours: k rows after a committed
// prefix of 128 tokens, with the logits of every row. The project's build does not contain it. Build
// it by hand against a llama.cpp in LLAMA whose static libraries are in LLAMA/build:
//   decoscope model random --config assets/shapes/M.json M --seed 1
//   python3 tests/peers/to_gguf.py M M.gguf
//   g++ -std=c++20 -O2 tests/peers/llama_rows.cpp -I LLAMA/include -I LLAMA/ggml/include
//       -L LLAMA/build/src -L LLAMA/build/ggml/src -lllama -lggml -lggml-cpu -lggml-base -fopenmp
//       -ldl -o llama_rows
//   llama_rows MODEL.gguf [REPEATS] [THREADS]
// prints "rows ms" a line, medians of the repeats; row counts alternate, so that a slow moment of
// the machine affects all of them.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <vector>

#include <llama.h>

namespace {

constexpr int kPrefix = 128, kContext = 512;
constexpr std::array kRows{1, 2, 4, 8, 16, 24, 32};

double ms_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

struct Free {
  void operator()(llama_model* model) const { llama_model_free(model); }
  void operator()(llama_context* context) const { llama_free(context); }
};

/// A batch of one sequence with arbitrary tokens: timing does not depend on them.
class Batch {
 public:
  Batch() : batch_(llama_batch_init(kContext, 0, 1)) {}
  ~Batch() { llama_batch_free(batch_); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  /// @param pos  position of the first of the `n` tokens
  void fill(int n, int pos, bool all_logits) {
    batch_.n_tokens = n;
    for (int i = 0; i < n; i++) {
      batch_.token[i] = (7 * i + 3) % 997;
      batch_.pos[i] = pos + i;
      batch_.n_seq_id[i] = 1;
      batch_.seq_id[i][0] = 0;
      batch_.logits[i] = all_logits || i + 1 == n;
    }
  }
  const llama_batch& get() const { return batch_; }

 private:
  llama_batch batch_;
};

void decode(llama_context* context, const Batch& batch) {
  if (llama_decode(context, batch.get()) != 0) throw std::runtime_error("llama_decode failed");
  llama_synchronize(context);
}

/// The step is undone afterwards, so every step has the same prefix.
double step_ms(llama_context* context, Batch& batch, int n_rows) {
  batch.fill(n_rows, kPrefix, true);
  const double begun = ms_now();
  decode(context, batch);
  if (!llama_get_logits_ith(context, n_rows - 1)) throw std::runtime_error("a row has no logits");
  const double ms = ms_now() - begun;
  llama_memory_seq_rm(llama_get_memory(context), 0, kPrefix, -1);
  return ms;
}

void measure(const char* path, int n_repeats, int n_threads) {
  const std::unique_ptr<llama_model, Free> model(
      llama_model_load_from_file(path, llama_model_default_params()));
  if (!model) throw std::runtime_error("cannot load the model");
  llama_context_params params = llama_context_default_params();
  params.n_ctx = params.n_batch = params.n_ubatch = kContext;
  params.n_threads = params.n_threads_batch = n_threads;
  const std::unique_ptr<llama_context, Free> context(llama_init_from_model(model.get(), params));
  if (!context) throw std::runtime_error("cannot create a context");

  Batch batch;
  batch.fill(kPrefix, 0, false);
  decode(context.get(), batch);
  std::array<std::vector<double>, kRows.size()> ms;
  for (int repeat = -1; repeat < n_repeats; repeat++)  // the first is not counted
    for (std::size_t i = 0; i < kRows.size(); i++) {
      const double one = step_ms(context.get(), batch, kRows[i]);
      if (repeat >= 0) ms[i].push_back(one);
    }
  for (std::size_t i = 0; i < kRows.size(); i++) {
    const auto middle = ms[i].begin() + static_cast<std::ptrdiff_t>(ms[i].size() / 2);
    std::nth_element(ms[i].begin(), middle, ms[i].end());
    std::printf("%d %.3f\n", kRows[i], *middle);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int n_repeats = argc > 2 ? std::atoi(argv[2]) : 15;
  const int n_threads = argc > 3 ? std::atoi(argv[3]) : 2;
  if (argc < 2 || n_repeats < 1 || n_threads < 1) {
    std::fprintf(stderr, "llama_rows MODEL.gguf [REPEATS] [THREADS]\n");
    return 2;
  }
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  try {
    measure(argv[1], n_repeats, n_threads);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "llama_rows: %s: %s\n", argv[1], error.what());
    return 1;
  }
  llama_backend_free();
}
