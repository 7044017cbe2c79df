// Values of MiniPython. Private to mini_python*.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/py/mini_python_tree.h"

namespace engine::py {

struct Value;
using Items = std::vector<Value>;
using Pairs = std::vector<std::pair<Value, Value>>;

struct Frame;
using FramePtr = std::shared_ptr<Frame>;

/// Lists, dictionaries and objects are shared, as in Python; the rest are copied.
struct Value {
  enum class Kind { None, Bool, Int, Str, List, Tuple, Set, Dict, Object, Function, Builtin };
  Kind kind = Kind::None;
  std::int64_t number = 0;       ///< Bool, Int
  std::string text;              ///< Str; Builtin: name
  std::shared_ptr<Items> items;  ///< List, Tuple, Set; Builtin method: the object it is bound to
  std::shared_ptr<Pairs> pairs;  ///< Dict, in order of insertion; Object: attributes
  const Node* node = nullptr;    ///< Function: Def, Lambda or Class; Object: its Class
  FramePtr frame;                ///< Function: where it was made
  std::shared_ptr<Value> self;   ///< Function: the object a method is bound to
};

struct Frame {
  std::map<std::string, Value, std::less<>> names;
  FramePtr outer;
};

Value none();
Value make_bool(bool value);
Value make_int(std::int64_t value);
Value make_str(std::string value);
Value make_list(Items items);
Value make_tuple(Items items);
Value make_set(const Items& items);
Value make_dict();

bool truth(const Value& value);
bool equal(const Value& a, const Value& b);
/// @throws PyError  for kinds without an order
bool less(const Value& a, const Value& b);
std::string repr(const Value& value);
std::string str(const Value& value);
/// The items a loop over the value sees. @throws PyError
Items iterate(const Value& value);
Value* find(Pairs& pairs, const Value& key);

/// Builtin functions and methods. @param keywords  sorted's key is called through `apply`
struct Arguments {
  Items positional;
  std::map<std::string, Value, std::less<>> keywords;
};
class Caller {
 public:
  virtual ~Caller() = default;
  virtual Value apply(const Value& callee, Items arguments) = 0;
};
bool is_builtin(std::string_view name);
Value call_builtin(const std::string& name, const Arguments& arguments, Caller& caller);
Value call_method(const Value& object, const std::string& name, const Arguments& arguments);

}  // namespace engine::py
