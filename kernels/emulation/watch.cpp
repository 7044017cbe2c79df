// Checks a kernel by running it in several orders, which must give the same bits. Each order has different marks around
// device memory, so a read of the marks changes the result too.
#include "kernels/emulation/watch.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "kernels/emulation/emulation_checks.h"

namespace kernels::emulation {
namespace {

constexpr std::size_t kNearMarks = 64;

std::atomic<Watch> watch{Watch::Once};

/// A copy of all device memory.
class Snapshot {
 public:
  Snapshot() {
    with_each_allocation([&](const Allocation& one) {
      parts_.push_back({one.data, {one.data, one.data_end()}});
    });
  }
  void restore() const {
    for (const Part& part : parts_) std::copy(part.bytes.begin(), part.bytes.end(), part.of);
  }
  /// "byte 3 of 400": the first changed byte; empty: none.
  std::string difference() const {
    for (const Part& part : parts_) {
      const auto [was, is] = std::mismatch(part.bytes.begin(), part.bytes.end(), part.of);
      if (was != part.bytes.end())
        return "byte " + std::to_string(was - part.bytes.begin()) + " of " +
               std::to_string(part.bytes.size()) + " of device memory";
    }
    return {};
  }

 private:
  struct Part {
    char* of;
    std::vector<char> bytes;
  };
  std::vector<Part> parts_;
};

bool are_marks(const char* begin, std::size_t n, unsigned char mark) {
  // All bytes are marks if the first byte is one and each byte equals the one before it.
  return n == 0 ||
         (static_cast<unsigned char>(*begin) == mark && std::memcmp(begin, begin + 1, n - 1) == 0);
}

void check_marks(const std::string& kernel) {
  with_each_allocation([&](const Allocation& one) {
    // Checks all marks with Watch::Orders, else only those next to the data.
    const std::size_t n =
        watch == Watch::Orders ? one.n_before() : std::min(one.n_before(), kNearMarks);
    if (are_marks(one.data - n, n, one.mark_before) &&
        are_marks(one.data_end(), one.n_after(), one.mark_after))
      return;
    throw Fault("kernel " + kernel + ": wrote just outside " + std::to_string(one.bytes) +
                    " bytes of device memory",
                true);
  });
}

void mark_all(unsigned char mark) {
  with_each_allocation([&](Allocation& one) {
    one.mark_before = one.mark_after = mark;
    fill_marks(one);
  });
}

// Compares three runs of a kernel: in the plain order and in two others.
//   marks  in the plain order NaN in every format; in the other two a large number, positive and
//          negative (bytes 0x7b and 0xfb: 1e36 in f32 and bf16, 6e4 in f16). A sum, a product by
//          zero, a maximum or a minimum with a mark differs in at least one run
class Orders {
 public:
  explicit Orders(const Launched& launched) : launched_(launched) {
    run(plain_);
    after_.emplace();
  }
  void compare() const {
    using Way = Order::Way;
    for (const Order& other :
         {Order{Way::Backward, 0x3c, true, 0x7b}, Order{Way::Shuffled, 0x7f, false, 0xfb}})
      if (!difference_in(other).empty()) report_cause(other);
  }

 private:
  void run(const Order& order) const {
    mark_all(order.marks);
    run_grid(launched_, order);
    check_marks(launched_.name);
  }
  std::string difference_in(const Order& order) const {
    before_.restore();
    run(order);
    return after_->difference();
  }
  /// Finds out which difference between this order and the plain one changes the result, by trying
  /// the differences one at a time.
  [[noreturn]] void report_cause(const Order& other) const {
    const std::string kernel = "kernel " + launched_.name + ": ";
    Order marked = plain_, filled = plain_;
    marked.marks = other.marks;
    if (const std::string what = difference_in(marked); !what.empty())
      throw Fault(kernel + what + " depends on the memory " + place_read(other.marks) +
                      ": the kernel reads there",
                  true);
    filled.pattern = other.pattern;
    if (const std::string what = difference_in(filled); !what.empty())
      throw Fault(
          kernel + what +
          " depends on the content of shared memory before the block: the kernel reads bytes "
          "that it did not write");
    throw Fault(kernel + difference_in(other) +
                " depends on the order of threads: a race, or an asynchronous copy without a "
                "wait");
  }
  /// The place that the kernel read, in words: "past the end of 400 bytes of device memory".
  /// Changes the marks around one allocation after the other until the result differs.
  std::string place_read(unsigned char mark) const {
    struct Place {
      const char* data;
      bool after;
      std::string words;
    };
    std::vector<Place> places;
    with_each_allocation([&](const Allocation& one) {
      for (const bool after : {false, true})
        places.push_back({one.data, after,
                          (after ? "past the end of " : "before the start of ") +
                              std::to_string(one.bytes) + " bytes of device memory"});
    });
    mark_all(plain_.marks);
    for (const Place& place : places) {
      with_each_allocation([&](Allocation& one) {
        if (one.data != place.data) return;
        (place.after ? one.mark_after : one.mark_before) = mark;
        fill_marks(one);
      });
      before_.restore();
      run_grid(launched_, plain_);
      if (!after_->difference().empty()) return place.words;
    }
    return "outside device memory";
  }

  const Launched& launched_;
  const Order plain_;
  const Snapshot before_;
  std::optional<Snapshot> after_;  // of the plain order
};

}  // namespace

void fill_marks(const Allocation& allocation) {
  std::memset(allocation.mapped, allocation.mark_before, allocation.n_before());
  std::memset(allocation.data_end(), allocation.mark_after, allocation.n_after());
}

void check_kernels(Watch how) {
  watch = how;
}

void run_watched(const Launched& launched) {
  if (watch == Watch::Orders) return Orders(launched).compare();
  run_grid(launched, {});
  check_marks(launched.name);
}

void run_both_ways(const std::function<void()>& watched_too, const std::function<void()>& always) {
  if (watch != Watch::Orders) return always();
  const Snapshot before;
  watched_too();
  const Snapshot after;
  before.restore();
  always();
  const std::string difference = after.difference();
  if (!difference.empty())
    throw Fault("a graph: " + difference +
                " depends on the order of its kernels: a dependency is missing");
}

}  // namespace kernels::emulation
