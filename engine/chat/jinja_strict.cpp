#include "engine/chat/jinja_strict.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/chat/jinja_filters.h"
#include "engine/chat/jinja_text.h"
#include "jinja/runtime.h"

namespace engine {
namespace {

using jinja::context;
using jinja::is_val;
using jinja::mk_val;
using jinja::statement_ptr;
using jinja::statements;
using jinja::value;

template <typename Node>
Node* as(const statement_ptr& node) {
  return dynamic_cast<Node*>(node.get());
}

[[noreturn]] void fail(const std::string& message) {
  throw jinja::raised_exception(message);
}

void check_defined(const value& v) {
  if (!v->is_undefined()) return;
  const auto* undefined = dynamic_cast<const jinja::value_undefined_t*>(v.get());
  fail(fmt::format("'{}' is undefined", undefined ? undefined->hint : ""));
}

/// Holds the value of an operand that a strict node has evaluated, so that the engine's node does
/// not evaluate it again.
struct Operand : jinja::expression {
  explicit Operand(statement_ptr&& node) : inner(std::move(node)) { pos = inner->pos; }
  value evaluate(context& ctx) const { return last = inner->execute(ctx); }
  value execute_impl(context&) const override { return last; }

  statement_ptr inner;
  mutable value last;
};

Operand& operand_in(const statement_ptr& node) {
  return *static_cast<Operand*>(node.get());
}

statement_ptr as_operand(statement_ptr&& node) {
  return std::make_unique<Operand>(std::move(node));
}

/// An expression whose value is printed.
struct Printed : jinja::statement {
  explicit Printed(statement_ptr&& node) : inner(std::move(node)) { pos = inner->pos; }
  value execute_impl(context& ctx) const override {
    const value v = inner->execute(ctx);
    return v->is_undefined() || is_val<jinja::value_func>(v) ? v : printed_value(v);
  }

