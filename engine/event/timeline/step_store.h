// The steps of one run, packed, so that a session of a million events stays small. The current step
// is a StepRecord; past steps are bytes that are unpacked on access.
//   structure  never dropped; about 15 bytes an event and 9 bytes a row
//   payload    (payload.h) stored by page, so that the oldest can be dropped
//   pages      kPageSteps steps each; any step is reached directly
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "engine/event/payload.h"
#include "engine/event/timeline/step_record.h"

namespace engine {

/// The steps of one run.
class StepStore {
 public:
  static constexpr std::size_t kPageSteps = 64;
  class Iterator;

  /// Number of steps.
  std::size_t size() const { return n_packed_ + (open_ ? 1 : 0); }
  /// True without a step.
  bool empty() const { return size() == 0; }
  /// A step by value, unpacked. The result is a temporary: do not keep pointers into it.
  StepRecord operator[](std::size_t i) const;
  /// A step.
  /// @throws ContractError  no such step
  StepRecord at(std::size_t i) const;
  /// The first step.
  StepRecord front() const { return at(0); }
  /// The last step.
  StepRecord back() const { return at(size() - 1); }
  /// The head of a step.
  StepHead head(std::size_t i) const;
  /// The n-grams that a step added, evicted and tried, with its id. The rest of the step is not unpacked. nullopt: none, or the payload was dropped.
  std::optional<PoolChanged> pool_lists(std::size_t i) const;
  /// Iterates over all steps.
  Iterator begin() const;
  /// Past the last step.
  Iterator end() const;

  /// Begins a step and packs the previous one.
  void push_back(StepRecord step);
  /// The last step while it is not packed, else nullptr. Valid until the next push_back() or
  /// settle().
  StepRecord* open() { return open_ ? &*open_ : nullptr; }
  /// The last step while it is not packed, else nullptr.
  const StepRecord* open() const { return open_ ? &*open_ : nullptr; }
  /// Packs the last step; call it when the run is over.
  void settle();
  /// Replaces a step, packed or not.
  void replace(std::size_t i, StepRecord step);

  /// Bytes of packed payload, without the open step.
  std::size_t payload_bytes() const { return payload_bytes_; }
  /// Bytes of memory in use.
  std::size_t bytes() const;
  /// Drops the payload of the oldest page that has any.
  /// @return  the drops by kind; empty: no payload is left
  std::vector<PayloadDropped> drop_oldest_payload();

 private:
  struct Page {
    std::string structure;
    std::array<std::string, kPayloadKinds> payload;
    /// For each step, the offset of its end in the structure and in each payload.
    std::vector<std::array<std::uint32_t, 1 + kPayloadKinds>> ends;
    bool dropped = false;
    std::size_t payload_bytes() const;
  };
  struct Place {
    const Page& page;
    std::size_t i;
  };
  static void pack(const StepRecord& step, Page& page);
  static StepRecord unpack(const Place& place);
  Place place_of(std::size_t i) const;
  void append(const StepRecord& step);

  std::vector<Page> pages_;
  std::vector<std::size_t> first_;  // [pages] index of the page's first step
  std::size_t n_packed_ = 0;
  std::size_t payload_bytes_ = 0;
  std::size_t oldest_payload_ = 0;  // earlier pages have none
  std::optional<StepRecord> open_;
};

/// A random access iterator that returns records by value.
class StepStore::Iterator {
 public:
  using iterator_concept = std::random_access_iterator_tag;
  using iterator_category = std::input_iterator_tag;
  using value_type = StepRecord;
  using reference = StepRecord;
  using pointer = void;
  using difference_type = std::ptrdiff_t;

  Iterator() = default;
  /// Points to step `i`.
  Iterator(const StepStore& store, std::size_t i) : store_(&store), i_(i) {}
  /// The step.
  StepRecord operator*() const { return (*store_)[i_]; }
  /// The step n further.
  StepRecord operator[](difference_type n) const { return *(*this + n); }
  /// Random access, as of a pointer.
  Iterator& operator++() { return *this += 1; }
  Iterator& operator--() { return *this += -1; }
  Iterator operator++(int) {
    Iterator before = *this;
    ++*this;
    return before;
  }
  Iterator operator--(int) {
    Iterator before = *this;
    --*this;
    return before;
  }
  Iterator& operator+=(difference_type n) {
    i_ = static_cast<std::size_t>(static_cast<difference_type>(i_) + n);
    return *this;
  }
  Iterator& operator-=(difference_type n) { return *this += -n; }
  /// The position n further.
  friend Iterator operator+(Iterator it, difference_type n) { return it += n; }
  /// The position n further.
  friend Iterator operator+(difference_type n, Iterator it) { return it += n; }
  /// The position n before.
  friend Iterator operator-(Iterator it, difference_type n) { return it -= n; }
  /// The number of steps between two positions.
  friend difference_type operator-(const Iterator& a, const Iterator& b) {
    return static_cast<difference_type>(a.i_) - static_cast<difference_type>(b.i_);
  }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.i_ == b.i_; }
  friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.i_ <=> b.i_; }

 private:
  const StepStore* store_ = nullptr;  // outlives its iterators
  std::size_t i_ = 0;
};

// Defined after the iterator.
inline StepStore::Iterator StepStore::begin() const {
  return {*this, 0};
}
// Defined after the iterator.
inline StepStore::Iterator StepStore::end() const {
  return {*this, size()};
}

}  // namespace engine
