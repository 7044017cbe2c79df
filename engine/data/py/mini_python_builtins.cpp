#include <algorithm>
#include <cctype>

#include "engine/data/py/mini_python.h"
#include "engine/data/py/mini_python_value.h"
#include "engine/data/text.h"

namespace engine::py {

using Kind = Value::Kind;

namespace {

constexpr std::int64_t kMaxItems = 100'000;

const Value& argument(const Arguments& a, std::size_t i) {
  if (i >= a.positional.size()) throw PyError("too few arguments");
  return a.positional[i];
}

std::int64_t number(const Value& v) {
  if (v.kind != Kind::Int && v.kind != Kind::Bool) throw PyError("expected a number");
  return v.number;
}

const std::string& text(const Value& v) {
  if (v.kind != Kind::Str) throw PyError("expected a string");
  return v.text;
}

Items sorted_items(const Arguments& a, Caller& caller) {
  Items items = iterate(argument(a, 0));
  std::vector<std::pair<Value, Value>> keyed;
  const auto key = a.keywords.find("key");
  for (Value& item : items) {
    Value k = key == a.keywords.end() ? item : caller.apply(key->second, {item});
    keyed.emplace_back(std::move(k), std::move(item));
  }
  const auto reverse = a.keywords.find("reverse");
  if (reverse != a.keywords.end() && truth(reverse->second)) {
    std::stable_sort(keyed.begin(), keyed.end(),
                     [](const auto& x, const auto& y) { return less(y.first, x.first); });
  } else {
    std::stable_sort(keyed.begin(), keyed.end(),
                     [](const auto& x, const auto& y) { return less(x.first, y.first); });
  }
  Items out;
  for (auto& entry : keyed) out.push_back(std::move(entry.second));
  return out;
}

Value extreme(const Arguments& a, Caller& caller, bool largest) {
  const Items items = a.positional.size() > 1 ? a.positional : iterate(argument(a, 0));
  if (items.empty()) {
    const auto fallback = a.keywords.find("default");
    if (fallback == a.keywords.end()) throw PyError("max or min of nothing");
    return fallback->second;
  }
  const auto key = a.keywords.find("key");
  const auto key_of = [&](const Value& v) {
    return key == a.keywords.end() ? v : caller.apply(key->second, {v});
  };
  std::size_t best = 0;
  Value best_key = key_of(items[0]);
  for (std::size_t i = 1; i < items.size(); i++) {
    Value k = key_of(items[i]);
    if (largest ? less(best_key, k) : less(k, best_key)) {
      best = i;
      best_key = std::move(k);
    }
  }
  return items[best];
}

Value range(const Arguments& a) {
  const std::int64_t start = a.positional.size() > 1 ? number(argument(a, 0)) : 0;
  const std::int64_t stop = number(argument(a, a.positional.size() > 1 ? 1 : 0));
  const std::int64_t step = a.positional.size() > 2 ? number(argument(a, 2)) : 1;
  if (step == 0) throw PyError("range with step 0");
  Items out;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
    if (static_cast<std::int64_t>(out.size()) > kMaxItems) throw PyError("range too long");
    out.push_back(make_int(i));
  }
  return make_list(std::move(out));
}

Value length(const Value& v) {
  if (v.kind == Kind::Str) return make_int(static_cast<std::int64_t>(v.text.size()));
  if (v.items) return make_int(static_cast<std::int64_t>(v.items->size()));
  if (v.kind == Kind::Dict) return make_int(static_cast<std::int64_t>(v.pairs->size()));
  throw PyError("len of something without a length");
}

Value to_int(const Value& v) {
  if (v.kind == Kind::Int || v.kind == Kind::Bool) return make_int(v.number);
  const std::string& s = text(v);
  const std::size_t sign = !s.empty() && s[0] == '-' ? 1 : 0;
  if (s.size() == sign || s.size() > 18 ||
      !std::all_of(s.begin() + static_cast<std::ptrdiff_t>(sign), s.end(),
                   [](char c) { return c >= '0' && c <= '9'; }))
    throw PyError("int of a text that is no number");
  return make_int(std::stoll(s));
}

template <class Test>
bool all_chars(const std::string& s, Test test) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [&](char c) {
    return test(static_cast<unsigned char>(c)) != 0;
  });
}

Value split_string(const std::string& s, const Arguments& a) {
  Items out;
  if (!a.positional.empty()) {
    const std::string& by = text(a.positional[0]);
    if (by.empty()) throw PyError("split by nothing");
    std::size_t begin = 0;
    for (std::size_t at = s.find(by); at != std::string::npos; at = s.find(by, begin)) {
      out.push_back(make_str(s.substr(begin, at - begin)));
      begin = at + by.size();
    }
    out.push_back(make_str(s.substr(begin)));
    return make_list(std::move(out));
  }
  std::string word;
  for (const char c : s + " ") {
    if (std::isspace(static_cast<unsigned char>(c)) == 0) {
      word += c;
    } else if (!word.empty()) {
      out.push_back(make_str(word));
      word.clear();
    }
  }
  return make_list(std::move(out));
}

