// The model store: which models stay in memory, and which are evicted for others.
#include <sys/resource.h>
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "engine/checkpoint/heads_files.h"
#include "engine/store/memory_plan.h"
#include "engine/store/model_store.h"
#include "tests/support/files.h"
#include "tests/support/models/heads_folder.h"
#include "tests/support/refusal.h"

namespace engine {
namespace {

using test::Folder;
using test::HeadsFolder;
using test::read_file;
using test::refusal;
using test::write_file;

/// Limits this process to `bytes` more bytes of memory while the object lives.
class MemoryLeft {
 public:
  explicit MemoryLeft(std::int64_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + bytes);
    setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryLeft() { setrlimit(RLIMIT_AS, &before_); }
  MemoryLeft(const MemoryLeft&) = delete;
  MemoryLeft& operator=(const MemoryLeft&) = delete;

 private:
  rlimit before_{};
};

TEST(ModelStore, a_cached_model_is_evicted_when_memory_is_short) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the address space cannot be limited under a sanitizer";
#endif
  if (!std::filesystem::exists(DECOSCOPE_SOURCE_DIR "/assets/models/demo-target/config.json")) {
    FAIL() << "assets/models/demo-target is not in this tree";
  }
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const ModelRequest held{.scale = "4x1"}, asked{.scale = "4x1", .dtype = "f16"};
  const LoadedModel& first = store.get(held);
  const std::uint32_t id = first.id;
  const double needed = memory_plan(first.model->config(), first.model->dtype()).needed();
  {
    const MemoryLeft left(static_cast<std::int64_t>(needed) - (std::int64_t{8} << 20));
    EXPECT_EQ(store.get(asked).id, id + 1);
    // Even an empty store has no room for this model, so cached models stay.
    EXPECT_THROW(store.get({.scale = "4x8"}), Error);
    EXPECT_EQ(store.get(asked).id, id + 1);
  }
  EXPECT_EQ(store.get(held).id, id + 2);  // loaded again
}

TEST(ModelStore, models_stay_while_memory_suffices) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const std::uint32_t id = store.get({}).id;
  EXPECT_EQ(store.get({.dtype = "f32"}).id, id + 1);
  EXPECT_EQ(store.get({}).id, id);
}

TEST(ModelStore, a_draft_comes_from_the_card_or_the_option) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const RunModels models = store.get_with_draft({.scale = "4x1"}, {}, "speculative");
  ASSERT_NE(models.draft, nullptr);
  EXPECT_EQ(models.target.model->name(), "demo-target");
  EXPECT_EQ(models.target.model->scale(), (ModelScale{4, 1}));
  EXPECT_EQ(models.draft->model->name(), "demo-draft");
  EXPECT_EQ(models.draft->model->scale(), (ModelScale{4, 1})) << "the target's";
  EXPECT_NE(models.draft->id, models.target.id);
  // Both are loaded and can be used alone, too.
  const RunModels again = store.get_with_draft({.scale = "4x1"}, {.draft = "demo-draft"}, "mcsd");
  EXPECT_EQ(again.target.id, models.target.id);
  EXPECT_EQ(again.draft->id, models.draft->id);
  EXPECT_EQ(store.get({.model = "demo-draft", .scale = "4x1"}).id, models.draft->id);
  const RunModels small =
      store.get_with_draft({.scale = "4x1"}, {.draft_scale = "1x1"}, "speculative");
  EXPECT_EQ(small.target.id, models.target.id);
  EXPECT_EQ(small.draft->model->scale(), ModelScale{});
  // A pair in another dtype: although the store keeps only three models, neither evicts the other.
  const RunModels other = store.get_with_draft({.dtype = "f32"}, {}, "speculative");
  EXPECT_EQ(other.draft->model->dtype(), kernels::DType::F32);
  EXPECT_EQ(other.target.model->dtype(), kernels::DType::F32);
  EXPECT_EQ(store.get({.dtype = "f32"}).id, other.target.id);
}

