#include "engine/tokenizer/json_steps.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "engine/base/fields.h"
#include "engine/base/refuse.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/bpe/word_patterns.h"

namespace engine {
namespace {

using Kind = JsonReader::Kind;

/// A step and its place in the file: "normalizer.normalizers.0".
struct Step {
  const Json& json;
  const std::string& file;
  std::string field;

  Fields fields() const { return {json, file, field + "."}; }

  std::string type() const {
    if (!json.is(Kind::Object)) refuse(file, field, json.shown(), "an object");
    const std::optional<std::string> type = fields().string("type");
    if (!type) refuse(file, field + ".type", "none", "the name of a step");
    return *type;
  }

  [[noreturn]] void refuse_type(const char* known) const {
    refuse(file, field + ".type", in_quotes(type()), std::string("one of ") + known);
  }

  std::string text(const char* name) const {
    const std::optional<std::string> text = fields().string(name);
    if (!text) fields().fail(name, "none", "a string");
    return *text;
  }

  /// Reads a text of at most 4 KB. The limit bounds how much a replacement can lengthen a prompt.
  std::string short_text(const char* name) const {
    const std::string value = text(name);
    if (value.size() > 4096)
      fields().fail(name, fmt::format("{} bytes", value.size()), "at most 4096");
    return value;
  }

  SplitPattern::Origin origin(const std::string& name) const { return {file, field + "." + name}; }

  /// {"String": "a"} or {"Regex": "a+"}.
  SplitPattern pattern() const {
    const Json* const value = json.find("pattern");
    if (value && value->is(Kind::Object) && value->members.size() == 1) {
      const auto& [kind, text] = value->members[0];
      if (kind == "String" && text.is(Kind::String))
        return SplitPattern::literal(text.text, origin("pattern.String"));
      if (kind == "Regex" && text.is(Kind::String))
        return SplitPattern::regex(text.text, origin("pattern.Regex"));
    }
    refuse(file, field + ".pattern", value ? value->shown() : "none",
           "{\"String\": TEXT} or {\"Regex\": PATTERN}");
  }

  SplitPattern regex(const char* pattern) const {
    return SplitPattern::regex(pattern, origin("type"));
  }