  statement_ptr inner;
};

/// One of the three optional numbers of a slice. None means the same as an absent number.
std::optional<std::int64_t> bound_of(const statement_ptr& node, context& ctx) {
  if (!node) return std::nullopt;
  const value v = node->execute(ctx);
  if (v->is_none()) return std::nullopt;
  if (!is_val<jinja::value_int>(v)) fail("slice indices must be integers or none");
  return v->as_int();
}

/// x.name, x[index] and x[from:to].
struct Member : jinja::member_expression {
  explicit Member(jinja::member_expression& m)
      : member_expression(as_operand(std::move(m.object)), std::move(m.property), m.computed) {
    pos = m.pos;
  }
  value execute_impl(context& ctx) const override {
    const value v = operand_in(object).evaluate(ctx);
    check_defined(v);
    if (!computed) return named(member_expression::execute_impl(ctx));
    if (!is_val<jinja::value_string>(v)) return member_expression::execute_impl(ctx);
    if (const auto* slice = as<jinja::slice_expression>(property)) return sliced(v, *slice, ctx);
    const value index = property->execute(ctx);
    if (!is_val<jinja::value_int>(index)) return mk_val<jinja::value_undefined>("index");
    return character_at(v->val_str, index->as_int());
  }
  /// Returns an undefined value that contains the member's name, for error messages.
  value named(value member) const {
    const auto* name = as<jinja::identifier>(property);
    return member->is_undefined() && name ? mk_val<jinja::value_undefined>(name->val) : member;
  }
  static value sliced(const value& v, const jinja::slice_expression& slice, context& ctx) {
    return slice_of(v->val_str, bound_of(slice.start_expr, ctx), bound_of(slice.stop_expr, ctx),
                    bound_of(slice.step_expr, ctx));
  }
};

/// Marks strings as content of a message.
value marked(value v) {
  if (is_val<jinja::value_string>(v)) v->val_str.mark_input();
  for (value& item : v->val_arr) item = marked(item);
  return v;
}

/// True for a string made of messages' content alone, and for a list of such strings.
bool is_content(const value& v) {
  if (is_val<jinja::value_array>(v))
    return !v->val_arr.empty() && std::ranges::all_of(v->val_arr, is_content);
  return is_val<jinja::value_string>(v) && !v->val_str.parts.empty() &&
         v->val_str.all_parts_are_input();
}

/// f(...) and x.method(...).
struct Call : jinja::call_expression {
  explicit Call(jinja::call_expression& c)
      : call_expression(std::move(c.callee), std::move(c.args)) {
    pos = c.pos;
  }
  value execute_impl(context& ctx) const override {
    const auto* member = as<Member>(callee);
    if (!member || member->computed) return call_expression::execute_impl(ctx);
    const Operand& object = operand_in(member->object);
    const auto* method = as<jinja::identifier>(member->property);
    if (method && method->val == "float") fail("float is a filter, not a method");
    if (method && is_own_method(method->val) && args.size() <= 1 && !has_keyword()) {
      const value v = object.inner->execute(ctx);
      check_defined(v);
      if (is_val<jinja::value_string>(v)) return own(method->val, v, ctx);
    }
    value result = call_expression::execute_impl(ctx);
    return object.last && is_content(object.last) ? marked(std::move(result)) : result;
  }
  bool has_keyword() const {
    return !args.empty() && as<jinja::keyword_argument_expression>(args[0]) != nullptr;
  }
  static bool is_own_method(const std::string& name) {
    return name == "strip" || name == "lstrip" || name == "rstrip" || name == "split" ||
           name == "upper" || name == "lower";
  }
  value own(const std::string& name, const value& v, context& ctx) const {
    const value given = args.empty() ? mk_val<jinja::value_none>() : args[0]->execute(ctx);
    if (name == "upper" || name == "lower") return in_case(v->val_str, name == "upper");
    if (name == "split") return split_of(v->val_str, given);
    return stripped(v->val_str, name != "rstrip", name != "lstrip", given);
  }
};

/// x | filter.
struct Filter : jinja::filter_expression {
  explicit Filter(jinja::filter_expression& f)
      : filter_expression(as_operand(std::move(f.operand)), std::move(f.filter)) {
    pos = f.pos;
    const auto* call = as<jinja::call_expression>(filter);
    n_args_ = call ? call->args.size() : 0;
    const auto* id = as<jinja::identifier>(call ? call->callee : filter);
    if (id) name_ = id->val;
  }
  value execute_impl(context& ctx) const override {
    const value v = operand_in(operand).evaluate(ctx);
    if (v->is_none() && (name_ == "default" || name_ == "d") && n_args_ <= 1) return v;
    if (name_ == "string") return printed_value(v);
    if (name_ == "float" && is_val<jinja::value_string>(v))
      check_range(std::strtod(v->val_str.str().c_str(), nullptr));
    if (is_val<jinja::value_string>(v) && n_args_ == 0)
      if (const value own = own_filter(v->val_str)) return own;
    if (v->is_undefined() && name_ == "tojson") check_defined(v);
    if (is_added_filter(name_)) return added_filter(name_, v, arguments(ctx));
    value result = filter_expression::execute_impl(ctx);
    return is_content(v) ? marked(std::move(result)) : result;
  }
  /// Applies a filter without arguments to a string. Returns null if the engine's own filter gives
  /// the right result.
  value own_filter(const jinja::string& text) const {
    if (name_ == "length" || name_ == "count")
      return mk_val<jinja::value_int>(static_cast<std::int64_t>(characters_of(text).size()));
    if (name_ == "trim") return stripped(text, true, true, mk_val<jinja::value_none>());
    if (name_ == "upper" || name_ == "lower") return in_case(text, name_ == "upper");
    if (name_ == "first") return character_at(text, 0);
    if (name_ == "last") return character_at(text, -1);
    if (name_ == "list") return list_of_characters(text);
    return nullptr;
  }

 private:
  std::vector<value> arguments(context& ctx) const {
    std::vector<value> values;
    const auto* call = as<jinja::call_expression>(filter);
    for (std::size_t i = 0; call && i < n_args_; i++) {
      if (as<jinja::keyword_argument_expression>(call->args[i]))
        fail(fmt::format("{}: arguments with names are not supported", name_));
      values.push_back(call->args[i]->execute(ctx));
    }
    return values;
  }

  std::string name_;
  std::size_t n_args_ = 0;
};

/// Binary operators that compute a value, such as a + b and a ~ b.
struct Arithmetic : jinja::binary_expression {
  explicit Arithmetic(jinja::binary_expression& b)
      : binary_expression(b.op, as_operand(std::move(b.left)), as_operand(std::move(b.right))) {
    pos = b.pos;
  }
  value execute_impl(context& ctx) const override {
    // The right side may run the same node again (a macro that calls itself), so both values are
    // kept here.
    const value a = operand_in(left).evaluate(ctx);
    const value b = operand_in(right).evaluate(ctx);
    if (op.value == "~") return joined(a, b);
    check_defined(a);
    check_defined(b);
    if (op.value == "+" && is_val<jinja::value_string>(a) != is_val<jinja::value_string>(b))
      fail(fmt::format("cannot add {} and {}", a->type(), b->type()));
    if (op.value == "%" && is_number(a) && is_number(b)) return remainder_of(a, b);
    if (op.value == "//") {
      if (!is_number(a) || !is_number(b)) fail("// takes numbers");
      return floor_division_of(a, b);
    }
    if (op.value == "/" && is_number(b) && b->as_float() == 0) fail("division by zero");
    if (is_number(a) && is_number(b)) check_range(result_of(a->as_float(), b->as_float()));
    operand_in(left).last = a;
    operand_in(right).last = b;
    return binary_expression::execute_impl(ctx);
  }
  double result_of(double a, double b) const {
    return op.value == "+" ? a + b : op.value == "-" ? a - b : op.value == "*" ? a * b : a / b;
  }
  static value joined(const value& a, const value& b) {
    jinja::string text = printed_value(a)->val_str;
    return mk_val<jinja::value_string>(text.append(printed_value(b)->val_str));
  }
};

bool is_arithmetic(const std::string& op) {
  return op == "+" || op == "-" || op == "~" || op == "*" || op == "/" || op == "%" || op == "//";
}

/// Walks a program and replaces nodes, inner ones first.
class Replacing {
 public:
  void body(statements& list) {
    for (statement_ptr& node : list) {
      one(node);
      if (as<jinja::expression>(node) && !as<jinja::string_literal>(node))
        node = std::make_unique<Printed>(std::move(node));
    }
  }

