#include "app/commands/named_model.h"

#include <fmt/format.h>

#include "app/cli/paths.h"
#include "app/cli/terminal.h"
#include "engine/base/text.h"
#include "engine/checkpoint/model_files.h"

namespace app {

std::string model_folder(const std::string& name_or_path) {
  std::string folder = engine::find_model(name_or_path, assets_dir());
  if (const std::string notice = engine::ambiguous_name_notice(name_or_path, assets_dir());
      !notice.empty())
    print_once({notice});
  return folder;
}

void note_folder_is_used(const std::string& option, const std::string& folder) {
  if (!engine::is_ambiguous_model_name(folder, assets_dir())) return;
  const std::string name = engine::escaped(folder);
  print_once(
      {fmt::format("{} {}: the folder ./{} is used; the bundled model of that name is {}/models/{}",
                   option, name, name, assets_dir(), name)});
}

void note_written_name(const std::string& folder) {
  if (!engine::is_ambiguous_model_name(folder, assets_dir())) return;
  const std::string name = engine::escaped(folder);
  print_once({fmt::format("{} is the bundled model; refer to the folder just written as ./{}", name,
                          name)});
}

}  // namespace app