  SplitBehaviour behaviour(const char* fallback) const {
    constexpr std::array<std::pair<const char*, SplitBehaviour>, 5> kNames = {
        {{"Removed", SplitBehaviour::Removed},
         {"Isolated", SplitBehaviour::Isolated},
         {"MergedWithPrevious", SplitBehaviour::MergedWithPrevious},
         {"MergedWithNext", SplitBehaviour::MergedWithNext},
         {"Contiguous", SplitBehaviour::Contiguous}}};
    const std::string name = fields().string("behavior").value_or(fallback);
    for (const auto& [known, behaviour] : kNames)
      if (name == known) return behaviour;
    fields().fail("behavior", in_quotes(name),
                  "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
  }

  /// Calls `read` for each step of a Sequence.
  template <typename Read>
  void each(const char* list, const Read& read) const {
    const Json* const steps = json.find(list);
    if (!steps || !steps->is(Kind::Array))
      refuse(file, field + "." + list, steps ? steps->shown() : "none", "an array of steps");
    for (std::size_t i = 0; i < steps->items.size(); i++)
      read(Step{steps->items[i], file, fmt::format("{}.{}.{}", field, list, i)});
  }
};

void add_normalizer(const Step& step, Normalizer& out) {
  const std::string type = step.type();
  if (type == "Sequence")
    step.each("normalizers", [&](const Step& inner) { add_normalizer(inner, out); });
  else if (type == "NFC")
    out.add(UnicodeForm{true, false});
  else if (type == "NFD")
    out.add(UnicodeForm{false, false});
  else if (type == "NFKC")
    out.add(UnicodeForm{true, true});
  else if (type == "NFKD")
    out.add(UnicodeForm{false, true});
  else if (type == "Lowercase")
    out.add(LowerCase{});
  else if (type == "Prepend")
    out.add(PrependText{step.short_text("prepend")});
  else if (type == "Replace")
    out.add(ReplaceMatches{step.pattern(), step.short_text("content")});
  else
    step.refuse_type("NFC, NFD, NFKC, NFKD, Lowercase, Prepend, Replace, Sequence");
}

MetaspaceStep metaspace_of(const Step& step) {
  using Prepend = MetaspaceStep::Prepend;
  MetaspaceStep made;
  made.replacement = step.text("replacement");
  if (whole_characters(made.replacement, 4) != made.replacement.size() || made.replacement.empty())
    step.fields().fail("replacement", in_quotes(made.replacement), "one character");
  // Older files have add_prefix_space instead.
  const bool adds = step.fields().boolean("add_prefix_space", true);
  const std::string scheme =
      step.fields().string("prepend_scheme").value_or(adds ? "always" : "never");
  if (scheme == "always")
    made.prepend = Prepend::Always;
  else if (scheme == "first")
    made.prepend = Prepend::First;
  else if (scheme == "never")
    made.prepend = Prepend::Never;
  else
    step.fields().fail("prepend_scheme", in_quotes(scheme), "always, first or never");
  return made;
}

void add_pre_tokenizer(const Step& step, PreTokenizer& out) {
  const std::string type = step.type();
  const auto add_split = [&](SplitPattern pattern, SplitBehaviour behaviour, bool inverts = false) {
    out.add(SplitStep{std::move(pattern), behaviour, inverts});
  };
  if (type == "Sequence") {
    step.each("pretokenizers", [&](const Step& inner) { add_pre_tokenizer(inner, out); });
  } else if (type == "Split") {
    add_split(step.pattern(), step.behaviour(""), step.fields().boolean("invert", false));
  } else if (type == "ByteLevel") {
    // First adds the space, then splits, then writes bytes as symbols.
    if (step.fields().boolean("add_prefix_space", true)) out.add(PrefixSpaceStep{});
    if (step.fields().boolean("use_regex", true))
      add_patterns(*word_patterns_named("gpt-2"), step.origin("type"), out);
    out.add(ByteLevelStep{});
  } else if (type == "Digits") {
    const bool each = step.fields().boolean("individual_digits", false);
    add_split(step.regex("\\p{N}"), each ? SplitBehaviour::Isolated : SplitBehaviour::Contiguous);
  } else if (type == "Punctuation") {
    add_split(step.regex(R"([\p{P}!-/:-@\[-`{-~])"), step.behaviour("Isolated"));
  } else if (type == "Metaspace") {
    const MetaspaceStep made = metaspace_of(step);
    out.add(made);
    if (step.fields().boolean("split", true))
      add_split(SplitPattern::literal(made.replacement, step.origin("replacement")),
                SplitBehaviour::MergedWithNext);
  } else {
    step.refuse_type("Split, ByteLevel, Digits, Metaspace, Punctuation, Sequence");
  }
}

void add_strip(const Step& step, BpeDecoding& out) {
  const Fields fields = step.fields();
  const std::int64_t start = fields.integer("start", 0, 1, 0);
  fields.integer("stop", 0, 0, 0);  // only 0 is supported
  if (step.text("content") != " ")
    fields.fail("content", in_quotes(step.text("content")), "a space");
  if (start == 1) out.first = BpeDecoding::First::OneSpace;
}

void add_decoder(const Step& step, BpeDecoding& out) {
  const std::string type = step.type();
  if (type == "Sequence") {
    step.each("decoders", [&](const Step& inner) { add_decoder(inner, out); });
  } else if (type == "ByteLevel") {
    out.byte_symbols = true;
  } else if (type == "ByteFallback") {
    out.byte_tokens = true;
  } else if (type == "Replace") {
    const Json* const pattern = step.json.find("pattern");
    const Json* const text = pattern ? pattern->find("String") : nullptr;
    if (!text || !text->is(Kind::String) || text->text.empty())
      refuse(step.file, step.field + ".pattern", pattern ? pattern->shown() : "none",
             "{\"String\": TEXT}");
    const std::string content = step.text("content");
    if (content.size() > text->text.size())
      step.fields().fail("content", in_quotes(content),
                         "a text that is not longer than the pattern");
    out.replacements.emplace_back(text->text, content);
  } else if (type == "Strip") {
    add_strip(step, out);
  } else if (type == "Metaspace") {
    const MetaspaceStep made = metaspace_of(step);
    out.replacements.emplace_back(made.replacement, " ");
    if (made.prepend != MetaspaceStep::Prepend::Never) out.first = BpeDecoding::First::AllSpaces;
  } else if (type != "Fuse") {
    step.refuse_type("ByteLevel, ByteFallback, Replace, Fuse, Strip, Metaspace, Sequence");
  }
}

class PostProcessor {
 public:
  PostProcessor(const std::function<std::optional<TokenId>(const std::string&)>& id_of,
                std::vector<TokenId>& before,
                std::vector<TokenId>& after)
      : id_of_(id_of), before_(before), after_(after) {}

