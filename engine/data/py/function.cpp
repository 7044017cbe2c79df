// Functions of the py task: one family, or a composition of list operations.
#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

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

PyNumbers draw_numbers(Random& rng, int n, int low, int high) {
  PyNumbers numbers;
  for (int i = 0; i < n; i++) numbers.push_back(rng.between(low, high));
  return numbers;
}

std::string draw_word(Random& rng) {
  static constexpr std::string_view kWords[] = {
      "apple", "sun",  "tree", "blue", "river", "stone", "cat",   "door", "lamp",  "green",
      "mouse", "cup",  "rain", "wind", "paper", "song",  "night", "ice",  "table", "moon",
      "bird",  "gate", "leaf", "road", "snow",  "tiger", "ant",   "echo", "level", "noon"};
  return std::string(rng.pick(kWords));
}

// An argument of that kind (PyFamily::kinds).
PyArgument draw_argument(Random& rng, char kind) {
  switch (kind) {
    case 'l': {
      const int high = rng.chance(50) ? 9 : 20;
      const int low = rng.chance(30) ? -9 : 0;
      return draw_numbers(rng, rng.between(3, 6), low, high);
    }
    case 'w': {
      PyWords words;
      const int n = rng.between(2, 4);
      for (int i = 0; i < n; i++) words.push_back(draw_word(rng));
      return words;
    }
    case 's': {
      std::string text = rng.chance(30) ? capitalised(draw_word(rng)) : draw_word(rng);
      if (rng.chance(70)) text += " " + draw_word(rng);
      if (rng.chance(30)) text += " " + std::to_string(rng.between(1, 99));
      return text;
    }
    case 'd': {
      PyTable table;
      std::set<std::string> keys;
      const int n = rng.between(2, 4);
      while (static_cast<int>(keys.size()) < n) {
        const std::string key = draw_word(rng);
        if (keys.insert(key).second) table.emplace_back(key, rng.between(0, 12));
      }
      return table;
    }
    case 'g': {
      PyGrid grid;
      const int n = rng.between(2, 3);
      const int width = rng.between(2, 3);
      for (int i = 0; i < n; i++) grid.push_back(draw_numbers(rng, width, 0, 12));
      return grid;
    }
    case 'k':
      return PyInt{rng.between(1, 4)};
    default:
      return PyInt{rng.between(1, rng.chance(50) ? 12 : 40)};
  }
}

std::string indented(std::string_view body) {
  std::string out;
  for (const auto& line : split_text(body, '\n')) out += "    " + line + "\n";
  return out;
}

using PyResult = std::function<std::string(const std::vector<PyArgument>&)>;

// Adds calls with their results. The tests need at least two different results: a constant must not
// pass them.
bool add_calls(Random& rng, std::string_view kinds, const PyResult& result_of, PyProgram& p) {
  constexpr std::size_t kMaxResultChars = 80;
  std::set<std::string> calls;
  std::set<std::string> results;
  for (int tries = 0; tries < 30 && static_cast<int>(p.calls.size()) < kCalls; tries++) {
    std::vector<PyArgument> arguments;
    for (const char kind : kinds) arguments.push_back(draw_argument(rng, kind));
    std::vector<std::string> shown;
    for (const PyArgument& argument : arguments) shown.push_back(py_repr(argument));
    const std::string call = p.name + "(" + joined(shown, ", ") + ")";
    if (!calls.insert(call).second) continue;
    const std::string result = result_of(arguments);
    if (result.size() > kMaxResultChars) continue;
    results.insert(result);
    p.calls.push_back(call);
    p.results.push_back(result);
  }
  return static_cast<int>(p.calls.size()) == kCalls && results.size() >= 2;
}

struct Slots {
  std::vector<std::pair<std::string, std::string>> values;  // "$a" -> "numbers"
  std::string apply(std::string_view pattern) const {
    std::string out(pattern);
    for (const auto& [slot, value] : values) out = replaced_all(std::move(out), slot, value);
    return out;
  }
};

// The kind of the items that $x runs over.
PyItems items_of(const PyFamily& family) {
  return family.kinds[0] == 's'   ? PyItems::Characters
         : family.kinds[0] == 'w' ? PyItems::Words
                                  : PyItems::Numbers;
}

// The index of one of the pieces.
int draw_piece(Random& rng, std::span<const PyPiece> pieces) {
  return rng.below(static_cast<int>(pieces.size()));
}

bool uses(const PyFamily& family, std::string_view slot) {
  return family.doc.find(slot) != std::string_view::npos;
}

// The names of a function's arguments and variables.
struct Names {
  std::string first, second;  // arguments
  std::string item, inner;    // items of loops
  std::string result, total;  // results
};

