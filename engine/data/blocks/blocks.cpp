// The blocks task: Blocksworld plans with notes before them, next actions, next states and evaluations of
// actions; in training also plans without notes.
//   key       the pair (state, goal) in the record's words; with five or more blocks up to renaming of the
//             blocks, so that a test problem has no renamed twin in training; for a next state: state and
//             action in the record's words
//   excluded  problems of the public evaluation set (excluded.inc)
#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "engine/data/arith/answers.h"
#include "engine/data/blocks/text.h"
#include "engine/data/blocks/world.h"
#include "engine/data/tasks.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Json = nlohmann::json;
using World = BlocksWorld;

// FNV-1a of problem_text() of each public problem, in ascending order.
constexpr std::uint64_t kExcluded[] = {
#include "engine/data/blocks/excluded.inc"
};

// A problem. Block i of the world has colours[i]. The colours keep the order of block_colours(), so the
// order of actions depends only on names, and the plan is a function of the text.
struct Scenario {
  const World* world = nullptr;
  std::vector<std::string> colours;
  int start = 0;
  std::vector<World::OnFact> goal;
  std::vector<int> distance;
};

BlocksScene scene_of(const Scenario& s, int state) {
  BlocksScene scene;
  for (int b = 0; b < s.world->n_blocks(); b++) {
    const int under = s.world->state(state).under[b];
    scene[s.colours[b]] = under == World::kTable  ? "table"
                          : under == World::kHand ? "hand"
                                                  : s.colours[under];
  }
  return scene;
}

std::vector<std::string> goal_facts(const Scenario& s) {
  std::vector<std::string> facts;
  for (const auto& [upper, lower] : s.goal)
    facts.push_back("on " + s.colours[upper] + " " + s.colours[lower]);
  return facts;
}

// The smallest code of (state, goal) over all renamings of the blocks.
std::string canonical_key(const Scenario& s) {
  const int n = s.world->n_blocks();
  std::vector<int> renamed(n);
  std::iota(renamed.begin(), renamed.end(), 0);
  std::string best;
  do {
    std::string code(2 * n, '.');
    const auto& under = s.world->state(s.start).under;
    for (int b = 0; b < n; b++)
      code[renamed[b]] = static_cast<char>('0' + (under[b] < n ? renamed[under[b]] : under[b]));
    for (const auto& [upper, lower] : s.goal)
      code[n + renamed[upper]] = static_cast<char>('0' + renamed[lower]);
    if (best.empty() || code < best) best = code;
  } while (std::next_permutation(renamed.begin(), renamed.end()));
  return best;
}

// The sorted facts of state and goal.
std::string problem_text(std::vector<std::string> init, std::vector<std::string> goal) {
  std::sort(init.begin(), init.end());
  std::sort(goal.begin(), goal.end());
  return joined(init, ", ") + " -> " + joined(goal, ", ");
}

std::string content_key(const Scenario& s) {
  if (s.world->n_blocks() >= 5) return canonical_key(s);
  return problem_text(scene_facts(scene_of(s, s.start)), goal_facts(s));
}

int draw_n_blocks(Random& rng, int level) {
  if (level == 1) return 3 + rng.weighted({1, 2});
  if (level == 2) return 3 + rng.weighted({1, 9});
  return 5 + rng.weighted({85, 15});
}

std::vector<std::string> draw_colours(Random& rng, int n) {
  const auto& all = block_colours();
  std::vector<int> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  if (!rng.chance(15)) rng.shuffle(order);
  order.resize(n);
  std::sort(order.begin(), order.end());
  std::vector<std::string> colours;
  for (const int i : order) colours.push_back(all[i]);
  return colours;
}

// Draws a goal, and a state at a drawn distance from it. @param from_rest  the hand has to be empty
std::optional<Scenario> draw_scenario(Random& rng, int level, bool from_rest) {
  Scenario s;
  const int n = draw_n_blocks(rng, level);
  s.world = &World::of(n);
  s.colours = draw_colours(rng, n);
  const int goal_state = rng.pick(s.world->resting());
  for (int b = 0; b < n; b++) {
    const int under = s.world->state(goal_state).under[b];
    if (under < n) s.goal.emplace_back(b, under);
  }
  if (s.goal.empty()) return std::nullopt;
  rng.shuffle(s.goal);
  s.goal.resize(rng.between(1, static_cast<int>(s.goal.size())));
  s.distance = s.world->distances(s.goal);
  const int wanted =
      from_rest ? 2 * rng.between(1, level == 1 ? 2 : 4) : rng.between(1, level == 1 ? 4 : 8);
  std::vector<int> starts;
  for (int id = 0; id < s.world->n_states(); id++) {
    if (s.distance[id] != wanted) continue;
    const auto& under = s.world->state(id).under;
    const bool held =
        std::find(under.begin(), under.begin() + n, World::kHand) != under.begin() + n;
    if (!from_rest || !held) starts.push_back(id);
  }
  if (starts.empty()) return std::nullopt;
  s.start = rng.pick(starts);
  return s;
}

