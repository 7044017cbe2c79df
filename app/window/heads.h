// The draft heads that the window offers, why some do not fit a model, and descriptions of trees.
#pragma once

#include <filesystem>

namespace ui {
struct Catalog;
}

namespace app {

struct ModelOptions;

/// Fills catalog.heads with the heads in the folder of models and those of the command line.
/// Records which heads do not fit a model, and which heads the card of each model names.
/// @param folder  the folder of models
void add_heads(ui::Catalog& catalog,
               const std::filesystem::path& folder,
               const ModelOptions& options);

/// Sets catalog.tree, which describes trees; files are read again when they change.
void add_tree_notes(ui::Catalog& catalog);

}  // namespace app
