// The data of the screen Lab, prepared from the selected run when a panel first asks for it. While events arrive without pause, it is
// older than the timeline by a tenth at most. All functions that return data require a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace engine {
struct Acceptance;
struct LostToken;
struct RecordedShape;
struct SpeedAccount;
struct TaskAcceptance;
}  // namespace engine

namespace ui {

struct Context;
struct Decisions;
struct Panel;
using engine::Acceptance;
using engine::LostToken;
using engine::RecordedShape;
using engine::SpeedAccount;
using engine::TaskAcceptance;

/// Returns the version of the data below; it changes when they are prepared again, also for another run.
std::uint64_t lab_version(Context& context);
/// Returns the acceptance of the selected run.
const Acceptance& lab_acceptance(Context& context);
/// Returns the account of its speed-up.
const SpeedAccount& lab_account(Context& context);
/// Returns the acceptance by task of all runs with its settings.
const std::vector<TaskAcceptance>& lab_tasks(Context& context);
/// Returns its lost tokens.
const std::vector<LostToken>& lab_lost(Context& context);
/// Returns its shape.
const RecordedShape& lab_shape(Context& context);
/// Returns its decisions.
const Decisions& lab_decisions(Context& context);

/// Draws the head of a panel: the choice of the run that it shows, and the panel's help.
void lab_head(Context& context, const Panel& panel);
/// Returns why no run with proposals is shown; empty if one is.
std::string why_no_proposals(const Context& context);

}  // namespace ui