// The facts ordered by kind, as in the public problems; within a kind in one of two orders of colours.
std::string orderly_state_text(Random& rng, const BlocksScene& scene) {
  auto facts = scene_facts(scene);
  if (rng.chance(50)) {
    const auto kind = [](const std::string& f) {
      return f[0] == 'c' ? 0 : f[0] == 'h' ? 1 : f.starts_with("on ") ? 2 : 3;
    };
    std::reverse(facts.begin(), facts.end());
    std::stable_sort(facts.begin(), facts.end(),
                     [&](const auto& a, const auto& b) { return kind(a) < kind(b); });
  }
  for (auto& fact : facts) fact = fact_phrase(fact);
  return enumerated(facts);
}

// The paper's form has the order of the public problems; three in ten questions of a chat do not.
std::string state_text(Random& rng, const BlocksScene& scene, bool paper_form) {
  if (paper_form || rng.chance(70)) return orderly_state_text(rng, scene);
  auto facts = scene_facts(scene);
  rng.shuffle(facts);
  for (auto& fact : facts) fact = fact_phrase(fact);
  return enumerated(facts);
}

std::string goal_text(Random& rng, const Scenario& s) {
  auto facts = goal_facts(s);
  rng.shuffle(facts);
  for (auto& fact : facts) fact = fact_phrase(fact);
  return enumerated(facts);
}

// The public wording of an action.
std::string action_text(const Scenario& s, const World::Action& action) {
  const std::string block = "the " + s.colours[action.block] + " block";
  const std::string other =
      action.other < 0 ? std::string() : "the " + s.colours[action.other] + " block";
  switch (action.kind) {
    case World::Kind::PickUp:
      return "pick up " + block;
    case World::Kind::Unstack:
      return "unstack " + block + " from on top of " + other;
    case World::Kind::PutDown:
      return "put down " + block;
    case World::Kind::Stack:
      break;
  }
  return "stack " + block + " on top of " + other;
}

std::string free_action_text(Random& rng, const Scenario& s, const World::Action& action) {
  const std::string& block = s.colours[action.block];
  const std::string other = action.other < 0 ? std::string() : s.colours[action.other];
  switch (action.kind) {
    case World::Kind::PickUp:
      return fill(rng.one_of({"pick up the {0} block", "lift the {0} block from the table",
                              "take the {0} block from the table", "pick up the {0} block"}),
                  {block});
    case World::Kind::Unstack:
      return fill(rng.one_of({"unstack the {0} block from on top of the {1} block",
                              "take the {0} block off the {1} block",
                              "lift the {0} block off the {1} block",
                              "unstack the {0} block from the {1} block"}),
                  {block, other});
    case World::Kind::PutDown:
      return fill(
          rng.one_of({"put down the {0} block", "place the {0} block on the table",
                      "set the {0} block down on the table", "put the {0} block on the table"}),
          {block});
    case World::Kind::Stack:
      break;
  }
  return fill(
      rng.one_of({"stack the {0} block on top of the {1} block",
                  "place the {0} block on the {1} block", "put the {0} block on the {1} block",
                  "stack the {0} block on the {1} block"}),
      {block, other});
}

Json check_of(const Scenario& s, const char* form) {
  Json check;
  check["form"] = form;
  check["init"] = scene_facts(scene_of(s, s.start));
  check["goal"] = goal_facts(s);
  return check;
}

// The blocks above `block`, from the lowest to the highest.
std::string above_text(const Scenario& s, int block) {
  const auto& under = s.world->state(s.start).under;
  const auto end = under.begin() + s.world->n_blocks();
  std::vector<std::string> names;
  for (auto it = std::find(under.begin(), end, block); it != end;
       it = std::find(under.begin(), end, it - under.begin()))
    names.push_back(s.colours[it - under.begin()]);
  return names.empty() ? "nothing" : joined(names, ", ");
}

