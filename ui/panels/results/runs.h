// The panel Runs: the runs of this session or of the opened recording, and recordings opened before.
#pragma once

#include <string>
#include <vector>

#include "engine/event/event.h"
#include "ui/prepare/sets/run_groups.h"
#include "ui/shell/panel_state.h"

namespace ui {

struct Panel;
extern const Panel kRunsPanel;

/// The state of the panel Runs.
struct RunsView : PanelState {
  std::vector<engine::RunId> marked;  // runs marked for comparison, in this order
  engine::RunId renaming = 0;         // the run whose name is being typed; 0: none
  bool renaming_begins = false;       // the field takes the keyboard in the next frame
  std::string new_name;
  engine::RunId noting = 0;    // the run whose note is being typed; 0: none
  bool noting_begins = false;  // the field takes the keyboard in the next frame
  std::string new_note;
  std::vector<RunEntry> entries;  // of the first `n_runs` runs
  std::size_t n_runs = 0;
  void document_changed() override {
    entries.clear();
    n_runs = 0;
    marked.clear();
    renaming = noting = 0;
  }
};

}  // namespace ui
