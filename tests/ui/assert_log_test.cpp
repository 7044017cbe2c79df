// What Dear ImGui asserts: a test ends with it, a person's session is told and goes on.
#include "ui/widgets/assert_log.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include "headless.h"

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

void assert_that(bool holds) {
  IM_ASSERT(holds && "it holds");
}

TEST(AssertLog, without_one_a_failed_assertion_ends_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(assert_that(false), "IM_ASSERT.*it holds.*failed");
}

TEST(AssertLog, tells_each_place_once_and_goes_on) {
  std::vector<std::string> told;
  {
    const ui::AssertLog log([&](const std::string& what) { told.push_back(what); });
    assert_that(true);
    EXPECT_TRUE(told.empty());
    for (int i = 0; i < 3; ++i) assert_that(false);
    EXPECT_THAT(told, ElementsAre(AllOf(HasSubstr("assert_log_test.cpp:"), HasSubstr("it holds"))));
    IM_ASSERT(told.empty());
    EXPECT_EQ(told.size(), 2u) << "of another place";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(assert_that(false), "it holds") << "it is gone";
}

// What Dear ImGui finds itself: more taken from its stack than was put there.
TEST(AssertLog, a_window_with_a_fault_is_drawn_on) {
  std::vector<std::string> told;
  const ui::AssertLog log([&](const std::string& what) { told.push_back(what); });
  headless::Headless gui;
  const auto faulty = [] {
    ImGui::Begin("faulty");
    ImGui::PopStyleColor();
    ImGui::TextUnformatted("still here");
    ImGui::End();
  };
  for (int frame = 0; frame < 3; ++frame) EXPECT_THAT(gui.said(faulty), HasSubstr("still here"));
  EXPECT_THAT(told, ElementsAre(HasSubstr("PopStyleColor")));
}

}  // namespace