// The facts of the goal from the bottom of each stack to its top.
std::vector<World::OnFact> goal_from_below(const Scenario& s) {
  const auto height = [&](int block) {
    int h = 0;
    for (auto fact = s.goal.begin(); fact != s.goal.end(); h++) {
      fact = std::find_if(s.goal.begin(), s.goal.end(),
                          [&](const auto& on) { return on.first == block; });
      if (fact != s.goal.end()) block = fact->second;
    }
    return h;
  };
  auto facts = s.goal;
  std::sort(facts.begin(), facts.end(), [&](const auto& a, const auto& b) {
    return std::pair(height(a.first), a) < std::pair(height(b.first), b);
  });
  return facts;
}

// Notes on the state of the blocks of each goal fact. The first action of a plan depends on several
// look-ups in the state; each phrase of the notes makes one of them. The notes name only colours, so the
// checker reads no line of them as an action.
std::string notes_text(Random& rng, const Scenario& s, bool paper_form) {
  const auto& under = s.world->state(s.start).under;
  const auto place = [&](int block) {
    return under[block] == World::kTable  ? std::string("the table")
           : under[block] == World::kHand ? std::string("the hand")
                                          : s.colours[under[block]];
  };
  const auto wording =
      paper_form ? std::string_view("{0} on {1}: now on {2}; on {0}: {3}; on {1}: {4}.\n")
                 : rng.one_of({"{0} on {1}: now on {2}; on {0}: {3}; on {1}: {4}.\n",
                               "{0} goes on {1}. It is on {2}. On {0}: {3}. On {1}: {4}.\n",
                               "{0} (now on {2}) goes on {1}; on {0} is {3}, on {1} is {4}.\n",
                               "To put {0} on {1}: {0} is on {2}, above {0} is {3}, above {1} is "
                               "{4}.\n"});
  std::string notes;
  for (const auto& [upper, lower] : goal_from_below(s)) {
    const std::string &u = s.colours[upper], &l = s.colours[lower];
    notes += under[upper] == lower
                 ? u + " on " + l + ": it is there.\n"
                 : fill(wording, {u, l, place(upper), above_text(s, upper), above_text(s, lower)});
  }
  return notes;
}

Record plan_record(Random& rng, const Scenario& s, bool with_notes) {
  Record record;
  const auto steps = s.world->plan(s.start, s.distance);
  const bool paper_form = !with_notes || rng.chance(50);
  const std::string state = state_text(rng, scene_of(s, s.start), paper_form);
  const std::string goal = goal_text(rng, s);
  const std::string notes = with_notes ? notes_text(rng, s, paper_form) : std::string();
  std::vector<std::string> plain;
  for (const auto& step : steps) plain.push_back(action_text(s, step.action));
  record.answer = joined(plain, "; ");
  record.check = check_of(s, "plan").dump();
  if (paper_form) {
    record.prompt = "[STATEMENT]\nAs initial conditions I have that, " + state +
                    ".\nMy goal is to have that " + goal + ".\n\nMy plan is as follows:\n\n";
    // The public prompts end in [PLAN]; a plan without notes follows such a prompt.
    (with_notes ? record.completion : record.prompt) += notes + "[PLAN]\n";
    record.completion += joined(plain, "\n") + "\n[PLAN END]\n";
    return record;
  }
  const std::string question =
      fill(rng.one_of({"At the start {0}. I want that {1}. How do I get there?",
                       "Here is what I see: {0}. My goal is that {1}. Make a plan.",
                       "Make a plan for my blocks. Now {0}. In the end I want that {1}.",
                       "I have some blocks: {0}. Which steps lead to this: {1}?"}),
           {state, goal});
  const int layout = rng.below(4);
  std::string text(
      rng.one_of({"Let me see.\n", "First I look at it.\n", "What is there:\n", "My notes:\n"}));
  text += notes;
  text += rng.one_of(
      {"Here is a plan:\n", "These steps reach the goal:\n", "You can do this:\n", "The plan:\n"});
  for (std::size_t i = 0; i < steps.size(); i++) {
    const std::string action = free_action_text(rng, s, steps[i].action);
    if (i > 0) text += "\n";
    if (layout == 0) text += action;
    if (layout == 1) text += std::to_string(i + 1) + ". " + capitalised(action) + ".";
    if (layout == 2) text += "- " + action;
    if (layout == 3)
      text += (i == 0 ? "First, " : i + 1 == steps.size() ? "Finally, " : "Then ") + action + ".";
  }
  set_chat(record, question, text);
  return record;
}

