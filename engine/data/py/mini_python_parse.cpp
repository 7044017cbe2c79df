#include <cctype>
#include <set>

#include "engine/data/py/mini_python.h"
#include "engine/data/py/mini_python_tree.h"

namespace engine::py {

namespace {

struct Token {
  enum class Kind { Name, Int, Str, Op, Newline, Indent, Dedent, End } kind = Kind::End;
  std::string text;
  int line = 0;
};

[[noreturn]] void fail(int line, const std::string& what) {
  throw PyError("line " + std::to_string(line) + ": " + what);
}

// Lines, indentation and words of a module.
class Lexer {
 public:
  explicit Lexer(std::string_view source) : in_(source) {}

  std::vector<Token> run() {
    std::vector<int> indents = {0};
    bool at_line_start = true;
    int depth = 0;
    while (at_ < in_.size()) {
      if (at_line_start && depth == 0) {
        int indent = 0;
        while (at_ < in_.size() && in_[at_] == ' ') {
          at_++;
          indent++;
        }
        if (at_ < in_.size() && (in_[at_] == '\n' || in_[at_] == '#')) {
          skip_line();
          continue;
        }
        if (at_ == in_.size()) break;
        if (indent > indents.back()) {
          indents.push_back(indent);
          push(Token::Kind::Indent, "");
        }
        while (indent < indents.back()) {
          indents.pop_back();
          push(Token::Kind::Dedent, "");
        }
        if (indent != indents.back()) fail(line_, "indentation does not match");
        at_line_start = false;
      }
      const char c = in_[at_];
      if (c == '\n') {
        if (depth == 0) {
          push(Token::Kind::Newline, "");
          at_line_start = true;
        }
        line_++;
        at_++;
      } else if (c == ' ') {
        at_++;
      } else if (c == '#') {
        while (at_ < in_.size() && in_[at_] != '\n') at_++;
      } else if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') {
        const std::size_t begin = at_;
        while (at_ < in_.size() &&
               (std::isalnum(static_cast<unsigned char>(in_[at_])) || in_[at_] == '_'))
          at_++;
        push(Token::Kind::Name, in_.substr(begin, at_ - begin));
      } else if (std::isdigit(static_cast<unsigned char>(c))) {
        const std::size_t begin = at_;
        while (at_ < in_.size() && std::isdigit(static_cast<unsigned char>(in_[at_]))) at_++;
        if (at_ - begin > 18) fail(line_, "a number too long");
        push(Token::Kind::Int, in_.substr(begin, at_ - begin));
      } else if (c == '\'' || c == '"') {
        string(c);
      } else {
        op(depth);
      }
    }
    if (!at_line_start) push(Token::Kind::Newline, "");
    for (std::size_t i = 1; i < indents.size(); i++) push(Token::Kind::Dedent, "");
    push(Token::Kind::End, "");
    return std::move(tokens_);
  }

 private:
  void push(Token::Kind kind, std::string_view text) {
    tokens_.push_back({kind, std::string(text), line_});
  }

  void skip_line() {
    while (at_ < in_.size() && in_[at_] != '\n') at_++;
    if (at_ < in_.size()) {
      at_++;
      line_++;
    }
  }

  void string(char quote) {
    const std::string triple(3, quote);
    const bool is_triple = in_.substr(at_, 3) == triple;
    const std::string end = is_triple ? triple : std::string(1, quote);
    at_ += end.size();
    std::string value;
    while (at_ < in_.size() && in_.substr(at_, end.size()) != end) {
      if (in_[at_] == '\n') {
        if (!is_triple) fail(line_, "a string without its end");
        line_++;
      }
      if (in_[at_] == '\\' && at_ + 1 < in_.size()) {
        at_++;
        value += in_[at_] == 'n' ? '\n' : in_[at_] == 't' ? '\t' : in_[at_];
        at_++;
        continue;
      }
      value += in_[at_++];
    }
    if (at_ >= in_.size()) fail(line_, "a string without its end");
    at_ += end.size();
    push(Token::Kind::Str, value);
  }

