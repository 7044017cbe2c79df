#include "engine/train/run/recipe_fields.h"

#include <filesystem>

#include "engine/base/input_file.h"
#include "engine/base/json.h"

namespace engine {

nlohmann::json parsed_recipe(const std::string& text, const std::string& path) {
  // Checks the depth first, since printing a deep value in a message would overflow the stack.
  JsonReader reader(text, path);
  reader.skip();
  reader.end();
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::BadInput, path + ": not JSON: " + error.what());
  }
}

std::string recipe_text(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw Error(ErrorCode::BadInput,
                path + ": found a directory, expected a recipe file like assets/recipes/tiny.json");
  return read_text_input(path, Pipes::Refuse);
}

}  // namespace engine
