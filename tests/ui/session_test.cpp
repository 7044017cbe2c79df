// Opened recordings instead of the live engine.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/event/recording/recorder.h"
#include "engine/event/recording/recording.h"
#include "tests/support/files.h"
#include "ui/files/saving.h"
#include "ui/files/session.h"

namespace ui {
namespace {

using testing::AllOf;
using testing::HasSubstr;

engine::ModelLoaded model(const char* name, const char* hash) {
  engine::ModelLoaded event;
  event.name = name;
  event.weights_hash = hash;
  return event;
}

std::string recorded(const engine::test::Folder& folder, const engine::ModelLoaded& event) {
  engine::Recorder recorder(folder / "run.pdrun");
  recorder.push(event);
  recorder.close();
  return recorder.path();
}

TEST(Session, other_weights_are_reported_in_the_log) {
  const engine::test::Folder folder;
  const std::string path = recorded(folder, model("demo", "00000000000000aa"));
  Session session;
  session.open(path);
  EXPECT_TRUE(session.shown().timeline.notices().empty()) << "no model is loaded yet";

  // The model is loaded while the recording is open, or before.
  session.take({model("demo", "00000000000000bb")});
  ASSERT_EQ(session.shown().timeline.notices().size(), 1u);
  session.open(path);
  ASSERT_EQ(session.shown().timeline.notices().size(), 1u);
  EXPECT_THAT(session.shown().timeline.notices()[0].text,
              AllOf(HasSubstr("demo, weights 00000000000000aa"),
                    HasSubstr("demo here has weights 00000000000000bb")));
  engine::EventList saved;
  engine::read_recording(session.save(folder / "saved.pdrun")->result(), saved);
  EXPECT_EQ(saved.events.size(), 1u) << "notices are not saved";

  session.take({model("demo", "00000000000000aa")});
  session.open(path);
  EXPECT_TRUE(session.shown().timeline.notices().empty());
}

TEST(Session, limit_of_details_applies_to_every_document) {
  const engine::test::Folder folder;
  Session session;
  session.limit_payload(1000);
  EXPECT_EQ(session.live().timeline.payload_budget(), 1000u);
  session.open(recorded(folder, model("demo", "")));
  EXPECT_EQ(session.shown().timeline.payload_budget(), 1000u);
  session.limit_payload(2000);
  EXPECT_EQ(session.shown().timeline.payload_budget(), 2000u);
  EXPECT_EQ(session.live().timeline.payload_budget(), 2000u);
}

}  // namespace
}  // namespace ui
