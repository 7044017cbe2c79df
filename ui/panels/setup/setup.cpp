#include "ui/panels/setup/setup.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "engine/event/reasoning_bounds.h"
#include "engine/event/run_rules.h"
#include "engine/event/timeline/timeline.h"
#include "ui/files/setup_form.h"
#include "ui/panels/setup/setup_chat.h"
#include "ui/panels/setup/setup_model.h"
#include "ui/panels/setup/setup_rows.h"
#include "ui/prepare/recorded_setup.h"
#include "ui/prepare/use_again.h"
#include "ui/shell/context.h"
#include "ui/shell/panel.h"
#include "ui/widgets/draw.h"
#include "ui/widgets/fonts.h"

namespace ui {
namespace {

namespace bounds = engine::reasoning;

void gap() {
  ImGui::Dummy({1, px(5)});
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
    if (selectable(decoder.title.c_str(), decoder.name == lane.decoder)) {
      LaneForm chosen = lane_with(context.catalog, decoder.name);
      chosen.model = lane.model;
      lane = std::move(chosen);
    }
    ImGui::EndDisabled();
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      tooltip(why.empty() ? decoder.summary : why);
  }
  ImGui::EndCombo();
}

// Draws the options of a lane's decoder.
// @param one_sequence  the run has one sequence, so options of a schedule have no effect
void options_of(Context& context, LaneForm& lane, bool one_sequence = true) {
  const CatalogDecoder* info = context.catalog.decoder(lane.decoder);
  if (!info) return;
  for (const CatalogOption& option : info->options) {
    const auto idle = info->idle_options.find(option.name);
    const bool is_idle = one_sequence && idle != info->idle_options.end();
    option_row(lane, context.catalog, option, is_idle ? idle->second : "");
  }
  if (info->options.empty()) words("no options", theme().dim);
}

void lane_model_row(Context& context, LaneForm& lane) {
  row_label("model", "a model for this lane alone, to compare two models side by side");
  const std::string shared = "same as the race: " + context.form.model;
  if (!ImGui::BeginCombo("##lane_model", lane.model.empty() ? shared.c_str() : lane.model.c_str()))
    return;
  if (selectable(shared.c_str(), lane.model.empty())) lane.model.clear();
  for (const CatalogModel& model : context.catalog.models) {
    ImGui::BeginDisabled(!model.unavailable.empty());
    if (selectable(model.name.c_str(), model.name == lane.model)) lane.model = model.name;
    ImGui::EndDisabled();
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      tooltip(model.unavailable.empty() ? model.summary + "\n" + model.path : model.unavailable);
  }
  ImGui::EndCombo();
}

// Draws a link that sets up lanes with the model before and after consistency training.
void before_and_after_part(Context& context) {
  const auto pair = consistency_pair(context.form, context.catalog);
  if (!pair) return;
  if (link("Before and after consistency training"))
    choose_before_and_after(context.form, context.catalog, *pair);
  if (ImGui::IsItemHovered())
    tooltip("Jacobi and plain decoding with " + pair->before + " and with " + pair->after +
            ", which was trained from it.");
}

void lane_forms(Context& context) {
  auto& lanes = context.form.lanes;
  int removed = -1;
  before_and_after_part(context);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    const CatalogDecoder* info = context.catalog.decoder(lanes[i].decoder);
    const std::string decoder =
        fmt::format("{}  {}", static_cast<char>('A' + i), info ? info->title : "choose");
    const std::string model = lanes[i].model.empty() ? "" : ", " + lanes[i].model;
    const bool fits = ImGui::CalcTextSize((decoder + model).c_str()).x <=
                      ImGui::GetContentRegionAvail().x - ImGui::GetTreeNodeToLabelSpacing() - px(8);
    const bool open = ImGui::CollapsingHeader((decoder + (fits ? model : "") + "###lane").c_str());
    if (!fits && !lanes[i].model.empty()) wrapped("with " + lanes[i].model, theme().dim);
    if (open) {
      decoder_choice(context, lanes[i], "##decoder");
      options_of(context, lanes[i]);
      lane_model_row(context, lanes[i]);
      if (lanes.size() > 2 && link("Remove this lane")) removed = static_cast<int>(i);
    }
    ImGui::PopID();
  }
  if (removed >= 0) lanes.erase(lanes.begin() + removed);
  if (lanes.size() < engine::kMaxLanes && button("Add lane") && !context.catalog.decoders.empty())
    lanes.push_back(lane_with(context.catalog, context.catalog.decoders.front().name));
}

