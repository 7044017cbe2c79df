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
#include "engine/event/timeline/step_record.h"

namespace engine {

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
