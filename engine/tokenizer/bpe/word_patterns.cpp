#include "engine/tokenizer/bpe/word_patterns.h"

#include <algorithm>

namespace engine {
namespace {

// clang-format off
constexpr std::string_view kGpt2 =
    R"P('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)P";
constexpr std::string_view kLlama3 =
    R"P((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)P"
    R"P( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)P";
constexpr std::string_view kQwen2 =
    R"P((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)P"
    R"P( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)P";
constexpr std::string_view kQwen35 =
    R"P((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)P"
    R"P( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)P";
constexpr std::string_view kO200k =
    R"P([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|)P"
    R"P('t|'re|'ve|'m|'ll|'d)?|)P"
    R"P([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|)P"
    R"P('t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|)P"
    R"P(\s+)P";
constexpr std::string_view kTekken =
    R"P([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)P"
    R"P([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}|)P"
    R"P( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)P";
constexpr std::string_view kLatin =
    R"P(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ)P"
    R"P(-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ)P"
    R"P(-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)P";
constexpr std::string_view kDeepseekWords =
    R"P([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)P"
    R"P([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)P";
constexpr std::string_view kCjk =
    R"P([一-龥ࠀ-一가-퟿]+)P";
constexpr std::string_view kKana =
    R"P([一-龥぀-ゟ゠-ヿ]+)P";

std::vector<WordPatterns> made_kinds() {
  return {
      {{"default"},
       {R"P([\p{P}\$\+<=>\^~\|]+)P", kGpt2, R"P(\p{N}+)P", R"P([0-9][0-9][0-9])P"}},
      {{"gpt-2", "phi-2", "mpt", "olmo", "jais", "gigachat", "a.x-4.0", "mellum", "exaone4", "trillion", "granite-docling"},
       {kGpt2}},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"},
       {kLlama3}, true, true},
      {{"dbrx", "smaug-bpe", "chatglm-bpe"},
       {kLlama3}},
      {{"glm4", "glm5"},
       {kLlama3}, true},
      {{"llama4", "gpt-4o", "kanana2", "minimax-m2"},
       {kO200k}},
      {{"tekken"},
       {kTekken}, true, true},
      {{"qwen2", "stablelm2", "deepseek-r1-qwen", "megrez", "hunyuan", "solar-open", "grok-2"},
       {kQwen2}},
      {{"qwen35"},
       {kQwen35}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"},
       {R"P(\p{N})P", kGpt2}},
      {{"falcon"},
       {R"P([\p{P}\$\+<=>\^~\|`]+)P", kGpt2, R"P([0-9][0-9][0-9])P"}},
      {{"deepseek-llm"},
       {R"P([\r\n])P", kLatin, R"P(\s?[!-/:-~！-／：-～‘-‟　-。]+)P", R"P(\s+$)P", kCjk, R"P(\p{N}+)P"}},
      {{"deepseek-coder"},
       {R"P([\r\n])P", R"P(\s?\p{L}+)P", R"P(\s?\p{P}+)P", kCjk, R"P(\p{N})P"}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm"},
       {R"P(\p{N}{1,3})P", kKana, kDeepseekWords}},
  };
}
// clang-format on

}  // namespace

std::span<const WordPatterns> all_word_patterns() {
  static const std::vector<WordPatterns> kinds = made_kinds();
  return kinds;
}

const WordPatterns* word_patterns_named(std::string_view name) {
  const std::span<const WordPatterns> kinds = all_word_patterns();
  const auto at = std::ranges::find_if(kinds, [&](const WordPatterns& kind) {
    return std::ranges::find(kind.names, name) != kind.names.end();
  });
  return at == kinds.end() ? nullptr : &*at;
}

void add_patterns(const WordPatterns& kind,
                  const SplitPattern::Origin& origin,
                  PreTokenizer& pre_tokenizer) {
  for (const std::string_view pattern : kind.patterns)
    pre_tokenizer.add(SplitStep{.pattern = SplitPattern::regex(pattern, origin)});
}

}  // namespace engine