Record action_record(Random& rng, const Scenario& s) {
  Record record;
  const auto step = s.world->plan(s.start, s.distance).front();
  const bool paper_form = rng.chance(50);
  const std::string state = state_text(rng, scene_of(s, s.start), paper_form);
  const std::string goal = goal_text(rng, s);
  record.answer = action_text(s, step.action);
  record.check = check_of(s, "action").dump();
  if (paper_form) {
    record.prompt = "[STATEMENT]\nAs initial conditions I have that, " + state +
                    ".\nMy goal is to have that " + goal + ".\n[ACTION]\n";
    record.completion = record.answer + "\n";
    return record;
  }
  set_chat(record,
           fill(rng.one_of({"Now {0}. I want that {1}. What is the next action?",
                            "My blocks: {0}. My goal: {1}. What should I do next?",
                            "What is the best next step if {0} and the goal is that {1}?",
                            "I see that {0}. The goal is that {1}. Name the next action."}),
                {state, goal}),
           fill(rng.one_of(
                    {"Next, {0}.", "You should {0}.", "I would {0}.", "The next action is: {0}."}),
                {free_action_text(rng, s, step.action)}));
  return record;
}

// One sentence that says what an action changes.
std::string change_text(Random& rng, const Scenario& s, const World::Action& action) {
  const std::string& block = s.colours[action.block];
  const std::string other = action.other < 0 ? std::string() : s.colours[action.other];
  switch (action.kind) {
    case World::Kind::PickUp:
      return fill(rng.one_of({"The {0} block leaves the table.", "The hand takes the {0} block.",
                              "Now the hand holds the {0} block.", "The {0} block is picked up."}),
                  {block});
    case World::Kind::Unstack:
      return fill(rng.one_of({"The {0} block leaves the {1} block, which is clear now.",
                              "The hand takes the {0} block off the {1} block.",
                              "Now the hand holds the {0} block and the {1} block is free.",
                              "The {1} block is free because the {0} block is lifted."}),
                  {block, other});
    case World::Kind::PutDown:
      return fill(
          rng.one_of({"The {0} block goes to the table.", "The hand lets go of the {0} block.",
                      "Now the {0} block rests on the table.", "The {0} block is put down."}),
          {block});
    case World::Kind::Stack:
      break;
  }
  return fill(rng.one_of({"The {0} block goes on top of the {1} block, which is no longer clear.",
                          "The hand puts the {0} block on the {1} block.",
                          "Now the {0} block covers the {1} block.",
                          "The {1} block is covered because the {0} block goes on it."}),
              {block, other});
}

Record state_record(Random& rng, const Scenario& s, const World::Edge& edge) {
  Record record;
  const bool paper_form = rng.chance(50);
  const std::string state = state_text(rng, scene_of(s, s.start), paper_form);
  const std::string action = action_text(s, edge.action);
  const BlocksScene next = scene_of(s, edge.next);
  record.answer = joined(scene_facts(next), ", ");
  Json check = check_of(s, "state");
  check.erase("goal");
  check["action"] = action;
  record.check = check.dump();
  const std::string change = change_text(rng, s, edge.action);
  const std::string after = orderly_state_text(rng, next);
  if (paper_form) {
    record.prompt =
        "[STATE 0] I have that, " + state + ".\n[ACTION] " + capitalised(action) + ".\n[CHANGE]";
    record.completion = " " + change + "\n[STATE 1] I have that, " + after + ".\n";
    return record;
  }
  set_chat(record,
           fill(rng.one_of({"At first {0}. Then I {1}. What is the state now?",
                            "Now {0}. What is the state after I {1}?",
                            "The state is this: {0}. I {1}. Describe the new state.",
                            "I see that {0}. What will I see when I {1}?"}),
                {state, action}),
           change + fill(rng.one_of({" I have that, {0}.", " So I have that, {0}.",
                                     " After that I have that, {0}.",
                                     " In the new state I have that, {0}."}),
                         {after}));
  return record;
}