 private:
  void all(statements& list) {
    for (statement_ptr& node : list) one(node);
  }

  void one(statement_ptr& node) {
    if (!node || in_statement(node) || in_literal(node) || in_operator(node)) return;
    if (auto* m = as<jinja::member_expression>(node)) {
      one(m->object);
      if (m->computed) one(m->property);
      node = std::make_unique<Member>(*m);
    } else if (auto* c = as<jinja::call_expression>(node)) {
      one(c->callee);
      all(c->args);
      node = std::make_unique<Call>(*c);
    } else if (auto* f = as<jinja::filter_expression>(node)) {
      one(f->operand);
      arguments(f->filter);
      node = std::make_unique<Filter>(*f);
    }
  }

  /// Replaces the arguments of a filter or test but not its own node.
  void arguments(const statement_ptr& node) {
    if (auto* call = as<jinja::call_expression>(node)) all(call->args);
  }

  bool in_statement(const statement_ptr& node) {
    if (auto* s = as<jinja::if_statement>(node)) {
      one(s->test), body(s->body), body(s->alternate);
    } else if (auto* loop = as<jinja::for_statement>(node)) {
      one(loop->iterable), body(loop->body), body(loop->default_block);
    } else if (auto* set = as<jinja::set_statement>(node)) {
      one(set->val), body(set->body);
    } else if (auto* macro = as<jinja::macro_statement>(node)) {
      all(macro->args), body(macro->body);
    } else if (auto* call = as<jinja::call_statement>(node)) {
      all(call->caller_args), arguments(call->call), body(call->body);
    } else if (auto* filter = as<jinja::filter_statement>(node)) {
      const auto* name = as<jinja::identifier>(filter->filter);
      if (name && name->val == "float") fail("a block of the filter float is not supported");
      arguments(filter->filter), body(filter->body);
    } else {
      return false;
    }
    return true;
  }

  bool in_literal(const statement_ptr& node) {
    if (const auto* integer = as<jinja::integer_literal>(node)) {
      check_range(static_cast<double>(integer->val));
    } else if (const auto* number = as<jinja::float_literal>(node)) {
      check_range(number->val);
    } else if (auto* array = as<jinja::array_literal>(node)) {
      all(array->val);
    } else if (auto* tuple = as<jinja::tuple_literal>(node)) {
      all(tuple->val);
    } else if (auto* object = as<jinja::object_literal>(node)) {
      for (auto& [key, item] : object->val) one(key), one(item);
    } else {
      return false;
    }
    return true;
  }

  bool in_operator(statement_ptr& node) {
    if (auto* binary = as<jinja::binary_expression>(node)) {
      one(binary->left), one(binary->right);
      if (is_arithmetic(binary->op.value)) node = std::make_unique<Arithmetic>(*binary);
    } else if (auto* unary = as<jinja::unary_expression>(node)) {
      one(unary->argument);
    } else if (auto* test = as<jinja::test_expression>(node)) {
      one(test->operand), arguments(test->test);
    } else if (auto* select = as<jinja::select_expression>(node)) {
      one(select->lhs), one(select->test);
    } else if (auto* choice = as<jinja::ternary_expression>(node)) {
      one(choice->condition), one(choice->true_expr), one(choice->false_expr);
    } else if (auto* slice = as<jinja::slice_expression>(node)) {
      one(slice->start_expr), one(slice->stop_expr), one(slice->step_expr);
    } else if (auto* keyword = as<jinja::keyword_argument_expression>(node)) {
      one(keyword->val);
    } else if (auto* spread = as<jinja::spread_expression>(node)) {
      one(spread->argument);
    } else {
      return false;
    }
    return true;
  }
};

}  // namespace

void make_strict(jinja::program& program) {
  Replacing().body(program.body);
}

}  // namespace engine
