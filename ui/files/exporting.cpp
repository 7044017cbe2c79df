#include "ui/files/exporting.h"

#include <chrono>
#include <utility>

#include "engine/trace/export.h"
#include "ui/files/files.h"

namespace ui {

Exporting::Exporting(const engine::Timeline& timeline,
                     std::string path,
                     engine::TraceOptions options)
    : path_(std::move(path)) {
  options.progress = [this](double fraction) {
    fraction_ = fraction;
    return !given_up_;
  };
  writer_ = std::async(std::launch::async, [this, &timeline, options = std::move(options)] {
    return ui::export_trace(timeline, path_, options);
  });
}

Exporting::~Exporting() {
  if (writer_.valid()) writer_.wait();
}

bool Exporting::ended() const {
  return writer_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace ui
