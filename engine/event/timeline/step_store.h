// The steps of one run, packed: a session of a million events has to stay small beside the model it
// shows. A step in progress is an ordinary record; a past one is bytes, unpacked when asked for.
//   structure  never dropped; about 15 bytes an event and 9 bytes a row
//   payload    (payload.h) beside it, page by page, so that the oldest can be let go
//   pages      kPageSteps steps; any step is reached directly
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

namespace engine {

/// One step of a run, as far as it was told.
struct StepRecord {
  StepBegun begun;
  Drafted drafted;
  Verified verified;
  Committed committed;
  StepEnded ended;
  std::vector<BlockRefined> blocks;
  std::optional<PoolChanged> pool;  // several of one step are joined
  bool has_drafted = false, has_verified = false, has_committed = false, complete = false;
};

/// What is asked of many steps at a time: unpacked in some ten nanoseconds, without allocation.
struct StepHead {
  StepBegun begun;
  StepEnded ended;
  int n_proposed = 0, n_accepted = 0, n_rejected = 0, n_unused = 0;
  int n_rows = 0;                   // of the tree; where none was told, as begun
  int first_pos = 0, n_tokens = 0;  // committed
  int n_bonus = 0;       // of these, proposed by nothing in a step that proposed something
  int n_pool_hits = 0;   // of these, guessed by the pool or a look-up
  int n_pool_added = 0;  // n-grams
  int n_blocks = 0;      // block states told
  bool has_drafted = false, has_verified = false, has_committed = false, complete = false;
  bool tried_guesses = false;  // the tree held guessed rows
  bool has_pool = false;
};

StepHead head_of(const StepRecord& step);

class StepStore {
 public:
  static constexpr std::size_t kPageSteps = 64;
  class Iterator;

  std::size_t size() const { return n_packed_ + (open_ ? 1 : 0); }
  bool empty() const { return size() == 0; }
  /// By value: a past step is unpacked for the caller. Bind it to a reference or a variable, and
  /// take no pointer into it that shall outlive the expression.
  StepRecord operator[](std::size_t i) const;
  /// @throws ContractError  no such step
  StepRecord at(std::size_t i) const;
  StepRecord front() const { return at(0); }
  StepRecord back() const { return at(size() - 1); }
  StepHead head(std::size_t i) const;
  Iterator begin() const;
  Iterator end() const;

  /// Begins a step; the one before is packed.
  void push_back(StepRecord step);
  /// The newest step while it is unpacked, else nullptr. Valid until the next push_back or settle.
  StepRecord* open() { return open_ ? &*open_ : nullptr; }
  const StepRecord* open() const { return open_ ? &*open_ : nullptr; }
  /// Packs the newest step too: the run is over.
  void settle();
  /// Replaces a step that may be packed already.
  void replace(std::size_t i, StepRecord step);

  /// Payload held packed; the open step is not counted.
  std::size_t payload_bytes() const { return payload_bytes_; }
  /// Memory of all of it.
  std::size_t bytes() const;
  /// Lets go the payload of the oldest page that has some.
  /// @return  what was dropped, by kind; empty: there is none left
  std::vector<PayloadDropped> drop_oldest_payload();

 private:
  struct Page {
    std::string structure;
    std::array<std::string, kPayloadKinds> payload;
    /// Where each step ends in structure and payloads.
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
  std::vector<std::size_t> first_;  // [pages] number of steps before the page
  std::size_t n_packed_ = 0;
  std::size_t payload_bytes_ = 0;
  std::size_t oldest_payload_ = 0;  // pages before it have none
  std::optional<StepRecord> open_;
};

/// Random access that gives records by value.
class StepStore::Iterator {
 public:
  using iterator_concept = std::random_access_iterator_tag;
  using iterator_category = std::input_iterator_tag;
  using value_type = StepRecord;
  using reference = StepRecord;
  using pointer = void;
  using difference_type = std::ptrdiff_t;

  Iterator() = default;
  Iterator(const StepStore& store, std::size_t i) : store_(&store), i_(i) {}
  StepRecord operator*() const { return (*store_)[i_]; }
  StepRecord operator[](difference_type n) const { return *(*this + n); }
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
  friend Iterator operator+(Iterator it, difference_type n) { return it += n; }
  friend Iterator operator+(difference_type n, Iterator it) { return it += n; }
  friend Iterator operator-(Iterator it, difference_type n) { return it -= n; }
  friend difference_type operator-(const Iterator& a, const Iterator& b) {
    return static_cast<difference_type>(a.i_) - static_cast<difference_type>(b.i_);
  }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.i_ == b.i_; }
  friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.i_ <=> b.i_; }

 private:
  const StepStore* store_ = nullptr;  // outlives its iterators
  std::size_t i_ = 0;
};

inline StepStore::Iterator StepStore::begin() const {
  return {*this, 0};
}
inline StepStore::Iterator StepStore::end() const {
  return {*this, size()};
}

}  // namespace engine