std::string reason_text(Random& rng, const Scenario& s, const World::Edge& edge, bool nearer) {
  const std::string& block = s.colours[edge.action.block];
  const bool placed =
      edge.action.kind == World::Kind::Stack &&
      std::find(s.goal.begin(), s.goal.end(),
                World::OnFact(edge.action.block, edge.action.other)) != s.goal.end();
  if (nearer && placed)
    return fill(
        rng.one_of({"The {0} block is now in place.", "This puts the {0} block where it belongs.",
                    "The goal wants the {0} block there.",
                    "Now the {0} block is where it should be."}),
        {block});
  if (nearer)
    return fill(rng.one_of({"Moving the {0} block brings the goal nearer.",
                            "The {0} block has to move before the goal is reached.",
                            "This is a step towards the goal.", "After this fewer steps remain."}),
                {block});
  return fill(rng.one_of({"Moving the {0} block leads away from the goal.",
                          "The {0} block is not wanted there.", "This step must be undone later.",
                          "After this more steps remain."}),
              {block});
}

Record evaluation_record(Random& rng, const Scenario& s, const World::Edge& edge) {
  Record record;
  const bool nearer = s.distance[edge.next] < s.distance[s.start];
  const bool paper_form = rng.chance(50);
  const std::string state = state_text(rng, scene_of(s, s.start), paper_form);
  const std::string goal = goal_text(rng, s);
  const std::string action = action_text(s, edge.action);
  const int score = nearer ? rng.between(8, 10) : rng.between(1, 3);
  const std::string text =
      "Score: " + std::to_string(score) + "\n" + reason_text(rng, s, edge, nearer);
  record.answer = nearer ? "good" : "bad";
  Json check = check_of(s, "evaluation");
  check["action"] = action;
  check["good"] = nearer;
  record.check = check.dump();
  if (paper_form) {
    record.prompt = "[STATEMENT]\nAs initial conditions I have that, " + state +
                    ".\nMy goal is to have that " + goal + ".\n[ACTION]\n" + action +
                    "\n[EVALUATION]\n";
    record.completion = text + "\n";
    return record;
  }
  set_chat(record,
           fill(rng.one_of({"Now {0}. My goal is that {1}. How good is this action: {2}?",
                            "I see that {0}. I want that {1}. Rate this step from 1 to 10: {2}.",
                            "State: {0}. Goal: {1}. Give a score to this: {2}.",
                            "If {0} and I want that {1}, is it wise to {2}? Give a score."}),
                {state, goal, action}),
           text);
  return record;
}

// --- reading completions -------------------------------------------------------------------------

std::optional<BlocksScene> scene_of_facts(const Json& facts) {
  BlocksScene scene;
  for (const auto& fact : facts) {
    const auto words = split_text(fact.get<std::string>(), ' ');
    if (words[0] == "on") scene[words.at(1)] = words.at(2);
    if (words[0] == "ontable") scene[words.at(1)] = "table";
    if (words[0] == "holding") scene[words.at(1)] = "hand";
  }
  if (scene.empty()) return std::nullopt;
  return scene;
}

std::string unmet_goal(const BlocksScene& scene, const Json& goal) {
  for (const auto& fact : goal) {
    const auto words = split_text(fact.get<std::string>(), ' ');
    const auto it = scene.find(words.at(1));
    if (it == scene.end() || it->second != words.at(2))
      return "the " + words.at(1) + " block is not on the " + words.at(2) + " block";
  }
  return {};
}

CheckResult check_plan(BlocksScene scene, const Json& goal, std::string_view text) {
  int number = 0;
  for (const std::string& line : split_text(text, '\n')) {
    if (line.find("[PLAN END]") != std::string::npos) break;
    if (line.find(" block") == std::string::npos) continue;
    number++;
    const auto move = read_move(line);
    const std::string step = "step " + std::to_string(number) + ": ";
    if (!move) return {false, step + "found no action"};
    const std::string refusal = apply_move(scene, *move);
    if (!refusal.empty()) return {false, step + refusal};
  }
  const std::string unmet = unmet_goal(scene, goal);
  return {unmet.empty(), unmet};
}

