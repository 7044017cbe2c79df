#include "ui/panels/setup/setup_model.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ui/files/files.h"
#include "ui/files/settings.h"
#include "ui/files/setup_form.h"
#include "ui/panels/setup/setup_rows.h"
#include "ui/shell/catalog.h"
#include "ui/shell/context.h"
#include "ui/widgets/draw.h"

namespace ui {
namespace {

void choice_row(const char* label,
                const char* id,
                std::string& value,
                std::span<const char* const> names,
                const std::string& help,
                const char* if_empty = "as stored") {
  row_label(label, help);
  if (!ImGui::BeginCombo(id, value.empty() ? if_empty : value.c_str())) return;
  for (const char* name : names)
    if (selectable(*name ? name : if_empty, value == name)) value = name;
  ImGui::EndCombo();
}

// Draws the row of the context length; 0 means the model's own value.
void context_row(SetupForm& form, const Catalog& catalog) {
  const CatalogModel* model = catalog.model(form.model);
  row_label(
      "context",
      "maximum number of positions for prompt and new tokens. 0: the model's own value, with its "
      "RoPE scaling. With more, quality may drop, and the Log says so");
  const bool is_own = form.context == 0;
  const std::string own = model && model->context > 0
                              ? "the model's: " + std::to_string(model->context)
                              : "the model's";
  ImGui::InputInt("##context", &form.context, 0, 0);
  form.context = std::max(form.context, 0);
  if (is_own && ImGui::IsItemHovered()) tooltip(own);
}

std::string draft_words(const SetupForm& form, const Catalog& catalog) {
  if (!form.draft.empty()) return form.draft;
  const std::string named = draft_of(form, catalog);
  return named.empty() ? "none" : named + " (of this model)";
}

void draft_row(SetupForm& form, const Catalog& catalog) {
  row_label("draft", "the draft model, for decoders that need one");
  if (!ImGui::BeginCombo("##draft", draft_words(form, catalog).c_str())) return;
  const CatalogModel* target = catalog.model(form.model);
  if (selectable("the model's own", form.draft.empty())) form.draft.clear();
  for (const CatalogModel& model : catalog.models) {
    const std::string why = target ? why_no_draft(*target, model) : model.unavailable;
    ImGui::BeginDisabled(!why.empty());
    if (selectable(model.name.c_str(), model.name == form.draft)) form.draft = model.name;
    ImGui::EndDisabled();
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      tooltip(why.empty() ? model.summary + "\n" + model.path : why);
  }
  ImGui::EndCombo();
}

// Draws the choice of draft heads of one kind: those of the model's card, or others that fit; disabled with the reason if there are
// none.
void heads_row(SetupForm& form, const Catalog& catalog, const CatalogDecoder& decoder) {
  const std::string& kind = decoder.name;
  const std::string label = decoder.title + " heads",
                    none = why_none_to_choose(form, catalog, kind);
  const std::string help = "the draft heads of " + decoder.title +
                           ", trained for the model; the scale applies to them too";
  row_label(label.c_str(), none.empty() ? help : none);
  const auto chosen = form.heads.find(kind);
  const std::string named = heads_of(form, catalog, kind);
  const std::string shown = !none.empty()                ? "none"
                            : named.empty()              ? "none"
                            : chosen == form.heads.end() ? named + " (of this model)"
                                                         : named;
  const std::string id = "##heads_" + kind;
  if (!none.empty()) {
    ImGui::BeginDisabled();
    if (ImGui::BeginCombo(id.c_str(), shown.c_str())) ImGui::EndCombo();
    ImGui::EndDisabled();
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) tooltip(none);
    return;
  }
  if (!ImGui::BeginCombo(id.c_str(), shown.c_str())) return;
  if (selectable("the model's own", chosen == form.heads.end())) form.heads.erase(kind);
  for (const CatalogHeads& heads : catalog.heads) {
    if (heads.kind != kind) continue;
    const std::string why = why_no_heads(form.model, heads);
    ImGui::BeginDisabled(!why.empty());
    if (selectable(heads.name.c_str(), heads.name == named)) form.heads[kind] = heads.name;
    ImGui::EndDisabled();
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      tooltip(why.empty() ? heads.summary + "\n" + heads.path : why);
  }
  ImGui::EndCombo();
}

void model_choice(SetupForm& form, const Catalog& catalog, const CatalogModel& model) {
  ImGui::BeginDisabled(!model.unavailable.empty());
  if (selectable((model.name + "##" + model.path).c_str(), model.name == form.model)) {
    choose_model(form, catalog, model.name);
    fit_to_model(form, catalog);
  }
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) {
    const std::string about = model.is_read ? model.summary : "its files are being read";
    tooltip((model.unavailable.empty() ? about : model.unavailable) + "\n" + model.path);
  }
  const std::string& line = model.unavailable.empty() ? model.summary : model.unavailable;
  if (model.is_read && !line.empty()) words_within("    " + line, theme().dim, px(440));
}

