// Which draft heads the window can choose, why some do not fit a model, and what their trees are.
#pragma once

#include <filesystem>

#include "app/cli/commands.h"
#include "ui/shell/catalog.h"

namespace app {

/// Fills in catalog.heads with those that lie among the models and those a person named, held
/// against every model of the catalog; and of each model the heads its card names.
/// @param folder  of the models
void add_heads(ui::Catalog& catalog,
               const std::filesystem::path& folder,
               const ModelOptions& options);

/// What trees among options come to, for the window: files are read again when they change.
void add_tree_notes(ui::Catalog& catalog);

}  // namespace app
