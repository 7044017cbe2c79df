#include "engine/event/timeline/step_store.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/event/timeline/step_pack.h"
#include "kernels/error.h"

namespace engine {
namespace {

std::string_view part(const std::string& bytes, std::size_t from, std::size_t to) {
  return std::string_view(bytes).substr(from, to - from);
}

/// The page that holds step i, by the first step of each.
std::size_t page_of(const std::vector<std::size_t>& first, std::size_t i) {
  return static_cast<std::size_t>(std::ranges::upper_bound(first, i) - first.begin()) - 1;
}

}  // namespace

std::size_t StepStore::Page::payload_bytes() const {
  std::size_t n = 0;
  for (const std::string& bytes : payload) n += bytes.size();
  return n;
}

void StepStore::pack(const StepRecord& step, Page& page) {
  pack_structure(step, page.structure);
  std::array<std::uint32_t, 1 + kPayloadKinds> end{};
  end[0] = static_cast<std::uint32_t>(page.structure.size());
  for (std::size_t k = 0; k < kPayloadKinds; ++k) {
    pack_payload(step, kAllPayloadKinds[k], page.payload[k]);
    end[k + 1] = static_cast<std::uint32_t>(page.payload[k].size());
  }
  page.ends.push_back(end);
}

StepRecord StepStore::unpack(const Place& place) {
  const Page& page = place.page;
  const std::array<std::uint32_t, 1 + kPayloadKinds> zero{};
  const auto& from = place.i == 0 ? zero : page.ends[place.i - 1];
  const auto& to = page.ends[place.i];
  StepRecord step = unpack_structure(part(page.structure, from[0], to[0]));
  if (page.dropped) return step;
  for (std::size_t k = 0; k < kPayloadKinds; ++k) {
    unpack_payload(step, kAllPayloadKinds[k], part(page.payload[k], from[k + 1], to[k + 1]));
  }
  return step;
}

StepStore::Place StepStore::place_of(std::size_t i) const {
  const std::size_t page = page_of(first_, i);
  return {pages_[page], i - first_[page]};
}

StepRecord StepStore::operator[](std::size_t i) const {
  if (i == n_packed_ && open_) return *open_;
  return unpack(place_of(i));
}

StepRecord StepStore::at(std::size_t i) const {
  ensure(i < size(), "no such step");
  return (*this)[i];
}

StepHead StepStore::head(std::size_t i) const {
  if (i == n_packed_ && open_) return head_of(*open_);
  const Place place = place_of(i);
  const std::size_t from = place.i == 0 ? 0 : place.page.ends[place.i - 1][0];
  return unpack_head(part(place.page.structure, from, place.page.ends[place.i][0]));
}

std::optional<PoolChanged> StepStore::pool_lists(std::size_t i) const {
  if (i == n_packed_ && open_) return open_->pool;
  const Place place = place_of(i);
  constexpr auto kPlace = 1 + static_cast<std::size_t>(PayloadKind::Pool);
  const std::size_t from = place.i == 0 ? 0 : place.page.ends[place.i - 1][kPlace];
  const std::size_t to = place.page.ends[place.i][kPlace];
  if (place.page.dropped || from == to) return std::nullopt;
  StepRecord step;
  step.pool.emplace();
  unpack_payload(step, PayloadKind::Pool, part(place.page.payload[kPlace - 1], from, to));
  step.pool->step = head(i).begun.step;
  return step.pool;
}

void StepStore::append(const StepRecord& step) {
  const bool full = pages_.empty() || pages_.back().ends.size() == kPageSteps;
  if (full || pages_.back().dropped) {
    if (!pages_.empty()) {
      Page& closed = pages_.back();
      closed.structure.shrink_to_fit();
      closed.ends.shrink_to_fit();
      for (std::string& bytes : closed.payload) bytes.shrink_to_fit();
    }
    pages_.emplace_back();
    first_.push_back(n_packed_);
  }
  Page& page = pages_.back();
  const std::size_t before = page.payload_bytes();
  pack(step, page);
  payload_bytes_ += page.payload_bytes() - before;
  ++n_packed_;
}

void StepStore::push_back(StepRecord step) {
  settle();
  open_ = std::move(step);
}

void StepStore::settle() {
  if (!open_) return;
  append(*open_);
  open_.reset();
}

void StepStore::replace(std::size_t i, StepRecord step) {
  ensure(i < size(), "no such step");
  if (i == n_packed_) {
    open_ = std::move(step);
    return;
  }
  const std::size_t index = page_of(first_, i);
  Page& page = pages_[index];
  Page packed{.dropped = page.dropped};
  for (std::size_t k = 0; k < page.ends.size(); ++k) {
    pack(first_[index] + k == i ? step : unpack({page, k}), packed);
  }
  if (packed.dropped) {
    for (std::string& bytes : packed.payload) std::string().swap(bytes);
  }
  payload_bytes_ += packed.payload_bytes() - page.payload_bytes();
  page = std::move(packed);
}

std::size_t StepStore::bytes() const {
  std::size_t n =
      sizeof *this + pages_.capacity() * sizeof(Page) + first_.capacity() * sizeof(std::size_t);
  for (const Page& page : pages_) {
    n += page.structure.capacity() + page.ends.capacity() * sizeof page.ends[0];
    for (const std::string& bytes : page.payload) n += bytes.capacity();
  }
  return n;
}

std::vector<PayloadDropped> StepStore::drop_oldest_payload() {
  std::vector<PayloadDropped> drops;
  for (std::size_t p = oldest_payload_; p < pages_.size(); ++p) {
    Page& page = pages_[p];
    if (page.payload_bytes() == 0) {
      const bool stays_empty = page.dropped || page.ends.size() == kPageSteps;
      if (p == oldest_payload_ && stays_empty) ++oldest_payload_;
      continue;
    }
    const StepId first = head(first_[p]).begun.step;
    const std::size_t last_step = first_[p] + page.ends.size() - 1;
    for (std::size_t k = 0; k < kPayloadKinds; ++k) {
      std::string& bytes = page.payload[k];
      if (bytes.empty()) continue;
      drops.push_back({.kind = name_of(kAllPayloadKinds[k]),
                       .first_step = first,
                       .last_step = head(last_step).begun.step,
                       .n_bytes = static_cast<std::int64_t>(bytes.size())});
      payload_bytes_ -= bytes.size();
      std::string().swap(bytes);
    }
    page.dropped = true;
    return drops;
  }
  return drops;
}

}  // namespace engine
