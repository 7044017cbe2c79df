#include "ui/panels/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "ui/draw.h"
#include "ui/prepare/recorded_setup.h"
#include "ui/prepare/use_again.h"

namespace ui {
namespace {

// Label at the left, the next item in the right part of the row.
void row_label(const char* label, const std::string& help) {
  ImGui::AlignTextToFramePadding();
  words(label, theme().dim);
  if (!help.empty() && ImGui::IsItemHovered()) tooltip(help);
  const float left = ImGui::GetCursorPosX(), words_end = left + ImGui::GetItemRectSize().x;
  ImGui::SameLine(std::max(ImGui::GetContentRegionAvail().x * 0.52f, words_end + px(8)));
  ImGui::SetNextItemWidth(-FLT_MIN);
}

/// @param why_idle  the option has nothing to do here; empty: it has
void option_row(LaneForm& lane, const CatalogOption& option, const std::string& why_idle) {
  std::string& value = lane.options[option.name];
  ImGui::PushID(option.name.c_str());
  row_label(option.name.c_str(), why_idle.empty() ? option.help : why_idle);
  ImGui::BeginDisabled(!why_idle.empty());
  switch (option.type) {
    case CatalogOption::Type::Int: {
      int v = std::atoi(value.c_str());
      if (ImGui::InputInt("##value", &v, 1, 4)) {
        v = static_cast<int>(std::clamp<double>(v, option.min, option.max));
        value = std::to_string(v);
      }
      break;
    }
    case CatalogOption::Type::Float: {
      float v = std::strtof(value.c_str(), nullptr);
      const auto low = static_cast<float>(option.min), high = static_cast<float>(option.max);
      if (ImGui::SliderFloat("##value", &v, low, high, "%.3g")) value = fmt::format("{:.4g}", v);
      break;
    }
    case CatalogOption::Type::Bool: {
      bool v = value == "true" || value == "1" || value == "on";
      if (tick("##value", v)) value = v ? "true" : "false";
      break;
    }
    case CatalogOption::Type::Choice:
      if (ImGui::BeginCombo("##value", value.c_str())) {
        for (const std::string& choice : option.choices)
          if (ImGui::Selectable(choice.c_str(), choice == value)) value = choice;
        ImGui::EndCombo();
      }
      break;
    case CatalogOption::Type::Counts:
      text_line("##value", "", value);
      break;
  }
  ImGui::EndDisabled();
  if (!why_idle.empty()) {
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) tooltip(why_idle);
  } else if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayNormal)) {
    tooltip(option.type == CatalogOption::Type::Int || option.type == CatalogOption::Type::Float
                ? fmt::format("{} {:g} to {:g}, default {}.", option.help, option.min, option.max,
                              option.default_value)
                : fmt::format("{} Default {}.", option.help, option.default_value));
  }
  ImGui::PopID();
}

void decoder_choice(Context& context, LaneForm& lane, const char* id) {
  const CatalogDecoder* now = context.catalog.decoder(lane.decoder);
  ImGui::SetNextItemWidth(-FLT_MIN);
  ImGui::PushFont(fonts().bold, kTextSize);
  const bool open = ImGui::BeginCombo(id, now ? now->title.c_str() : "choose");
  ImGui::PopFont();
  if (!open) {
    if (now && ImGui::IsItemHovered())
      tooltip(now->summary + (now->reference.empty() ? "" : "\n" + now->reference));
    return;
  }
  for (const CatalogDecoder& decoder : context.catalog.decoders) {
    const std::string why = why_unavailable(decoder, context.form, context.catalog);
    ImGui::BeginDisabled(!why.empty());
    if (ImGui::Selectable(decoder.title.c_str(), decoder.name == lane.decoder))
      lane = lane_with(context.catalog, decoder.name);
    ImGui::EndDisabled();
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      tooltip(why.empty() ? decoder.summary : why);
  }
  ImGui::EndCombo();
}

void options_of(Context& context, LaneForm& lane) {
  const CatalogDecoder* info = context.catalog.decoder(lane.decoder);
  if (!info) return;
  for (const CatalogOption& option : info->options) {
    const auto idle = info->idle_options.find(option.name);
    option_row(lane, option, idle != info->idle_options.end() ? idle->second : "");
  }
  if (info->options.empty()) words("no options", theme().dim);
}

void lane_forms(Context& context) {
  auto& lanes = context.form.lanes;
  int removed = -1;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    const CatalogDecoder* info = context.catalog.decoder(lanes[i].decoder);
    const std::string title =
        fmt::format("{}  {}###lane", static_cast<char>('A' + i), info ? info->title : "choose");
    if (ImGui::CollapsingHeader(title.c_str())) {
      decoder_choice(context, lanes[i], "##decoder");
      options_of(context, lanes[i]);
      if (lanes.size() > 2 && link("Remove this lane")) removed = static_cast<int>(i);
    }
    ImGui::PopID();
  }
  if (removed >= 0) lanes.erase(lanes.begin() + removed);
  if (lanes.size() < 4 && button("Add lane") && !context.catalog.decoders.empty())
    lanes.push_back(lane_with(context.catalog, context.catalog.decoders.front().name));
}

