#include "ui/panels/live/in_view.h"

#include <algorithm>

#include <imgui.h>

namespace ui {

bool is_new_in_view(int shown) {
  ImGuiStorage* kept = ImGui::GetStateStorage();
  const ImGuiID last = ImGui::GetID("in_view"), frames_left = ImGui::GetID("in_view_frames");
  const int n_frames = kept->GetInt(last, -1) == shown ? kept->GetInt(frames_left, 0) : 3;
  kept->SetInt(last, shown);
  kept->SetInt(frames_left, std::max(0, n_frames - 1));
  return n_frames > 0;
}

}  // namespace ui
