// The models that the window offers: the bundled ones and the one of the command line immediately, those found on this
// machine as soon as a separate thread has read their configurations.
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ui/shell/catalog.h"

namespace app {

struct ModelOptions;

/// Returns the models in a folder of models, and the model that the command line names.
std::vector<ui::CatalogModel> catalog_models(const std::filesystem::path& folder,
                                             const ModelOptions& options);

/// The name in the catalog of a model of the command line, given by name or path; `given` if the catalog has none.
std::string name_in_catalog(const ui::Catalog& catalog, const std::string& given);

/// Adds the models found on this machine, and models that the user opens in the window.
class WindowModels {
 public:
  /// Adds the found models with their names and starts to read their configurations.
  /// @param catalog  outlives this object. Gets `Catalog::add_model`
  /// @param options  limits of the files
  WindowModels(ui::Catalog& catalog, const ModelOptions& options);
  /// Ends the reading after the model being read.
  ~WindowModels();
  WindowModels(const WindowModels&) = delete;
  WindowModels& operator=(const WindowModels&) = delete;

  /// Copies descriptions that are ready to the catalog. Does not wait. @return  true if there were any
  bool take();
  /// Waits until all models are read and copies them to the catalog.
  void wait_and_take();

 private:
  struct Description {
    ui::CatalogModel model;
    std::map<std::string, std::string> unfit;  // of compare_with_heads()
  };
  void add(ui::CatalogModel model);
  void read(const ModelOptions& options);
  void count_models();

  ui::Catalog& catalog_;                       // changed on the window's thread alone
  const std::vector<ui::CatalogHeads> heads_;  // a copy for the reader
  std::mutex mutex_;                           // guards the members below
  std::condition_variable changed_;
  std::deque<ui::CatalogModel> waiting_;  // to be read
  std::vector<Description> ready_;        // read, not yet copied
  bool reads_ = false;                    // the reader has one in hand
  bool ends_ = false;
  std::thread reader_;
};

}  // namespace app
