// A file of weights that is written in parts, with progress and cancellation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/output_file.h"
#include "engine/base/text.h"
#include "engine/base/types.h"
#include "engine/checkpoint/model_files.h"

namespace engine {

/// An OutputFile that reports its progress.
class WeightsOutput {
 public:
  /// @param total     bytes that write() will receive
  /// @param progress  borrowed; may be empty
  WeightsOutput(const std::string& path, std::int64_t total, const WriteProgress& progress)
      : file_(path), total_(total), progress_(progress) {}

  /// Appends bytes that are no weights: a header or padding.
  void write_uncounted(std::string_view bytes) { file_.write(bytes); }
  /// Appends bytes of weights.
  /// @throws Error(Cancelled)  the progress function returned false
  void write(std::string_view bytes) {
    file_.write(bytes);
    done_ += static_cast<std::int64_t>(bytes.size());
    if (progress_ && !progress_(done_, total_))
      throw Error(ErrorCode::Cancelled, escaped(file_.path()) + ": cancelled; nothing was written");
  }
  /// Syncs the file and gives it its name.
  void finish() { file_.finish(); }

 private:
  OutputFile file_;
  std::int64_t done_ = 0, total_;
  const WriteProgress& progress_;
};

}  // namespace engine
