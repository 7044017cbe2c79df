// Texts in the order of their indices, made by several threads; some of them ahead, while the
// caller waits for a GPU.
#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <vector>

#include "engine/train/core/trainer.h"
#include "engine/train/core/workers.h"

namespace engine {

class TextQueue {
 public:
  /// @param texts, workers  outlive this
  TextQueue(const TokenSource& texts, Workers& workers) : texts_(texts), workers_(workers) {}
  TextQueue(const TextQueue&) = delete;
  TextQueue& operator=(const TextQueue&) = delete;
  ~TextQueue();

  static constexpr int kAtOnce = 32;
  /// Texts [next, next + kAtOnce), and moves `next` behind them.
  std::vector<TokenText> take();
  /// Begins to make as many as were taken since it was last called, unless the system has no thread
  /// for it. Until the next take() the workers are this queue's.
  void make_ahead();

  std::int64_t next = 0;  // index of the first text that was not taken; to be set before any is

 private:
  std::vector<TokenText> make(std::int64_t first) const;

  const TokenSource& texts_;
  Workers& workers_;
  int n_taken_ = 0;  // parts of kAtOnce, since make_ahead
  std::deque<std::vector<TokenText>> ready_;
  std::future<void> coming_;
};

}  // namespace engine
