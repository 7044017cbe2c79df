// Classes of the py task: an object that holds a list of words or a dictionary of numbers.
#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <span>

#include "engine/data/py/program.h"
#include "engine/data/py/values.h"
#include "engine/data/text.h"

namespace engine {

namespace {

// The arguments of a call: a noun's name where the method takes one, a number where it takes one.
struct MethodArguments {
  std::string name;
  PyInt limit = 0;
};

// A method of a class whose attribute is of type State. Slots: $N the noun, $As its plural, $A the
// attribute.
template <class State>
struct Method {
  std::string_view names;      // alternatives, separated by spaces
  std::string_view arguments;  // letters: n the noun's name, k a number
  std::string_view doc;
  std::string_view bodies[2];  // alternatives that compute the same
  // Changes the state as the body does. Returns repr() of the returned value.
  std::string (*call)(State& state, const MethodArguments& given);
};
using ListMethod = Method<PyWords>;
using DictMethod = Method<PyTable>;

// state.get(name, 0)
PyInt number_of(const PyTable& state, const std::string& name) {
  const auto found = std::ranges::find(state, name, &PyTable::value_type::first);
  return found == state.end() ? 0 : found->second;
}

// The sorted names with numbers greater than the limit.
PyWords names_above(const PyTable& state, PyInt limit) {
  PyWords names;
  for (const auto& [name, n] : state)
    if (n > limit) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

constexpr ListMethod kListMethods[] = {
    {"remove_$N drop_$N",
     "n",
     "remove the $N if it is there and say whether it was",
     {"if $N in self.$A:\n    self.$A.remove($N)\n    return True\nreturn False",
      "if $N not in self.$A:\n    return False\nself.$A.remove($N)\nreturn True"},
     [](PyWords& a, const MethodArguments& given) {
       const auto at = std::ranges::find(a, given.name);
       if (at == a.end()) return py_repr(false);
       a.erase(at);
       return py_repr(true);
     }},
    {"count size",
     "",
     "return how many $As there are",
     {"return len(self.$A)", "total = 0\nfor $N in self.$A:\n    total += 1\nreturn total"},
     [](PyWords& a, const MethodArguments& /*given*/) { return py_repr(std::ssize(a)); }},
    {"has_$N holds",
     "n",
     "return whether the $N is there",
     {"return $N in self.$A",
      "for other in self.$A:\n    if other == $N:\n        return True\nreturn False"},
     [](PyWords& a, const MethodArguments& given) {
       return py_repr(std::ranges::find(a, given.name) != a.end());
     }},
    {"first_$N oldest",
     "",
     "return the first $N or None",
     {"return self.$A[0] if self.$A else None",
      "if not self.$A:\n    return None\nreturn self.$A[0]"},
     [](PyWords& a, const MethodArguments& /*given*/) {
       return a.empty() ? "None" : py_repr(a.front());
     }},
    {"last_$N newest",
     "",
     "return the last $N or None",
     {"return self.$A[-1] if self.$A else None",
      "if not self.$A:\n    return None\nreturn self.$A[-1]"},
     [](PyWords& a, const MethodArguments& /*given*/) {
       return a.empty() ? "None" : py_repr(a.back());
     }},
    {"longest_name longest",
     "",
     "return the longest $N, or an empty string",
     {"return max(self.$A, key=len, default='')",
      "result = ''\nfor $N in self.$A:\n    if len($N) > len(result):\n        result = $N\nreturn "
      "result"},
     [](PyWords& a, const MethodArguments& /*given*/) {
       std::string longest;
       for (const std::string& x : a)
         if (x.size() > longest.size()) longest = x;
       return py_repr(longest);
     }},
    {"sorted_$As in_order",
     "",
     "return the $As in alphabetical order",
     {"return sorted(self.$A)", "result = list(self.$A)\nreturn sorted(result)"},
     [](PyWords& a, const MethodArguments& /*given*/) {
       PyWords names = a;
       std::ranges::sort(names);
       return py_repr(names);
     }},
    {"longer_than over",
     "k",
     "return the $As with names longer than the limit",
     {"return [$N for $N in self.$A if len($N) > limit]",
      "result = []\nfor $N in self.$A:\n    if len($N) > limit:\n        result.append($N)\nreturn "
      "result"},
     [](PyWords& a, const MethodArguments& given) {
       PyWords longer;
       for (const std::string& x : a)
         if (std::ssize(x) > given.limit) longer.push_back(x);
       return py_repr(longer);
     }},
    {"take_first pop_first",
     "",
     "remove the first $N and return it, or None",
     {"if not self.$A:\n    return None\nreturn self.$A.pop(0)",
      "if len(self.$A) == 0:\n    return None\nreturn self.$A.pop(0)"},
     [](PyWords& a, const MethodArguments& /*given*/) {
       if (a.empty()) return std::string("None");
       const std::string first = a.front();
       a.erase(a.begin());
       return py_repr(first);
     }},
    {"describe text",
     "",
     "return the $As joined by commas",
     {"return ', '.join(self.$A)", "parts = list(self.$A)\nreturn ', '.join(parts)"},
     [](PyWords& a, const MethodArguments& /*given*/) { return py_repr(joined(a, ", ")); }}};

constexpr DictMethod kDictMethods[] = {
    {"remove_$N drop_$N",
     "n",
     "forget the $N if it is known and say whether it was",
     {"if $N in self.$A:\n    del self.$A[$N]\n    return True\nreturn False",
      "if $N not in self.$A:\n    return False\ndel self.$A[$N]\nreturn True"},
     [](PyTable& a, const MethodArguments& given) {
       return py_repr(std::erase_if(a, [&](const auto& one) { return one.first == given.name; }) >
                      0);
     }},
    {"get lookup",
     "n",
     "return the number of the $N, or 0",
     {"return self.$A.get($N, 0)", "if $N in self.$A:\n    return self.$A[$N]\nreturn 0"},
     [](PyTable& a, const MethodArguments& given) { return py_repr(number_of(a, given.name)); }},
    {"total sum_all",
     "",
     "return the sum of all numbers",
     {"return sum(self.$A.values())",
      "total = 0\nfor $N in self.$A:\n    total += self.$A[$N]\nreturn total"},
     [](PyTable& a, const MethodArguments& /*given*/) {
       PyInt sum = 0;
       for (const auto& [name, n] : a) sum += n;
       return py_repr(sum);
     }},
    {"count size",
     "",
     "return how many $As are known",
     {"return len(self.$A)", "return len(list(self.$A.keys()))"},
     [](PyTable& a, const MethodArguments& /*given*/) { return py_repr(std::ssize(a)); }},
    {"best top",
     "",
     "return the $N with the largest number, or None",
     {"if not self.$A:\n    return None\nreturn max(self.$A, key=lambda $N: self.$A[$N])",
      "result = None\nfor $N in self.$A:\n    if result is None or self.$A[$N] > "
      "self.$A[result]:\n        result = $N\nreturn result"},
     [](PyTable& a, const MethodArguments& /*given*/) {
       const auto best = std::ranges::max_element(a, {}, &PyTable::value_type::second);
       return best == a.end() ? "None" : py_repr(best->first);
     }},
    {"names all_$As",
     "",
     "return the sorted names of the $As",
     {"return sorted(self.$A)", "return sorted(self.$A.keys())"},
     [](PyTable& a, const MethodArguments& /*given*/) {
       return py_repr(names_above(a, std::numeric_limits<PyInt>::min()));
     }},
    {"above over",
     "k",
     "return the sorted $As with numbers greater than the limit",
     {"return sorted($N for $N in self.$A if self.$A[$N] > limit)",
      "result = []\nfor $N in self.$A:\n    if self.$A[$N] > limit:\n        "
      "result.append($N)\nreturn sorted(result)"},
     [](PyTable& a, const MethodArguments& given) { return py_repr(names_above(a, given.limit)); }},
    {"set_$N update_$N",
     "nk",
     "set the number of the $N to the limit and return the old one, or 0",
     {"old = self.$A.get($N, 0)\nself.$A[$N] = limit\nreturn old",
      "old = 0\nif $N in self.$A:\n    old = self.$A[$N]\nself.$A[$N] = limit\nreturn old"},
     [](PyTable& a, const MethodArguments& given) {
       const PyInt old = number_of(a, given.name);
       py_entry(a, given.name) = given.limit;
       return py_repr(old);
     }},
    {"describe text",
     "",
     "return one line for each $N joined by commas",
     {"return ', '.join($N + ' ' + str(self.$A[$N]) for $N in self.$A)",
      "parts = []\nfor $N in self.$A:\n    parts.append($N + ' ' + str(self.$A[$N]))\nreturn ', "
      "'.join(parts)"},
     [](PyTable& a, const MethodArguments& /*given*/) {
       PyWords parts;
       for (const auto& [name, n] : a) parts.push_back(name + " " + std::to_string(n));
       return py_repr(joined(parts, ", "));
     }}};

struct Theme {
  std::string_view name, noun, words;
};
constexpr Theme kListThemes[] = {
    {"Shelf", "book", "Emma Dune Ulysses Faust"},     {"Basket", "fruit", "apple plum cherry fig"},
    {"Playlist", "song", "Hello Dreams Yellow Rain"}, {"Team", "player", "Anna Ben Carlo Di"},
    {"Inbox", "message", "hi thanks reminder news"},  {"Garden", "plant", "rose tulip fern ivy"},
    {"Menu", "dish", "soup pasta pie salad"},         {"Album", "photo", "beach tower cat sunset"},
    {"Fleet", "ship", "Argo Vega Mary Endeavour"},    {"Zoo", "animal", "lion bear ape zebra"},
    {"Toolbox", "tool", "saw hammer drill file"},     {"Route", "stop", "Oslo Rome Graz Lyon"}};
constexpr Theme kDictThemes[] = {
    {"Stock", "item", "pen ink paper glue"},     {"Ledger", "account", "rent food travel fun"},
    {"Scores", "player", "Anna Ben Carlo Di"},   {"Prices", "product", "milk bread tea rice"},
    {"Votes", "candidate", "Kim Lee Roy Ada"},   {"Pantry", "food", "rice beans flour salt"},
    {"Harvest", "crop", "corn wheat oats rye"},  {"Census", "town", "Ulm Bath Graz Nice"},
    {"Wallet", "coin", "euro dollar yen franc"}, {"Diary", "habit", "run read sleep swim"},
    {"Garage", "car", "van bus jeep taxi"},      {"Orders", "dish", "soup pasta pie salad"}};

std::string filled(std::string_view pattern, const Theme& theme, std::string_view attribute) {
  std::string out = replaced_all(std::string(pattern), "$N", theme.noun);
  return replaced_all(std::move(out), "$A", attribute);
}

std::string with_s(std::string text, const Theme& theme) {
  // "$As" became "{attribute}s": the plural of the noun.
  const std::string noun(theme.noun);
  const std::string plural = noun == "dish" ? "dishes" : noun + "s";
  return replaced_all(std::move(text), "@plural", plural);
}

std::string indent(std::string_view body, int n) {
  std::string out;
  for (const auto& line : split_text(body, '\n')) out += std::string(n, ' ') + line + "\n";
  return out;
}

// The text of a class while its methods are drawn.
struct ClassDraft {
  Random& rng;
  const Theme& theme;
  std::string attribute;
  PyProgram& p;
  std::string doc_lines;
  std::set<std::string> names;

  std::string text(std::string_view pattern) const {
    return filled(with_s(replaced_all(std::string(pattern), "$As", "@plural"), theme), theme,
                  attribute);
  }

  MethodArguments draw_arguments(std::string_view kinds) {
    MethodArguments given;
    const auto words = split_text(theme.words, ' ');
    for (const char kind : kinds) {
      if (kind == 'n') given.name = rng.pick(words);
      if (kind == 'k') given.limit = rng.between(2, 6);
    }
    return given;
  }

  // Adds the method's text; returns its name, or "" if the name is taken.
  template <class State>
  std::string add(const Method<State>& method) {
    const std::string name = text(rng.pick(split_text(method.names, ' ')));
    if (!names.insert(name).second) return {};
    std::vector<std::string> parameters;
    for (const char c : method.arguments)
      parameters.emplace_back(c == 'n' ? theme.noun : std::string_view("limit"));
    const std::string shown = joined(parameters, ", ");
    doc_lines += "    " + name + "(" + shown + "): " + text(method.doc) + "\n";
    p.body += "\n    def " + name + "(self" + (shown.empty() ? "" : ", " + shown) + "):\n" +
              indent(text(rng.pick(method.bodies)), 8);
    return name;
  }
};

// "'rose', 3"
std::string shown_arguments(std::string_view kinds, const MethodArguments& given) {
  std::vector<std::string> shown;
  for (const char kind : kinds)
    shown.push_back(kind == 'n' ? py_repr(given.name) : py_repr(given.limit));
  return joined(shown, ", ");
}

constexpr ListMethod kListAdd = {"add_$N put_$N",
                                 "n",
                                 "add the $N at the end",
                                 {"self.$A.append($N)", "self.$A += [$N]"},
                                 [](PyWords& a, const MethodArguments& given) {
                                   a.push_back(given.name);
                                   return std::string("None");
                                 }};
constexpr DictMethod kDictAdd = {"add_$N count_$N",
                                 "nk",
                                 "add the limit to the number of the $N",
                                 {"self.$A[$N] = self.$A.get($N, 0) + limit",
                                  "if $N not in self.$A:\n    self.$A[$N] = 0\nself.$A[$N] += "
                                  "limit"},
                                 [](PyTable& a, const MethodArguments& given) {
                                   py_entry(a, given.name) += given.limit;
                                   return std::string("None");
                                 }};

// The two kinds of classes: the values of their attribute, methods and wordings.
struct ListClass {
  using State = PyWords;
  static constexpr std::span<const Theme> kThemes = kListThemes;
  static constexpr std::string_view kAttributes[] = {"items", "entries", "things"};
  static constexpr const ListMethod& kAdd = kListAdd;
  static constexpr std::span<const ListMethod> kMethods = kListMethods;
  static constexpr std::string_view kDocs[] = {"Holds $As in order.", "A list of $As.",
                                               "Keeps $As in the order they came.",
                                               "A place for $As."};
  static constexpr std::string_view kEmpty = "[]";
};
struct DictClass {
  using State = PyTable;
  static constexpr std::span<const Theme> kThemes = kDictThemes;
  static constexpr std::string_view kAttributes[] = {"numbers", "amounts", "table"};
  static constexpr const DictMethod& kAdd = kDictAdd;
  static constexpr std::span<const DictMethod> kMethods = kDictMethods;
  static constexpr std::string_view kDocs[] = {"Keeps a number for each $N.", "Numbers of $As.",
                                               "A table of $As and their numbers.",
                                               "Knows a number for every $N."};
  static constexpr std::string_view kEmpty = "{}";
};

template <class Kind>
bool draw_class(Random& rng, Split split, PyProgram& p) {
  using KindMethod = Method<typename Kind::State>;
  const Theme& theme = rng.pick(Kind::kThemes);
  const std::string attribute(rng.pick(Kind::kAttributes));
  ClassDraft draft{rng, theme, attribute, p, {}, {}};
  p.name = theme.name;
  const std::string add_name = draft.add(Kind::kAdd);

  const int n_methods = rng.between(2, 4);
  std::vector<int> order(Kind::kMethods.size());
  std::iota(order.begin(), order.end(), 0);
  rng.shuffle(order);
  std::vector<std::pair<std::string, const KindMethod*>> methods;
  std::string ids;
  for (int i = 0; i < n_methods; i++) {
    const KindMethod& method = Kind::kMethods[static_cast<std::size_t>(order[i])];
    const std::string name = draft.add(method);
    if (name.empty()) return false;
    methods.emplace_back(name, &method);
    ids += "|" + name + "/" + std::string(method.doc);
  }
  p.signature = "class " + p.name + ":\n    \"\"\"" + draft.text(rng.pick(Kind::kDocs)) + "\n\n" +
                draft.doc_lines + "    \"\"\"\n\n    def __init__(self):\n        self." +
                attribute + " = " + std::string(Kind::kEmpty);
  p.key = "class|" + p.name + "|" + attribute + "|" + add_name + ids;
  if (split_of_key(p.key) != split) return false;

  const std::string object = "thing";
  typename Kind::State state;
  const auto call = [&](const std::string& name, const KindMethod& method, std::string* result) {
    const MethodArguments given = draft.draw_arguments(method.arguments);
    const std::string returned = method.call(state, given);
    if (result != nullptr) *result = returned;
    return object + "." + name + "(" + shown_arguments(method.arguments, given) + ")";
  };
  p.setup.push_back(object + " = " + p.name + "()");
  const int n_added = rng.between(2, 4);
  for (int i = 0; i < n_added; i++) p.setup.push_back(call(add_name, Kind::kAdd, nullptr));
  for (const auto& [name, method] : methods)
    p.calls.push_back(call(name, *method, &p.results.emplace_back()));
  p.calls.push_back(object + "." + attribute);
  p.results.push_back(py_repr(state));
  return true;
}

}  // namespace

bool draw_py_class(Random& rng, Split split, PyProgram& out) {
  out = {};
  return rng.chance(50) ? draw_class<DictClass>(rng, split, out)
                        : draw_class<ListClass>(rng, split, out);
}

}  // namespace engine
