// The models that the window offers.
#pragma once

#include <filesystem>
#include <vector>

namespace ui {
struct CatalogModel;
}

namespace app {

struct ModelOptions;

/// Returns the models in a folder of models, and the model that the command line names.
std::vector<ui::CatalogModel> catalog_models(const std::filesystem::path& folder,
                                             const ModelOptions& options);

}  // namespace app
