#include "engine/data/py/mini_python.h"

#include <algorithm>
#include <vector>

#include "engine/data/py/mini_python_tree.h"
#include "engine/data/py/mini_python_value.h"

namespace engine {

using namespace py;

namespace {

using Kind = Value::Kind;

constexpr int kMaxSteps = 200'000;
constexpr int kMaxCalls = 200;

std::int64_t number(const Value& v) {
  if (v.kind != Kind::Int && v.kind != Kind::Bool) throw PyError("expected a number");
  return v.number;
}

std::int64_t floor_divided(std::int64_t a, std::int64_t b) {
  if (b == 0) throw PyError("division by zero");
  const std::int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

std::int64_t arithmetic(char op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  bool overflow = false;
  switch (op) {
    case '+':
      overflow = __builtin_add_overflow(a, b, &out);
      break;
    case '-':
      overflow = __builtin_sub_overflow(a, b, &out);
      break;
    case '*':
      overflow = __builtin_mul_overflow(a, b, &out);
      break;
    case '%':
      return a - floor_divided(a, b) * b;
    default:
      return floor_divided(a, b);
  }
  if (overflow) throw PyError("number too large");
  return out;
}

Value repeated(const Value& sequence, std::int64_t n) {
  const std::int64_t length = sequence.kind == Kind::Str
                                  ? static_cast<std::int64_t>(sequence.text.size())
                                  : static_cast<std::int64_t>(sequence.items->size());
  if (n > 0 && length * n > 100'000) throw PyError("repetition too long");
  std::string text;
  Items items;
  for (std::int64_t i = 0; i < n; i++) {
    if (sequence.kind == Kind::Str) {
      text += sequence.text;
    } else {
      items.insert(items.end(), sequence.items->begin(), sequence.items->end());
    }
  }
  return sequence.kind == Kind::Str ? make_str(text) : make_list(std::move(items));
}

Value binary(const std::string& op, const Value& a, const Value& b) {
  const bool sequence_a = a.kind == Kind::Str || a.kind == Kind::List;
  if (op == "+" && a.kind == b.kind) {
    if (a.kind == Kind::Str) return make_str(a.text + b.text);
    if (a.kind == Kind::List || a.kind == Kind::Tuple) {
      Items items = *a.items;
      items.insert(items.end(), b.items->begin(), b.items->end());
      return a.kind == Kind::List ? make_list(std::move(items)) : make_tuple(std::move(items));
    }
  }
  if (op == "*" && sequence_a) return repeated(a, number(b));
  if (op == "**") {
    std::int64_t out = 1;
    if (number(b) < 0 || number(b) > 62) throw PyError("power out of range");
    for (std::int64_t i = 0; i < b.number; i++) out = arithmetic('*', out, number(a));
    return make_int(out);
  }
  return make_int(arithmetic(op[0], number(a), number(b)));
}

bool contains(const Value& container, const Value& item) {
  if (container.kind == Kind::Str) {
    if (item.kind != Kind::Str) throw PyError("expected a string");
    return container.text.find(item.text) != std::string::npos;
  }
  if (container.kind == Kind::Dict) return find(*container.pairs, item) != nullptr;
  for (const Value& x : iterate(container))
    if (equal(x, item)) return true;
  return false;
}

bool compare(const std::string& op, const Value& a, const Value& b) {
  if (op == "==") return equal(a, b);
  if (op == "!=") return !equal(a, b);
  if (op == "<") return less(a, b);
  if (op == ">") return less(b, a);
  if (op == "<=") return !less(b, a);
  if (op == ">=") return !less(a, b);
  if (op == "in") return contains(b, a);
  if (op == "not in") return !contains(b, a);
  if (op == "is") return a.kind == b.kind && equal(a, b);
  return !(a.kind == b.kind && equal(a, b));
}

}  // namespace

// Walks the tree. Modules are kept because functions point into them.
struct MiniPython::Impl final : Caller {
  enum class Flow { Next, Break, Continue, Return };

  // Functions hold the frame that holds them.
  ~Impl() override { globals->names.clear(); }

  FramePtr globals = std::make_shared<Frame>();
  std::vector<NodePtr> modules;
  int n_steps = 0;
  int n_calls = 0;
  Value returned;

  void tick() {
    if (++n_steps > kMaxSteps) throw PyError("too many steps");
  }

  Flow block(const Node& node, const FramePtr& frame) {
    for (const NodePtr& statement : node.kids) {
      const Flow flow = execute(*statement, frame);
      if (flow != Flow::Next) return flow;
    }
    return Flow::Next;
  }

  Flow execute(const Node& node, const FramePtr& frame) {
    tick();
    switch (node.type) {
      case Type::Def:
      case Type::Class: {
        Value f;
        f.kind = Kind::Function;
        f.node = &node;
        f.frame = frame;
        frame->names[node.text] = std::move(f);
        return Flow::Next;
      }
      case Type::Return:
        returned = node.kids.empty() ? none() : evaluate(*node.kids[0], frame);
        return Flow::Return;
      case Type::If:
        if (truth(evaluate(*node.kids[0], frame))) return block(*node.kids[1], frame);
        return node.kids.size() > 2 ? block(*node.kids[2], frame) : Flow::Next;
      case Type::For:
        for (Value& item : iterate(evaluate(*node.kids[1], frame))) {
          tick();
          assign(*node.kids[0], std::move(item), frame);
          const Flow flow = block(*node.kids[2], frame);
          if (flow == Flow::Return) return flow;
          if (flow == Flow::Break) break;
        }
        return Flow::Next;
      case Type::While:
        while (truth(evaluate(*node.kids[0], frame))) {
          tick();
          const Flow flow = block(*node.kids[1], frame);
          if (flow == Flow::Return) return flow;
          if (flow == Flow::Break) break;
        }
        return Flow::Next;
      case Type::Assign:
        assign(*node.kids[0], evaluate(*node.kids[1], frame), frame);
        return Flow::Next;
      case Type::AugAssign: {
        const Value old = evaluate(*node.kids[0], frame);
        const Value more = evaluate(*node.kids[1], frame);
        if (old.kind == Kind::List && node.text == "+") {
          for (Value& v : iterate(more)) old.items->push_back(std::move(v));
        } else {
          assign(*node.kids[0], binary(node.text, old, more), frame);
        }
        return Flow::Next;
      }
      case Type::Delete:
        remove(*node.kids[0], frame);
        return Flow::Next;
      case Type::Pass:
        return Flow::Next;
      case Type::Break:
        return Flow::Break;
      case Type::Continue:
        return Flow::Continue;
      default:
        evaluate(node, frame);
        return Flow::Next;
    }
  }

  void remove(const Node& target, const FramePtr& frame) {
    if (target.type != Type::Index) throw PyError("del of something else than an item");
    const Value object = evaluate(*target.kids[0], frame);
    const Value key = evaluate(*target.kids[1], frame);
    if (object.kind == Kind::Dict) {
      if (find(*object.pairs, key) == nullptr) throw PyError("del of a key that is not there");
      std::erase_if(*object.pairs, [&](const auto& entry) { return equal(entry.first, key); });
    } else if (object.kind == Kind::List) {
      object.items->erase(object.items->begin() + position(object, key));
    } else {
      throw PyError("del of something else than an item");
    }
  }

  static std::int64_t position(const Value& sequence, const Value& index) {
    const std::int64_t n = sequence.kind == Kind::Str
                               ? static_cast<std::int64_t>(sequence.text.size())
                               : static_cast<std::int64_t>(sequence.items->size());
    const std::int64_t at = number(index) < 0 ? number(index) + n : number(index);
    if (at < 0 || at >= n) throw PyError("index out of range");
    return at;
  }

  void assign(const Node& target, Value value, const FramePtr& frame) {
    switch (target.type) {
      case Type::Name:
        frame->names[target.text] = std::move(value);
        return;
      case Type::Tuple:
      case Type::List: {
        Items items = iterate(value);
        if (items.size() != target.kids.size()) throw PyError("wrong number of values to unpack");
        for (std::size_t i = 0; i < items.size(); i++)
          assign(*target.kids[i], std::move(items[i]), frame);
        return;
      }
      case Type::Index: {
        const Value object = evaluate(*target.kids[0], frame);
        const Value key = evaluate(*target.kids[1], frame);
        if (object.kind == Kind::List) {
          (*object.items)[static_cast<std::size_t>(position(object, key))] = std::move(value);
        } else if (object.kind == Kind::Dict) {
          set_key(*object.pairs, key, std::move(value));
        } else {
          throw PyError("item assignment to something without items");
        }
        return;
      }
      case Type::Attribute: {
        const Value object = evaluate(*target.kids[0], frame);
        if (object.kind != Kind::Object) throw PyError("attribute of something that is no object");
        set_key(*object.pairs, make_str(target.text), std::move(value));
        return;
      }
      default:
        throw PyError("this cannot be assigned to");
    }
  }

  static void set_key(Pairs& pairs, const Value& key, Value value) {
    if (Value* old = find(pairs, key)) {
      *old = std::move(value);
    } else {
      pairs.emplace_back(key, std::move(value));
    }
  }

  Value name(const std::string& text, const FramePtr& frame) {
    if (text == "None") return none();
    if (text == "True" || text == "False") return make_bool(text == "True");
    for (const Frame* f = frame.get(); f != nullptr; f = f->outer.get()) {
      const auto it = f->names.find(text);
      if (it != f->names.end()) return it->second;
    }
    if (!is_builtin(text)) throw PyError("name " + text + " is not defined");
    Value v;
    v.kind = Kind::Builtin;
    v.text = text;
    return v;
  }

  Items all(const Node& node, const FramePtr& frame) {
    Items items;
    for (const NodePtr& kid : node.kids) items.push_back(evaluate(*kid, frame));
    return items;
  }

  Value evaluate(const Node& node, const FramePtr& frame) {
    tick();
    switch (node.type) {
      case Type::Int:
        return make_int(node.number);
      case Type::Str:
        return make_str(node.text);
      case Type::Name:
        return name(node.text, frame);
      case Type::List:
        return make_list(all(node, frame));
      case Type::Tuple:
        return make_tuple(all(node, frame));
      case Type::Set:
        return make_set(all(node, frame));
      case Type::Dict: {
        Value d = make_dict();
        for (std::size_t i = 0; i < node.kids.size(); i += 2)
          set_key(*d.pairs, evaluate(*node.kids[i], frame), evaluate(*node.kids[i + 1], frame));
        return d;
      }
      case Type::ListComp:
      case Type::GenComp:
      case Type::SetComp:
      case Type::DictComp:
        return comprehension(node, frame);
      case Type::Lambda: {
        Value f;
        f.kind = Kind::Function;
        f.node = &node;
        f.frame = frame;
        return f;
      }
      case Type::Conditional:
        return evaluate(*node.kids[truth(evaluate(*node.kids[0], frame)) ? 1 : 2], frame);
      case Type::And: {
        Value left = evaluate(*node.kids[0], frame);
        return truth(left) ? evaluate(*node.kids[1], frame) : left;
      }
      case Type::Or: {
        Value left = evaluate(*node.kids[0], frame);
        return truth(left) ? left : evaluate(*node.kids[1], frame);
      }
      case Type::Not:
        return make_bool(!truth(evaluate(*node.kids[0], frame)));
      case Type::Compare: {
        Value left = evaluate(*node.kids[0], frame);
        for (std::size_t i = 0; i < node.names.size(); i++) {
          Value right = evaluate(*node.kids[i + 1], frame);
          if (!compare(node.names[i], left, right)) return make_bool(false);
          left = std::move(right);
        }
        return make_bool(true);
      }
      case Type::Binary:
        return binary(node.text, evaluate(*node.kids[0], frame), evaluate(*node.kids[1], frame));
      case Type::Negative:
        return make_int(arithmetic('-', 0, number(evaluate(*node.kids[0], frame))));
      case Type::Call:
        return call(node, frame);
      case Type::Attribute:
        return attribute(evaluate(*node.kids[0], frame), node.text);
      case Type::Index:
        return item(evaluate(*node.kids[0], frame), evaluate(*node.kids[1], frame));
      case Type::Slice:
        return slice(node, frame);
      default:
        throw PyError("not an expression");
    }
  }

  Value item(const Value& object, const Value& index) {
    if (object.kind == Kind::Dict) {
      const Value* found = find(*object.pairs, index);
      if (found == nullptr) throw PyError("key is not there");
      return *found;
    }
    if (object.kind == Kind::Str)
      return make_str(
          std::string(1, object.text[static_cast<std::size_t>(position(object, index))]));
    if (object.kind == Kind::List || object.kind == Kind::Tuple)
      return (*object.items)[static_cast<std::size_t>(position(object, index))];
    throw PyError("item of something without items");
  }

  Value slice(const Node& node, const FramePtr& frame) {
    const Value object = evaluate(*node.kids[0], frame);
    const Items items = iterate(object);
    const auto n = static_cast<std::int64_t>(items.size());
    const std::int64_t step = node.kids[3] ? number(evaluate(*node.kids[3], frame)) : 1;
    if (step == 0) throw PyError("slice with step 0");
    const auto bound = [&](const NodePtr& part, std::int64_t fallback) {
      if (!part) return fallback;
      std::int64_t at = number(evaluate(*part, frame));
      if (at < 0) at += n;
      return step > 0 ? std::clamp<std::int64_t>(at, 0, n)
                      : std::clamp<std::int64_t>(at, -1, n - 1);
    };
    const std::int64_t start = bound(node.kids[1], step > 0 ? 0 : n - 1);
    const std::int64_t stop = bound(node.kids[2], step > 0 ? n : -1);
    Items out;
    for (std::int64_t i = start; step > 0 ? i < stop : i > stop; i += step)
      out.push_back(items[static_cast<std::size_t>(i)]);
    if (object.kind != Kind::Str)
      return object.kind == Kind::Tuple ? make_tuple(std::move(out)) : make_list(std::move(out));
    std::string text;
    for (const Value& v : out) text += v.text;
    return make_str(text);
  }

  Value comprehension(const Node& node, const FramePtr& frame) {
    const auto inner = std::make_shared<Frame>();
    inner->outer = frame;
    const bool dict = node.type == Type::DictComp;
    const std::size_t first_clause = dict ? 2 : 1;
    Items out;
    Value pairs = make_dict();
    const auto loop = [&](const auto& self, std::size_t clause) -> void {
      if (clause == node.kids.size()) {
        Value element = evaluate(*node.kids[0], inner);
        if (dict) {
          set_key(*pairs.pairs, element, evaluate(*node.kids[1], inner));
        } else {
          out.push_back(std::move(element));
        }
        return;
      }
      const Node& c = *node.kids[clause];
      for (Value& v : iterate(evaluate(*c.kids[1], inner))) {
        tick();
        assign(*c.kids[0], std::move(v), inner);
        bool kept = true;
        for (std::size_t t = 2; t < c.kids.size() && kept; t++)
          kept = truth(evaluate(*c.kids[t], inner));
        if (kept) self(self, clause + 1);
      }
    };
    loop(loop, first_clause);
    if (dict) return pairs;
    return node.type == Type::SetComp ? make_set(out) : make_list(std::move(out));
  }

  Value attribute(const Value& object, const std::string& text) {
    if (object.kind != Kind::Object) throw PyError("attribute of something that is no object");
    if (const Value* found = find(*object.pairs, make_str(text))) return *found;
    for (const NodePtr& method : object.node->kids[0]->kids) {
      if (method->type != Type::Def || method->text != text) continue;
      Value f;
      f.kind = Kind::Function;
      f.node = method.get();
      f.frame = globals;
      f.self = std::make_shared<Value>(object);
      return f;
    }
    throw PyError("no attribute " + text);
  }

  Value call(const Node& node, const FramePtr& frame) {
    Arguments arguments;
    for (std::size_t i = 1; i < node.kids.size(); i++) {
      if (node.kids[i]->type == Type::Keyword) {
        arguments.keywords[node.kids[i]->text] = evaluate(*node.kids[i]->kids[0], frame);
      } else {
        arguments.positional.push_back(evaluate(*node.kids[i], frame));
      }
    }
    const Node& callee = *node.kids[0];
    if (callee.type == Type::Attribute) {
      const Value object = evaluate(*callee.kids[0], frame);
      if (object.kind != Kind::Object) return call_method(object, callee.text, arguments);
      return apply(attribute(object, callee.text), std::move(arguments.positional));
    }
    const Value f = evaluate(callee, frame);
    if (f.kind == Kind::Builtin) return call_builtin(f.text, arguments, *this);
    return apply(f, std::move(arguments.positional));
  }

  Value apply(const Value& f, Items arguments) override {
    if (f.kind == Kind::Builtin) return call_builtin(f.text, {std::move(arguments), {}}, *this);
    if (f.kind != Kind::Function) throw PyError("call of something that is no function");
    if (f.node->type == Type::Class) return construct(f, std::move(arguments));
    if (++n_calls > kMaxCalls) throw PyError("recursion too deep");
    const auto local = std::make_shared<Frame>();
    local->outer = f.frame;
    if (f.self) arguments.insert(arguments.begin(), *f.self);
    const std::size_t n_names = f.node->names.size();
    const std::size_t n_defaults = f.node->type == Type::Def ? f.node->kids.size() - 1 : 0;
    if (arguments.size() > n_names || arguments.size() + n_defaults < n_names)
      throw PyError("wrong number of arguments for " + f.node->text);
    for (std::size_t i = 0; i < n_names; i++)
      local->names[f.node->names[i]] =
          i < arguments.size() ? std::move(arguments[i])
                               : evaluate(*f.node->kids[1 + i - (n_names - n_defaults)], f.frame);
    Value result;
    if (f.node->type == Type::Lambda) {
      result = evaluate(*f.node->kids[0], local);
    } else {
      returned = none();
      const Flow flow = block(*f.node->kids[0], local);
      result = flow == Flow::Return ? std::move(returned) : none();
    }
    n_calls--;
    return result;
  }

  Value construct(const Value& cls, Items arguments) {
    Value object;
    object.kind = Kind::Object;
    object.node = cls.node;
    object.pairs = std::make_shared<Pairs>();
    for (const NodePtr& method : cls.node->kids[0]->kids)
      if (method->type == Type::Def && method->text == "__init__")
        apply(attribute(object, "__init__"), std::move(arguments));
    return object;
  }
};

MiniPython::MiniPython(std::string_view source) : impl_(std::make_unique<Impl>()) {
  run(source);
}

MiniPython::~MiniPython() = default;

void MiniPython::run(std::string_view source) {
  impl_->modules.push_back(parse_module(source));
  impl_->n_steps = 0;
  impl_->n_calls = 0;
  impl_->block(*impl_->modules.back(), impl_->globals);
}

std::string MiniPython::evaluate(std::string_view expression) {
  impl_->modules.push_back(parse_expression(expression));
  impl_->n_steps = 0;
  impl_->n_calls = 0;
  return repr(impl_->evaluate(*impl_->modules.back(), impl_->globals));
}

}  // namespace engine
