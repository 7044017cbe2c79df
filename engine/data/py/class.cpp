#include <set>

#include "engine/data/py/mini_python.h"
#include "engine/data/py/program.h"
#include "engine/data/text.h"

namespace engine {

namespace {

// $N noun, $A attribute. A method: names, arguments, what it does, bodies.
struct Method {
  std::string_view names;
  std::string_view arguments;  ///< letters: n the noun's name, k a number
  std::string_view doc;
  std::string_view bodies[2];
};

constexpr Method kListMethods[] = {
    {"remove_$N drop_$N",
     "n",
     "remove the $N if it is there and say whether it was",
     {"if $N in self.$A:\n    self.$A.remove($N)\n    return True\nreturn False",
      "if $N not in self.$A:\n    return False\nself.$A.remove($N)\nreturn True"}},
    {"count size",
     "",
     "return how many $As there are",
     {"return len(self.$A)", "total = 0\nfor $N in self.$A:\n    total += 1\nreturn total"}},
    {"has_$N holds",
     "n",
     "return whether the $N is there",
     {"return $N in self.$A",
      "for other in self.$A:\n    if other == $N:\n        return True\nreturn False"}},
    {"first_$N oldest",
     "",
     "return the first $N or None",
     {"return self.$A[0] if self.$A else None",
      "if not self.$A:\n    return None\nreturn self.$A[0]"}},
    {"last_$N newest",
     "",
     "return the last $N or None",
     {"return self.$A[-1] if self.$A else None",
      "if not self.$A:\n    return None\nreturn self.$A[-1]"}},
    {"longest_name longest",
     "",
     "return the longest $N, or an empty string",
     {"return max(self.$A, key=len, default='')",
      "result = ''\nfor $N in self.$A:\n    if len($N) > len(result):\n        result = $N\nreturn "
      "result"}},
    {"sorted_$As in_order",
     "",
     "return the $As in alphabetical order",
     {"return sorted(self.$A)", "result = list(self.$A)\nreturn sorted(result)"}},
    {"longer_than over",
     "k",
     "return the $As with names longer than the limit",
     {"return [$N for $N in self.$A if len($N) > limit]",
      "result = []\nfor $N in self.$A:\n    if len($N) > limit:\n        result.append($N)\nreturn "
      "result"}},
    {"take_first pop_first",
     "",
     "remove the first $N and return it, or None",
     {"if not self.$A:\n    return None\nreturn self.$A.pop(0)",
      "if len(self.$A) == 0:\n    return None\nreturn self.$A.pop(0)"}},
    {"describe text",
     "",
     "return the $As joined by commas",
     {"return ', '.join(self.$A)", "parts = list(self.$A)\nreturn ', '.join(parts)"}}};

constexpr Method kDictMethods[] = {
    {"remove_$N drop_$N",
     "n",
     "forget the $N if it is known and say whether it was",
     {"if $N in self.$A:\n    del self.$A[$N]\n    return True\nreturn False",
      "if $N not in self.$A:\n    return False\ndel self.$A[$N]\nreturn True"}},
    {"get lookup",
     "n",
     "return the number of the $N, or 0",
     {"return self.$A.get($N, 0)", "if $N in self.$A:\n    return self.$A[$N]\nreturn 0"}},
    {"total sum_all",
     "",
     "return the sum of all numbers",
     {"return sum(self.$A.values())",
      "total = 0\nfor $N in self.$A:\n    total += self.$A[$N]\nreturn total"}},
    {"count size",
     "",
     "return how many $As are known",
     {"return len(self.$A)", "return len(list(self.$A.keys()))"}},
    {"best top",
     "",
     "return the $N with the largest number, or None",
     {"if not self.$A:\n    return None\nreturn max(self.$A, key=lambda $N: self.$A[$N])",
      "result = None\nfor $N in self.$A:\n    if result is None or self.$A[$N] > "
      "self.$A[result]:\n        result = $N\nreturn result"}},
    {"names all_$As",
     "",
     "return the sorted names of the $As",
     {"return sorted(self.$A)", "return sorted(self.$A.keys())"}},
    {"above over",
     "k",
     "return the sorted $As with numbers greater than the limit",
     {"return sorted($N for $N in self.$A if self.$A[$N] > limit)",
      "result = []\nfor $N in self.$A:\n    if self.$A[$N] > limit:\n        "
      "result.append($N)\nreturn sorted(result)"}},
    {"set_$N update_$N",
     "nk",
     "set the number of the $N to the limit and return the old one, or 0",
     {"old = self.$A.get($N, 0)\nself.$A[$N] = limit\nreturn old",
      "old = 0\nif $N in self.$A:\n    old = self.$A[$N]\nself.$A[$N] = limit\nreturn old"}},
    {"describe text",
     "",
     "return one line for each $N joined by commas",
     {"return ', '.join($N + ' ' + str(self.$A[$N]) for $N in self.$A)",
      "parts = []\nfor $N in self.$A:\n    parts.append($N + ' ' + str(self.$A[$N]))\nreturn ', "
      "'.join(parts)"}}};

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

struct Drawer {
  Random& rng;
  bool dict;
  const Theme& theme;
  std::string attribute;
  PyProgram& p;
  std::string doc_lines;
  std::set<std::string> names;