// An action is correct if it begins a shortest plan to the goal.
CheckResult check_action(const BlocksScene& before, const Json& goal, std::string_view text) {
  const auto move = read_move(text);
  if (!move) return {false, "found no action"};
  BlocksScene after = before;
  const std::string refusal = apply_move(after, *move);
  if (!refusal.empty()) return {false, refusal};
  std::vector<std::string> names;
  for (const auto& [block, below] : before) names.push_back(block);
  const int n = static_cast<int>(names.size());
  if (n < 3 || n > World::kMaxBlocks)
    return {false, "found " + std::to_string(n) + " blocks, expected 3 to " +
                       std::to_string(World::kMaxBlocks)};
  const auto index = [&](const std::string& name) {
    return static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  const World& world = World::of(n);
  const auto find_state = [&](const BlocksScene& scene) {
    for (int id = 0; id < world.n_states(); id++) {
      bool same = true;
      for (int b = 0; b < n && same; b++) {
        const std::string& below = scene.at(names[b]);
        const int under = below == "table"  ? World::kTable
                          : below == "hand" ? World::kHand
                                            : index(below);
        same = world.state(id).under[b] == under;
      }
      if (same) return id;
    }
    return -1;
  };
  std::vector<World::OnFact> facts;
  for (const auto& fact : goal) {
    const auto words = split_text(fact.get<std::string>(), ' ');
    facts.emplace_back(index(words.at(1)), index(words.at(2)));
  }
  const auto distance = world.distances(facts);
  const int from = find_state(before);
  const int to = find_state(after);
  if (from < 0 || to < 0) return {false, "the state does not exist in Blocksworld"};
  if (distance[to] >= distance[from]) return {false, "the action does not bring the goal nearer"};
  return {true, {}};
}

CheckResult check_state(BlocksScene scene, const std::string& action, std::string_view text) {
  const auto move = read_move(action);
  if (!move || !apply_move(scene, *move).empty())
    return {false, "the record's action is impossible"};
  constexpr std::string_view kStart = "I have that,";
  const auto at = text.rfind(kStart);
  if (at == std::string_view::npos) return {false, "found no 'I have that,' before the new state"};
  const auto read = read_state_text(text.substr(at + kStart.size()));
  if (!read) return {false, "the text does not describe a state"};
  if (*read != scene) return {false, "the state differs from the one that the action leads to"};
  return {true, {}};
}

class BlocksTask final : public TaskGenerator {
 public:
  std::string_view name() const override { return "blocks"; }

  CheckResult check(const Record& record, std::string_view completion) const override {
    try {
      const Json check = Json::parse(record.check);
      const std::string form = check.at("form");
      const auto scene = scene_of_facts(check.at("init"));
      if (!scene) throw Error(ErrorCode::BadInput, record.id + ": check.init: found no blocks");
      const std::string_view text = completion_body(completion);
      if (form == "plan") return check_plan(*scene, check.at("goal"), text);
      if (form == "action") return check_action(*scene, check.at("goal"), text);
      if (form == "state") return check_state(*scene, check.at("action"), text);
      if (form == "evaluation") return check_score(text, check.at("good"));
      throw Error(ErrorCode::BadInput, record.id + ": check.form: found '" + form + "'");
    } catch (const Json::exception& e) {
      throw Error(ErrorCode::BadInput, record.id + ": check: " + e.what());
    } catch (const std::out_of_range&) {
      throw Error(ErrorCode::BadInput, record.id + ": check: found a fact with too few words");
    }
  }

 protected:
  std::optional<Record> draw(Random& rng, int level, Split split) const override {
    // plan, action, state, evaluation, plan without notes
    const int form = split == Split::Train ? rng.weighted({50, 15, 15, 10, 10})
                                           : rng.weighted({55, 15, 15, 15, 0});
    const auto s = draw_scenario(rng, level, form == 0 || form == 4);
    if (!s) return std::nullopt;
    const auto& edges = s->world->edges(s->start);
    World::Edge edge = rng.pick(edges);
    if (form == 2) {
      const auto facts = scene_facts(scene_of(*s, s->start));
      if (split_of_key(problem_text(facts, {action_text(*s, edge.action)})) != split)
        return std::nullopt;
      return state_record(rng, *s, edge);
    }
    if (split_of_key(content_key(*s)) != split || excluded(*s)) return std::nullopt;
    if (form == 0 || form == 4) return plan_record(rng, *s, form == 0);
    if (form == 1) return action_record(rng, *s);
    const bool nearer = rng.chance(50);  // good and bad actions with equal probability
    std::vector<World::Edge> fitting;
    for (const auto& candidate : edges) {
      const int change = s->distance[candidate.next] - s->distance[s->start];
      if (change == (nearer ? -1 : 1)) fitting.push_back(candidate);
    }
    if (fitting.empty()) return std::nullopt;
    return evaluation_record(rng, *s, rng.pick(fitting));
  }

 private:
  static bool excluded(const Scenario& s) {
    const auto hash = fnv1a(problem_text(scene_facts(scene_of(s, s.start)), goal_facts(s)));
    return std::binary_search(std::begin(kExcluded), std::end(kExcluded), hash);
  }
};

}  // namespace

std::unique_ptr<TaskGenerator> make_blocks_task() {
  return std::make_unique<BlocksTask>();
}

}  // namespace engine