  void op(int& depth) {
    for (const std::string_view long_op :
         {"//=", "**", "//", "==", "!=", "<=", ">=", "+=", "-=", "*=", "%="}) {
      if (in_.substr(at_, long_op.size()) == long_op) {
        push(Token::Kind::Op, long_op);
        at_ += long_op.size();
        return;
      }
    }
    const char c = in_[at_];
    if (std::string_view("()[]{}:,.=+-*%<>").find(c) == std::string_view::npos)
      fail(line_, std::string("unexpected '") + c + "'");
    if (c == '(' || c == '[' || c == '{') depth++;
    if (c == ')' || c == ']' || c == '}') depth--;
    push(Token::Kind::Op, in_.substr(at_, 1));
    at_++;
  }

  std::string_view in_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

// Recursive descent over the grammar of the subset.
class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(Lexer(source).run()) {}

  NodePtr module() {
    auto block = node(Type::Block);
    while (peek().kind != Token::Kind::End) block->kids.push_back(statement());
    return block;
  }

  NodePtr only_expression() {
    auto value = expression_list();
    if (peek().kind == Token::Kind::Newline) at_++;
    if (peek().kind != Token::Kind::End) fail(peek().line, "more than an expression");
    return value;
  }

 private:
  using Kind = Token::Kind;

  static NodePtr node(Type type, std::string text = {}) {
    auto n = std::make_unique<Node>();
    n->type = type;
    n->text = std::move(text);
    return n;
  }
  template <class... Kids>
  static NodePtr node_of(Type type, std::string text, Kids... kids) {
    auto n = node(type, std::move(text));
    (n->kids.push_back(std::move(kids)), ...);
    return n;
  }

  const Token& peek() const { return tokens_[at_]; }
  bool is(std::string_view text) const {
    return (peek().kind == Kind::Op || peek().kind == Kind::Name) && peek().text == text;
  }
  bool take(std::string_view text) {
    if (!is(text)) return false;
    at_++;
    return true;
  }
  void expect(std::string_view text) {
    if (!take(text))
      fail(peek().line, "found '" + peek().text + "', expected '" + std::string(text) + "'");
  }
  std::string name() {
    static const std::set<std::string, std::less<>> kKeywords = {
        "def",    "class", "return", "if",     "elif", "else",  "for",      "while", "in",
        "and",    "or",    "not",    "lambda", "pass", "break", "continue", "del",   "is",
        "import", "from",  "try",    "except", "with", "yield", "global",   "raise", "assert"};
    if (peek().kind != Kind::Name || kKeywords.contains(peek().text))
      fail(peek().line, "found '" + peek().text + "', expected a name");
    return tokens_[at_++].text;
  }
  void end_of_line() {
    if (peek().kind != Kind::Newline) fail(peek().line, "more on the line: '" + peek().text + "'");
    at_++;
  }

  NodePtr block() {
    if (++depth_ > 40) fail(peek().line, "blocks nested too deeply");
    expect(":");
    auto body = node(Type::Block);
    if (peek().kind != Kind::Newline) {
      body->kids.push_back(statement());
    } else {
      at_++;
      if (peek().kind != Kind::Indent) fail(peek().line, "expected an indented block");
      at_++;
      while (peek().kind != Kind::Dedent && peek().kind != Kind::End)
        body->kids.push_back(statement());
      if (peek().kind == Kind::Dedent) at_++;
    }
    depth_--;
    return body;
  }

  NodePtr statement() {
    if (take("def")) return definition();
    if (take("class")) {
      auto n = node(Type::Class, name());
      n->kids.push_back(block());
      return n;
    }
    if (take("if")) return conditional_block();
    if (take("for")) {
      auto target = target_list();
      expect("in");
      auto iterable = expression_list();
      return node_of(Type::For, "", std::move(target), std::move(iterable), block());
    }
    if (take("while")) {
      auto test = expression();
      return node_of(Type::While, "", std::move(test), block());
    }
    NodePtr n = simple_statement();
    end_of_line();
    return n;
  }

  NodePtr simple_statement() {
    if (take("return")) {
      auto n = node(Type::Return);
      if (peek().kind != Kind::Newline) n->kids.push_back(expression_list());
      return n;
    }
    if (take("pass")) return node(Type::Pass);
    if (take("break")) return node(Type::Break);
    if (take("continue")) return node(Type::Continue);
    if (take("del")) return node_of(Type::Delete, "", expression());
    auto left = expression_list();
    if (take("=")) return node_of(Type::Assign, "", std::move(left), expression_list());
    for (const char* op : {"+=", "-=", "*=", "//=", "%="})
      if (take(op))
        return node_of(Type::AugAssign, std::string(op).substr(0, std::string_view(op).size() - 1),
                       std::move(left), expression_list());
    return left;
  }

