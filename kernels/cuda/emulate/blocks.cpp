// Blocks and their threads: one block after another, each GPU thread on a fiber, warp by warp.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "kernels/cuda/emulate/fiber.h"
#include "kernels/cuda/emulate/launched.h"

namespace kernels::emulation {

constinit thread_local Running running{};

namespace {

std::string told(const Where& where) {
  const std::string file = where.file_name();
  return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(where.line());
}
bool same(const Where& a, const Where& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}
std::string told(const uint3& at) {
  return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) +
         ")";
}

struct AsyncCopy {
  void* to;
  const void* from;
};

struct Thread {
  enum class State { Ready, AtBarrier, InWarp, Done };
  FiberStack stack;
  FiberPoint point;
  uint3 index;
  int warp = 0, lane = 0;
  State state = State::Done;
  bool waited = false;  // for earlier kernels
  Where barrier;
  std::vector<AsyncCopy> copies;  // not made yet, in order
  std::vector<int> group_ends;  // committed groups: copies [0, end) belong to them or earlier ones
};

/// Lanes of a warp on their way to one line.
struct Meeting {
  unsigned mask, here;
  Where where;
  void* payloads[32];
};

/// Memory for one block's shared objects that ends where nobody may touch.
class SharedMemory {
 public:
  SharedMemory() {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    usable_ = (kMaxShared + page - 1) / page * page;
    void* all =
        mmap(nullptr, usable_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw Fault("no memory for the emulation's shared memory");
    begin_ = static_cast<unsigned char*>(all);
    mprotect(begin_ + usable_, page, PROT_NONE);
  }
  ~SharedMemory() { munmap(begin_, usable_ + static_cast<std::size_t>(sysconf(_SC_PAGESIZE))); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Bytes from its end; negative inside.
  std::ptrdiff_t behind(const void* address) const {
    return static_cast<const unsigned char*>(address) - (begin_ + usable_);
  }
  /// The last `bytes`, 16-byte aligned.
  unsigned char* last(std::size_t bytes) { return begin_ + usable_ - (bytes + 15) / 16 * 16; }
  unsigned char* filled(std::size_t bytes, unsigned char pattern) {
    return static_cast<unsigned char*>(std::memset(last(bytes), pattern, (bytes + 15) / 16 * 16));
  }

 private:
  unsigned char* begin_;
  std::size_t usable_;
};

struct StaticObject {
  const void* key;
  std::size_t offset, bytes;
};
constexpr std::size_t kMarkBytes = 16;  // behind every static object
constexpr std::size_t kMaxStatic = kPlainShared;

/// One host thread's emulated multiprocessor.
class Multiprocessor {
 public:
  void run(const Launched& launched, const Order& order);

  void meet_block(const Where& where);
  void meet_warp(unsigned mask,
                 void* payload,
                 void (*perform)(void* const*, unsigned),
                 const Where& where);
  void* static_object(const void* key, std::size_t bytes);
  void copy_async(void* to, const void* from);
  void expect_aligned(std::uintptr_t places, std::size_t bytes) const;
  void commit_copies() {
    current_->group_ends.push_back(static_cast<int>(current_->copies.size()));
  }
  void wait_copies(int n);
  void wait_for_earlier() { current_->waited = true; }
  void prefetch(const void* data, unsigned bytes) const {
    expect_aligned(place(data) | bytes, 16);
    if (!on_device(data, bytes)) fault("asks for bytes that are not in device memory");
  }

  // Of SIGSEGV's handler.
  sigjmp_buf jump;
  bool in_kernel = false;
  const void* bad_address = nullptr;

 private:
  void prepare(const Launched& launched);
  void run_blocks();
  void run_block();
  [[noreturn]] void tell_bad_address();
  bool run_warps();
  bool run_lanes(int warp);
  void resume(Thread& thread);
  void leave() { switch_fiber(current_->point, scheduler_, nullptr); }
  void release_barrier();
  void check_marks() const;
  [[noreturn]] void tell_stuck() const;
  [[noreturn]] void fault(const std::string& what,
                          cudaError_t error = cudaErrorLaunchFailure) const;
  static void entry(void* thread);

  const Launched* launched_ = nullptr;
  Order order_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<Thread>> threads_;
  int n_threads_ = 0, n_done_ = 0, n_at_barrier_ = 0;
  std::vector<std::uint64_t> blocks_;  // in the order in which they run
  std::vector<int> warp_order_, lane_order_;
  std::vector<std::vector<Meeting>> meetings_;  // [warps]
  Thread* current_ = nullptr;
  FiberPoint scheduler_;
  std::optional<Fault> failed_;  // what a thread threw
  SharedMemory dynamic_, static_;
  unsigned char* static_begin_ = nullptr;
  std::vector<StaticObject> objects_;
  std::size_t static_used_ = 0, static_met_ = 0;  // of the block; the most of this run's blocks
};

thread_local Multiprocessor* the_multiprocessor = nullptr;

/// Frees the thread's when the thread ends. What runs after that, in destructors of statics, gets
/// one that stays.
struct EndOfThread {
  ~EndOfThread() { delete std::exchange(the_multiprocessor, nullptr); }
};

Multiprocessor& multiprocessor() {
  static thread_local const EndOfThread end;
  static_cast<void>(&end);
  if (!the_multiprocessor) the_multiprocessor = new Multiprocessor;
  return *the_multiprocessor;
}

struct sigaction previous_handler;

void on_bad_address(int signal, siginfo_t* info, void* context) {
  Multiprocessor* own = the_multiprocessor;
  if (own && own->in_kernel) {
    own->bad_address = info->si_addr;
    siglongjmp(own->jump, 1);
  }
  // Not ours: whoever was asked before, or death.
  if (previous_handler.sa_flags & SA_SIGINFO)
    return previous_handler.sa_sigaction(signal, info, context);
  if (previous_handler.sa_handler != SIG_DFL && previous_handler.sa_handler != SIG_IGN)
    return previous_handler.sa_handler(signal);
  sigaction(SIGSEGV, &previous_handler, nullptr);
}

void catch_bad_addresses() {
  static const bool once = [] {
    struct sigaction action {};
    action.sa_sigaction = on_bad_address;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous_handler);
    return true;
  }();
  static_cast<void>(once);
}

void Multiprocessor::fault(const std::string& what, cudaError_t error) const {
  std::string message = "kernel " + launched_->name + ", block " + told(running.block);
  if (current_) message += ", thread " + told(current_->index);
  throw Fault(message + ": " + what, error);
}

void Multiprocessor::prepare(const Launched& launched) {
  launched_ = &launched;
  static_met_ = 0;
  const dim3& block = launched.block;
  n_threads_ = static_cast<int>(block.x * block.y * block.z);
  while (static_cast<int>(threads_.size()) < n_threads_)
    threads_.push_back(std::make_unique<Thread>());
  const int n_warps = (n_threads_ + 31) / 32;
  meetings_.resize(static_cast<std::size_t>(n_warps));
  for (int i = 0; i < n_threads_; i++) {
    Thread& thread = *threads_[static_cast<std::size_t>(i)];
    const auto linear = static_cast<unsigned>(i);
    thread.index = {linear % block.x, linear / block.x % block.y, linear / block.x / block.y};
    thread.warp = i / 32;
    thread.lane = i % 32;
  }
  warp_order_.resize(static_cast<std::size_t>(n_warps));
  lane_order_.resize(32);
  std::iota(warp_order_.begin(), warp_order_.end(), 0);
  std::iota(lane_order_.begin(), lane_order_.end(), 0);
  if (order_.way == Order::Way::Backward) {
    std::reverse(warp_order_.begin(), warp_order_.end());
    std::reverse(lane_order_.begin(), lane_order_.end());
  }
  running.n_threads = {block.x, block.y, block.z};
  running.n_blocks = {launched.grid.x, launched.grid.y, launched.grid.z};
}

void Multiprocessor::run(const Launched& launched, const Order& order) {
  catch_bad_addresses();
  order_ = order;
  random_.seed(1);
  current_ = nullptr;
  prepare(launched);
  const dim3& grid = launched.grid;
  blocks_.resize(std::uint64_t{grid.x} * grid.y * grid.z);
  std::iota(blocks_.begin(), blocks_.end(), 0);
  if (order.way == Order::Way::Backward) std::reverse(blocks_.begin(), blocks_.end());
  if (order.way == Order::Way::Shuffled) std::shuffle(blocks_.begin(), blocks_.end(), random_);
  // A bad address ends the kernel where it stands: what its frames hold needs no destructor.
  if (sigsetjmp(jump, 1) == 0)
    run_blocks();
  else
    tell_bad_address();
}

void Multiprocessor::run_blocks() {
  const dim3& grid = launched_->grid;
  in_kernel = true;
  try {
    for (const std::uint64_t block : blocks_) {
      running.block = {static_cast<unsigned>(block % grid.x),
                       static_cast<unsigned>(block / grid.x % grid.y),
                       static_cast<unsigned>(block / grid.x / grid.y)};
      run_block();
    }
  } catch (...) {
    in_kernel = false;
    throw;
  }
  in_kernel = false;
}

void Multiprocessor::tell_bad_address() {
  jumped_off_fiber();
  in_kernel = false;
  const std::ptrdiff_t behind = dynamic_.behind(bad_address);
  const bool is_shared = behind >= 0 && behind < 4096;
  fault("reads or writes " +
            (is_shared ? std::to_string(behind) + " bytes behind the block's dynamic shared memory"
                       : place_of(bad_address)),
        cudaErrorIllegalAddress);
}

void Multiprocessor::entry(void* argument) {
  entered_fiber();
  Multiprocessor& own = *the_multiprocessor;
  try {
    own.launched_->body();
    if (own.launched_->early && !own.current_->waited)
      own.fault("it begins early and ends without waiting for the kernels before it");
  } catch (const Fault& fault) {
    own.failed_ = fault;
  } catch (const std::exception& e) {
    own.failed_ = Fault(e.what());
  } catch (...) {
    own.failed_ = Fault("the kernel threw");
  }
  static_cast<Thread*>(argument)->state = Thread::State::Done;
  own.n_done_++;
  own.leave();
}

void Multiprocessor::resume(Thread& thread) {
  current_ = &thread;
  running.thread = thread.index;
  running.lane = thread.lane;
  switch_fiber(scheduler_, thread.point, &thread.stack);
  if (failed_) {
    const Fault thrown = *failed_;
    failed_.reset();
    throw thrown;
  }
}

bool Multiprocessor::run_lanes(int warp) {
  bool ran = false;
  for (const int lane : lane_order_) {
    const int i = warp * 32 + lane;
    if (i >= n_threads_) continue;
    Thread& thread = *threads_[static_cast<std::size_t>(i)];
    if (thread.state != Thread::State::Ready) continue;
    resume(thread);
    ran = true;
  }
  return ran;
}

bool Multiprocessor::run_warps() {
  bool ran = false;
  if (order_.way == Order::Way::Shuffled) {
    std::shuffle(warp_order_.begin(), warp_order_.end(), random_);
    std::shuffle(lane_order_.begin(), lane_order_.end(), random_);
    for (const int warp : warp_order_) ran = run_lanes(warp) || ran;
    return ran;
  }
  for (const int warp : warp_order_)
    while (run_lanes(warp)) ran = true;
  return ran;
}

void Multiprocessor::run_block() {
  running.dynamic_shared = dynamic_.filled(launched_->shared_bytes, order_.pattern);
  static_used_ = 0;
  objects_.clear();
  static_begin_ = nullptr;
  n_done_ = n_at_barrier_ = 0;
  for (auto& meetings : meetings_) meetings.clear();
  for (int i = 0; i < n_threads_; i++) {
    Thread& thread = *threads_[static_cast<std::size_t>(i)];
    thread.point = thread.stack.begin(entry, &thread);
    thread.state = Thread::State::Ready;
    thread.waited = false;
    thread.copies.clear();
    thread.group_ends.clear();
  }
  while (n_done_ < n_threads_) {
    const bool ran = run_warps();
    if (n_at_barrier_ > 0 && n_at_barrier_ + n_done_ == n_threads_)
      release_barrier();
    else if (!ran)
      tell_stuck();
  }
  check_marks();
}

void Multiprocessor::release_barrier() {
  const Thread* first = nullptr;
  for (int i = 0; i < n_threads_; i++) {
    Thread& thread = *threads_[static_cast<std::size_t>(i)];
    current_ = &thread;
    if (thread.state == Thread::State::Done) fault("ended while others wait at a barrier");
    if (first && !same(first->barrier, thread.barrier))
      fault("waits at the barrier at " + told(thread.barrier) + ", thread " + told(first->index) +
            " at the one at " + told(first->barrier));
    if (!first) first = &thread;
  }
  for (int i = 0; i < n_threads_; i++)
    threads_[static_cast<std::size_t>(i)]->state = Thread::State::Ready;
  n_at_barrier_ = 0;
}

void Multiprocessor::tell_stuck() const {
  for (const auto& meetings : meetings_) {
    for (const Meeting& meeting : meetings) {
      const unsigned missing = meeting.mask & ~meeting.here;
      fault("lane " + std::to_string(std::countr_zero(missing)) + " of warp " +
            std::to_string(&meetings - meetings_.data()) + " never comes to " +
            told(meeting.where) + ", where others wait for it");
    }
  }
  fault("no thread can go on");
}

void Multiprocessor::meet_block(const Where& where) {
  current_->state = Thread::State::AtBarrier;
  current_->barrier = where;
  n_at_barrier_++;
  leave();
}

void Multiprocessor::meet_warp(unsigned mask,
                               void* payload,
                               void (*perform)(void* const*, unsigned),
                               const Where& where) {
  Thread& own = *current_;
  const int n_lanes = std::min(32, n_threads_ - own.warp * 32);
  if (n_lanes < 32) mask &= (1u << n_lanes) - 1;
  const unsigned bit = 1u << own.lane;
  if (!(mask & bit)) fault("is not in the mask it meets others with at " + told(where));
  auto& meetings = meetings_[static_cast<std::size_t>(own.warp)];
  auto found = meetings.begin();
  for (; found != meetings.end(); ++found) {
    if (found->mask == mask && same(found->where, where)) break;
    if (found->mask & bit)
      fault("is at " + told(where) + " while lanes of its warp wait for it at " +
            told(found->where));
  }
  if (found == meetings.end()) {
    meetings.push_back({mask, 0, where, {}});
    found = meetings.end() - 1;
  }
  found->here |= bit;
  found->payloads[own.lane] = payload;
  if (found->here != mask) {
    own.state = Thread::State::InWarp;
    leave();
    return;
  }
  perform(found->payloads, mask);
  meetings.erase(found);
  for (int lane = 0; lane < n_lanes; lane++) {
    if (mask >> lane & 1)
      threads_[static_cast<std::size_t>(own.warp * 32 + lane)]->state = Thread::State::Ready;
  }
}

void* Multiprocessor::static_object(const void* key, std::size_t bytes) {
  static_begin_ = static_.last(kMaxStatic);
  for (const StaticObject& object : objects_)
    if (object.key == key) return static_begin_ + object.offset;
  const std::size_t rounded = (bytes + 15) / 16 * 16;
  if (static_used_ + rounded + kMarkBytes > kMaxStatic)
    fault("more than 48 KiB of static shared memory");
  std::memset(static_begin_ + static_used_, order_.pattern, rounded + kMarkBytes);
  objects_.push_back({key, static_used_, bytes});
  static_used_ += rounded + kMarkBytes;
  const std::size_t met = static_used_ - objects_.size() * kMarkBytes;
  if (met > static_met_) count_static(*launched_, static_met_ = met);
  return static_begin_ + objects_.back().offset;
}

void Multiprocessor::check_marks() const {
  for (const StaticObject& object : objects_) {
    const unsigned char* end = static_begin_ + object.offset + object.bytes;
    const std::size_t n = (object.bytes + 15) / 16 * 16 - object.bytes + kMarkBytes;
    for (std::size_t i = 0; i < n; i++) {
      if (end[i] == order_.pattern) continue;
      throw Fault("kernel " + launched_->name + ", block " + told(running.block) + ": wrote " +
                      std::to_string(i) + " bytes behind a static shared object of " +
                      std::to_string(object.bytes) + " bytes",
                  true);
    }
  }
}

void Multiprocessor::expect_aligned(std::uintptr_t places, std::size_t bytes) const {
  if (in_kernel && places % bytes != 0)
    fault("reads or writes " + std::to_string(bytes) +
              " bytes at an address that is no multiple of " + std::to_string(bytes),
          cudaErrorMisalignedAddress);
}

void Multiprocessor::copy_async(void* to, const void* from) {
  expect_aligned(place(from) | place(to), 16);
  if (order_.copies_at_once) {
    std::memcpy(to, from, 16);
    return;
  }
  std::memset(to, order_.pattern, 16);
  current_->copies.push_back({to, from});
}

void Multiprocessor::wait_copies(int n) {
  auto& ends = current_->group_ends;
  const auto n_groups = static_cast<int>(ends.size());
  if (n_groups <= n) return;
  const int end = ends[static_cast<std::size_t>(n_groups - n - 1)];
  auto& copies = current_->copies;
  for (int i = 0; i < end; i++)
    std::memcpy(copies[static_cast<std::size_t>(i)].to, copies[static_cast<std::size_t>(i)].from,
                16);
  copies.erase(copies.begin(), copies.begin() + end);
  ends.erase(ends.begin(), ends.begin() + (n_groups - n));
  for (int& group_end : ends) group_end -= end;
}

float widened(Half type, unsigned half) {
  return type == Half::Bf16 ? std::bit_cast<float>(half << 16) : f32_of_f16(half);
}

struct TileOperands {
  Half type;
  float* d;
  const unsigned *a, *b;
};
using Row = float __attribute__((vector_size(32)));

void multiply_fragments(void* const* payloads, unsigned) {
  float a[16][16];
  alignas(32) float b[16][8], d[16][8];
  for (int lane = 0; lane < 32; lane++) {
    const auto& own = *static_cast<const TileOperands*>(payloads[lane]);
    const int row = lane / 4, pair = lane % 4 * 2;
    for (int half = 0; half < 2; half++) {
      const auto part = [&](unsigned x) { return widened(own.type, half ? x >> 16 : x & 0xffff); };
      for (int i = 0; i < 4; i++) a[row + i % 2 * 8][pair + i / 2 * 8 + half] = part(own.a[i]);
      for (int i = 0; i < 2; i++) b[pair + i * 8 + half][row] = part(own.b[i]);
      for (int i = 0; i < 2; i++) d[row + i * 8][pair + half] = own.d[2 * i + half];
    }
  }
  for (auto& sums : d) {
    Row sum, products;
    std::memcpy(&sum, sums, sizeof sum);
    const float* factors = a[&sums - d];
    for (int k = 0; k < 16; k++) {
      std::memcpy(&products, b[k], sizeof products);
      products *= factors[k];  // exact: two halves' product fits an f32
      sum += products;
    }
    std::memcpy(sums, &sum, sizeof sum);
  }
  for (int lane = 0; lane < 32; lane++) {
    const auto& own = *static_cast<const TileOperands*>(payloads[lane]);
    const int row = lane / 4, pair = lane % 4 * 2;
    for (int i = 0; i < 4; i++) own.d[i] = d[row + i / 2 * 8][pair + i % 2];
  }
}

struct TilesOfLane {
  std::uint16_t row[8];  // that the lane points at
  std::uint16_t halves[4][2];
};
template <bool kTransposed>
void share_tiles(void* const* payloads, unsigned) {
  const auto of_lane = [&](int lane) { return static_cast<TilesOfLane*>(payloads[lane]); };
  for (int lane = 0; lane < 32; lane++) {
    for (int tile = 0; tile < 4; tile++) {
      for (int i = 0; i < 2; i++) {
        const int line = lane / 4, along = lane % 4 * 2 + i;
        of_lane(lane)->halves[tile][i] = kTransposed ? of_lane(tile * 8 + along)->row[line]
                                                     : of_lane(tile * 8 + line)->row[along];
      }
    }
  }
}
template <bool kTransposed>
void load_of_warp(unsigned (&tiles)[4], const void* row, Where where) {
  the_multiprocessor->expect_aligned(place(row), 16);
  TilesOfLane own;
  std::memcpy(own.row, row, sizeof own.row);
  meet_warp(~0u, &own, share_tiles<kTransposed>, where);
  std::memcpy(tiles, own.halves, sizeof tiles);
}

}  // namespace

void run_grid(const Launched& launched, const Order& order) {
  multiprocessor().run(launched, order);
}

void meet_block(Where where) {
  the_multiprocessor->meet_block(where);
}
void meet_warp(unsigned mask, void* payload, void (*perform)(void* const*, unsigned), Where where) {
  the_multiprocessor->meet_warp(mask, payload, perform, where);
}
void* static_shared_memory(const void* key, std::size_t bytes) {
  return the_multiprocessor->static_object(key, bytes);
}
void expect_aligned(std::uintptr_t places, std::size_t bytes) {
  if (the_multiprocessor) the_multiprocessor->expect_aligned(places, bytes);
}
void copy_async_16(void* to_shared, const void* from) {
  the_multiprocessor->copy_async(to_shared, from);
}
void copy_async_commit() {
  the_multiprocessor->commit_copies();
}
void wait_for_earlier() {
  the_multiprocessor->wait_for_earlier();
}
void prefetch_to_cache(const void* data, unsigned bytes) {
  the_multiprocessor->prefetch(data, bytes);
}
void copy_async_wait(int n) {
  the_multiprocessor->wait_copies(n);
}

unsigned __ballot_sync(unsigned mask, bool vote, Where where) {
  struct Vote {
    bool in;
    unsigned out;
  } own{vote, 0};
  const auto count = [](void* const* payloads, unsigned lanes) {
    unsigned votes = 0;
    for (int lane = 0; lane < 32; lane++)
      if ((lanes >> lane & 1) && static_cast<Vote*>(payloads[lane])->in) votes |= 1u << lane;
    for (int lane = 0; lane < 32; lane++)
      if (lanes >> lane & 1) static_cast<Vote*>(payloads[lane])->out = votes;
  };
  meet_warp(mask, &own, count, where);
  return own.out;
}

void multiply_tile(
    Half type, float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], Where where) {
  TileOperands own{type, d, a, b};
  meet_warp(~0u, &own, multiply_fragments, where);
}

void load_tiles(unsigned (&tiles)[4], const void* row, Where where) {
  load_of_warp<false>(tiles, row, where);
}
void load_tiles_transposed(unsigned (&tiles)[4], const void* row, Where where) {
  load_of_warp<true>(tiles, row, where);
}

}  // namespace kernels::emulation