struct ModeName {
  SetupMode mode;
  const char *whole, *shortened, *id, *help;
};
constexpr std::array<ModeName, 3> kModes{
    {{SetupMode::Prompt, "One prompt", "Prompt", "###mode_prompt",
      "One prompt, answered by one decoder."},
     {SetupMode::Chain, "Chain of thought", "Chain", "###mode_chain",
      "Chain of thought: questions of a task, each answered after a rationale, and scored."},
     {SetupMode::Tree, "Tree of thoughts", "Tree", "###mode_tree",
      "Tree of thoughts: questions of a task, each searched level by level: the model writes "
      "several thoughts and values them, and the best are continued."}}};

// Returns why Run cannot start this mode on the screen shown; empty if it can.
std::string why_no_mode(SetupMode mode, const Context& context) {
  if (mode == SetupMode::Prompt) return "";
  if (context.compare)
    return "The screen Compare races decoders on one prompt. Use the screen Live (Alt+1) for this.";
  return tasks_of(mode, context.catalog).empty() ? "There are no tasks." : "";
}

// Draws the choice of the mode that Run starts: three buttons that fill the row, with short names if the long ones do not fit.
void mode_part(Context& context) {
  const SetupMode now = context.compare ? SetupMode::Prompt : context.form.mode;
  const float room = ImGui::GetContentRegionAvail().x, gap = px(2);
  const float padding = 2 * ImGui::GetStyle().FramePadding.x;
  float whole = 0;
  for (const ModeName& one : kModes) whole += ImGui::CalcTextSize(one.whole).x + padding;
  const bool fits = whole + 2 * gap <= room;
  float words_wide = 0;
  for (const ModeName& one : kModes)
    words_wide += ImGui::CalcTextSize(fits ? one.whole : one.shortened).x;
  const float each = std::max(padding, (room - 2 * gap - words_wide) / 3);
  for (const ModeName& one : kModes) {
    const char* name = fits ? one.whole : one.shortened;
    const bool on = one.mode == now;
    const std::string why = why_no_mode(one.mode, context);
    if (one.mode != SetupMode::Prompt) ImGui::SameLine(0, gap);
    ImGui::PushStyleColor(ImGuiCol_Button, colour(on ? theme().button : theme().field));
    ImGui::PushStyleColor(ImGuiCol_Text, colour(on ? theme().bright : theme().dim));
    ImGui::BeginDisabled(!why.empty());
    if (ImGui::Button((std::string(name) + one.id).c_str(),
                      {ImGui::CalcTextSize(name).x + each, 0}))
      context.form.mode = one.mode;
    ImGui::EndDisabled();
    ImGui::PopStyleColor(2);
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      tooltip(why.empty() ? one.help : why);
  }
}

void task_choice(Context& context, SetupMode mode) {
  const QuestionsForm& questions = questions_of(context.form, mode);
  row_label("task", "the task that the questions come from");
  if (!ImGui::BeginCombo("##task", questions.task.empty() ? "choose" : questions.task.c_str())) {
    const CatalogTask* now = task_of(context.form, mode, context.catalog);
    if (now && ImGui::IsItemHovered()) tooltip(now->name + ": " + now->summary);
    return;
  }
  for (const CatalogTask& task : tasks_of(mode, context.catalog)) {
    ImGui::BeginDisabled(!task.unavailable.empty());
    if (selectable(task.name.c_str(), task.name == questions.task))
      choose_task(context.form, mode, task);
    ImGui::EndDisabled();
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled))
      tooltip(task.unavailable.empty() ? task.summary : task.unavailable);
  }
  ImGui::EndCombo();
}

