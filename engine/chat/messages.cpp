#include "engine/chat/messages.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/base/fields.h"
#include "engine/base/refuse.h"

namespace engine {
namespace {

constexpr std::size_t kMaxRoleBytes = 64;
constexpr const char* kSystem = "system";

bool is_role(const std::string& role) {
  const auto is_name = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  return !role.empty() && role.size() <= kMaxRoleBytes && std::ranges::all_of(role, is_name);
}

ChatMessage message_from(const Json& json, const std::string& place, std::size_t number) {
  const Fields fields(json, place, fmt::format("messages.{}.", number));
  const auto role = fields.string("role");
  if (!role || !is_role(*role))
    fields.fail("role", role ? in_quotes(*role) : "none",
                "a name such as \"user\", \"assistant\" or \"system\"");
  const auto content = fields.string("content");
  if (!content) fields.fail("content", "none", "a string");
  return {*role, *content};
}

bool begins_with_system(const std::vector<ChatMessage>& messages) {
  return !messages.empty() && messages.front().role == kSystem;
}

}  // namespace

std::vector<ChatMessage> messages_from(const Json& list, const std::string& place) {
  const bool is_list = list.is(JsonReader::Kind::Array);
  if (!is_list || list.items.empty())
    refuse(place, "messages", is_list || list.is(JsonReader::Kind::Null) ? "none" : list.shown(),
           "a list of {\"role\": .., \"content\": ..}");
  std::vector<ChatMessage> messages;
  for (const Json& item : list.items)
    messages.push_back(message_from(item, place, messages.size()));
  return messages;
}

void add_system_message(std::vector<ChatMessage>& messages, const std::string& system) {
  if (!system.empty() && !begins_with_system(messages))
    messages.insert(messages.begin(), {kSystem, system});
}

std::string system_message_of(const std::vector<ChatMessage>& messages) {
  return begins_with_system(messages) ? messages.front().content : std::string();
}

}  // namespace engine
