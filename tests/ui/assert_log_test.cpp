// Failed assertions of Dear ImGui: without a log they abort; with one, the window reports them and continues.
#include "ui/widgets/assert_log.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <imgui.h>

#include "tests/ui/support/headless.h"

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

void assert_that(bool holds) {
  IM_ASSERT(holds && "it holds");
}

TEST(AssertLog, without_log_failed_assertion_aborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(assert_that(false), "IM_ASSERT.*it holds.*failed");
}

TEST(AssertLog, reports_each_place_once) {
  std::vector<std::string> reported;
  {
    const ui::AssertLog log([&](const std::string& what) { reported.push_back(what); });
    assert_that(true);
    EXPECT_TRUE(reported.empty());
    for (int i = 0; i < 3; ++i) assert_that(false);
    EXPECT_THAT(reported,
                ElementsAre(AllOf(HasSubstr("assert_log_test.cpp:"), HasSubstr("it holds"))));
    IM_ASSERT(reported.empty());
    EXPECT_EQ(reported.size(), 2u) << "another source line";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(assert_that(false), "it holds") << "the log was destroyed";
}

// An error that Dear ImGui detects: more pops from its stack than pushes.
TEST(AssertLog, window_is_drawn_after_an_assertion) {
  std::vector<std::string> reported;
  const ui::AssertLog log([&](const std::string& what) { reported.push_back(what); });
  headless::Headless gui;
  const auto faulty = [] {
    ImGui::Begin("faulty");
    ImGui::PopStyleColor();
    ImGui::TextUnformatted("still here");
    ImGui::End();
  };
  for (int frame = 0; frame < 3; ++frame) EXPECT_THAT(gui.said(faulty), HasSubstr("still here"));
  EXPECT_THAT(reported, ElementsAre(HasSubstr("PopStyleColor")));
}

}  // namespace
