// Runs the blocks of a kernel one after another, each GPU thread on a fiber, warp by warp.
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

#include "kernels/emulation/fiber.h"
#include "kernels/emulation/launched.h"

namespace kernels::emulation {

constinit thread_local Running running{};

namespace {

std::string text_of(const Where& where) {
  const std::string file = where.file_name();
  return file.substr(file.find_last_of('/') + 1) + ":" + std::to_string(where.line());
}
bool same(const Where& a, const Where& b) {
  if (std::memcmp(&a, &b, sizeof a) == 0) return true;  // the usual case
  return a.line() == b.line() && a.column() == b.column() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}
std::string text_of(const uint3& at) {
  return "(" + std::to_string(at.x) + ", " + std::to_string(at.y) + ", " + std::to_string(at.z) +
         ")";
}

struct AsyncCopy {
  void* to;
  const void* from;
};

struct Thread {
  FiberStack stack;
  bool done = true;
  bool waited = false;  // called wait_for_earlier()
  Where barrier;
  std::vector<AsyncCopy> copies;  // pending copies in order
  std::vector<int> group_ends;  // committed groups: copies [0, end) belong to them or earlier ones
};

/// The part of a thread that a switch to it reads.
struct Lane {
  FiberPoint point;
  const FiberStack* stack;
  uint3 index;
  int lane;
};

/// Lanes of a warp that synchronise at one line.
struct Meeting {
  unsigned mask, here;
  Where where;
  void* payloads[32];
};

struct Warp {
  int first_thread, n_lanes;
  unsigned ready;  // lanes that can continue
  int n_meetings;
  Lane lanes[32];
  Meeting meetings[32];

  unsigned all() const { return n_lanes < 32 ? (1u << n_lanes) - 1 : ~0u; }
};

/// Memory for a block's shared objects, followed by an inaccessible page.
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

  /// Distance of an address from its end in bytes; negative inside.
  std::ptrdiff_t past_end(const void* address) const {
    return static_cast<const unsigned char*>(address) - (begin_ + usable_);
  }
  /// The last `bytes` of this memory; they begin at a multiple of 16 bytes.
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
constexpr std::size_t kMarkBytes = 16;  // after every static object
constexpr std::size_t kMaxStatic = kPlainShared;

/// The emulated multiprocessor of one host thread.
class Multiprocessor {
 public:
  void run(const Launched& launched, const Order& order);

  void sync_block(Where where);
  void sync_warp(unsigned mask, void* payload, Perform perform, Where where);
  void* static_object(const void* key, std::size_t bytes);
  void copy_async(void* to, const void* from);
  void misaligned(std::size_t bytes) const;
  void expect_whole_warp(unsigned lanes) const {
    if (lanes != ~0u) fault("products of tiles and their loads need all 32 lanes of a warp");
  }
  void commit_copies() {
    Thread& own = current();
    own.group_ends.push_back(static_cast<int>(own.copies.size()));
  }
  void wait_copies(int n);
  void wait_for_earlier() { current().waited = true; }
  void prefetch(const void* data, unsigned bytes) const {
    kernels::emulation::expect_aligned(place(data) | bytes, 16);
    if (!on_device(data, bytes)) fault("asks for bytes that are not in device memory");
  }

  // State of the SIGSEGV handler.
  sigjmp_buf jump;
  bool in_kernel = false;
  const void* bad_address = nullptr;

 private:
  void prepare(const Launched& launched);
  void run_blocks();
  void run_block();
  [[noreturn]] void report_bad_address();
  bool run_warps();
  bool run_lanes(int warp);
  Thread& thread(int i) const { return *threads_[static_cast<std::size_t>(i)]; }
  Thread& current() const { return thread(warp_->first_thread + lane_->lane); }
  void make_current(Lane& lane);
  void resume(Lane& lane);
  int next_ready() const;
  void leave();
  Meeting& meeting_at(unsigned mask, Where where);
  [[noreturn, gnu::cold]] void report_other_meeting(Where where, Where waited_for) const;
  [[noreturn, gnu::cold]] void report_not_in_mask(Where where) const;
  void release_barrier();
  void check_marks() const;
  [[noreturn]] void report_deadlock() const;
  [[noreturn]] void fault(const std::string& what,
                          cudaError_t error = cudaErrorLaunchFailure) const;
  static void entry(void* thread);