// Draws the rows that choose the worked examples or the prompts of the mode.
void prompts_part(SetupForm& form, SetupMode mode) {
  QuestionsForm& questions = questions_of(form, mode);
  if (mode == SetupMode::Tree)
    return file_row(
        "prompts", "prompts", "bundled", questions.prompts,
        "a file with prompts for thoughts, their values and the answer, in the format of "
        "assets/prompts/tot; empty: the prompts bundled for the task");
  file_row(
      "examples", "prompts", "bundled", questions.prompts,
      "a file of worked examples, in the format of assets/prompts/cot; empty: the examples bundled "
      "for the task");
  ImGui::PushID("shots");
  row_label("examples shown", "worked examples before each question");
  std::string n = std::to_string(form.reasoning.n_shots);
  if (below_zero_tick("as many as fit", n)) {
    int shown = std::max(0, std::atoi(n.c_str()));
    ImGui::InputInt("##value", &shown, 1, 4);
    n = std::to_string(within(shown, bounds::kShots));
  }
  form.reasoning.n_shots = std::atoi(n.c_str());
  ImGui::PopID();
}

void questions_part(Context& context, SetupMode mode) {
  QuestionsForm& questions = questions_of(context.form, mode);
  small_label(mode == SetupMode::Tree ? "Tree of thoughts: questions"
                                      : "Chain of thought: questions");
  file_row("records", "records", "bundled", questions.data,
           "a file of questions, in the format of `decoscope data generate`, instead of the "
           "questions of the task");
  const std::string why = why_no_choice(questions);
  const auto say_why = [&why] {
    if (!why.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) tooltip(why);
  };
  ImGui::BeginDisabled(!why.empty());
  task_choice(context, mode);
  say_why();
  const CatalogTask* task = task_of(context.form, mode, context.catalog);
  if (task && task->has_levels) {
    whole_row("level", "##level", questions.level, bounds::kLevel,
              "difficulty of the generated questions");
    say_why();
  }
  ImGui::EndDisabled();
  if (task && task->has_actions)
    whole_row("actions", "##actions", context.form.reasoning.n_actions, bounds::kActions,
              "problems whose shortest plan has this number of actions; 0: any");
  if (questions.data.empty())
    greyed_row(
        "split", "test",
        fmt::format(
            "The window uses the test split, which no training run has seen. `decoscope reason {} "
            "--split dev` in a terminal uses another one.",
            mode == SetupMode::Tree ? "tot" : "cot"));
  row_label("first", "number of the first question, from 0");
  const std::int64_t one = 1, ten = 10;
  ImGui::InputScalar("##start", ImGuiDataType_S64, &questions.start, &one, &ten);
  questions.start = std::clamp(questions.start, bounds::kStart.low, bounds::kStart.high);
  whole_row("how many", "##count", questions.count, bounds::kCount,
            "number of questions, from the first");
}

void tree_part(ReasoningForm& reasoning) {
  small_label("Tree");
  whole_row("depth", "##depth", reasoning.depth, bounds::kDepth, "maximum number of levels");
  whole_row("thoughts", "##thoughts", reasoning.n_thoughts, bounds::kThoughts,
            "thoughts written for each node");
  whole_row("beam", "##beam", reasoning.beam, bounds::kBeam, "thoughts kept per level");
}

void batch_row(ReasoningForm& reasoning) {
  if (has_branches(reasoning.decoder)) return;  // the option `branches` sets it
  whole_row(
      "batch", "##batch", reasoning.batch, bounds::kBatch,
      "sequences per forward pass of the model; the pass reads the weights once for all of them, "
      "and no sequence changes its tokens");
}

// Draws the rows that decide if FastCoT's unverified tokens are used and that explain how to find its bound.
void approximate_part(ReasoningForm& reasoning) {
  const std::string why = why_none_approximate(reasoning.decoder);
  const char* const help =
      "The model answers after the verified tokens only, so wrong numbers among unverified tokens "
      "cannot mislead it.";
  row_label("drop approximate", why.empty() ? help : why);
  ImGui::BeginDisabled(!why.empty());
  tick("##drop_approximate", reasoning.drop_approximate);
  ImGui::EndDisabled();
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) tooltip(why.empty() ? help : why);
  if (reasoning.decoder.options.contains("bound"))
    greyed_row(
        "find bound", "in a terminal",
        "This searches the smallest bound that keeps the accuracy on a sample, with many runs: "
        "`decoscope reason cot --split dev --find-bound`.");
}

void penalty_row(SetupForm& form) {
  row_label("repetition penalty", "1: none");
  ImGui::SliderFloat("##penalty", &form.repetition_penalty, 1, 2, "%.2f");
}

void seed_row(SetupForm& form) {
  row_label("seed", "runs with the same seed draw the same random numbers");
  const std::uint64_t one = 1;
  ImGui::InputScalar("##seed", ImGuiDataType_U64, &form.seed, &one);
}