  void add(const Step& step) {
    const std::string type = step.type();
    if (type == "Sequence")
      step.each("processors", [&](const Step& inner) { add(inner); });
    else if (type == "TemplateProcessing")
      add_template(step);
    else if (type != "ByteLevel")
      step.refuse_type("TemplateProcessing, ByteLevel, Sequence");
  }

 private:
  // The tokenizers library cannot run two templates.
  void add_template(const Step& step) {
    if (has_template_) refuse(step.file, step.field, "a second TemplateProcessing", "one");
    has_template_ = true;
    bool has_text = false;
    step.each("single", [&](const Step& item) {
      if (item.json.find("Sequence")) {
        if (has_text) refuse(item.file, item.field, "a second Sequence", "one");
        has_text = true;
        return;
      }
      const Json* const special = item.json.find("SpecialToken");
      const Json* const id = special ? special->find("id") : nullptr;
      if (!id || !id->is(Kind::String))
        refuse(item.file, item.field, item.json.shown(),
               "{\"Sequence\": ..} or {\"SpecialToken\": {\"id\": NAME}}");
      append_ids(step, id->text, has_text ? after_ : before_);
    });
    if (!has_text) refuse(step.file, step.field + ".single", "no Sequence", "one");
  }

  /// Returns the ids that special_tokens lists for a name.
  void append_ids(const Step& step, const std::string& name, std::vector<TokenId>& out) const {
    const Json* const all = step.json.find("special_tokens");
    const Json* const one = all ? all->find(name) : nullptr;
    const Json* const tokens = one ? one->find("tokens") : nullptr;
    if (!tokens || !tokens->is(Kind::Array))
      refuse(step.file, step.field + ".special_tokens", "no " + in_quotes(name),
             "each special token of the template");
    for (const Json& token : tokens->items) {
      const std::optional<TokenId> id = token.is(Kind::String) ? id_of_(token.text) : std::nullopt;
      if (!id)
        refuse(step.file, step.field + ".special_tokens." + escaped(name) + ".tokens",
               token.shown(), "a token of the tokenizer");
      out.push_back(*id);
    }
  }

  const std::function<std::optional<TokenId>(const std::string&)>& id_of_;
  std::vector<TokenId>&before_, &after_;
  bool has_template_ = false;
};

}  // namespace

void JsonSteps::read_normalizer(const Json* json, Normalizer& out) const {
  if (json) add_normalizer({*json, path_, "normalizer"}, out);
}

void JsonSteps::read_pre_tokenizer(const Json* json, PreTokenizer& out) const {
  if (json) add_pre_tokenizer({*json, path_, "pre_tokenizer"}, out);
}

BpeDecoding JsonSteps::read_decoder(const Json* json) const {
  BpeDecoding decoding;
  if (json) add_decoder({*json, path_, "decoder"}, decoding);
  return decoding;
}

void JsonSteps::read_post_processor(
    const Json* json,
    const std::function<std::optional<TokenId>(const std::string&)>& id_of,
    std::vector<TokenId>& before,
    std::vector<TokenId>& after) const {
  if (json) PostProcessor(id_of, before, after).add({*json, path_, "post_processor"});
}

}  // namespace engine