// Draws different names. Returns nothing if there are not enough.
std::optional<Names> draw_names(Random& rng, const PyFamily& family) {
  Names names;
  names.first = rng.pick(argument_names(family.kinds[0]));
  std::set<std::string> taken = {names.first, "i", "j"};
  const auto fresh = [&](const std::vector<std::string>& from) {
    for (int tries = 0; tries < 20; tries++) {
      const std::string name = rng.pick(from);
      if (taken.insert(name).second) return name;
    }
    return std::string();
  };
  names.second = "other";
  if (family.kinds.size() > 1)
    names.second = family.kinds[1] == family.kinds[0]
                       ? rng.pick(std::vector<std::string>{"other", "more", "b"})
                       : fresh(argument_names(family.kinds[1]));
  taken.insert(names.second);
  names.item = fresh(item_names(family.kinds[0]));
  names.inner = fresh({"y", "row", "other_item", "v"});
  names.result = fresh({"result", "out", "res", "answer", "found"});
  names.total = fresh({"total", "acc", "current", "tally"});
  if (names.second.empty() || names.item.empty() || names.inner.empty()) return std::nullopt;
  return names;
}

bool draw_family(Random& rng, int level, Split split, PyProgram& p) {
  const auto families = py_families();
  const PyFamily& family = families[rng.below(static_cast<int>(families.size()))];
  if (family.level > level) return false;

  Slots slots;
  const auto predicates = py_predicates(items_of(family));
  const auto operations = py_operations(items_of(family));
  PyChoices choices;
  choices.predicate = draw_piece(rng, predicates);
  choices.operation = draw_piece(rng, operations);
  const PyPiece& predicate = predicates[static_cast<std::size_t>(choices.predicate)];
  const PyPiece& operation = operations[static_cast<std::size_t>(choices.operation)];
  slots.values = {{"$P", std::string(predicate.code)},
                  {"$p", std::string(predicate.phrase)},
                  {"$O", std::string(operation.code)},
                  {"$o", std::string(operation.phrase)}};
  const std::string noun = rng.pick(argument_names(family.kinds[0]));
  const auto names = draw_names(rng, family);
  if (!names) return false;
  const auto verbs = split_text(family.verbs, ' ');
  p.name = rng.pick(verbs) + "_" + noun;
  if (p.name == names->first || p.name == names->second) return false;
  choices.k = rng.between(2, 9);
  static constexpr std::string_view kLetters[] = {"a", "e", "o", "n", "t", "r", "s", "l"};
  const std::string letter(rng.pick(kLetters));
  choices.letter = letter[0];
  slots.values.insert(slots.values.end(), {{"$F", p.name},
                                           {"$K", std::to_string(choices.k)},
                                           {"$L", letter},
                                           {"$a", names->first},
                                           {"$b", names->second},
                                           {"$x", names->item},
                                           {"$y", names->inner},
                                           {"$r", names->result},
                                           {"$t", names->total}});

  // The key leaves out the names within the body: the prompt does not show them.
  p.key = std::string(family.id) + "|" + p.name;
  std::string shown = slots.apply(family.doc);
  p.key += "|" + replaced_all(replaced_all(shown, names->first, "a"), names->second, "b");
  p.doc = std::move(shown);
  p.signature = "def " + p.name + "(" + names->first +
                (family.kinds.size() > 1 ? ", " + names->second : "") + "):";
  p.body = indented(slots.apply(rng.pick(family.bodies())));
  if (!uses(family, "$p") && !uses(family, "$o") && !uses(family, "$K") && !uses(family, "$L"))
    return false;
  const auto result_of = [&](const std::vector<PyArgument>& arguments) {
    return family.result(PyCall(choices, arguments));
  };
  return split_of_key(p.key) == split && add_calls(rng, family.kinds, result_of, p);
}

struct Stage {
  std::string code;  // an expression of the list $v
  std::string phrase;
  std::function<PyNumbers(PyNumbers)> apply;  // the value of the expression
};

// numbers[::k]
PyNumbers one_in(const PyNumbers& numbers, PyInt k) {
  PyNumbers out;
  for (std::size_t i = 0; i < numbers.size(); i += static_cast<std::size_t>(k))
    out.push_back(numbers[i]);
  return out;
}