TEST(ModelStore, the_cache_has_the_requested_type) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const auto bytes_per_token = [&](const std::string& type) {
    const LoadedModel& loaded = store.get({.cache_type = type});
    return cache_bytes_per_token(loaded.model->config(), loaded.model->cache_type());
  };
  EXPECT_EQ(bytes_per_token("f32"), 2 * bytes_per_token(""));
  EXPECT_EQ(bytes_per_token("q8_0"), bytes_per_token("f16") * 17 / 32);
  EXPECT_EQ(store.get({.cache_type = "q8_0"}).model->dtype(), store.get({}).model->dtype());
  const RunModels pair = store.get_with_draft({.cache_type = "q8_0"}, {}, "speculative");
  EXPECT_EQ(pair.draft->model->cache_type(), kernels::DType::Q8_0);
  const std::string text = refusal([&] { store.get({.cache_type = "q4_0"}); }, ErrorCode::Usage);
  EXPECT_NE(text.find("--cache-type q4_0: expected f32, bf16, f16 or q8_0"), std::string::npos)
      << text;
}

TEST(ModelStore, a_target_without_a_draft_names_the_decoder) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const std::string text =
      refusal([&] { store.get_with_draft({.model = "demo-draft"}, {}, "mcsd"); }, ErrorCode::Usage);
  EXPECT_NE(text.find("mcsd needs a draft model: the card of demo-draft names none"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("--draft"), std::string::npos) << text;
}

/// A piece of lower-case letters that occurs once in the tokenizer's file, so in no other piece;
/// empty: there is none.
std::string word_of_its_own(const Tokenizer& tokenizer, const std::string& file) {
  for (TokenId id = tokenizer.vocab_size() - 1; id >= 0; id--) {
    const std::string piece = tokenizer.piece(id);
    const std::string word = piece.substr(piece.find_first_not_of(' ') == 1 ? 1 : 0);
    const bool is_word = word.size() >= 6 && std::all_of(word.begin(), word.end(), [](char c) {
                           return c >= 'a' && c <= 'z';
                         });
    if (is_word && file.find(word) != std::string::npos && file.find(word) == file.rfind(word))
      return word;
  }
  return "";
}

TEST(ModelStore, a_draft_of_another_vocabulary_is_refused) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const std::string other = DECOSCOPE_SOURCE_DIR "/tests/fixtures/hf/llama_gqa";
  const std::string counts = refusal(
      [&] { store.get_with_draft({.needs_tokenizer = false}, {.draft = other}, "speculative"); },
      ErrorCode::Usage);
  const ModelFiles target = open_model(DECOSCOPE_SOURCE_DIR "/assets/models/demo-target");
  const std::string n_tokens = std::to_string(target.tokenizer->vocab_size());
  for (const std::string& part : {std::string("speculative"), std::string("llama_gqa"),
                                  std::string("demo-target"), std::string("128 tokens"), n_tokens})
    EXPECT_NE(counts.find(part), std::string::npos) << counts;

  // The same number of tokens, of which one has another text.
  const Folder folder;
  std::filesystem::copy(DECOSCOPE_SOURCE_DIR "/assets/models/demo-draft", folder.path());
  const std::string path = folder / "tokenizer.model";
  std::string bytes = read_file(path);
  const std::string word = word_of_its_own(*target.tokenizer, bytes);
  ASSERT_NE(word, "");
  std::string another = word;
  another[0] = another[0] == 'q' ? 'x' : 'q';
  bytes.replace(bytes.find(word), word.size(), another);
  write_file(path, bytes);
  const std::string pieces = refusal(
      [&] { store.get_with_draft({}, {.draft = folder.path()}, "speculative"); }, ErrorCode::Usage);
  for (const std::string& part : {"both vocabularies have " + n_tokens + " tokens", another, word})
    EXPECT_NE(pieces.find(part), std::string::npos) << pieces;
}

/// A copy of the bundled draft in a folder, with one altered file.
std::string altered_draft(const std::string& folder,
                          const std::string& name,
                          const std::string& from,
                          const std::string& to) {
  namespace fs = std::filesystem;
  fs::remove_all(folder);
  fs::copy(DECOSCOPE_SOURCE_DIR "/assets/models/demo-draft", folder);
  fs::remove(fs::path(folder) / "generation_config.json");
  const std::string path = fs::path(folder) / name;
  std::string text = read_file(path);
  EXPECT_NE(text.find(from), std::string::npos);
  text.replace(text.find(from), from.size(), to);
  write_file(path, text);
  return folder;
}