void prompt_part(Context& context) {
  SetupForm& form = context.form;
  ImGui::AlignTextToFramePadding();
  small_label("Prompt");
  if (!context.catalog.prompts.empty()) {
    // As wide as it was last time: it ends where the field below ends.
    float* width = ImGui::GetStateStorage()->GetFloatRef(ImGui::GetID("choose"), px(82));
    ImGui::SameLine(right_edge() - *width);
    if (button("Choose...")) ImGui::OpenPopup("prompts");
    *width = ImGui::GetItemRectSize().x;
  }
  ImGui::PushFont(fonts().mono, kMonoSize);
  if (text_area("##prompt", form.prompt, {-FLT_MIN, px(112)})) form.prompt_id.clear();
  ImGui::PopFont();
  if (!ImGui::BeginPopup("prompts")) return;
  for (const CatalogPrompt& prompt : context.catalog.prompts) {
    if (ImGui::Selectable((prompt.title + "##" + prompt.id).c_str(), prompt.id == form.prompt_id)) {
      form.prompt = prompt.text;
      form.prompt_id = prompt.id;
    }
    if (ImGui::IsItemHovered()) tooltip(prompt.text);
  }
  ImGui::EndPopup();
}

void sampling_part(Context& context) {
  SetupForm& form = context.form;
  small_label("Sampling");
  row_label("temperature", "0 is greedy: always the likeliest token.");
  ImGui::SliderFloat("##temperature", &form.temperature, 0, 2,
                     form.temperature == 0 ? "0 (greedy)" : "%.2f");
  if (form.temperature > 0) {
    row_label("top k", "0: all tokens");
    ImGui::InputInt("##top_k", &form.top_k, 1, 10);
    form.top_k = std::max(0, form.top_k);
    row_label("top p", "the smallest set of tokens with this much probability");
    ImGui::SliderFloat("##top_p", &form.top_p, 0.01f, 1, "%.2f");
    row_label("min p", "tokens below this share of the likeliest are left out");
    ImGui::SliderFloat("##min_p", &form.min_p, 0, 1, "%.2f");
    row_label("sampling",
              "coupled: the same tokens as plain decoding; rejection: the same distribution");
    if (ImGui::BeginCombo("##sampling", form.sampling.c_str())) {
      for (const char* name : {"coupled", "rejection"})
        if (ImGui::Selectable(name, form.sampling == name)) form.sampling = name;
      ImGui::EndCombo();
    }
  }
  row_label("repetition penalty", "1: none");
  ImGui::SliderFloat("##penalty", &form.repetition_penalty, 1, 2, "%.2f");
  row_label("seed", "the same seed draws the same numbers");
  const std::uint64_t one = 1;
  ImGui::InputScalar("##seed", ImGuiDataType_U64, &form.seed, &one);
  row_label("max tokens", "the answer ends there at the latest");
  ImGui::InputInt("##max_tokens", &form.max_tokens, 16, 128);
  form.max_tokens = std::clamp(form.max_tokens, 1, 1 << 20);
  row_label("past the end", "go on after the end-of-text token");
  tick("##ignore_eos", form.ignore_eos);
  row_label("start held", "wait for Step or Resume before the first step");
  tick("##start_held", form.start_held);
}

void choice_row(const char* label,
                const char* id,
                std::string& value,
                std::span<const char* const> names,
                const std::string& help) {
  row_label(label, help);
  if (!ImGui::BeginCombo(id, value.empty() ? "as stored" : value.c_str())) return;
  for (const char* name : names)
    if (ImGui::Selectable(*name ? name : "as stored", value == name)) value = name;
  ImGui::EndCombo();
}

std::string draft_words(const SetupForm& form, const Catalog& catalog) {
  if (!form.draft.empty()) return form.draft;
  const std::string named = draft_of(form, catalog);
  return named.empty() ? "none named" : named + " (by its card)";
}

void draft_row(SetupForm& form, const Catalog& catalog) {
  row_label("draft",
            "the model that proposes, for decoders that need one; never enlarged, whatever the "
            "scale");
  if (!ImGui::BeginCombo("##draft", draft_words(form, catalog).c_str())) return;
  const CatalogModel* target = catalog.model(form.model);
  if (ImGui::Selectable("the one its card names", form.draft.empty())) form.draft.clear();
  for (const CatalogModel& model : catalog.models) {
    const std::string why = target ? why_no_draft(*target, model) : model.unavailable;
    ImGui::BeginDisabled(!why.empty());
    if (ImGui::Selectable(model.name.c_str(), model.name == form.draft)) form.draft = model.name;
    ImGui::EndDisabled();
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      tooltip(why.empty() ? model.summary + "\n" + model.path : why);
  }
  ImGui::EndCombo();
}

