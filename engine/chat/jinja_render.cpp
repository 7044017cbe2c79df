#include "engine/chat/jinja_render.h"

#include <algorithm>
#include <charconv>
#include <new>
#include <optional>
#include <string_view>

#include "engine/chat/jinja_filters.h"
#include "engine/chat/jinja_source.h"
#include "engine/chat/jinja_strict.h"
#include "jinja/lexer.h"
#include "jinja/parser.h"
#include "jinja/runtime.h"

namespace engine {
namespace {

using jinja::mk_val;

jinja::value value_of(const Json& json);

jinja::value number_value(const Json& json) {
  check_range(json.number().real());
  if (const auto whole = json.number().integer()) return mk_val<jinja::value_int>(*whole);
  return mk_val<jinja::value_float>(json.number().real());
}

jinja::value object_value(const Json& json) {
  auto object = mk_val<jinja::value_object>();
  for (const auto& [name, member] : json.members) object->insert(name, value_of(member));
  return object;
}

jinja::value array_value(const Json& json) {
  auto array = mk_val<jinja::value_array>();
  for (const Json& item : json.items) array->push_back(value_of(item));
  return array;
}

jinja::value value_of(const Json& json) {
  switch (json.kind) {
    case JsonReader::Kind::Object:
      return object_value(json);
    case JsonReader::Kind::Array:
      return array_value(json);
    case JsonReader::Kind::String:
      return mk_val<jinja::value_string>(json.text);
    case JsonReader::Kind::Number:
      return number_value(json);
    case JsonReader::Kind::Bool:
      return mk_val<jinja::value_bool>(json.boolean);
    case JsonReader::Kind::Null:
      break;
  }
  return mk_val<jinja::value_none>();
}

jinja::value message_value(const ChatMessage& message) {
  auto object = mk_val<jinja::value_object>();
  object->insert("role", mk_val<jinja::value_string>(message.role));
  auto content = mk_val<jinja::value_string>(message.content);
  content->mark_input();
  object->insert("content", content);
  return object;
}

void set_variables(jinja::context& context,
                   std::span<const ChatMessage> messages,
                   const ChatSettings& settings) {
  auto list = mk_val<jinja::value_array>();
  for (const ChatMessage& message : messages) list->push_back(message_value(message));
  context.set_val("messages", list);
  context.set_val("tools", mk_val<jinja::value_none>());
  context.set_val("documents", mk_val<jinja::value_none>());
  context.set_val("add_generation_prompt",
                  mk_val<jinja::value_bool>(settings.add_generation_prompt));
  if (!settings.bos.empty())
    context.set_val("bos_token", mk_val<jinja::value_string>(settings.bos));
  if (!settings.eos.empty())
    context.set_val("eos_token", mk_val<jinja::value_string>(settings.eos));
  for (const auto& [name, json] : settings.extra) context.set_val(name, value_of(json));
  if (settings.now) context.current_time = static_cast<std::time_t>(*settings.now);
}

/// The number after "at line " in a message of the engine; 0: there is none.
int line_in(std::string_view message) {
  constexpr std::string_view kBefore = " at line ";
  const std::size_t at = message.find(kBefore);
  int line = 0;
  if (at == std::string_view::npos) return 0;
  std::from_chars(message.data() + at + kBefore.size(), message.data() + message.size(), line);
  return line;
}

/// Returns the line of a syntax error; 0: not found. The engine's message does not number lines: it
/// quotes the source around the error, as "...SOURCE...\n", with a mark below the error.
int line_of_shown(std::string_view message, const std::string& text) {
  const std::size_t begin = message.find("\n...");
  const std::size_t end = message.find("...\n", begin == std::string_view::npos ? 0 : begin + 1);
  if (begin == std::string_view::npos || end == std::string_view::npos) return 0;
  std::string shown(message.substr(begin + 4, end - begin - 4));
  constexpr std::string_view kBreak = "\xE2\x86\xB5";  // replaces a line feed in the quoted source
  for (std::size_t i = 0; (i = shown.find(kBreak, i)) != std::string::npos; i++)
    shown.replace(i, kBreak.size(), "\n");
  const std::size_t at = text.find(shown);
  if (shown.empty() || at == std::string::npos) return 0;
  const std::size_t mark = message.size() - (end + 4);  // the spaces before the mark, and the mark
  const std::size_t fault = std::min(at + (mark > 4 ? mark - 4 : 0), text.size());
  return 1 + static_cast<int>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(fault), '\n'));
}

/// Removes the quoted source from an error message of the engine.
std::string_view reason_in(std::string_view message) {
  constexpr std::string_view kError = "Error: ";
  if (const std::size_t at = message.rfind("\n" + std::string(kError)); at != std::string::npos)
    return message.substr(at + 1 + kError.size());
  return message.substr(0, message.find('\n', message.starts_with('\n') ? 1 : 0));
}

JinjaResult failure(std::string_view message, const std::string& text) {
  constexpr std::string_view kRaised = "Jinja Exception: ";
  JinjaResult result;
  std::string_view reason = reason_in(message);
  if (reason == std::bad_alloc().what()) throw std::bad_alloc();
  result.refused = reason.starts_with(kRaised);
  if (result.refused) reason.remove_prefix(kRaised.size());
  result.error = reason.empty() ? "an error without a message" : std::string(reason);
  result.line = line_in(message);
  if (result.line == 0) result.line = line_of_shown(message, text);
  return result;
}

}  // namespace

JinjaResult render_jinja(const std::string& text,
                         std::span<const ChatMessage> messages,
                         const ChatSettings& settings) {
  try {
    jinja::lexer lexer;
    jinja::lexer_result tokens = lexer.tokenize(with_known_syntax(text));
    join_floor_divisions(tokens);
    jinja::program program = jinja::parse_from_tokens(tokens);
    make_strict(program);
    jinja::context context(tokens.source);
    set_variables(context, messages, settings);
    jinja::runtime runtime(context);
    const jinja::value_string rendered =
        jinja::runtime::gather_string_parts(runtime.execute(program));
    JinjaResult result;
    for (jinja::string_part& part : rendered->val_str.parts)
      if (!part.val.empty()) result.parts.push_back({std::move(part.val), part.is_input});
    return result;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return failure(error.what(), text);
  }
}

}  // namespace engine