/// The models in the order of the picker: the recent ones, then the others by place.
/// @return  heading and model; equal headings follow each other
std::vector<std::pair<std::string, const CatalogModel*>> picker_order(const Catalog& catalog,
                                                                      const Settings& settings) {
  std::vector<std::pair<std::string, const CatalogModel*>> order;
  for (const std::string& path : settings.recent_models) {
    const auto known = std::ranges::find(catalog.models, path, &CatalogModel::path);
    if (known != catalog.models.end()) order.emplace_back("recent", &*known);
  }
  for (const CatalogModel& model : catalog.models)
    if (std::ranges::find(settings.recent_models, model.path) == settings.recent_models.end())
      order.emplace_back(model.source, &model);
  return order;
}

/// The filter of the list of models.
struct ModelFilter : PanelState {
  ImGuiTextFilter filter;
};

/// The list of models, and a filter above a long one.
void model_picker(Context& context) {
  constexpr std::size_t kShort = 10;
  SetupForm& form = context.form;
  const Catalog& catalog = context.catalog;
  ImGuiTextFilter& filter = context.states.get<ModelFilter>().filter;
  if (!ImGui::BeginCombo("##model", form.model.empty() ? "choose" : form.model.c_str(),
                         ImGuiComboFlags_HeightLargest))
    return;
  if (catalog.models.size() > kShort)
    filter.Draw("##filter", -FLT_MIN);
  else
    filter.Clear();
  std::string shown;
  for (const auto& [heading, model] : picker_order(catalog, context.settings)) {
    if (!filter.PassFilter(model->name.c_str())) continue;
    if (shown != heading) ImGui::SeparatorText(heading.c_str());
    shown = heading;
    model_choice(form, catalog, *model);
  }
  ImGui::EndCombo();
}

/// The folder typed in the row of the adapter.
struct AdapterPath : PanelState {
  std::string typed;
};

// Draws the row that adds a LoRA adapter to the model, or removes it.
void adapter_row(Context& context) {
  SetupForm& form = context.form;
  const Catalog& catalog = context.catalog;
  const CatalogModel* model = catalog.model(form.model);
  if (!model || !catalog.add_model) return;
  const auto [base, adapter] = base_and_adapter(model->path);
  const auto choose = [&](const std::string& path) {
    choose_model(form, catalog, catalog.add_model(path));
    fit_to_model(form, catalog);
  };
  if (!adapter.empty()) {
    row_label("adapter", adapter);
    if (ImGui::Button("Remove###remove_adapter", {-FLT_MIN, 0})) choose(std::string(base));
    return;
  }
  std::string& typed = context.states.get<AdapterPath>().typed;
  file_row(
      "adapter", "adapter", "none", typed,
      "a LoRA adapter that peft wrote for this model: its folder, or adapter_config.json in it",
      "adapter_config.json");
  std::filesystem::path folder = typed;
  if (folder.filename() == "adapter_config.json") folder = folder.parent_path();
  if (typed.empty() || !holds_adapter(folder)) return;
  typed.clear();
  choose(base + "+" + folder.string());
}

}  // namespace

void setup_model_part(Context& context) {
  SetupForm& form = context.form;
  small_label("Model");
  ImGui::SetNextItemWidth(-FLT_MIN);
  model_picker(context);
  if (!form.model_error.empty()) wrapped(form.model_error, theme().bad);
  adapter_row(context);
  static constexpr std::array<const char*, 6> kScales{"1x1", "auto", "1x2", "4x1", "4x2", "4x4"};
  static constexpr std::array<const char*, 5> kDraftScales{"", "1x1", "1x2", "4x1", "4x2"};
  static constexpr std::array<const char*, 4> kDtypes{"", "f32", "bf16", "f16"};
  static constexpr std::array<const char*, 5> kCacheTypes{"", "f32", "bf16", "f16", "q8_0"};
  choice_row("scale", "##scale", form.scale, kScales,
             "width x depth: computes the same tokens at the cost of a larger model");
  choice_row("dtype", "##dtype", form.dtype, kDtypes, "type of weights and KV cache");
  choice_row("KV cache", "##cache", form.cache_type, kCacheTypes,
             "type of keys and values, on the CPU; q8_0 needs half the memory of f16", "as dtype");
  context_row(form, context.catalog);
  draft_row(form, context.catalog);
  if (form.scale != "1x1")
    choice_row(
        "draft scale", "##draftscale", form.draft_scale, kDraftScales,
        "1x1: the draft stays small while the model is enlarged, so drafting costs less than "
        "for a real model of that size",
        "as the model");
  for (const CatalogDecoder& decoder : context.catalog.decoders)
    if (decoder.needs_heads) heads_row(form, context.catalog, decoder);
  row_label("device", "");
  if (ImGui::BeginCombo("##device", form.device.c_str())) {
    if (selectable("auto", form.device == "auto")) form.device = "auto";
    for (const CatalogDevice& device : context.catalog.devices) {
      ImGui::BeginDisabled(!device.unavailable.empty());
      if (selectable(device.title.c_str(), device.name == form.device)) form.device = device.name;
      ImGui::EndDisabled();
    }
    ImGui::EndCombo();
  }
  if (button("Load model")) context.requests.load = true;
  if (ImGui::IsItemHovered()) tooltip("Loads the model now. Run loads it as well if necessary.");
}

}  // namespace ui
