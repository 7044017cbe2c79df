// The draft heads that the window offers, why some do not fit a model, and descriptions of trees.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace ui {
struct Catalog;
struct CatalogHeads;
struct CatalogModel;
}  // namespace ui

namespace app {

struct ModelOptions;

/// The name of heads or of a draft in the catalog: that of the directory for bundled ones, else the whole path.
std::string name_of_directory(const std::filesystem::path& directory);

/// Fills catalog.heads with the heads in the folder of models and those of the command line.
/// Records which heads do not fit a model, and which heads the card of each model names.
/// @param folder  the folder of models
void add_heads(ui::Catalog& catalog,
               const std::filesystem::path& folder,
               const ModelOptions& options);

/// Reads which heads the card of a model names, into model.heads, and compares the model with all heads.
/// @return  the heads that do not fit it, with the reason
std::map<std::string, std::string> compare_with_heads(ui::CatalogModel& model,
                                                      const std::vector<ui::CatalogHeads>& all,
                                                      const ModelOptions& options);
/// Copies the result of compare_with_heads() to the heads of the catalog.
void note_unfit(ui::Catalog& catalog,
                const std::string& model,
                const std::map<std::string, std::string>& unfit);

/// Sets catalog.tree, which describes trees; files are read again when they change.
void add_tree_notes(ui::Catalog& catalog);

}  // namespace app
