#include "engine/chat/messages.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/fields.h"
#include "engine/base/refuse.h"

namespace engine {
namespace {

constexpr std::size_t kMaxRoleBytes = 64;

bool is_role(const std::string& role) {
  const auto is_name = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  return !role.empty() && role.size() <= kMaxRoleBytes && std::ranges::all_of(role, is_name);
}

ChatMessage message_from(const Json& json, const std::string& place, std::size_t number) {
  const Fields fields(json, place, fmt::format("messages.{}.", number));
  const std::string role = fields.string("role").value_or("");
  if (!is_role(role))
    fields.fail("role", in_quotes(role), "a name such as \"user\", \"assistant\" or \"system\"");
  const auto content = fields.string("content");
  if (!content) fields.fail("content", "none", "a string");
  return {role, *content};
}

}  // namespace

std::vector<ChatMessage> messages_from(const Json& list, const std::string& place) {
  if (!list.is(JsonReader::Kind::Array) || list.items.empty())
    refuse(place, "messages", list.items.empty() ? "none" : list.shown(),
           "a list of {\"role\": .., \"content\": ..}");
  std::vector<ChatMessage> messages;
  for (const Json& item : list.items)
    messages.push_back(message_from(item, place, messages.size()));
  return messages;
}

}  // namespace engine