void held_row(SetupForm& form) {
  row_label("start paused", "wait for Step or Resume before the first step");
  tick("##start_held", form.start_held);
}

void mode_of_sampling_row(SetupForm& form) {
  row_label("sampling",
            "coupled: the same tokens as plain decoding; rejection: the same distribution");
  if (!ImGui::BeginCombo("##sampling", form.sampling.c_str())) return;
  for (const char* name : {engine::kCoupled, engine::kRejection})
    if (selectable(name, form.sampling == name)) form.sampling = name;
  ImGui::EndCombo();
}

void temperature_row(
    const char* label, const char* id, float& value, float highest, const std::string& help) {
  row_label(label, help);
  ImGui::SliderFloat(id, &value, 0, highest, value == 0 ? "0 (greedy)" : "%.2f");
}

void chain_sampling_part(SetupForm& form) {
  small_label("Sampling: greedy");
  penalty_row(form);
  row_label("max tokens", "maximum length of a rationale");
  ImGui::InputInt("##max_tokens", &form.reasoning.max_tokens, 16, 128);
  form.reasoning.max_tokens = within(form.reasoning.max_tokens, bounds::kMaxTokens);
  held_row(form);
}

void tree_sampling_part(SetupForm& form) {
  ReasoningForm& reasoning = form.reasoning;
  small_label("Sampling");
  constexpr float kHighest = 1.5f;  // the handle at the initial 1 does not cover the number
  temperature_row("temperature", "##temperature", reasoning.temperature, kHighest,
                  "temperature of the thoughts; at 0 all thoughts of a node are equal");
  row_label("one temperature", "texts that value a thought have the temperature of the thoughts");
  bool same = !reasoning.value_temperature;
  if (tick("##one_temperature", same))
    reasoning.value_temperature = same ? std::nullopt : std::optional(reasoning.temperature);
  if (reasoning.value_temperature)
    temperature_row("value temperature", "##value_temperature", *reasoning.value_temperature,
                    kHighest, "temperature of the texts that value a thought");
  if (reasoning.samples()) mode_of_sampling_row(form);
  seed_row(form);
  held_row(form);
}

void reasoning_part(Context& context) {
  SetupForm& form = context.form;
  questions_part(context, form.mode);
  prompts_part(form, form.mode);
  gap();
  if (form.mode == SetupMode::Tree) {
    tree_part(form.reasoning);
    gap();
  }
  small_label("Decoder");
  decoder_choice(context, form.reasoning.decoder, "##decoder");
  options_of(context, form.reasoning.decoder, false);
  batch_row(form.reasoning);
  if (form.mode == SetupMode::Chain) approximate_part(form.reasoning);
  gap();
  form.mode == SetupMode::Tree ? tree_sampling_part(form) : chain_sampling_part(form);
}

// Draws the choice of a file whose prompts are raced in turn.
void prompt_file_part(Context& context) {
  SetupForm& form = context.form;
  file_row("prompt file", "prompt_file", "none", form.prompt_file,
           "races all prompts of a file in turn instead of the prompt above. Each line of the file "
           "is {\"id\": .., \"prompt\": .., \"task\": ..}, as for `decoscope compare "
           "--prompt-file`. The panel Prompts lists the results.");
  read_prompt_file(form, context.catalog);
  if (form.prompt_file.empty() || !why_no_file(form.prompt_file).empty()) return;
  if (form.prompt_file_error.empty())
    wrapped(prompts_words(form.prompts), theme().text);
  else
    wrapped(form.prompt_file_error, theme().warn);
}

