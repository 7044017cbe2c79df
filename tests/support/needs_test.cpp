#include "tests/support/needs.h"

#include <string>

#include <gtest/gtest-spi.h>

namespace tests {
namespace {

// Sets the variable for one test and restores it after that.
class Setting {
 public:
  explicit Setting(const char* value) {
    if (const char* was = std::getenv(kName)) was_ = was, had_ = true;
    value != nullptr ? setenv(kName, value, 1) : unsetenv(kName);
  }
  ~Setting() { had_ ? setenv(kName, was_.c_str(), 1) : unsetenv(kName); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  static constexpr const char* kName = "DECOSCOPE_TEST_NEEDS_ALL";
  std::string was_;
  bool had_ = false;
};

void absent() {
  NEEDS(false, "the program is missing");
}

void present(bool& went_on) {
  NEEDS(true, "the program is missing");
  went_on = true;
}

TEST(Needs, a_missing_program_fails_where_all_were_installed) {
  const Setting all("1");
  EXPECT_FATAL_FAILURE(absent(), "the program is missing");
}

TEST(Needs, a_missing_program_skips_the_test_elsewhere) {
  const Setting unset(nullptr);
  testing::TestPartResultArray results;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(&results);
    absent();
  }
  ASSERT_EQ(results.size(), 1);
  EXPECT_TRUE(results.GetTestPartResult(0).skipped());
}

TEST(Needs, a_present_program_changes_nothing) {
  for (const char* value : {"1", "0"}) {
    const Setting setting(value);
    bool went_on = false;
    present(went_on);
    EXPECT_TRUE(went_on) << value;
  }
}

TEST(Needs, a_condition_is_evaluated_once) {
  int n = 0;
  const auto takes_one = [&n] { NEEDS(n++ == 0, "the first call alone finds it"); };
  takes_one();
  EXPECT_EQ(n, 1);
}

}  // namespace
}  // namespace tests