void model_part(Context& context) {
  SetupForm& form = context.form;
  small_label("Model");
  ImGui::SetNextItemWidth(-FLT_MIN);
  if (ImGui::BeginCombo("##model", form.model.empty() ? "choose" : form.model.c_str())) {
    for (const CatalogModel& model : context.catalog.models) {
      ImGui::BeginDisabled(!model.unavailable.empty());
      if (ImGui::Selectable(model.name.c_str(), model.name == form.model))
        choose_model(form, context.catalog, model.name);
      ImGui::EndDisabled();
      if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
        tooltip(model.unavailable.empty() ? model.summary + "\n" + model.path : model.unavailable);
    }
    ImGui::EndCombo();
  }
  if (!form.model_error.empty()) wrapped(form.model_error, theme().bad);
  static constexpr std::array<const char*, 6> kScales{"1x1", "auto", "1x2", "4x1", "4x2", "4x4"};
  static constexpr std::array<const char*, 4> kDtypes{"", "f32", "bf16", "f16"};
  choice_row("scale", "##scale", form.scale, kScales,
             "width times depth: the same tokens at the cost of a larger model");
  choice_row("dtype", "##dtype", form.dtype, kDtypes, "of weights and cache");
  draft_row(form, context.catalog);
  row_label("device", "");
  if (ImGui::BeginCombo("##device", form.device.c_str())) {
    if (ImGui::Selectable("auto", form.device == "auto")) form.device = "auto";
    for (const CatalogDevice& device : context.catalog.devices) {
      ImGui::BeginDisabled(!device.unavailable.empty());
      if (ImGui::Selectable(device.title.c_str(), device.name == form.device))
        form.device = device.name;
      ImGui::EndDisabled();
    }
    ImGui::EndCombo();
  }
  if (button("Load model")) context.requests.load = true;
  if (ImGui::IsItemHovered()) tooltip("Loads it now. Run loads it too, if need be.");
}

void unavailable_row(const std::string& name, const std::string& reason) {
  words(name, theme().dim);
  const float width = ImGui::CalcTextSize(reason.c_str()).x;
  const float left = ImGui::GetItemRectSize().x + px(14), room = right_edge();
  if (left + width < room) {
    ImGui::SameLine(room - width);
    words(reason, theme().dim);
  } else {
    ImGui::Indent(px(10));
    wrapped(reason, theme().dim);
    ImGui::Unindent(px(10));
  }
}

void unavailable_part(const SetupForm& form, const Catalog& catalog) {
  bool said = false;
  const auto say = [&said](const std::string& name, const std::string& reason) {
    if (reason.empty()) return;
    if (!said) small_label("Not available here");
    said = true;
    unavailable_row(name, reason);
  };
  for (const CatalogDecoder& d : catalog.decoders) say(d.title, why_unavailable(d, form, catalog));
  for (const CatalogModel& m : catalog.models) say(m.name, m.unavailable);
  for (const CatalogDevice& d : catalog.devices) say(d.title, d.unavailable);
}

void gap() {
  ImGui::Dummy({1, px(5)});
}

std::string why_empty(const Context&) {
  return "";
}

// The runs an opened recording's Setup tells of: those shown.
std::vector<const engine::RunRecord*> recorded_runs(const Context& context) {
  if (context.source.empty()) return {};
  if (context.compare) return context.shown_runs();
  return context.run() ? std::vector{context.run()} : std::vector<const engine::RunRecord*>{};
}

void recorded_part(Context& context, const std::vector<const engine::RunRecord*>& runs) {
  const RecordedSetup setup = recorded_setup(context.timeline, runs, context.catalog);
  small_label("Prompt, as recorded");
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colour(theme().field));
  ImGui::BeginChild("recorded_prompt", {0, px(112)}, ImGuiChildFlags_AlwaysUseWindowPadding);
  ImGui::PushFont(fonts().mono, kMonoSize);
  wrapped(setup.prompt, theme().text);
  ImGui::PopFont();
  ImGui::EndChild();
  ImGui::PopStyleColor();
  gap();
  small_label(runs.size() > 1 ? "These runs" : "This run");
  for (const Fact& row : setup.rows) label_value(row.label.c_str(), row.value);
  if (link("Use these settings for the next run"))
    use_again(context.form, context.catalog, context.timeline, *runs.front());
  gap();
}

void form_part(Context& context) {
  prompt_part(context);
  gap();
  if (context.compare) {
    small_label("Lanes");
    lane_forms(context);
  } else {
    small_label("Decoder");
    decoder_choice(context, context.form.live, "##decoder");
    options_of(context, context.form.live);
  }
  gap();
  sampling_part(context);
  gap();
  model_part(context);
  gap();
  if (const std::string why = why_not(context.form, context.catalog, context.compare); !why.empty())
    wrapped("Run is off: " + why, theme().warn);
  unavailable_part(context.form, context.catalog);
}

void draw(Context& context) {
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(5)));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(8), px(3)));
  const FrameLines lines(theme().line);
  const auto recorded = recorded_runs(context);
  if (!recorded.empty()) recorded_part(context, recorded);
  // What Run starts is another matter than what is shown.
  if (recorded.empty() || ImGui::CollapsingHeader("The next run###next_run")) form_part(context);
  ImGui::PopStyleVar(2);
}

}  // namespace

const Panel kSetupPanel{"setup", "Setup", why_empty, draw, nullptr};

}  // namespace ui