  const Launched* launched_ = nullptr;
  Order order_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<Thread>> threads_;
  int n_threads_ = 0, n_done_ = 0, n_at_barrier_ = 0;
  std::vector<std::uint64_t> blocks_;  // in the order of their run
  std::vector<int> warp_order_, lane_order_;
  std::vector<std::unique_ptr<Warp>> warps_;
  Warp* warp_ = nullptr;  // of the running thread
  Lane* lane_ = nullptr;
  FiberPoint scheduler_;
  std::optional<Fault> failed_;  // the exception of a thread
  SharedMemory dynamic_, static_;
  unsigned char* static_begin_ = nullptr;
  std::vector<StaticObject> objects_;
  std::size_t static_used_ = 0,
              static_met_ = 0;  // of the block; the maximum over the blocks of this run
};

thread_local Multiprocessor* the_multiprocessor = nullptr;

/// Frees the multiprocessor of a host thread when the thread ends. Destructors of static objects
/// that run later get a multiprocessor that is never freed.
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
  // Not a fault of a kernel: calls the previous handler, or the default action.
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
  std::string message = "kernel " + launched_->name + ", block " + text_of(running.block);
  if (lane_) message += ", thread " + text_of(lane_->index);
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
  while (static_cast<int>(warps_.size()) < n_warps) warps_.push_back(std::make_unique<Warp>());
  for (int w = 0; w < n_warps; w++) {
    Warp& warp = *warps_[static_cast<std::size_t>(w)];
    warp.first_thread = w * 32;
    warp.n_lanes = std::min(32, n_threads_ - w * 32);
    for (int lane = 0; lane < warp.n_lanes; lane++) {
      const auto linear = static_cast<unsigned>(w * 32 + lane);
      warp.lanes[lane] = {
          {},
          &thread(w * 32 + lane).stack,
          {linear % block.x, linear / block.x % block.y, linear / block.x / block.y},
          lane};
    }
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
  lane_ = nullptr;
  prepare(launched);
  const dim3& grid = launched.grid;
  blocks_.resize(std::uint64_t{grid.x} * grid.y * grid.z);
  std::iota(blocks_.begin(), blocks_.end(), 0);
  if (order.way == Order::Way::Backward) std::reverse(blocks_.begin(), blocks_.end());
  if (order.way == Order::Way::Shuffled) std::shuffle(blocks_.begin(), blocks_.end(), random_);
  // A bad address ends the kernel at once: the objects in its frames need no destructor.
  if (sigsetjmp(jump, 1) == 0)
    run_blocks();
  else
    report_bad_address();
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

void Multiprocessor::report_bad_address() {
  jumped_off_fiber();
  in_kernel = false;
  const std::ptrdiff_t past = dynamic_.past_end(bad_address);
  const bool is_shared = past >= 0 && past < 4096;
  fault("reads or writes " +
            (is_shared
                 ? std::to_string(past) + " bytes past the end of the block's dynamic shared memory"
                 : place_of(bad_address)),
        cudaErrorIllegalAddress);
}

void Multiprocessor::entry(void* argument) {
  entered_fiber();
  Multiprocessor& own = *the_multiprocessor;
  try {
    own.launched_->body();
    if (own.launched_->early && !own.current().waited)
      own.fault("it begins early and ends without waiting for the kernels before it");
  } catch (const Fault& fault) {
    own.failed_ = fault;
  } catch (const std::exception& e) {
    own.failed_ = Fault(e.what());
  } catch (...) {
    own.failed_ = Fault("the kernel threw");
  }
  static_cast<Thread*>(argument)->done = true;
  own.n_done_++;
  own.leave();
}

void Multiprocessor::make_current(Lane& lane) {
  lane_ = &lane;
  running.thread = lane.index;
  running.lane = lane.lane;
  warp_->ready &= ~(1u << lane.lane);
}

void Multiprocessor::resume(Lane& lane) {
  make_current(lane);
  switch_fiber(scheduler_, lane.point, lane.stack);
  if (failed_) {
    const Fault thrown = *failed_;
    failed_.reset();
    throw thrown;
  }
}

/// The next lane of this warp to run; -1: none, or the scheduler chooses at random.
int Multiprocessor::next_ready() const {
  const unsigned ready = warp_->ready;
  if (!ready || order_.way == Order::Way::Shuffled) return -1;
  const unsigned lower = ready & ((1u << lane_->lane) - 1), higher = ready & ~lower;
  if (order_.way == Order::Way::Forward) return std::countr_zero(higher ? higher : lower);
  return 31 - std::countl_zero(lower ? lower : higher);
}

/// Suspends the running thread and switches to another, preferably a lane of its own warp.
void Multiprocessor::leave() {
  FiberPoint& own = lane_->point;
  const int next = failed_ ? -1 : next_ready();
  if (next < 0) return switch_fiber(own, scheduler_, nullptr);
  Lane& other = warp_->lanes[next];
  make_current(other);
  switch_fiber(own, other.point, other.stack);
}

bool Multiprocessor::run_lanes(int warp) {
  warp_ = warps_[static_cast<std::size_t>(warp)].get();
  bool ran = false;
  for (const int lane : lane_order_) {
    if (!(warp_->ready >> lane & 1)) continue;
    resume(warp_->lanes[lane]);
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
  for (int i = 0; i < n_threads_; i++) {
    Thread& own = thread(i);
    Lane& lane = warps_[static_cast<std::size_t>(i / 32)]->lanes[i % 32];
    lane.point = own.stack.begin(entry, &own);
    own.done = own.waited = false;
    own.copies.clear();
    own.group_ends.clear();
  }
  for (const auto& warp : warps_) {
    warp->ready = warp->all();
    warp->n_meetings = 0;
  }
  while (n_done_ < n_threads_) {
    const bool ran = run_warps();
    if (n_at_barrier_ > 0 && n_at_barrier_ + n_done_ == n_threads_)
      release_barrier();
    else if (!ran)
      report_deadlock();
  }
  check_marks();
}

void Multiprocessor::release_barrier() {
  const Lane& first = warps_[0]->lanes[0];
  for (int w = 0; w < static_cast<int>(warp_order_.size()); w++) {
    warp_ = warps_[static_cast<std::size_t>(w)].get();
    for (int lane = 0; lane < warp_->n_lanes; lane++) {
      lane_ = &warp_->lanes[lane];
      if (current().done) fault("ended while others wait at a barrier");
      if (n_done_ == 0 && !same(thread(0).barrier, current().barrier))
        fault("waits at the barrier at " + text_of(current().barrier) + ", thread " +
              text_of(first.index) + " at the barrier at " + text_of(thread(0).barrier));
    }
    warp_->ready = warp_->all();
  }
  n_at_barrier_ = 0;
}

void Multiprocessor::report_deadlock() const {
  for (const int w : warp_order_) {
    const Warp& warp = *warps_[static_cast<std::size_t>(w)];
    if (warp.n_meetings == 0) continue;
    const Meeting& meeting = warp.meetings[0];
    fault("lane " + std::to_string(std::countr_zero(meeting.mask & ~meeting.here)) + " of warp " +
          std::to_string(w) + " never reaches " + text_of(meeting.where) +
          ", where the other lanes wait for it");
  }
  fault("no thread can continue");
}

void Multiprocessor::report_other_meeting(Where where, Where waited_for) const {
  fault("is at " + text_of(where) + " while lanes of its warp wait for it at " +
        text_of(waited_for));
}
void Multiprocessor::report_not_in_mask(Where where) const {
  fault("is not in the mask of its synchronisation at " + text_of(where));
}

void Multiprocessor::sync_block(Where where) {
  current().barrier = where;
  n_at_barrier_++;
  leave();
}

/// The synchronisation that this lane joins or starts.
Meeting& Multiprocessor::meeting_at(unsigned mask, Where where) {
  Warp& warp = *warp_;
  for (int i = 0; i < warp.n_meetings; i++) {
    Meeting& one = warp.meetings[i];
    if (one.mask == mask && same(one.where, where)) return one;
    if (one.mask >> lane_->lane & 1) report_other_meeting(where, one.where);
  }
  Meeting& one = warp.meetings[warp.n_meetings++];
  one.mask = mask;
  one.here = 0;
  one.where = where;
  return one;
}

// Every call from here to the switch of fibers is a tail call, so a lane that continues jumps
// directly into its kernel. Processors predict such an indirect jump well.
void Multiprocessor::sync_warp(unsigned mask, void* payload, Perform perform, Where where) {
  const unsigned bit = 1u << lane_->lane;
  if (!(mask & bit)) report_not_in_mask(where);
  mask &= warp_->all();
  Meeting& meeting = meeting_at(mask, where);
  meeting.here |= bit;
  meeting.payloads[lane_->lane] = payload;
  if (meeting.here != mask) return leave();
  perform(meeting.payloads, mask);
  if (&meeting != &warp_->meetings[--warp_->n_meetings])
    meeting = warp_->meetings[warp_->n_meetings];
  warp_->ready |= mask & ~bit;
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
      throw Fault("kernel " + launched_->name + ", block " + text_of(running.block) + ": wrote " +
                      std::to_string(i) + " bytes past the end of a static shared object of " +
                      std::to_string(object.bytes) + " bytes",
                  true);
    }
  }
}

void Multiprocessor::misaligned(std::size_t bytes) const {
  if (in_kernel)
    fault("reads or writes " + std::to_string(bytes) +
              " bytes at an address that is no multiple of " + std::to_string(bytes),
          cudaErrorMisalignedAddress);
}

void Multiprocessor::copy_async(void* to, const void* from) {
  kernels::emulation::expect_aligned(place(from) | place(to), 16);
  if (order_.copies_at_once) {
    std::memcpy(to, from, 16);
    return;
  }
  std::memset(to, order_.pattern, 16);
  current().copies.push_back({to, from});
}

void Multiprocessor::wait_copies(int n) {
  auto& ends = current().group_ends;
  const auto n_groups = static_cast<int>(ends.size());
  if (n_groups <= n) return;
  const int end = ends[static_cast<std::size_t>(n_groups - n - 1)];
  auto& copies = current().copies;
  for (int i = 0; i < end; i++)
    std::memcpy(copies[static_cast<std::size_t>(i)].to, copies[static_cast<std::size_t>(i)].from,
                16);
  copies.erase(copies.begin(), copies.begin() + end);
  ends.erase(ends.begin(), ends.begin() + (n_groups - n));
  for (int& group_end : ends) group_end -= end;
}

}  // namespace

void run_grid(const Launched& launched, const Order& order) {
  multiprocessor().run(launched, order);
}

void sync_block(Where where) {
  the_multiprocessor->sync_block(where);
}
void sync_warp(unsigned mask, void* payload, Perform perform, Where where) {
  the_multiprocessor->sync_warp(mask, payload, perform, where);
}
void* static_shared_memory(const void* key, std::size_t bytes) {
  return the_multiprocessor->static_object(key, bytes);
}
void misaligned(std::size_t bytes) {
  if (the_multiprocessor) the_multiprocessor->misaligned(bytes);
}
void expect_whole_warp(unsigned lanes) {
  the_multiprocessor->expect_whole_warp(lanes);
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
  sync_warp(mask, &own, count, where);
  return own.out;
}

}  // namespace kernels::emulation
