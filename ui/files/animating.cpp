#include "ui/files/animating.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/base/output_file.h"
#include "engine/base/text.h"
#include "engine/base/types.h"

namespace ui {
namespace {

constexpr std::size_t kPairs = 4;  // sampled changes from one frame to the next

// Returns the size of a file with these frames.
std::size_t size_of(const std::string& path,
                    int width,
                    int height,
                    std::initializer_list<std::span<const std::uint8_t>> frames) {
  const auto animation = make_animation(path, width, height, "");
  for (const auto& frame : frames) animation->add(frame, 100);
  return animation->file().size();
}

}  // namespace

Animating::Animating(std::string path, std::vector<AnimationFrame> frames)
    : path_(std::move(path)), frames_(std::move(frames)) {
  engine::ensure(!frames_.empty(), "an animation has at least one frame");
  make_animation(path_, 1, 1, "");  // refuses the name before anything is drawn
  const std::size_t n_changes = frames_.size() - 1;
  samples_.push_back(0);
  for (std::size_t i = 0; i < std::min(kPairs, n_changes); ++i) {
    const std::size_t before = n_changes <= kPairs ? i : (2 * i + 1) * n_changes / (2 * kPairs);
    samples_.push_back(before);
    samples_.push_back(before + 1);
  }
}

void Animating::take(std::span<const std::uint8_t> rgb,
                     int width,
                     int height,
                     const std::string& says) {
  if (state_ == State::Sampling) return estimate(rgb, width, height);
  engine::ensure(state_ == State::Writing, "take() needs a frame that is awaited");
  if (!animation_) animation_ = make_animation(path_, width, height, says);
  animation_->add(rgb, frames_[next_].ms);
  if (++next_ == frames_.size()) write(std::exchange(animation_, nullptr)->file());
}

// The first sample gives the size of a whole frame, the second of each pair the size of a change.
void Animating::estimate(std::span<const std::uint8_t> rgb, int width, int height) {
  const std::size_t alone = size_of(path_, width, height, {rgb});
  if (next_ == 0) n_bytes_ = alone;
  if (next_ > 0 && next_ % 2 == 0)
    changed_ += static_cast<double>(size_of(path_, width, height, {before_, rgb}) - alone_);
  before_.assign(rgb.begin(), rgb.end());
  alone_ = alone;
  if (++next_ < samples_.size()) return;
  const std::size_t n_pairs = samples_.size() / 2;
  if (n_pairs > 0)
    n_bytes_ += static_cast<std::size_t>(changed_ / static_cast<double>(n_pairs) *
                                         static_cast<double>(frames_.size() - 1));
  before_.clear();
  state_ = State::Estimated;
}

void Animating::begin() {
  engine::ensure(state_ == State::Estimated, "begin() follows the estimate");
  state_ = State::Writing;
  next_ = 0;
}

void Animating::write(std::string bytes) {
  engine::OutputFile file(path_, {}, engine::OutputFile::IfExists::NewName);
  file.write(bytes);
  file.finish();
  path_ = file.path();
  n_bytes_ = bytes.size();
  state_ = State::Done;
}

double Animating::fraction() const {
  return state_ == State::Writing ? static_cast<double>(next_) / static_cast<double>(frames_.size())
                                  : static_cast<double>(state_ == State::Done);
}

std::string Animating::words() const {
  double ms = 0;
  for (const AnimationFrame& frame : frames_) ms += frame.ms;
  const double mb = static_cast<double>(n_bytes_) / 1e6;
  return fmt::format("{}, {:.1f} s, {}{:.{}f} MB", engine::counted(std::ssize(frames_), "frame"),
                     ms / 1000, state_ == State::Done ? "" : "about ", mb, mb < 10 ? 2 : 0);
}

}  // namespace ui
