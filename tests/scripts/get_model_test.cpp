// scripts/get_model.sh on small models from a package index on this machine (get_model_check.py).
#include <string>

#include <gtest/gtest.h>

#include "tests/scripts/script_fixture.h"

namespace {

class GetModel : public test::ScriptFixture {
 protected:
  void SetUp() override {
    ScriptFixture::SetUp();
    NEEDS(std::system("python3 -m pip --version >/dev/null 2>&1") == 0, "no pip here");
  }
  void expect_passes(const std::string& name) const {
    const std::string command = "python3 " DECOSCOPE_SOURCE_DIR
                                "/tests/scripts/get_model_check.py GetModel.test_" +
                                name + " >" + log() + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << read(log());
  }
};

TEST_F(GetModel, parts_are_joined_and_the_licence_is_kept) {
  expect_passes("parts_are_joined_and_the_licence_is_kept");
}
TEST_F(GetModel, index_of_pips_configuration_is_used) {
  expect_passes("index_of_pips_configuration_is_used");
}
TEST_F(GetModel, missing_pip_ends_with_one_line) {
  expect_passes("missing_pip_ends_with_one_line");
}
TEST_F(GetModel, broken_download_continues) {
  expect_passes("broken_download_continues");
}
TEST_F(GetModel, interrupted_download_continues_in_the_next_call) {
  expect_passes("interrupted_download_continues_in_the_next_call");
}
TEST_F(GetModel, wrong_hash_keeps_nothing) {
  expect_passes("wrong_hash_keeps_nothing");
}
TEST_F(GetModel, terms_are_shown_before_anything_is_downloaded) {
  expect_passes("terms_are_shown_before_anything_is_downloaded");
}
TEST_F(GetModel, offline_ends_with_one_line) {
  expect_passes("offline_ends_with_one_line");
}
TEST_F(GetModel, path_is_known_without_a_download) {
  expect_passes("path_is_known_without_a_download");
}

}  // namespace
