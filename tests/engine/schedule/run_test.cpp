// One run to its end, as the command line asks for it.
#include "engine/schedule/run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

namespace engine {
namespace {

struct Kept : EventSink {
  void push(Event event) override { events.push_back(std::move(event)); }
  std::vector<Event> events;
};

TEST(RunToEnd, a_run_stopped_while_it_reads_its_prompt_is_told_as_stopped) {
  if (!std::filesystem::exists(DECOSCOPE_SOURCE_DIR "/assets/models/demo-target/config.json")) {
    FAIL() << "assets/models/demo-target is not in this tree";
  }
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  LoadedModel& loaded = store.get({});
  RunRequest request;
  request.prompt_tokens.assign(600, 5);
  Kept kept;
  try {
    run_to_end(loaded, request, 7, &kept, [] { return true; });
    FAIL() << "it was not stopped";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Cancelled);
  }
  ASSERT_FALSE(kept.events.empty());
  const auto* finished = std::get_if<RunFinished>(&kept.events.back());
  ASSERT_NE(finished, nullptr);
  EXPECT_EQ(finished->run, 7u);
  EXPECT_EQ(finished->stop_reason, "stopped");
}

}  // namespace
}  // namespace engine
