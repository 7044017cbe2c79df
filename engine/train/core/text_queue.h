// Generates the texts of a source, in the order of their indices, on several threads. It can
// prefetch texts while the caller waits for a GPU.
#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <vector>

#include "engine/train/core/packing.h"
#include "engine/train/core/training.h"
#include "engine/train/core/workers.h"

namespace engine {

/// A queue of generated texts.
class TextQueue {
 public:
  /// @param texts, workers  outlive this
  TextQueue(const TokenSource& texts, Workers& workers) : texts_(texts), workers_(workers) {}
  TextQueue(const TextQueue&) = delete;
  TextQueue& operator=(const TextQueue&) = delete;
  ~TextQueue();

  static constexpr int kAtOnce = 32;
  /// Returns texts [next, next + kAtOnce) and advances `next`.
  std::vector<TokenText> take();
  /// Starts to prefetch, in the background, as many texts as were taken since the last call. The
  /// queue occupies the workers until the next take(). Does nothing if the system has no thread
  /// left.
  void make_ahead();

  std::int64_t next = 0;  // index of the next text; may be set before the first take()

 private:
  std::vector<TokenText> make(std::int64_t first) const;

  const TokenSource& texts_;
  Workers& workers_;
  int n_taken_ = 0;  // calls of take() since the last make_ahead()
  std::deque<std::vector<TokenText>> ready_;
  std::future<void> coming_;
};

}  // namespace engine
