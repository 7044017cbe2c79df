#include "engine/data/py/mini_python_value.h"

#include <algorithm>

#include "engine/data/py/mini_python.h"
#include "engine/data/text.h"

namespace engine::py {

using Kind = Value::Kind;

namespace {

bool is_number(const Value& v) {
  return v.kind == Kind::Int || v.kind == Kind::Bool;
}

std::string quoted(const std::string& text) {
  const bool single = text.find('\'') == std::string::npos || text.find('"') != std::string::npos;
  const char quote = single ? '\'' : '"';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + quote;
}

}  // namespace

Value none() {
  return {};
}
Value make_bool(bool value) {
  Value v;
  v.kind = Kind::Bool;
  v.number = value ? 1 : 0;
  return v;
}
Value make_int(std::int64_t value) {
  Value v;
  v.kind = Kind::Int;
  v.number = value;
  return v;
}
Value make_str(std::string value) {
  Value v;
  v.kind = Kind::Str;
  v.text = std::move(value);
  return v;
}
Value make_list(Items items) {
  Value v;
  v.kind = Kind::List;
  v.items = std::make_shared<Items>(std::move(items));
  return v;
}
Value make_tuple(Items items) {
  Value v = make_list(std::move(items));
  v.kind = Kind::Tuple;
  return v;
}
Value make_set(const Items& items) {
  Items distinct;
  for (const Value& item : items)
    if (std::none_of(distinct.begin(), distinct.end(),
                     [&](const Value& x) { return equal(x, item); }))
      distinct.push_back(item);
  Value v = make_list(std::move(distinct));
  v.kind = Kind::Set;
  return v;
}
Value make_dict() {
  Value v;
  v.kind = Kind::Dict;
  v.pairs = std::make_shared<Pairs>();
  return v;
}

bool truth(const Value& value) {
  switch (value.kind) {
    case Kind::None:
      return false;
    case Kind::Bool:
    case Kind::Int:
      return value.number != 0;
    case Kind::Str:
      return !value.text.empty();
    case Kind::List:
    case Kind::Tuple:
    case Kind::Set:
      return !value.items->empty();
    case Kind::Dict:
      return !value.pairs->empty();
    default:
      return true;
  }
}

bool equal(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return a.number == b.number;
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::None:
      return true;
    case Kind::Str:
      return a.text == b.text;
    case Kind::List:
    case Kind::Tuple:
      return std::equal(a.items->begin(), a.items->end(), b.items->begin(), b.items->end(), equal);
    case Kind::Set:
      return a.items->size() == b.items->size() &&
             std::all_of(a.items->begin(), a.items->end(), [&](const Value& x) {
               return std::any_of(b.items->begin(), b.items->end(),
                                  [&](const Value& y) { return equal(x, y); });
             });
    case Kind::Dict:
      return a.pairs->size() == b.pairs->size() &&
             std::all_of(a.pairs->begin(), a.pairs->end(), [&](const auto& entry) {
               const Value* other = find(*b.pairs, entry.first);
               return other != nullptr && equal(entry.second, *other);
             });
    case Kind::Object:
      return a.pairs == b.pairs;
    default:
      return false;
  }
}

bool less(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return a.number < b.number;
  if (a.kind == Kind::Str && b.kind == Kind::Str) return a.text < b.text;
  if ((a.kind == Kind::List || a.kind == Kind::Tuple) && a.kind == b.kind) {
    for (std::size_t i = 0; i < a.items->size() && i < b.items->size(); i++)
      if (!equal((*a.items)[i], (*b.items)[i])) return less((*a.items)[i], (*b.items)[i]);
    return a.items->size() < b.items->size();
  }
  throw PyError("values of these kinds have no order");
}

std::string repr(const Value& value) {
  std::vector<std::string> parts;
  switch (value.kind) {
    case Kind::None:
      return "None";
    case Kind::Bool:
      return value.number != 0 ? "True" : "False";
    case Kind::Int:
      return std::to_string(value.number);
    case Kind::Str:
      return quoted(value.text);
    case Kind::List:
    case Kind::Tuple:
    case Kind::Set:
      for (const Value& item : *value.items) parts.push_back(repr(item));
      if (value.kind == Kind::List) return "[" + joined(parts, ", ") + "]";
      if (value.kind == Kind::Tuple)
        return "(" + joined(parts, ", ") + (parts.size() == 1 ? ",)" : ")");
      return parts.empty() ? "set()" : "{" + joined(parts, ", ") + "}";
    case Kind::Dict:
      for (const auto& [key, item] : *value.pairs) parts.push_back(repr(key) + ": " + repr(item));
      return "{" + joined(parts, ", ") + "}";
    default:
      throw PyError("this value has no text");
  }
}

std::string str(const Value& value) {
  return value.kind == Kind::Str ? value.text : repr(value);
}

Items iterate(const Value& value) {
  Items out;
  switch (value.kind) {
    case Kind::List:
    case Kind::Tuple:
    case Kind::Set:
      return *value.items;
    case Kind::Str:
      for (const char c : value.text) out.push_back(make_str(std::string(1, c)));
      return out;
    case Kind::Dict:
      for (const auto& entry : *value.pairs) out.push_back(entry.first);
      return out;
    default:
      throw PyError("a loop over something that has no items");
  }
}

Value* find(Pairs& pairs, const Value& key) {
  for (auto& entry : pairs)
    if (equal(entry.first, key)) return &entry.second;
  return nullptr;
}

}  // namespace engine::py
