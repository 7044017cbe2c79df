// A GPU, real or emulated: one stream, scratch memory that grows and stays, pinned staging for what
// the host says, and the one place where a call's result is looked at. One thread at a time may
// call its operations.
//   kernels  are held back and launched together (graphs.h) before something is waited for or read,
//            or memory that they use is written by the host or given back
//   uploads  go into the stream at once: before the kernels that are held back, which do not use
//            what is written
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "kernels/cuda/attention_lists.h"
#include "kernels/cuda/graphs.h"
#include "kernels/cuda/platform.h"
#include "kernels/cuda/train/products.h"
#include "kernels/device.h"
#include "kernels/error.h"

namespace kernels::DECOSCOPE_GPU {

/// What scratch memory is for; what two kernels of one operation need at once has two names.
enum class Use {
  Rows,
  Unpacked,
  Partials,
  Done,
  Ids,
  Plan,
  LastPlan = Plan + AttentionPlans::kMost - 1,
  Commit,
  Pick,
  Distributions,
  Gather,
  Count
};

class CudaDevice final : public Device {
 public:
  CudaDevice(int ordinal, const Ops& ops);
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() override;
  std::string name() const override { return name_; }
  /// From the first launch after a wait to the end of the next.
  std::int64_t busy_ns(int) const override { return busy_ns_; }
  std::string failure() const override { return broken_; }
  std::optional<std::int64_t> free_bytes() override;
  /// "900 MB of 16000 MB are free", or why that is not known.
  std::string memory_told() const;

  std::int64_t n_launches() const override { return graphs_.n_launched(); }
  std::int64_t n_kernels() const override { return n_kernels_; }
  void work_comes_once() override { held_comes_once_ = !held_.empty(); }
  /// What it did otherwise than asked since this was last called, a line each. What nobody has
  /// taken when it closes, its failure too where no call has told it, take_notes_of_closed() has.
  std::vector<std::string> take_notes();
  static std::vector<std::string> take_notes_of_closed();
  /// Something that it did otherwise: words behind its name.
  void note(const std::string& words) { notes_.push_back(name_ + ": " + words); }

  /// Holds a kernel back, to be launched with others. Where that fails, some later call throws
  /// Error(Device), which names it, and so does every call after that.
  template <class... P, class... A>
  void launch(const char* kernel_name,
              void (*kernel)(P...),
              dim3 grid,
              dim3 block,
              std::size_t shared_bytes,
              A... arguments) {
    usable();
    prepare(handle_of(kernel_name, kernel));
    held_.add(kernel_name, kernel, grid, block, shared_bytes, arguments...);
    if (held_.size() == kMostHeld) launch_held();
  }

  /// The same for a kernel that calls wait_for_earlier() in every thread: in a graph it may begin
  /// before the kernel before it has ended.
  template <class... P, class... A>
  void launch_early(const char* kernel_name,
                    void (*kernel)(P...),
                    dim3 grid,
                    dim3 block,
                    std::size_t shared_bytes,
                    A... arguments) {
    launch(kernel_name, kernel, grid, block, shared_bytes, arguments...);
    if (!held_.empty()) held_.latest_is_early();
  }

  /// Takes the kernel that was asked for last back, for another that does its work too: its
  /// arguments, if it is this one, still held back, and fits(grid, arguments...).
  template <class... P, class Fits>
  std::optional<std::tuple<P...>> take_back(void (*kernel)(P...), const Fits& fits) {
    return held_.take_back(kernel, fits);
  }

  /// The stream, for a library's call that puts kernels in it; messages say `name` as a launch.
  cudaStream_t queued(const char* name);
  /// Opened at the first call, for whoever asks first.
  /// @throws Error(Device)  if cuBLAS is not here
  Products& products(ProductsOf whose);
  /// Bytes of a matrix that is put in order for them at a time, for tests; 64 outputs are always.
  void limit_slab(std::int64_t bytes) { slab_bytes_ = bytes; }
  std::int64_t slab_bytes() const { return slab_bytes_; }

  /// Where there is no room it asks once more, behind the work that was given to the stream and
  /// without the graphs that are kept.
  /// @param what  as of Ops::allocate
  void* allocate(std::int64_t bytes, const char* what);
  /// Waits for the work that may use it; where that does not end, the memory stays taken.
  void release(void* data);
  void upload(void* to, const void* from_host, std::int64_t bytes);
  /// Waits for all that was asked before.
  void download(void* to_host, const void* from, std::int64_t bytes);
  /// An operation's answer is to come from there; of rows that begin stride_bytes apart, row r's
  /// first row_bytes to to_host[r].
  void await(void* to_host, const void* from, std::int64_t bytes);
  void await_rows(void* const* to_host,
                  const void* from,
                  std::int64_t row_bytes,
                  std::int64_t stride_bytes,
                  int n_rows);
  /// What is awaited comes now, with one wait, unless answers are held.
  void answer();
  int prompt_block() override;
  std::string prompt_products() const override;
  void hold_answers() override;
  void deliver_answers() override;
  void drop_answers() noexcept override;
  /// Within the device's memory, behind what was asked before. Does not wait.
  void copy(void* to, const void* from, std::int64_t bytes);
  void clear(void* data, std::int64_t bytes);

