#include "ui/panels/setup/setup_chat.h"

#include <array>
#include <string>

#include "ui/files/setup_form.h"
#include "ui/panels/setup/setup_rows.h"
#include "ui/prepare/failure_words.h"
#include "ui/shell/catalog.h"
#include "ui/shell/context.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

/// The rendered prompt and its inputs.
struct RenderedPrompt : PanelState {
  std::string model, prompt, system;
  bool always = false;  // also a prompt that names special tokens
  double changed = 0;   // time of the last change, s
  bool is_current = false;
  ChatPreview preview;
};

constexpr double kPause = 0.4;  // seconds without a key press before the template is rendered

const ChatPreview& rendered(Context& context, const CatalogModel& model) {
  auto& shown = context.states.get<RenderedPrompt>();
  const SetupForm& form = context.form;
  const bool always = form.no_special || form.chat == engine::ChatMode::Chat;
  if (shown.model != model.name || shown.prompt != form.prompt || shown.system != form.system ||
      shown.always != always) {
    const bool is_other_model = shown.model != model.name;
    shown.model = model.name, shown.prompt = form.prompt, shown.system = form.system;
    shown.always = always;
    shown.is_current = false;
    shown.changed = is_other_model ? -kPause : ImGui::GetTime();
  }
  if (!shown.is_current && ImGui::GetTime() - shown.changed >= kPause) {
    shown.preview = model.chat(form.prompt, form.system, always);
    shown.is_current = true;
  }
  return shown.preview;
}

/// Draws a piece of text without line feeds after the last item; if it does not fit, on the next
/// line without its leading space.
void piece(std::string text, bool special, bool begins_line) {
  if (!begins_line) {
    ImGui::SameLine(0, 0);
    if (ImGui::GetCursorPosX() + ImGui::CalcTextSize(text.c_str()).x > right_edge()) {
      ImGui::NewLine();
      if (text.starts_with(' ')) text.erase(0, 1);
    }
  }
  words(text, special ? theme().bright : theme().text);
  if (special)
    ImGui::GetWindowDrawList()->AddRect(ImGui::GetItemRectMin(), ImGui::GetItemRectMax(),
                                        colour(theme().accent));
}

/// Draws stretches as flowing text.
void flowing(const std::vector<ChatStretch>& stretches) {
  bool begins_line = true;
  for (const ChatStretch& stretch : stretches) {
    for (std::size_t i = 0; i < stretch.text.size();) {
      if (stretch.text[i] == '\n') {
        if (begins_line) ImGui::NewLine();
        begins_line = true;
        i++;
        continue;
      }
      std::size_t end =
          stretch.special ? stretch.text.find('\n', i) : stretch.text.find_first_of(" \n", i + 1);
      end = std::min(end, stretch.text.size());
      piece(stretch.text.substr(i, end - i), stretch.special, begins_line);
      begins_line = false;
      i = end;
    }
  }
}

void rendered_part(Context& context, const CatalogModel& model) {
  if (!ImGui::TreeNodeEx("As the model reads it###rendered", ImGuiTreeNodeFlags_NoTreePushOnOpen |
                                                                 ImGuiTreeNodeFlags_DefaultOpen |
                                                                 ImGuiTreeNodeFlags_FramePadding))
    return;
  const ChatPreview& preview = rendered(context, model);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colour(theme().field));
  ImGui::BeginChild("rendered_prompt", {0, px(112)}, ImGuiChildFlags_AlwaysUseWindowPadding);
  ImGui::PushFont(fonts().mono, kMonoSize);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(0, px(2)));
  preview.note.empty() ? flowing(preview.stretches)
                       : wrapped(for_window(preview.note), theme().dim);
  ImGui::PopStyleVar();
  ImGui::PopFont();
  ImGui::EndChild();
  ImGui::PopStyleColor();
}

}  // namespace

void setup_chat_part(Context& context) {
  SetupForm& form = context.form;
  const CatalogModel* model = context.catalog.model(form.model);
  if (!model || !model->chat) return;
  row_label("read as",
            "chat: a message in the model's chat template, as it was trained; raw: as it is");
  constexpr std::array kNames = {"chat", "raw"};
  int choice = form.chat == engine::ChatMode::Raw ? 1 : 0;
  if (ImGui::BeginCombo("##chat", kNames[static_cast<std::size_t>(choice)])) {
    if (selectable(kNames[0], choice == 0)) form.chat = engine::ChatMode::Auto;
    if (selectable(kNames[1], choice == 1)) form.chat = engine::ChatMode::Raw;
    ImGui::EndCombo();
  }
  if (!chat_model(form, context.catalog)) return;
  row_label("system", "a system message before the prompt; empty: none");
  text_line("##system", "none", form.system);
  rendered_part(context, *model);
}

}  // namespace ui