// SD03, SD09.
TEST(ModelStore, a_draft_with_other_special_ids_or_context_is_noted) {
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  EXPECT_TRUE(pair_notices(store.get_with_draft({}, {}, "speculative")).empty());
  EXPECT_TRUE(pair_notices(RunModels(store.get({}))).empty());
  const Folder temporary;
  const std::string folder = temporary / "altered_draft";
  const auto notice_of = [&](const char* file, const std::string& from, const std::string& to) {
    ModelStore own(DECOSCOPE_SOURCE_DIR "/assets", 1);
    const auto notices = pair_notices(
        own.get_with_draft({}, {.draft = altered_draft(folder, file, from, to)}, "speculative"));
    EXPECT_EQ(notices.size(), 1u) << file << ": " << to;
    return notices.empty() ? "" : notices[0];
  };
  const auto expect_notice = [](const std::string& notice, std::vector<std::string> parts) {
    parts.insert(parts.end(), {"draft model altered_draft", " for demo-target: "});
    for (const std::string& part : parts)
      EXPECT_NE(notice.find(part), std::string::npos) << part << "\n" << notice;
  };
  expect_notice(notice_of("config.json", "\"eos_token_id\": 2", "\"eos_token_id\": [9, 2]"),
                {"its end tokens are 2, 9, the target's 2", "the target's end tokens are used"});
  expect_notice(
      notice_of("tokenizer_config.json", "\"bos_token\": \"<s>\"", "\"bos_token\": \"</s>\""),
      {"its begin token is 2, the target's 1", "the target's begin token is used"});
  expect_notice(
      notice_of("tokenizer_config.json", "\"pad_token\": \"<pad>\"", "\"pad_token\": \"e\""),
      {"is special only in the draft", "the target decides"});
  expect_notice(notice_of("config.json", "\"max_position_embeddings\": 1024",
                          "\"max_position_embeddings\": 100"),
                {"its context holds 100 tokens, the target's 1024", "without drafts"});
  std::filesystem::remove_all(folder);
}

TEST(ModelStore, memory_for_both_models_is_checked_before_loading) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the address space cannot be limited under a sanitizer";
#endif
  // Here the large model is the draft and does not fit; the small one alone would.
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const std::int64_t room = std::int64_t{8} << 20;
  std::string text;
  {
    const MemoryLeft left(room);
    text = refusal(
        [&] {
          store.get_with_draft({.model = "demo-draft", .dtype = "f32"}, {.draft = "demo-target"},
                               "speculative");
        },
        ErrorCode::Resources);
  }
  EXPECT_NE(text.find("demo-draft with the draft model demo-target"), std::string::npos) << text;
  const auto needed = [](const LoadedModel& loaded) {
    return memory_plan(loaded.model->config(), loaded.model->dtype()).needed();
  };
  const RunModels models = store.get_with_draft({.model = "demo-draft", .dtype = "f32"},
                                                {.draft = "demo-target"}, "speculative");
  EXPECT_NE(text.find(size_words(needed(models.target) + needed(*models.draft)) +
                      " of memory are needed"),
            std::string::npos)
      << text;
  EXPECT_LT(needed(models.target), static_cast<double>(room)) << "it would fit alone";
}

