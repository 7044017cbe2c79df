#include "engine/event/timeline/step_pack.h"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <type_traits>

#include "engine/event/payload_fields.h"
#include "kernels/error.h"

namespace engine {
namespace {

enum Flag : unsigned {
  kDrafted = 1,
  kVerified = 2,
  kCommitted = 4,
  kComplete = 8,
  kPool = 16,
  kGuesses = 32,
};

template <typename T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

std::uint64_t zigzag(std::int64_t x) {
  return (static_cast<std::uint64_t>(x) << 1) ^ static_cast<std::uint64_t>(x >> 63);
}

std::int64_t unzigzag(std::uint64_t x) {
  return static_cast<std::int64_t>((x >> 1) ^ (~(x & 1) + 1));
}

/// Time and ids at the start of a step; its other events are stored relative to them.
struct Base {
  std::uint64_t t = 0, run = 0, step = 0;
};

Base base_of(const StepBegun& begun) {
  return {.t = static_cast<std::uint64_t>(begun.t),
          .run = begun.run,
          .step = static_cast<std::uint64_t>(std::int64_t{begun.step})};
}

/// t, run and step come first in every event of a step (event_fields.h).
std::uint64_t base_for(const Base& base, int n_visited) {
  return n_visited == 0 ? base.t : n_visited == 1 ? base.run : n_visited == 2 ? base.step : 0;
}

class StepPacker {
 public:
  explicit StepPacker(std::string& bytes) : bytes_(bytes) {}

  template <typename E>
  void event(const E& e, const Base& base, bool with_payload) {
    base_ = base, n_visited_ = 0, n_left_out_ = 0;
    if (!with_payload) {
      auto leave_out = [this](const auto& field) { left_out_.at(n_left_out_++) = &field; };
      payload_fields(leave_out, e);
    }
    fields(*this, e);
    n_visited_ = kInside;
  }
  template <typename T>
  void operator()(const T& field) {
    const auto end = left_out_.begin() + n_left_out_;
    if (std::find(left_out_.begin(), end, static_cast<const void*>(&field)) != end) {
      put(0);
    } else {
      value(field);
    }
    if (n_visited_ < kInside) ++n_visited_;
  }
  void put(std::uint64_t x) {
    for (; x >= 0x80; x >>= 7) bytes_ += static_cast<char>(0x80 | (x & 0x7F));
    bytes_ += static_cast<char>(x);
  }

 private:
  static constexpr int kInside = 3;

  void value(const Integer auto& x) {
    const auto wide = static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
    put(zigzag(static_cast<std::int64_t>(wide - base_for(base_, n_visited_))));
  }
  void value(const bool& x) { bytes_ += static_cast<char>(x ? 1 : 0); }
  template <typename T>
  requires std::is_enum_v<T>
  void value(const T& x) { bytes_ += static_cast<char>(x); }
  void value(const std::floating_point auto& x) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof x);
    std::memcpy(bytes_.data() + at, &x, sizeof x);
  }
  void value(const RowTag& x) { value(x.kind), value(x.a), value(x.b); }
  void value(const Part auto& x) { fields(*this, x); }
  template <typename T>
  void value(const std::vector<T>& xs) {
    n_visited_ = kInside;
    put(xs.size());
    for (const T& x : xs) value(x);
  }

  std::string& bytes_;
  Base base_;
  int n_visited_ = kInside;
  std::array<const void*, 8> left_out_{};
  std::ptrdiff_t n_left_out_ = 0;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  template <typename E>
  void event(E& e, const Base& base) {
    base_ = base, n_visited_ = 0;
    fields(*this, e);
    n_visited_ = kInside;
  }
  template <typename T>
  void operator()(T& field) {
    value(field);
    if (n_visited_ < kInside) ++n_visited_;
  }
  std::uint64_t take() {
    std::uint64_t x = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at_++);
      x |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return x;
    }
  }
  int count() { return static_cast<int>(take()); }
  bool empty() const { return at_ == end_; }

 private:
  static constexpr int kInside = 3;

  template <Integer T>
  void value(T& x) {
    const auto wide = static_cast<std::uint64_t>(unzigzag(take())) + base_for(base_, n_visited_);
    x = static_cast<T>(wide);
  }
  void value(bool& x) { x = *at_++ != 0; }
  template <typename T>
  requires std::is_enum_v<T>
  void value(T& x) { x = static_cast<T>(*at_++); }
  template <std::floating_point T>
  void value(T& x) {
    std::memcpy(&x, at_, sizeof x);
    at_ += sizeof x;
  }
  void value(RowTag& x) { value(x.kind), value(x.a), value(x.b); }
  template <Part T>
  void value(T& x) {
    fields(*this, x);
  }
  template <typename T>
  void value(std::vector<T>& xs) {
    n_visited_ = kInside;
    xs.resize(take());
    for (T& x : xs) value(x);
  }

  const char* at_;
  const char* end_;
  Base base_;
  int n_visited_ = kInside;
};