  std::string text(std::string_view pattern) const {
    return filled(with_s(replaced_all(std::string(pattern), "$As", "@plural"), theme), theme,
                  attribute);
  }

  std::string value(const Method& method) {
    std::vector<std::string> arguments;
    const auto words = split_text(theme.words, ' ');
    for (const char c : method.arguments)
      arguments.push_back(c == 'n' ? "'" + rng.pick(words) + "'"
                                   : std::to_string(rng.between(2, 6)));
    return joined(arguments, ", ");
  }

  // Adds the method's text; returns its name, or "" if the name is taken.
  std::string add(const Method& method) {
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

constexpr Method kListAdd = {
    "add_$N put_$N", "n", "add the $N at the end", {"self.$A.append($N)", "self.$A += [$N]"}};
constexpr Method kDictAdd = {"add_$N count_$N",
                             "nk",
                             "add the limit to the number of the $N",
                             {"self.$A[$N] = self.$A.get($N, 0) + limit",
                              "if $N not in self.$A:\n    self.$A[$N] = 0\nself.$A[$N] += limit"}};

}  // namespace

bool draw_py_class(Random& rng, Split split, PyProgram& p) {
  p = {};
  const bool dict = rng.chance(50);
  const Theme& theme = dict ? rng.pick(kDictThemes) : rng.pick(kListThemes);
  const std::string attribute(dict ? rng.say({"numbers", "amounts", "table"})
                                   : rng.say({"items", "entries", "things"}));
  Drawer drawer{rng, dict, theme, attribute, p, {}, {}};
  p.name = theme.name;
  const Method& adder = dict ? kDictAdd : kListAdd;
  const std::string add_name = drawer.add(adder);

  const int n_methods = rng.between(2, 4);
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(dict ? std::size(kDictMethods) : std::size(kListMethods));
       i++)
    order.push_back(i);
  rng.shuffle(order);
  std::vector<std::pair<std::string, const Method*>> methods;
  std::string ids;
  for (int i = 0; i < n_methods; i++) {
    const Method& method = dict ? kDictMethods[order[i]] : kListMethods[order[i]];
    const std::string name = drawer.add(method);
    if (name.empty()) return false;
    methods.emplace_back(name, &method);
    ids += "|" + name + "/" + std::string(method.doc);
  }
  const std::string empty = dict ? "{}" : "[]";
  p.signature =
      "class " + p.name + ":\n    \"\"\"" +
      drawer.text(rng.say(
          dict ? std::initializer_list<std::string_view>{"Keeps a number for each $N.",
                                                         "Numbers of $As.",
                                                         "A table of $As and their numbers.",
                                                         "Knows a number for every $N."}
               : std::initializer_list<std::string_view>{"Holds $As in order.", "A list of $As.",
                                                         "Keeps $As in the order they came.",
                                                         "A place for $As."})) +
      "\n\n" + drawer.doc_lines + "    \"\"\"\n\n    def __init__(self):\n        self." +
      attribute + " = " + empty;
  p.key = "class|" + p.name + "|" + attribute + "|" + add_name + ids;
  if (split_of_key(p.key) != split) return false;

  const std::string object = "thing";
  p.setup.push_back(object + " = " + p.name + "()");
  const int n_added = rng.between(2, 4);
  for (int i = 0; i < n_added; i++)
    p.setup.push_back(object + "." + add_name + "(" + drawer.value(adder) + ")");
  try {
    MiniPython python(p.code());
    for (const auto& line : p.setup) python.run(line + "\n");
    for (const auto& [name, method] : methods) {
      const std::string call = object + "." + name + "(" + drawer.value(*method) + ")";
      p.calls.push_back(call);
      p.results.push_back(python.evaluate(call));
    }
    p.calls.push_back(object + "." + attribute);
    p.results.push_back(python.evaluate(p.calls.back()));
  } catch (const PyError&) {
    return false;
  }
  return true;
}

}  // namespace engine
