// Output files appear only when complete, and opening a file without a free descriptor fails
// cleanly.
#include <filesystem>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "engine/base/byte_source.h"
#include "engine/base/output_file.h"
#include "engine/event/recording/recorder.h"
#include "engine/event/timeline/timeline.h"
#include "engine/trace/export.h"
#include "tests/support/child_process.h"
#include "tests/support/files.h"

namespace engine {
namespace {

using test::Folder;

// IO10.
TEST(OutputFile, no_free_descriptors_is_a_resource_error) {
  const Folder folder;
  test::write_file(folder / "old.json", "old");
  const std::function<void()> actions[] = {[&] { OutputFile file(folder / "old.json"); },
                                           [&] { export_trace(Timeline(), folder / "old.json"); },
                                           [&] { Recorder recorder(folder / "new.pdrun"); },
                                           [&] { open_file(folder / "old.json"); }};
  const auto result = test::run_in_child([&]() -> std::string {
    if (!test::use_up_descriptors()) return "no limit";
    std::string text;
    for (const auto& action : actions) {
      try {
        action();
        text += "done\n";
      } catch (const Error& error) {
        text += error.code() == ErrorCode::Resources ? "" : "another code: ";
        text += std::string(error.what()) + "\n";
      }
    }
    return text;
  });
  const std::string refused = folder / "old.json: cannot be created: Too many open files\n";
  EXPECT_EQ(result, refused + refused +
                        (folder / "new.pdrun: cannot be created: Too many open files\n") +
                        (folder / "old.json: cannot be opened: Too many open files\n"));
  EXPECT_EQ(test::read_file(folder / "old.json"), "old");
  EXPECT_FALSE(std::filesystem::exists(folder / "new.pdrun"));
}

TEST(OutputFile, numbered_names_keep_their_extension) {
  EXPECT_EQ(numbered("a.b/run.json", 1), "a.b/run.json");
  EXPECT_EQ(numbered("a.b/run.json", 2), "a.b/run-2.json");
  EXPECT_EQ(numbered("run.v1.json.gz", 3), "run.v1-3.json.gz");
  EXPECT_EQ(numbered("a.b/run", 2), "a.b/run-2");
  EXPECT_EQ(numbered("a.b/run.gz", 2), "a.b/run-2.gz");
  EXPECT_EQ(numbered("a.b/.run", 2), "a.b/.run-2");
}

TEST(OutputFile, an_existing_name_gets_the_next_free_number) {
  const Folder folder;
  for (const char* name : {"a.txt", "a-2.txt", "a-3.txt"}) {
    OutputFile file(folder / "a.txt", {}, OutputFile::IfExists::NewName);
    file.write(name);
    file.finish();
    EXPECT_EQ(file.path(), folder / name);
  }
  for (const char* name : {"a.txt", "a-2.txt", "a-3.txt"})
    EXPECT_EQ(test::read_file(folder / name), name);
  { const OutputFile unfinished(folder / "a.txt", {}, OutputFile::IfExists::NewName); }
  EXPECT_FALSE(std::filesystem::exists(folder / "a-4.txt"));
}

// IO10.
TEST(RecordingTap, events_pass_if_the_recording_cannot_start) {
  const Folder folder;
  const auto result = test::run_in_child([&]() -> std::string {
    if (!test::use_up_descriptors()) return "no limit";
    EventList window;
    RecordingTap tap(window);
    tap.push(Held{.t = 1});
    try {
      tap.record_to(folder / "run.pdrun");
    } catch (const Error&) {
    }
    tap.push(Held{.t = 2});
    return std::to_string(window.events.size()) + (tap.recording() ? " recording" : " off");
  });
  EXPECT_EQ(result, "2 off");
}

}  // namespace
}  // namespace engine