template <typename E>
bool has_payload(const E& e) {
  bool any = false;
  auto look = [&any](const auto& field) { any = any || !field.empty(); };
  payload_fields(look, e);
  return any;
}

unsigned flags_of(const StepHead& head) {
  return (head.has_drafted ? kDrafted : 0U) | (head.has_verified ? kVerified : 0U) |
         (head.has_committed ? kCommitted : 0U) | (head.complete ? kComplete : 0U) |
         (head.has_pool ? kPool : 0U) | (head.tried_guesses ? kGuesses : 0U);
}

StepHead take_head(Unpacker& from) {
  StepHead head;
  const auto flags = static_cast<unsigned>(from.take());
  head.has_drafted = (flags & kDrafted) != 0;
  head.has_verified = (flags & kVerified) != 0;
  head.has_committed = (flags & kCommitted) != 0;
  head.complete = (flags & kComplete) != 0;
  head.has_pool = (flags & kPool) != 0;
  head.tried_guesses = (flags & kGuesses) != 0;
  from.event(head.begun, {});
  from.event(head.ended, base_of(head.begun));
  for (int* n : {&head.n_proposed, &head.n_accepted, &head.n_rejected, &head.n_unused, &head.n_rows,
                 &head.first_pos, &head.n_tokens, &head.n_bonus, &head.n_pool_hits,
                 &head.n_pool_added, &head.n_blocks, &head.chosen}) {
    *n = from.count();
  }
  return head;
}

}  // namespace

void pack_structure(const StepRecord& step, std::string& bytes) {
  StepPacker to(bytes);
  const StepHead head = head_of(step);
  to.put(flags_of(head));
  to.event(step.begun, {}, false);
  const Base base = base_of(step.begun);
  to.event(step.ended, base, false);
  for (const int n : {head.n_proposed, head.n_accepted, head.n_rejected, head.n_unused, head.n_rows,
                      head.first_pos, head.n_tokens, head.n_bonus, head.n_pool_hits,
                      head.n_pool_added, head.n_blocks, head.chosen}) {
    to.put(static_cast<std::uint64_t>(std::max(n, 0)));
  }
  if (step.has_drafted) to.event(step.drafted, base, false);
  if (step.has_verified) to.event(step.verified, base, false);
  if (step.has_committed) to.event(step.committed, base, false);
  if (step.pool) to.event(*step.pool, base, false);
}

void pack_payload(const StepRecord& step, PayloadKind kind, std::string& bytes) {
  StepPacker to(bytes);
  const Base base = base_of(step.begun);
  if (kind == PayloadKind::Trajectory) {
    for (const BlockRefined& block : step.blocks) to.event(block, base, true);
  } else if (kind == PayloadKind::Pool) {
    if (step.pool && has_payload(*step.pool)) payload_fields(to, *step.pool);
  } else if (has_payload(step.drafted) || has_payload(step.verified)) {
    payload_fields(to, step.drafted);
    payload_fields(to, step.verified);
  }
}

StepHead unpack_head(std::string_view structure) {
  Unpacker from(structure);
  return take_head(from);
}

StepRecord unpack_structure(std::string_view structure) {
  Unpacker from(structure);
  const StepHead head = take_head(from);
  StepRecord step{.begun = head.begun,
                  .ended = head.ended,
                  .has_drafted = head.has_drafted,
                  .has_verified = head.has_verified,
                  .has_committed = head.has_committed,
                  .complete = head.complete};
  const Base base = base_of(step.begun);
  if (step.has_drafted) from.event(step.drafted, base);
  if (step.has_verified) from.event(step.verified, base);
  if (step.has_committed) from.event(step.committed, base);
  if (head.has_pool) from.event(step.pool.emplace(), base);
  ensure(from.empty(), "bytes are left after a packed step");
  return step;
}

void unpack_payload(StepRecord& step, PayloadKind kind, std::string_view bytes) {
  if (bytes.empty()) return;
  Unpacker from(bytes);
  const Base base = base_of(step.begun);
  if (kind == PayloadKind::Trajectory) {
    while (!from.empty()) from.event(step.blocks.emplace_back(), base);
  } else if (kind == PayloadKind::Pool) {
    payload_fields(from, *step.pool);
  } else {
    payload_fields(from, step.drafted);
    payload_fields(from, step.verified);
  }
}

}  // namespace engine