void prompt_part(Context& context) {
  SetupForm& form = context.form;
  ImGui::AlignTextToFramePadding();
  small_label("Prompt");
  if (!context.catalog.prompts.empty()) {
    // The button is placed by its width in the last frame, so that it ends where the field below ends.
    float* width = ImGui::GetStateStorage()->GetFloatRef(ImGui::GetID("choose"), px(82));
    ImGui::SameLine(right_edge() - *width);
    if (button("Choose...")) ImGui::OpenPopup("prompts");
    *width = ImGui::GetItemRectSize().x;
  }
  const bool is_idle = context.compare && !form.prompt_file.empty();
  ImGui::BeginDisabled(is_idle);
  ImGui::PushFont(fonts().mono, kMonoSize);
  if (text_area("##prompt", form.prompt, {-FLT_MIN, px(is_idle ? 40.0f : 112.0f)})) {
    form.prompt_id.clear();
    form.prompt_error.clear();
  }
  ImGui::PopFont();
  ImGui::EndDisabled();
  if (context.compare) prompt_file_part(context);
  if (!form.prompt_error.empty()) wrapped(form.prompt_error, theme().bad);
  setup_chat_part(context);
  if (!ImGui::BeginPopup("prompts")) return;
  for (const CatalogPrompt& prompt : context.catalog.prompts) {
    if (selectable((prompt.title + "##" + prompt.id).c_str(), prompt.id == form.prompt_id)) {
      form.prompt = prompt.text;
      form.prompt_id = prompt.id;
      form.prompt_error.clear();
    }
    if (ImGui::IsItemHovered()) tooltip(prompt.text);
  }
  ImGui::EndPopup();
}

void stop_rows(SetupForm& form) {
  row_label("stop strings",
            "the answer ends before the first of these strings; one per line, \\n is a line feed");
  text_area("##stop_texts", form.stop_texts, {-FLT_MIN, px(48)});
  row_label("stop ids", "the answer ends at any of these tokens, also with ignore end-of-text");
  text_line("##stop_ids", "none", form.stop_ids);
}