Stage draw_stage(Random& rng, const std::string& item) {
  PyChoices choices;
  choices.k = rng.between(2, 6);
  const PyInt k = choices.k;
  Slots slots;
  slots.values = {{"$x", item}, {"$K", std::to_string(k)}};
  switch (rng.weighted({4, 4, 1, 1, 2, 1, 1})) {
    case 0: {
      const auto pieces = py_predicates(PyItems::Numbers);
      choices.predicate = draw_piece(rng, pieces);
      const PyPiece& piece = pieces[static_cast<std::size_t>(choices.predicate)];
      return {slots.apply("[$x for $x in $v if " + std::string(piece.code) + "]"),
              slots.apply("keep the " + std::string(piece.phrase)),
              [choices](const PyNumbers& v) { return choices.kept(v); }};
    }
    case 1: {
      const auto pieces = py_operations(PyItems::Numbers);
      choices.operation = draw_piece(rng, pieces);
      const PyPiece& piece = pieces[static_cast<std::size_t>(choices.operation)];
      return {slots.apply("[" + std::string(piece.code) + " for $x in $v]"),
              slots.apply("replace every number by itself " + std::string(piece.phrase)),
              [choices](const PyNumbers& v) { return choices.mapped(v); }};
    }
    case 2:
      return {"sorted($v)", "sort them in rising order", [](PyNumbers v) {
                std::ranges::sort(v);
                return v;
              }};
    case 3:
      return {"sorted($v, reverse=True)", "sort them in falling order", [](PyNumbers v) {
                std::ranges::sort(v, std::greater<>());
                return v;
              }};
    case 4:
      return {slots.apply("$v[:$K]"), slots.apply("keep the first $K"), [k](PyNumbers v) {
                if (std::ssize(v) > k) v.resize(static_cast<std::size_t>(k));
                return v;
              }};
    case 5:
      return {"$v[::-1]", "reverse them",
              [](const PyNumbers& v) { return PyNumbers(v.rbegin(), v.rend()); }};
    default:
      return {slots.apply("$v[::$K]"), slots.apply("keep one in $K"),
              [k](const PyNumbers& v) { return one_in(v, k); }};
  }
}

// The end of a composition: the expression that it returns, in terms of the list $v.
struct ReturnForm {
  std::string_view code, phrase;
  std::string (*result)(const PyNumbers&);
};
constexpr ReturnForm kEndings[] = {
    {"$v", "return the list", [](const PyNumbers& v) { return py_repr(v); }},
    {"sum($v)", "return their sum",
     [](const PyNumbers& v) { return py_repr(std::accumulate(v.begin(), v.end(), PyInt{0})); }},
    {"len($v)", "return how many there are",
     [](const PyNumbers& v) { return py_repr(std::ssize(v)); }},
    {"max($v, default=0)", "return the largest, or 0",
     [](const PyNumbers& v) { return py_repr(v.empty() ? 0 : std::ranges::max(v)); }},
    {"min($v, default=0)", "return the smallest, or 0",
     [](const PyNumbers& v) { return py_repr(v.empty() ? 0 : std::ranges::min(v)); }},
    {"sorted(set($v))", "return the distinct ones, sorted", [](const PyNumbers& v) {
       const std::set<PyInt> distinct(v.begin(), v.end());
       return py_repr(PyNumbers(distinct.begin(), distinct.end()));
     }}};

bool draw_composition(Random& rng, Split split, PyProgram& p) {
  const std::string argument = rng.pick(argument_names('l'));
  const std::string item = rng.pick(item_names('l'));
  const std::string kept(rng.one_of({"result", "out", "res", "current"}));
  const int n_stages = rng.between(1, 2) + 1;
  std::string body;
  std::vector<std::string> phrases;
  std::vector<std::function<PyNumbers(PyNumbers)>> stages;
  std::string source = argument;
  const bool own_name = rng.chance(60);
  for (int i = 0; i < n_stages; i++) {
    const Stage stage = draw_stage(rng, item);
    if (!phrases.empty() && phrases.back() == stage.phrase) return false;
    phrases.push_back(stage.phrase);
    stages.push_back(stage.apply);
    const std::string target = own_name ? kept : argument;
    body += target + " = " + replaced_all(stage.code, "$v", source) + "\n";
    source = target;
  }
  const ReturnForm& ending = rng.pick(kEndings);
  body += "return " + replaced_all(std::string(ending.code), "$v", source);
  p.name = std::string(rng.one_of({"process", "work_on", "solve", "handle"})) + "_" + argument;
  p.signature = "def " + p.name + "(" + argument + "):";
  p.body = indented(body);
  p.doc = "Take " + argument + ", " + joined(phrases, ", then ") + ", and " +
          std::string(ending.phrase);
  p.key = "composition|" + joined(phrases, "|") + "|" + std::string(ending.phrase);
  const auto result_of = [&](const std::vector<PyArgument>& arguments) {
    PyNumbers v = std::get<PyNumbers>(arguments[0]);
    for (const auto& stage : stages) v = stage(std::move(v));
    return ending.result(v);
  };
  return split_of_key(p.key) == split && add_calls(rng, "l", result_of, p);
}

}  // namespace

bool draw_py_function(Random& rng, int level, Split split, PyProgram& out) {
  out = {};
  return level == 3 ? draw_composition(rng, split, out) : draw_family(rng, level, split, out);
}

}  // namespace engine
