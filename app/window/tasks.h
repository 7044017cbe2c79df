// Which questions the window can have asked by reasoning, and why the others cannot be here.
#pragma once

#include <string>

#include "ui/shell/catalog.h"

namespace app {

/// Fills in catalog.chain_tasks and catalog.tree_tasks.
/// @param data_dir  the folder of the open sets, with one folder a set; empty: there is none
void add_tasks(ui::Catalog& catalog, const std::string& data_dir);

}  // namespace app
