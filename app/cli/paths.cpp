#include "app/cli/paths.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "kernels/error.h"

namespace app {

std::string assets_dir() {
  namespace fs = std::filesystem;
  std::vector<fs::path> places;
  if (const char* given = std::getenv("DECOSCOPE_ASSETS"); given && *given)
    places.emplace_back(given);
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    places.push_back(program.parent_path().parent_path() / "share/decoscope");
    places.push_back(program.parent_path().parent_path().parent_path().parent_path() / "assets");
  }
  places.emplace_back(DECOSCOPE_SOURCE_DIR "/assets");
  std::string looked;
  for (const fs::path& place : places) {
    if (fs::is_directory(place / "prompts", error)) return place.lexically_normal().string();
    looked += (looked.empty() ? "" : ", ") + place.lexically_normal().string();
  }
  throw kernels::Error(kernels::ErrorCode::BadInput,
                       "assets: no folder with models/ and prompts/; looked in " + looked +
                           "; set DECOSCOPE_ASSETS");
}

std::string data_dir_of_environment() {
  const char* given = std::getenv("DECOSCOPE_DATA");
  return given ? given : "";
}

}  // namespace app