TEST(ModelStore, heads_load_with_their_target_and_are_shared) {
  const HeadsFolder medusa(HeadsKind::Medusa, 3), chimera(HeadsKind::Chimera, 2);
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const DraftResources draft_resources{.draft = "", .heads = {chimera.path(), medusa.path()}};
  const std::uint32_t alone = store.get({}).id;
  const RunModels models =
      store.get_for({}, draft_resources, {"ar", "medusa", "speculative", "chimera"}, {});
  EXPECT_EQ(models.target.id, alone) << "a loaded target gets heads without being loaded again";
  ASSERT_NE(models.draft, nullptr);
  ASSERT_NE(models.medusa, nullptr);
  ASSERT_NE(models.chimera, nullptr);
  EXPECT_EQ(models.heads_of("medusa"), models.medusa);
  EXPECT_EQ(models.heads_of("chimera"), models.chimera);
  EXPECT_EQ(models.heads_of("ar"), nullptr);
  EXPECT_EQ(models.medusa->heads->n_heads(), 3);
  EXPECT_EQ(models.chimera->heads->n_heads(), 2);
  EXPECT_NE(models.medusa->id, models.target.id);
  // The same weights again for one of them alone.
  const RunModels again =
      store.get_for({}, {.draft = "", .heads = {medusa.path()}}, {"medusa"}, {});
  EXPECT_EQ(again.medusa, models.medusa);
  EXPECT_EQ(again.chimera, nullptr);
  EXPECT_EQ(again.draft, nullptr);
  // Scaled with the target, they are other weights.
  const RunModels large = store.get_for({.scale = "4x1"}, draft_resources, {"medusa"}, {});
  EXPECT_NE(large.medusa->id, models.medusa->id);
  const ModelLoaded reported = describe(*large.medusa, large.target);
  EXPECT_EQ(reported.scale, "4x1");
  EXPECT_EQ(reported.n_layers, 3);
  EXPECT_EQ(reported.model, large.medusa->id);
  EXPECT_GT(reported.weight_bytes, 4 * describe(*models.medusa, models.target).weight_bytes);
}

TEST(ModelStore, unnamed_heads_are_reported_by_the_decoder) {
  const HeadsFolder medusa(HeadsKind::Medusa, 2);
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const ModelRequest draft{.model = "demo-draft"};  // its card names no heads
  const std::string none =
      refusal([&] { store.get_for(draft, {}, {"medusa"}, {}); }, ErrorCode::Usage);
  EXPECT_NE(none.find("medusa needs draft heads: the card of demo-draft names none"),
            std::string::npos)
      << none;
  const std::string other = refusal(
      [&] { store.get_for(draft, {.draft = "", .heads = {medusa.path()}}, {"medusa"}, {}); },
      ErrorCode::BadInput);
  EXPECT_NE(other.find("hidden_size"), std::string::npos) << other;
}

TEST(ModelStore, memory_for_heads_is_checked_before_loading) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the address space cannot be limited under a sanitizer";
#endif
  const HeadsFolder medusa(HeadsKind::Medusa, 40);  // at 4x1 far larger than the target itself
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  const ModelRequest request{.scale = "4x1"};
  const double target = [&] {
    const ModelFiles files = open_model(DECOSCOPE_SOURCE_DIR "/assets/models/demo-target");
    return memory_plan(scaled(files.config, {4, 1}), kernels::DType::BF16).needed();
  }();
  std::string text;
  {
    const MemoryLeft left(static_cast<std::int64_t>(target) + (std::int64_t{8} << 20));
    text = refusal(
        [&] { store.get_for(request, {.draft = "", .heads = {medusa.path()}}, {"medusa"}, {}); },
        ErrorCode::Resources);
  }
  EXPECT_NE(text.find("of memory are needed"), std::string::npos) << text;
}

// Memory suffices for everything except half of the k-gram table.
TEST(ModelStore, memory_for_chimeras_k_gram_table_is_checked) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the address space cannot be limited under a sanitizer";
#endif
  const HeadsFolder chimera(HeadsKind::Chimera, 1);
  const ModelFiles files = open_model(DECOSCOPE_SOURCE_DIR "/assets/models/demo-target");
  const ModelScale scale{4, 1};
  const HeadsConfig heads = scaled(open_heads(chimera.path(), &files).config, scale);
  const double table = static_cast<double>(gram_table_bytes(heads));
  ASSERT_GT(table, 15e6);
  const double others = memory_plan(scaled(files.config, scale), kernels::DType::BF16).needed() +
                        memory_plan(heads, kernels::DType::BF16, /*with_table=*/false).needed();
  ModelStore store(DECOSCOPE_SOURCE_DIR "/assets", 1);
  std::string text;
  {
    const MemoryLeft left(static_cast<std::int64_t>(others + table / 2));
    text = refusal(
        [&] {
          store.get_for({.scale = "4x1"}, {.draft = "", .heads = {chimera.path()}}, {"chimera"},
                        {});
        },
        ErrorCode::Resources);
  }
  EXPECT_NE(text.find(size_words(others + table) + " of memory are needed"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace engine
