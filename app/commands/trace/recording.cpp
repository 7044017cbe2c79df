#include "app/commands/trace/recording.h"

#include <limits>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/base/types.h"
#include "engine/event/serialise.h"
#include "engine/trace/trace_report.h"

namespace app {

bool is_trace_name(const std::string& path) {
  return engine::trace_format_of(path).has_value();
}

void throw_cancelled(const std::string& path, const char* left) {
  throw engine::Error(engine::ErrorCode::Cancelled,
                      fmt::format("{}: cancelled; {}", engine::escaped(path), left));
}

engine::RecordingReport read_whole_recording(const std::string& path,
                                             engine::EventSink& into,
                                             const std::function<bool()>& stop) {
  bool stopped = false;
  engine::RecordingReport report = engine::read_recording(path, into, {}, [&](double) {
    stopped = stopped || (stop && stop());
    return !stopped;
  });
  if (stopped) throw_cancelled(path, "it was not completely read");
  return report;
}

OpenedRecording open_recording(const std::string& path, const std::function<bool()>& stop) {
  OpenedRecording opened;
  class Into : public engine::EventSink {
   public:
    explicit Into(OpenedRecording& o) : opened_(o) {}
    void push(engine::Event event) override {
      const std::string kind = engine::kind_name(event.index());
      ++opened_.kinds[kind];
      opened_.timeline.apply(event);
      if (const engine::RunRecord* run = opened_.timeline.run(engine::run_of(event)))
        ++opened_.kinds_by_decoder[run->started.decoder][kind];
    }

   private:
    OpenedRecording& opened_;  // outlives the reading
  } into(opened);
  opened.timeline.set_payload_budget(std::numeric_limits<std::size_t>::max());
  opened.report = read_whole_recording(path, into, stop);
  return opened;
}

}  // namespace app
