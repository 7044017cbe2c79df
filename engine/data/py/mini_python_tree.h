// The syntax tree of MiniPython, and its parser. Private to mini_python*.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace engine::py {

struct Node;
using NodePtr = std::unique_ptr<Node>;

enum class Type {
  // Statements. Block: kids are statements.
  Block,
  Def,        // text name; names parameters; kids: body, defaults (from the right)
  Class,      // text name; kids: Defs
  Return,     // kids: value or none
  If,         // kids: test, block, [else block]
  For,        // kids: target, iterable, block
  While,      // kids: test, block
  Assign,     // kids: target, value
  AugAssign,  // text operator; kids: target, value
  Delete,     // kids: Index
  Pass,
  Break,
  Continue,
  // Expressions.
  Int,
  Str,
  Name,  // also True, False, None
  List,
  Tuple,
  Set,
  Dict,      // kids: key, value, key, value ..
  ListComp,  // kids: element, clauses (Clause: target, iterable, tests ..)
  SetComp,
  GenComp,
  DictComp,  // kids: key, value, clauses
  Clause,
  Lambda,       // names parameters; kids: body
  Conditional,  // kids: test, yes, no
  And,
  Or,
  Not,
  Compare,  // names operators; kids: operands
  Binary,   // text operator
  Negative,
  Call,       // kids: callee, positional ..; Keyword kids last
  Keyword,    // text name; kids: value
  Attribute,  // text name; kids: object
  Index,      // kids: object, index
  Slice,      // kids: object, start, stop, step (null if absent)
};

struct Node {
  Type type;
  std::string text;
  std::int64_t number = 0;
  std::vector<std::string> names;
  std::vector<NodePtr> kids;
};

/// @throws PyError  with the line
NodePtr parse_module(std::string_view source);
NodePtr parse_expression(std::string_view source);

}  // namespace engine::py
