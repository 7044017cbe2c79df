// An animation of the view that is being written: first a few frames are drawn to estimate its size, then, on request, all of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ui/files/animation.h"
#include "ui/prepare/time/animation_frames.h"

namespace ui {

/// Takes the drawn frames of an animation one by one. The caller moves the playhead to at(), draws, and calls take().
class Animating {
 public:
  /// @param path    where the file is written; its ending selects the format
  /// @param frames  all frames, at least one
  /// @throws Error(Usage)  the ending is neither .png nor .gif
  Animating(std::string path, std::vector<AnimationFrame> frames);

  /// Estimated: the size is known, and begin() starts the writing.
  enum class State : std::uint8_t { Sampling, Estimated, Writing, Done };
  State state() const { return state_; }
  /// Returns the playhead of the frame that is needed now (ns of own compute). Needs Sampling or Writing.
  double at() const { return frames_[index()].at; }
  /// Takes the frame at at(). All frames have one size.
  /// @param rgb   [height * width * 3], top row first
  /// @param says  a description that the file contains
  /// @throws Error(Resources)  the file cannot be written
  void take(std::span<const std::uint8_t> rgb, int width, int height, const std::string& says);
  /// Begins to write all frames.
  void begin();

  /// Returns the name of the file; final when it is done.
  const std::string& path() const { return path_; }
  /// Returns the share of the frames that are written, 0 to 1.
  double fraction() const;
  /// Returns the size to expect, or when it is done the real one.
  std::size_t n_bytes() const { return n_bytes_; }
  /// Returns "120 frames, 30.0 s, about 3.4 MB"; without "about" when it is done. Needs Estimated or Done.
  std::string words() const;

 private:
  std::size_t index() const { return state_ == State::Sampling ? samples_[next_] : next_; }
  void estimate(std::span<const std::uint8_t> rgb, int width, int height);
  void write(std::string file);

  std::string path_;
  std::vector<AnimationFrame> frames_;
  std::vector<std::size_t> samples_;  // indices of frames: the first, then pairs of neighbours
  State state_ = State::Sampling;
  std::size_t next_ = 0;  // index into samples_ while sampling, else into frames_
  std::unique_ptr<Animation> animation_;
  std::vector<std::uint8_t> before_;  // the sample before
  std::size_t alone_ = 0;             // size of a file with the sample before alone
  std::size_t n_bytes_ = 0;
  double changed_ = 0;  // bytes that the sampled changes take together
};

}  // namespace ui