  NodePtr definition() {
    auto n = node(Type::Def, name());
    expect("(");
    std::vector<NodePtr> defaults;
    while (!take(")")) {
      n->names.push_back(name());
      if (take("=")) defaults.push_back(expression());
      if (!is(")")) expect(",");
    }
    n->kids.push_back(block());
    for (auto& d : defaults) n->kids.push_back(std::move(d));
    return n;
  }

  NodePtr conditional_block() {
    auto test = expression();
    auto yes = block();
    auto n = node_of(Type::If, "", std::move(test), std::move(yes));
    if (take("elif")) {
      auto inner = node(Type::Block);
      inner->kids.push_back(conditional_block());
      n->kids.push_back(std::move(inner));
    } else if (take("else")) {
      n->kids.push_back(block());
    }
    return n;
  }

  // "i, x" of a for loop.
  NodePtr target_list() {
    auto first = node(Type::Name, name());
    if (!is(",")) return first;
    auto tuple = node(Type::Tuple);
    tuple->kids.push_back(std::move(first));
    while (take(",")) tuple->kids.push_back(node(Type::Name, name()));
    return tuple;
  }

  // "a, b" without parentheses.
  NodePtr expression_list() {
    auto first = expression();
    if (!is(",")) return first;
    auto tuple = node(Type::Tuple);
    tuple->kids.push_back(std::move(first));
    while (take(",")) tuple->kids.push_back(expression());
    return tuple;
  }

  NodePtr expression() {
    if (++depth_ > 60) fail(peek().line, "expression nested too deeply");
    NodePtr n;
    if (take("lambda")) {
      n = node(Type::Lambda);
      while (!take(":")) {
        n->names.push_back(name());
        if (!is(":")) expect(",");
      }
      n->kids.push_back(expression());
    } else {
      n = disjunction();
      if (take("if")) {
        auto test = disjunction();
        expect("else");
        n = node_of(Type::Conditional, "", std::move(test), std::move(n), expression());
      }
    }
    depth_--;
    return n;
  }

  NodePtr disjunction() {
    auto left = conjunction();
    while (take("or")) left = node_of(Type::Or, "", std::move(left), conjunction());
    return left;
  }
  NodePtr conjunction() {
    auto left = negation();
    while (take("and")) left = node_of(Type::And, "", std::move(left), negation());
    return left;
  }
  NodePtr negation() {
    if (take("not")) return node_of(Type::Not, "", negation());
    return comparison();
  }

  std::string comparison_operator() {
    for (const char* op : {"==", "!=", "<=", ">=", "<", ">", "in"})
      if (take(op)) return op;
    if (is("not") && tokens_[at_ + 1].text == "in") {
      at_ += 2;
      return "not in";
    }
    if (take("is")) return take("not") ? "is not" : "is";
    return {};
  }
  NodePtr comparison() {
    auto left = sum();
    std::string op = comparison_operator();
    if (op.empty()) return left;
    auto n = node_of(Type::Compare, "", std::move(left));
    while (!op.empty()) {
      n->names.push_back(op);
      n->kids.push_back(sum());
      op = comparison_operator();
    }
    return n;
  }

  NodePtr sum() {
    auto left = product();
    while (is("+") || is("-")) {
      const std::string op = tokens_[at_++].text;
      left = node_of(Type::Binary, op, std::move(left), product());
    }
    return left;
  }
  NodePtr product() {
    auto left = factor();
    while (is("*") || is("//") || is("%")) {
      const std::string op = tokens_[at_++].text;
      left = node_of(Type::Binary, op, std::move(left), factor());
    }
    return left;
  }
  NodePtr factor() {
    if (take("-")) return node_of(Type::Negative, "", factor());
    auto left = postfix();
    if (take("**")) return node_of(Type::Binary, "**", std::move(left), factor());
    return left;
  }

