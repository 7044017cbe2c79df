// The panel Prompts: the results of a set of prompts, by prompt and by task.
#pragma once

#include <cstdint>
#include <vector>

#include "ui/prepare/sets/prompt_results.h"
#include "ui/shell/panel_state.h"

namespace ui {

struct Panel;
extern const Panel kPromptsPanel;

/// The state of the panel Prompts.
struct PromptsView : PanelState {
  /// The view that the user chose.
  enum class Show { Prompts, Tasks, Scatter } show = Show::Prompts;
  std::vector<PromptResult> prompts;  // of the set, unsorted
  std::vector<TaskResult> tasks;      // of the set, unsorted
  std::vector<PromptResult> sorted;   // as the tables show them
  std::vector<TaskResult> sorted_tasks;
  bool prompts_stale = false, tasks_stale = false;  // not sorted since they changed
  // for which they were computed: the set, and the numbers of ended and of compared runs
  std::uint32_t set = 0;
  std::size_t n_over = 0, n_compared = 0;
  Speedups speedups;
  void document_changed() override {
    set = 0;
    n_over = n_compared = 0;
    prompts.clear(), tasks.clear(), sorted.clear(), sorted_tasks.clear(), speedups.clear();
  }
};

}  // namespace ui
