#include <algorithm>
#include <set>

#include "engine/data/py/mini_python.h"
#include "engine/data/py/families.h"
#include "engine/data/py/program.h"
#include "engine/data/text.h"

namespace engine {

namespace {

constexpr int kCalls = 5;

std::vector<std::string> argument_names(char kind) {
  switch (kind) {
    case 'l':
      return {"numbers", "values", "nums", "items", "data"};
    case 'w':
      return {"words", "names", "strings", "texts"};
    case 's':
      return {"text", "string", "line", "phrase"};
    case 'd':
      return {"table", "scores", "counts", "prices"};
    case 'g':
      return {"grid", "matrix", "rows", "board"};
    case 'k':
      return {"k", "size", "factor", "limit"};
    default:
      return {"n", "number", "num", "value"};
  }
}

std::vector<std::string> item_names(char kind) {
  switch (kind) {
    case 'w':
      return {"word", "w", "name", "item"};
    case 's':
      return {"c", "ch", "char", "letter"};
    case 'd':
      return {"key", "name", "k", "item"};
    case 'g':
    case 'l':
      return {"x", "n", "num", "value"};
    default:
      return {"x", "i", "d", "m"};
  }
}

std::string number_list(Random& rng, int n, int low, int high) {
  std::vector<std::string> parts;
  for (int i = 0; i < n; i++) parts.push_back(std::to_string(rng.between(low, high)));
  return "[" + joined(parts, ", ") + "]";
}

std::string draw_word(Random& rng) {
  static constexpr std::string_view kWords[] = {
      "apple", "sun",  "tree", "blue", "river", "stone", "cat",   "door", "lamp",  "green",
      "mouse", "cup",  "rain", "wind", "paper", "song",  "night", "ice",  "table", "moon",
      "bird",  "gate", "leaf", "road", "snow",  "tiger", "ant",   "echo", "level", "noon"};
  return std::string(rng.pick(kWords));
}

std::string draw_value(Random& rng, char kind) {
  switch (kind) {
    case 'l':
      return number_list(rng, rng.between(3, 6), rng.chance(30) ? -9 : 0, rng.chance(50) ? 9 : 20);
    case 'w': {
      std::vector<std::string> parts;
      const int n = rng.between(2, 4);
      for (int i = 0; i < n; i++) parts.push_back("'" + draw_word(rng) + "'");
      return "[" + joined(parts, ", ") + "]";
    }
    case 's': {
      std::string text = rng.chance(30) ? capitalised(draw_word(rng)) : draw_word(rng);
      if (rng.chance(70)) text += " " + draw_word(rng);
      if (rng.chance(30)) text += " " + std::to_string(rng.between(1, 99));
      return "'" + text + "'";
    }
    case 'd': {
      std::vector<std::string> parts;
      std::set<std::string> keys;
      const int n = rng.between(2, 4);
      while (static_cast<int>(keys.size()) < n) {
        const std::string key = draw_word(rng);
        if (keys.insert(key).second)
          parts.push_back("'" + key + "': " + std::to_string(rng.between(0, 12)));
      }
      return "{" + joined(parts, ", ") + "}";
    }
    case 'g': {
      std::vector<std::string> parts;
      const int n = rng.between(2, 3);
      const int width = rng.between(2, 3);
      for (int i = 0; i < n; i++) parts.push_back(number_list(rng, width, 0, 12));
      return "[" + joined(parts, ", ") + "]";
    }
    case 'k':
      return std::to_string(rng.between(1, 4));
    default:
      return std::to_string(rng.between(1, rng.chance(50) ? 12 : 40));
  }
}

std::string indented(std::string_view body) {
  std::string out;
  for (const auto& line : split_text(body, '\n')) out += "    " + line + "\n";
  return out;
}

// Calls with their values; at least two different values, so that the tests say something.
bool add_calls(Random& rng, std::string_view kinds, PyProgram& p) {
  try {
    MiniPython python(p.code());
    std::set<std::string> calls;
    std::set<std::string> results;
    for (int tries = 0; tries < 30 && static_cast<int>(p.calls.size()) < kCalls; tries++) {
      std::vector<std::string> arguments;
      for (const char kind : kinds) arguments.push_back(draw_value(rng, kind));
      const std::string call = p.name + "(" + joined(arguments, ", ") + ")";
      if (!calls.insert(call).second) continue;
      const std::string result = python.evaluate(call);
      if (result.size() > 80) continue;
      results.insert(result);
      p.calls.push_back(call);
      p.results.push_back(result);
    }
    return static_cast<int>(p.calls.size()) == kCalls && results.size() >= 2;
  } catch (const PyError&) {
    return false;
  }
}

struct Slots {
  std::vector<std::pair<std::string, std::string>> values;  // "$a" -> "numbers"
  std::string apply(std::string_view pattern) const {
    std::string out(pattern);
    for (const auto& [slot, value] : values) out = replaced_all(std::move(out), slot, value);
    return out;
  }
};

// The kind of the items that $x runs over, for predicates and operations.
char item_kind(std::string_view kinds) {
  return kinds[0] == 's' ? 's' : kinds[0] == 'w' ? 'w' : 'l';
}

bool uses(const PyFamily& family, std::string_view slot) {
  return family.doc.find(slot) != std::string_view::npos;
}

bool draw_family(Random& rng, int level, Split split, PyProgram& p) {
  const auto families = py_families();
  const PyFamily& family = families[rng.below(static_cast<int>(families.size()))];
  if (family.level > level) return false;

  Slots slots;
  const PyPiece predicate = rng.pick(py_predicates(item_kind(family.kinds)));
  const PyPiece operation = rng.pick(py_operations(item_kind(family.kinds)));
  slots.values = {{"$P", std::string(predicate.code)},
                  {"$p", std::string(predicate.said)},
                  {"$O", std::string(operation.code)},
                  {"$o", std::string(operation.said)}};
  const std::string noun = rng.pick(argument_names(family.kinds[0]));
  const std::string first = rng.pick(argument_names(family.kinds[0]));
  std::set<std::string> taken = {first, "i", "j"};
  const auto fresh = [&](const std::vector<std::string>& from) {
    for (int tries = 0; tries < 20; tries++) {
      const std::string name = rng.pick(from);
      if (taken.insert(name).second) return name;
    }
    return std::string();
  };
  std::string second = "other";
  if (family.kinds.size() > 1)
    second = family.kinds[1] == family.kinds[0]
                 ? rng.pick(std::vector<std::string>{"other", "more", "b"})
                 : fresh(argument_names(family.kinds[1]));
  taken.insert(second);
  const std::string item = fresh(item_names(family.kinds[0]));
  const std::string inner = fresh({"y", "row", "other_item", "v"});
  const std::string result = fresh({"result", "out", "res", "answer", "found"});
  const std::string total = fresh({"total", "acc", "current", "tally"});
  if (second.empty() || item.empty() || inner.empty()) return false;
  const auto verbs = split_text(family.verbs, ' ');
  p.name = rng.pick(verbs) + "_" + noun;
  if (p.name == first || p.name == second) return false;
  const int k = rng.between(2, 9);
  static constexpr std::string_view kLetters[] = {"a", "e", "o", "n", "t", "r", "s", "l"};
  const std::string letter(rng.pick(kLetters));
  slots.values.insert(slots.values.end(), {{"$F", p.name},
                                           {"$K", std::to_string(k)},
                                           {"$L", letter},
                                           {"$a", first},
                                           {"$b", second},
                                           {"$x", item},
                                           {"$y", inner},
                                           {"$r", result},
                                           {"$t", total}});

  // The body's own names do not show in the key: they are choices of the completion.
  p.key = std::string(family.id) + "|" + p.name;
  std::string shown = slots.apply(family.doc);
  p.key += "|" + replaced_all(replaced_all(shown, first, "a"), second, "b");
  p.doc = std::move(shown);
  p.signature =
      "def " + p.name + "(" + first + (family.kinds.size() > 1 ? ", " + second : "") + "):";
  p.body = indented(slots.apply(rng.pick(family.bodies)));
  if (!uses(family, "$p") && !uses(family, "$o") && !uses(family, "$K") && !uses(family, "$L"))
    return false;
  return split_of_key(p.key) == split && add_calls(rng, family.kinds, p);
}

// --- compositions --------------------------------------------------------------------------------

struct Stage {
  std::string code;  // of the list $v
  std::string said;
};

Stage draw_stage(Random& rng, const std::string& item) {
  const std::string k = std::to_string(rng.between(2, 6));
  Slots slots;
  slots.values = {{"$x", item}, {"$K", k}};
  switch (rng.weighted({4, 4, 1, 1, 2, 1, 1})) {
    case 0: {
      const PyPiece piece = rng.pick(py_predicates('l'));
      return {slots.apply("[$x for $x in $v if " + std::string(piece.code) + "]"),
              slots.apply("keep the " + std::string(piece.said))};
    }
    case 1: {
      const PyPiece piece = rng.pick(py_operations('l'));
      return {slots.apply("[" + std::string(piece.code) + " for $x in $v]"),
              slots.apply("replace every number by itself " + std::string(piece.said))};
    }
    case 2:
      return {"sorted($v)", "sort them in rising order"};
    case 3:
      return {"sorted($v, reverse=True)", "sort them in falling order"};
    case 4:
      return {slots.apply("$v[:$K]"), slots.apply("keep the first $K")};
    case 5:
      return {"$v[::-1]", "reverse them"};
    default:
      return {slots.apply("$v[::$K]"), slots.apply("keep one in $K")};
  }
}

bool draw_composition(Random& rng, Split split, PyProgram& p) {
  const std::string argument = rng.pick(argument_names('l'));
  const std::string item = rng.pick(item_names('l'));
  const std::string kept(rng.say({"result", "out", "res", "current"}));
  const int n_stages = rng.between(1, 2) + 1;
  std::string body;
  std::vector<std::string> said;
  std::string source = argument;
  const bool own_name = rng.chance(60);
  std::string nested = argument;
  for (int i = 0; i < n_stages; i++) {
    const Stage stage = draw_stage(rng, item);
    if (!said.empty() && said.back() == stage.said) return false;
    said.push_back(stage.said);
    const std::string target = own_name ? kept : argument;
    body += target + " = " + replaced_all(stage.code, "$v", source) + "\n";
    source = target;
  }
  struct Ending {
    std::string_view code, said;
  };
  static constexpr Ending kEndings[] = {{"$v", "return the list"},
                                        {"sum($v)", "return their sum"},
                                        {"len($v)", "return how many there are"},
                                        {"max($v, default=0)", "return the largest, or 0"},
                                        {"min($v, default=0)", "return the smallest, or 0"},
                                        {"sorted(set($v))", "return the distinct ones, sorted"}};
  const Ending ending = rng.pick(kEndings);
  body += "return " + replaced_all(std::string(ending.code), "$v", source);
  p.name = std::string(rng.say({"process", "work_on", "solve", "handle"})) + "_" + argument;
  p.signature = "def " + p.name + "(" + argument + "):";
  p.body = indented(body);
  p.doc = "Take " + argument + ", " + joined(said, ", then ") + ", and " + std::string(ending.said);
  p.key = "composition|" + joined(said, "|") + "|" + std::string(ending.said);
  return split_of_key(p.key) == split && add_calls(rng, "l", p);
}

}  // namespace

bool draw_py_function(Random& rng, int level, Split split, PyProgram& out) {
  out = {};
  return level == 3 ? draw_composition(rng, split, out) : draw_family(rng, level, split, out);
}

}  // namespace engine