  NodePtr postfix() {
    auto value = atom();
    while (true) {
      if (take(".")) {
        value = node_of(Type::Attribute, name(), std::move(value));
      } else if (take("(")) {
        value = call(std::move(value));
      } else if (take("[")) {
        value = subscript(std::move(value));
      } else {
        return value;
      }
    }
  }

  NodePtr call(NodePtr callee) {
    auto n = node_of(Type::Call, "", std::move(callee));
    while (!take(")")) {
      if (peek().kind == Kind::Name && tokens_[at_ + 1].kind == Kind::Op &&
          tokens_[at_ + 1].text == "=") {
        const std::string keyword = name();
        expect("=");
        n->kids.push_back(node_of(Type::Keyword, keyword, expression()));
      } else {
        auto argument = expression();
        if (is("for")) argument = comprehension(Type::GenComp, std::move(argument), nullptr);
        n->kids.push_back(std::move(argument));
      }
      if (!is(")")) expect(",");
    }
    return n;
  }

  NodePtr subscript(NodePtr object) {
    NodePtr parts[3];
    int n_parts = 0;
    bool slice = false;
    if (!is(":")) parts[0] = expression();
    while (take(":")) {
      slice = true;
      if (++n_parts > 2) fail(peek().line, "a slice of too many parts");
      if (!is(":") && !is("]")) parts[n_parts] = expression();
    }
    expect("]");
    if (!slice) return node_of(Type::Index, "", std::move(object), std::move(parts[0]));
    return node_of(Type::Slice, "", std::move(object), std::move(parts[0]), std::move(parts[1]),
                   std::move(parts[2]));
  }

  NodePtr comprehension(Type type, NodePtr element, NodePtr value) {
    auto n = node_of(type, "", std::move(element));
    if (value) n->kids.push_back(std::move(value));
    while (take("for")) {
      auto clause = node_of(Type::Clause, "", target_list());
      expect("in");
      clause->kids.push_back(disjunction());
      while (take("if")) clause->kids.push_back(disjunction());
      n->kids.push_back(std::move(clause));
    }
    return n;
  }

  NodePtr atom() {
    const Token& token = peek();
    if (token.kind == Kind::Int) {
      auto n = node(Type::Int);
      n->number = std::stoll(token.text);
      at_++;
      return n;
    }
    if (token.kind == Kind::Str) {
      at_++;
      return node(Type::Str, token.text);
    }
    if (take("[")) return list();
    if (take("{")) return braces();
    if (take("(")) return parenthesis();
    return node(Type::Name, name());
  }

  NodePtr list() {
    auto n = node(Type::List);
    while (!take("]")) {
      n->kids.push_back(expression());
      if (is("for") && n->kids.size() == 1) {
        auto comp = comprehension(Type::ListComp, std::move(n->kids[0]), nullptr);
        expect("]");
        return comp;
      }
      if (!is("]")) expect(",");
    }
    return n;
  }

  NodePtr parenthesis() {
    if (take(")")) return node(Type::Tuple);
    auto first = expression();
    if (is("for")) {
      auto comp = comprehension(Type::GenComp, std::move(first), nullptr);
      expect(")");
      return comp;
    }
    if (take(")")) return first;
    auto tuple = node_of(Type::Tuple, "", std::move(first));
    while (!take(")")) {
      expect(",");
      if (is(")")) continue;
      tuple->kids.push_back(expression());
    }
    return tuple;
  }

  NodePtr braces() {
    if (take("}")) return node(Type::Dict);
    auto first = expression();
    const bool dict = take(":");
    NodePtr value = dict ? expression() : nullptr;
    if (is("for")) {
      auto comp =
          comprehension(dict ? Type::DictComp : Type::SetComp, std::move(first), std::move(value));
      expect("}");
      return comp;
    }
    auto n = node_of(dict ? Type::Dict : Type::Set, "", std::move(first));
    if (dict) n->kids.push_back(std::move(value));
    while (!take("}")) {
      expect(",");
      if (is("}")) continue;
      n->kids.push_back(expression());
      if (!dict) continue;
      expect(":");
      n->kids.push_back(expression());
    }
    return n;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

NodePtr parse_module(std::string_view source) {
  return Parser(source).module();
}

NodePtr parse_expression(std::string_view source) {
  return Parser(source).only_expression();
}

}  // namespace engine::py
