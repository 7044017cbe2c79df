// The tasks that the window offers for reasoning, and why some are unavailable.
#pragma once

#include <string>

namespace ui {
struct Catalog;
}

namespace app {

/// Fills catalog.chain_tasks and catalog.tree_tasks.
/// @param data_dir  folder of the open data sets, with one folder per set; empty: there is none
void add_tasks(ui::Catalog& catalog, const std::string& data_dir);

}  // namespace app