void sampling_part(Context& context) {
  SetupForm& form = context.form;
  small_label("Sampling");
  if (has_model_sampling(form, context.catalog)) {
    if (button("Use the model's settings")) choose_model_sampling(form, context.catalog);
    if (ImGui::IsItemHovered())
      tooltip("sets the fields below to the values in generation_config.json");
  }
  temperature_row("temperature", "##temperature", form.temperature, 2,
                  "0: greedy, always the most likely token.");
  if (form.temperature > 0) {
    row_label("top k", "0: all tokens");
    ImGui::InputInt("##top_k", &form.top_k, 1, 10);
    form.top_k = std::max(0, form.top_k);
    row_label("top p", "the smallest set of tokens with this total probability");
    ImGui::SliderFloat("##top_p", &form.top_p, 0.01f, 1, "%.2f");
    row_label("min p", "excludes tokens below this share of the most likely token's probability");
    ImGui::SliderFloat("##min_p", &form.min_p, 0, 1, "%.2f");
    mode_of_sampling_row(form);
  }
  penalty_row(form);
  seed_row(form);
  row_label("max tokens", "maximum length of the answer");
  ImGui::InputInt("##max_tokens", &form.max_tokens, 16, 128);
  form.max_tokens = std::clamp(form.max_tokens, 1, 1 << 20);
  row_label("ignore end-of-text", "continue after the end-of-text token");
  tick("##ignore_eos", form.ignore_eos);
  stop_rows(form);
  row_label("symbols as text", "names of special tokens in the prompt (<s>) are text, not tokens");
  tick("##no_special", form.no_special);
  held_row(form);
  whole_row(
      "repeat", "##repeat", form.n_repeats, {1, engine::kMaxRepeats},
      "number of times that the run or race is computed; Numbers and Difference then show the "
      "median and the quartiles");
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

// Returns the unavailable tasks, grouped by reason.
std::map<std::string, std::string> tasks_by_reason(const std::vector<CatalogTask>& tasks) {
  std::map<std::string, std::string> names;
  for (const CatalogTask& task : tasks) {
    if (task.unavailable.empty()) continue;
    std::string& all = names[task.unavailable];
    all += (all.empty() ? "" : ", ") + task.name;
  }
  return names;
}

void unavailable_part(const Context& context) {
  const SetupForm& form = context.form;
  const Catalog& catalog = context.catalog;
  bool said = false;
  const auto say = [&said](const std::string& name, const std::string& reason) {
    if (reason.empty()) return;
    if (!said) small_label("Not available here");
    said = true;
    unavailable_row(name, reason);
  };
  if (!context.compare)
    for (const auto& [reason, names] : tasks_by_reason(tasks_of(form.mode, catalog)))
      say(names, reason);
  for (const CatalogDecoder& d : catalog.decoders) say(d.title, why_unavailable(d, form, catalog));
  for (const CatalogModel& m : catalog.models) say(m.name, m.unavailable);
  for (const CatalogDevice& d : catalog.devices) say(d.title, d.unavailable);
}

std::string why_empty(const Context&) {
  return "";
}

// Returns the recorded runs whose setup is shown.
std::vector<const engine::RunRecord*> recorded_runs(const Context& context) {
  if (context.source.empty()) return {};
  if (context.compare) return context.shown_runs();
  return context.run() ? std::vector{context.run()} : std::vector<const engine::RunRecord*>{};
}

// Draws a row; the name of an option is beside its label if there is room.
void recorded_row(const RecordedRow& row) {
  ImGui::PushFont(fonts().bold, kTextSize);
  const float value_wide = ImGui::CalcTextSize(row.value.c_str()).x;
  ImGui::PopFont();
  const std::string both = row.label + "  " + row.name;
  const bool has_room =
      ImGui::CalcTextSize(both.c_str()).x + px(12) + value_wide <= ImGui::GetContentRegionAvail().x;
  const bool shows_name = !row.name.empty() && row.name != row.label && has_room;
  ImGui::BeginGroup();
  label_value((shows_name ? both : row.label).c_str(), row.value);
  ImGui::EndGroup();
  if (!row.help.empty() && ImGui::IsItemHovered()) tooltip(row.help);
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
  for (const RecordedRow& row : setup.rows) recorded_row(row);
  if (link("Use these settings for the next run"))
    use_again(context.form, context.catalog, context.timeline, *runs.front());
  if (has_recorded_sizes(context.timeline, *runs.front())) {
    if (link("Repeat with the recorded sizes")) {
      use_with_sizes(context.form, context.catalog, context.timeline, *runs.front());
      (runs.front()->started.race ? context.requests.race : context.requests.run) = true;
    }
    if (ImGui::IsItemHovered())
      tooltip(
          "runs it again with the sizes that it chose, so with the same steps; with rejection "
          "sampling also with the same text");
  }
  gap();
}

void one_prompt_part(Context& context) {
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
  if (reads_pool(context.form, context.catalog, context.compare))
    file_row("text to copy from", "pool", "none", context.form.pool,
             "a text file: suffix decoding and Lookahead also guess what followed the end of the "
             "answer in it. You can drop a .txt file onto the window.",
             ".txt");
  gap();
  sampling_part(context);
}

// Draws a link for each example of questions that can run with the model.
void examples_part(Context& context) {
  const auto offer = [&](const Example& example, const char* words, const char* help) {
    if (!has_example(context.form, context.catalog, example)) return;
    if (link(words)) choose_example(context.form, context.catalog, example);
    if (ImGui::IsItemHovered()) tooltip(help);
  };
  offer({SetupMode::Tree, "seed"}, "SEED: three branches",
        "A tree of thoughts: three thoughts are drafted in turns, and the target verifies one "
        "draft after the other. The panel Schedule shows which of them waits.");
  offer({SetupMode::Chain, "fastcot"}, "FastCoT",
        "A chain of thought: tokens of the rationale that are not verified yet already help to "
        "find the answer.");
}

void form_part(Context& context) {
  const bool reasons = !context.compare && context.form.mode != SetupMode::Prompt;
  mode_part(context);
  if (!context.compare) examples_part(context);
  gap();
  reasons ? reasoning_part(context) : one_prompt_part(context);
  gap();
  setup_model_part(context);
  gap();
  if (const std::string why = why_not(context.form, context.catalog, context.compare); !why.empty())
    wrapped("Run is off: " + why, theme().warn);
  unavailable_part(context);
}

void draw(Context& context) {
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2(px(8), px(5)));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(8), target_padding()));
  // A number between its two buttons keeps four digits.
  ImGui::PushStyleVar(ImGuiStyleVar_ItemInnerSpacing, ImVec2(px(4), px(4)));
  const FrameLines lines(theme().line);
  const auto recorded = recorded_runs(context);
  if (!recorded.empty()) recorded_part(context, recorded);
  // The form describes the next run, not the recorded one.
  if (recorded.empty() || ImGui::CollapsingHeader("The next run###next_run")) form_part(context);
  ImGui::PopStyleVar(3);
}

}  // namespace

const Panel kSetupPanel{.id = "setup",
                        .title = "Setup",
                        .empty = why_empty,
                        .draw = draw,
                        .sketch = Sketch::Columns,
                        .live = Dock::Left,
                        .compare = Dock::Left};

}  // namespace ui