std::int64_t count_of(const std::string& s, const std::string& part) {
  if (part.empty()) return static_cast<std::int64_t>(s.size()) + 1;
  std::int64_t n = 0;
  for (std::size_t at = s.find(part); at != std::string::npos; at = s.find(part, at + part.size()))
    n++;
  return n;
}

Value string_method(const std::string& s, const std::string& name, const Arguments& a) {
  const auto mapped = [&](int (*convert)(int)) {
    std::string out = s;
    for (char& c : out) c = static_cast<char>(convert(static_cast<unsigned char>(c)));
    return make_str(std::move(out));
  };
  if (name == "upper") return mapped(std::toupper);
  if (name == "lower") return mapped(std::tolower);
  if (name == "swapcase") {
    std::string out = s;
    for (char& c : out) {
      const auto u = static_cast<unsigned char>(c);
      c = static_cast<char>(std::isupper(u) != 0 ? std::tolower(u) : std::toupper(u));
    }
    return make_str(std::move(out));
  }
  if (name == "capitalize") {
    Value out = mapped(std::tolower);
    if (!out.text.empty())
      out.text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out.text[0])));
    return out;
  }
  if (name == "isdigit") return make_bool(all_chars(s, [](int c) { return std::isdigit(c); }));
  if (name == "isalpha") return make_bool(all_chars(s, [](int c) { return std::isalpha(c); }));
  if (name == "isupper" || name == "islower") {
    const bool upper = name == "isupper";
    bool some = false;
    for (const char c : s) {
      const auto u = static_cast<unsigned char>(c);
      if (upper ? std::islower(u) : std::isupper(u)) return make_bool(false);
      some = some || std::isalpha(u) != 0;
    }
    return make_bool(some);
  }
  if (name == "split") return split_string(s, a);
  if (name == "strip") return make_str(std::string(trimmed(s)));
  if (name == "join") {
    std::vector<std::string> parts;
    for (const Value& item : iterate(argument(a, 0))) parts.push_back(text(item));
    return make_str(joined(parts, s));
  }
  if (name == "count") return make_int(count_of(s, text(argument(a, 0))));
  if (name == "startswith") return make_bool(s.starts_with(text(argument(a, 0))));
  if (name == "endswith") return make_bool(s.ends_with(text(argument(a, 0))));
  if (name == "find") {
    const auto at = s.find(text(argument(a, 0)));
    return make_int(at == std::string::npos ? -1 : static_cast<std::int64_t>(at));
  }
  if (name == "replace") {
    if (text(argument(a, 0)).empty()) throw PyError("replace of nothing");
    return make_str(replaced_all(s, text(argument(a, 0)), text(argument(a, 1))));
  }
  throw PyError("str has no " + name + " here");
}

Value list_method(Items& items, const std::string& name, const Arguments& a) {
  const auto position = [&](const Value& v) {
    return std::find_if(items.begin(), items.end(), [&](const Value& x) { return equal(x, v); });
  };
  if (name == "append") {
    if (static_cast<std::int64_t>(items.size()) > kMaxItems) throw PyError("list too long");
    items.push_back(argument(a, 0));
    return none();
  }
  if (name == "extend") {
    for (Value& v : iterate(argument(a, 0))) items.push_back(std::move(v));
    return none();
  }
  if (name == "insert") {
    const auto at = std::clamp<std::int64_t>(number(argument(a, 0)), 0,
                                             static_cast<std::int64_t>(items.size()));
    items.insert(items.begin() + at, argument(a, 1));
    return none();
  }
  if (name == "pop") {
    if (items.empty()) throw PyError("pop from an empty list");
    const std::int64_t n = static_cast<std::int64_t>(items.size());
    std::int64_t at = a.positional.empty() ? n - 1 : number(argument(a, 0));
    if (at < 0) at += n;
    if (at < 0 || at >= n) throw PyError("pop index out of range");
    Value v = items[static_cast<std::size_t>(at)];
    items.erase(items.begin() + at);
    return v;
  }
  if (name == "remove") {
    const auto it = position(argument(a, 0));
    if (it == items.end()) throw PyError("remove of what is not there");
    items.erase(it);
    return none();
  }
  if (name == "index") {
    const auto it = position(argument(a, 0));
    if (it == items.end()) throw PyError("index of what is not there");
    return make_int(it - items.begin());
  }
  if (name == "count")
    return make_int(std::count_if(items.begin(), items.end(),
                                  [&](const Value& x) { return equal(x, argument(a, 0)); }));
  if (name == "reverse") {
    std::reverse(items.begin(), items.end());
    return none();
  }
  if (name == "clear") {
    items.clear();
    return none();
  }
  throw PyError("list has no " + name + " here");
}

