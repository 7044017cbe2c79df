// The files that `cmake --install` puts into a package, and the installed program in a separate folder. scripts/package.sh packs the same components.
#include <sys/wait.h>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/support/needs.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Package : public testing::Test {
 protected:
  void install(const std::string& component) const {
    EXPECT_EQ(code_of(DECOSCOPE_CMAKE " --install " DECOSCOPE_BUILD_DIR " --prefix " +
                      root().string() + " --component " + component),
              0)
        << printed();
  }
  int code_of(const std::string& command) const {
    return WEXITSTATUS(
        std::system(("cd " + folder_.path() + " && " + command + " >printed 2>&1").c_str()));
  }
  std::string printed() const { return contents(folder_ / "printed"); }
  fs::path root() const { return fs::path(folder_.path()) / "installed"; }
  std::string program() const {
    return "env -u DECOSCOPE_ASSETS " + (root() / "bin/decoscope").string();
  }

  engine::test::Folder folder_;
};

TEST_F(Package, has_program_assets_desktop_entries_and_notices) {
  install("program");
  for (const char* file :
       {"bin/decoscope", "share/decoscope/models/demo-target/model.safetensors",
        "share/decoscope/prompts/bundled.jsonl", "share/decoscope/recordings/first_race.pdrun",
        "share/decoscope/lessons/2_draft_and_verify.json", "share/applications/decoscope.desktop",
        "share/applications/decoscope-open.desktop", "share/mime/packages/decoscope.xml",
        "share/icons/hicolor/scalable/apps/decoscope.svg", "share/doc/decoscope/copyright",
        "share/doc/decoscope/licences/llama.cpp"})
    EXPECT_TRUE(fs::exists(root() / file)) << file;
#ifdef DECOSCOPE_WITH_UI
  EXPECT_TRUE(fs::exists(root() / "share/doc/decoscope/licences/dear-imgui"));
  EXPECT_TRUE(fs::exists(root() / "share/doc/decoscope/licences/implot"));
#endif
  EXPECT_FALSE(fs::exists(root() / "share/decoscope/desktop")) << "it belongs to other folders";
  // A double click on a recording opens it.
  const std::string mime = contents(root() / "share/mime/packages/decoscope.xml");
  EXPECT_THAT(mime, HasSubstr("<mime-type type=\"application/x-decoscope-recording\">"));
  EXPECT_THAT(mime, HasSubstr("pattern=\"*.pdrun\""));
  EXPECT_THAT(
      contents(root() / "share/applications/decoscope-open.desktop"),
      HasSubstr(
          "Exec=decoscope --open %f\nIcon=decoscope\nMimeType=application/x-decoscope-recording;"));
}

TEST_F(Package, installed_program_uses_its_own_assets) {
  install("program");
  const std::string generate = program() + " generate --prompt 'Anna has' --max-tokens 4";
  EXPECT_EQ(code_of(generate), 0) << printed();
  fs::remove_all(root() / "share/decoscope/models");
  EXPECT_NE(code_of(generate), 0) << "the model of the source tree was used";
}

TEST_F(Package, version_names_what_it_was_built_with) {
  install("program");
  EXPECT_EQ(code_of(program() + " --version"), 0);
  for (const char* line : {"decoscope 0.", "\nrevision ", "\ncompiler ", "\nCUDA ", "\nwindow "})
    EXPECT_THAT(printed(), HasSubstr(line));
}

TEST_F(Package, archive_brings_the_libraries) {
  install("program");
  install("libraries");
  ASSERT_EQ(code_of("ldd " + (root() / "bin/decoscope").string()), 0);
  const std::string libraries = printed();
  for (const char* name : {"libfmt", "libsentencepiece", "libdnnl", "libsqlite3"}) {
    const std::size_t at = libraries.find(name);
    ASSERT_NE(at, std::string::npos) << name;
    EXPECT_THAT(libraries.substr(at, libraries.find('\n', at) - at),
                HasSubstr("installed/bin/../lib/decoscope/"));
  }
  // Those of the system stay there.
  EXPECT_FALSE(fs::exists(root() / "lib/decoscope/libc.so.6"));
  EXPECT_FALSE(fs::exists(root() / "lib/decoscope/libGLX.so.0"));
  EXPECT_THAT(libraries, Not(HasSubstr("not found")));
}

TEST_F(Package, deb_has_the_program_below_usr_and_its_dependencies) {
  NEEDS(std::system("command -v dpkg-deb dpkg-shlibdeps >/dev/null") == 0, "no dpkg-dev here");
  ASSERT_EQ(code_of(DECOSCOPE_CPACK
                    " --config " DECOSCOPE_BUILD_DIR
                    "/CPackConfig.cmake -G DEB -D CPACK_DEBIAN_COMPRESSION_TYPE=none -B " +
                    folder_.path()),
            0)
      << printed();
  ASSERT_EQ(code_of("dpkg-deb --contents *.deb"), 0) << printed();
  EXPECT_THAT(printed(), HasSubstr(" ./usr/bin/decoscope\n"));
  EXPECT_THAT(printed(),
              HasSubstr(" ./usr/share/decoscope/models/demo-target/model.safetensors\n"));
  EXPECT_THAT(printed(), Not(HasSubstr("/lib/decoscope"))) << "the libraries are Debian's";
  ASSERT_EQ(code_of("dpkg-deb --field *.deb Depends"), 0);
  EXPECT_THAT(printed(), HasSubstr("libsentencepiece0"));
}

}  // namespace