  int n_multiprocessors() const { return n_multiprocessors_; }
  /// Bytes of shared memory that a block may have, static and dynamic together.
  int most_shared() const { return most_shared_; }

  /// Memory of this device that only grows. What is new is cleared if `cleared`.
  void* scratch(Use use, std::int64_t bytes, bool cleared = false);
  /// The device's copy of a list that the host made; told again only when it is another than the
  /// last of that use.
  const int* mirrored(Use use, std::span<const int> list);
  /// Whom the rows of the forward in progress see.
  AttentionPlans& attention_plans() { return attention_plans_; }

 private:
  static constexpr std::int64_t kHalfBytes = 4 << 20;  // of pinned memory on the way up
  static constexpr const char* kForCopiesBack = "copies from the device";
  static constexpr std::size_t kMostHeld = 4096;
  struct Grown {
    void* data = nullptr;
    std::int64_t bytes = 0;
    std::vector<int> host;  // of mirrored lists
  };
  struct Half {  // of the pinned staging memory
    char* data = nullptr;
    cudaEvent_t copied = nullptr;
    bool pending = false;
  };

  struct Awaited {  // rows of the device's memory, on their way to the host
    const char* from;
    std::int64_t row_bytes, stride_bytes;
    int n_rows;
    std::size_t to;  // where in awaited_to_ the first one's place is
  };
  struct Landed {  // some of those rows
    const Awaited* of;
    int first, n;
    std::int64_t at;  // in landing_
  };
  struct Graph {  // that was launched: its kernels in launched_
    std::size_t begin, end;
  };

  /// Null where there is no room.
  void* try_allocate(std::int64_t bytes);
  void usable();
  void begin_work();
  void launch_held();
  void expect_memory_of_held();
  bool work_ends();
  void launch_held_that_use(const void* place);
  int attribute(cudaDeviceAttr which);
  bool can_begin_early();
  void prepare(const void* kernel);
  void wait();
  void check(cudaError_t error, const char* call);
  [[noreturn]] void fail(cudaError_t error, const std::string& call, bool for_good);
  void given_back(cudaError_t error, const char* call);
  std::string failure_of(cudaError_t error, const std::string& call) const;
  std::string launched_told() const;
  void open();
  void close() noexcept;
  void give_all_back();
  char* staging(std::int64_t bytes);
  /// Of the host, for copies to go through.  @param what  as of Ops::allocate
  char* pinned(std::int64_t bytes, const char* what);
  char* try_pinned(std::int64_t bytes, const char* what, std::string& refusal);
  void grow_landing(std::int64_t bytes);
  void bring_awaited();
  std::int64_t land(const Awaited& one, int first, int n, std::int64_t at);
  void take_landed();
  std::string told_with_memory(cudaError_t error) const;

  std::string name_;
  int ordinal_;
  int n_multiprocessors_ = 1;
  int most_shared_ = 0;  // bytes of a block, static objects and dynamic memory together
  cudaStream_t stream_ = nullptr;
  Half halves_[2];
  int half_ = 0;
  std::int64_t half_used_ = 0;
  char* landing_ = nullptr;  // pinned; where downloads arrive
  std::int64_t landing_bytes_ = 0;
  bool landing_is_refused_ = false;  // more of it
  bool holds_answers_ = false;
  std::vector<Awaited> awaited_;
  std::vector<char*> awaited_to_;
  std::vector<Landed> landed_;
  Grown scratch_[static_cast<int>(Use::Count)];
  AttentionPlans attention_plans_;
  std::unique_ptr<Products> products_;
  bool prompts_by_products_;         // as the environment asks
  std::optional<int> prompt_block_;  // once it is known
  std::int64_t slab_bytes_ = 64 << 20;
  std::unordered_set<const void*> prepared_;                        // kernels
  std::map<const char*, std::int64_t, std::greater<>> allocated_;   // bytes, by where they begin
  std::map<const char*, std::int64_t, std::greater<>> given_back_;  // likewise, where it is checked
  Launches held_;
  bool held_comes_once_ = false;
  KernelGraphs graphs_;
  std::int64_t n_kernels_ = 0;         // that were held back and launched
  std::vector<const char*> launched_;  // since the last wait
  std::vector<Graph> in_graphs_;       // of these
  bool at_work_ = false;               // something was given to the stream since the last wait
  bool hangs_ = false;                 // and did not end
  std::int64_t begun_ns_ = 0;          // of the work since the last wait; 0: none
  std::atomic<std::int64_t> busy_ns_{0};
  std::string broken_;    // the first failure that stays; every later call says it
  bool is_told_ = false;  // it was said
  std::vector<std::string> notes_;
  bool told_of_graphs_ = false;
};

inline CudaDevice& cuda_of(Device& device) {
  return static_cast<CudaDevice&>(device);
}

/// ceil(a / b).
constexpr int blocks_for(std::int64_t a, int b) {
  return static_cast<int>((a + b - 1) / b);
}

// The groups of operations, one file each.
void add_memory_ops(Ops& ops);
void add_matrix_ops(Ops& ops);
void add_row_ops(Ops& ops);
void add_cache_ops(Ops& ops);
void add_attention_ops(Ops& ops);
void add_pick_ops(Ops& ops);
void add_distribution_ops(Ops& ops);
void add_prompt_ops(Ops& ops);

}  // namespace kernels::DECOSCOPE_GPU