Value dict_method(Pairs& pairs, const std::string& name, const Arguments& a) {
  Items out;
  if (name == "keys") {
    for (const auto& entry : pairs) out.push_back(entry.first);
    return make_list(std::move(out));
  }
  if (name == "values") {
    for (const auto& entry : pairs) out.push_back(entry.second);
    return make_list(std::move(out));
  }
  if (name == "items") {
    for (const auto& entry : pairs) out.push_back(make_tuple({entry.first, entry.second}));
    return make_list(std::move(out));
  }
  if (name == "get" || name == "pop") {
    const Value* found = find(pairs, argument(a, 0));
    if (found == nullptr) {
      if (a.positional.size() < 2 && name == "pop") throw PyError("pop of a key that is not there");
      return a.positional.size() > 1 ? a.positional[1] : none();
    }
    Value v = *found;
    if (name == "pop")
      std::erase_if(pairs, [&](const auto& entry) { return equal(entry.first, a.positional[0]); });
    return v;
  }
  throw PyError("dict has no " + name + " here");
}

constexpr std::string_view kBuiltins[] = {
    "len", "sum",  "max", "min", "sorted",    "range", "abs",      "str",  "int", "list", "tuple",
    "set", "dict", "any", "all", "enumerate", "zip",   "reversed", "bool", "ord", "chr"};

}  // namespace

bool is_builtin(std::string_view name) {
  return std::find(std::begin(kBuiltins), std::end(kBuiltins), name) != std::end(kBuiltins);
}

Value call_builtin(const std::string& name, const Arguments& a, Caller& caller) {
  if (name == "range") return range(a);
  if (name == "sorted") return make_list(sorted_items(a, caller));
  if (name == "max" || name == "min") return extreme(a, caller, name == "max");
  if (name == "len") return length(argument(a, 0));
  if (name == "abs") return make_int(std::abs(number(argument(a, 0))));
  if (name == "int") return to_int(argument(a, 0));
  if (name == "str") return make_str(a.positional.empty() ? std::string() : str(a.positional[0]));
  if (name == "bool") return make_bool(truth(argument(a, 0)));
  if (name == "ord") {
    if (text(argument(a, 0)).size() != 1) throw PyError("ord of more than one character");
    return make_int(static_cast<unsigned char>(argument(a, 0).text[0]));
  }
  if (name == "chr") {
    if (number(argument(a, 0)) < 32 || number(argument(a, 0)) > 126)
      throw PyError("chr out of range");
    return make_str(std::string(1, static_cast<char>(argument(a, 0).number)));
  }
  const Items items = a.positional.empty() ? Items{} : iterate(a.positional[0]);
  if (name == "sum") {
    std::int64_t total = 0;
    for (const Value& v : items)
      if (__builtin_add_overflow(total, number(v), &total)) throw PyError("sum too large");
    return make_int(total);
  }
  if (name == "list") return make_list(items);
  if (name == "tuple") return make_tuple(items);
  if (name == "set") return make_set(items);
  if (name == "reversed") return make_list(Items(items.rbegin(), items.rend()));
  if (name == "any") return make_bool(std::any_of(items.begin(), items.end(), truth));
  if (name == "all") return make_bool(std::all_of(items.begin(), items.end(), truth));
  if (name == "dict") {
    Value d = make_dict();
    if (!a.positional.empty() && a.positional[0].kind == Kind::Dict)
      *d.pairs = *a.positional[0].pairs;
    return d;
  }
  Items out;
  if (name == "enumerate") {
    const std::int64_t start = a.positional.size() > 1 ? number(a.positional[1]) : 0;
    for (std::size_t i = 0; i < items.size(); i++)
      out.push_back(make_tuple({make_int(start + static_cast<std::int64_t>(i)), items[i]}));
    return make_list(std::move(out));
  }
  if (name == "zip") {
    const Items other = iterate(argument(a, 1));
    for (std::size_t i = 0; i < items.size() && i < other.size(); i++)
      out.push_back(make_tuple({items[i], other[i]}));
    return make_list(std::move(out));
  }
  throw PyError("no function " + name + " here");
}

Value call_method(const Value& object, const std::string& name, const Arguments& a) {
  switch (object.kind) {
    case Kind::Str:
      return string_method(object.text, name, a);
    case Kind::List:
      return list_method(*object.items, name, a);
    case Kind::Tuple:
      if (name == "count" || name == "index") return list_method(*object.items, name, a);
      break;
    case Kind::Set:
      if (name == "add") {
        if (std::none_of(object.items->begin(), object.items->end(),
                         [&](const Value& x) { return equal(x, argument(a, 0)); }))
          object.items->push_back(argument(a, 0));
        return none();
      }
      break;
    case Kind::Dict:
      return dict_method(*object.pairs, name, a);
    default:
      break;
  }
  throw PyError("no method " + name + " here");
}

}  // namespace engine::py
