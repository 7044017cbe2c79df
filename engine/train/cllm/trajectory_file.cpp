#include "engine/train/cllm/trajectory_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "engine/base/types.h"
#include "engine/event/recording/recording_format.h"

namespace engine {
namespace {

constexpr std::string_view kMagic{"DSTRAJ\r\n", 8};

void put_tokens(std::string& bytes, std::span<const TokenId> tokens) {
  put_u32(bytes, static_cast<std::uint32_t>(tokens.size()));
  for (const TokenId token : tokens) put_u32(bytes, static_cast<std::uint32_t>(token));
}

std::string body_of(const CollectedText& text) {
  const Trajectory& t = text.trajectory;
  std::string bytes;
  put_u64(bytes, static_cast<std::uint64_t>(t.index));
  bytes += static_cast<char>(text.drop);
  bytes += static_cast<char>((text.checked ? 1 : 0) + (t.ended ? 2 : 0));
  put_u32(bytes, static_cast<std::uint32_t>(t.part.size()));
  bytes += t.part;
  put_tokens(bytes, t.prompt);
  put_tokens(bytes, t.output);
  put_tokens(bytes, t.truth);
  put_u32(bytes, static_cast<std::uint32_t>(t.blocks.size()));
  for (const BlockPoints& points : t.blocks) {
    put_u32(bytes, static_cast<std::uint32_t>(points.size()));
    for (const auto& point : points) put_tokens(bytes, point);
  }
  return bytes;
}

// Reads values from a body, checking its length.
class BodyReader {
 public:
  explicit BodyReader(std::string_view bytes) : bytes_(bytes) {}
  bool whole() const { return whole_ && bytes_.empty(); }

  std::string_view take(std::size_t n) {
    whole_ = whole_ && n <= bytes_.size();
    if (!whole_) return {};
    const std::string_view part = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return part;
  }
  std::uint64_t u64() {
    const auto part = take(8);
    return whole_ ? get_u64(part) : 0;
  }
  std::uint32_t u32() {
    const auto part = take(4);
    return whole_ ? get_u32(part) : 0;
  }
  std::uint8_t u8() {
    const auto part = take(1);
    return whole_ ? static_cast<std::uint8_t>(part[0]) : std::uint8_t{0};
  }
  /// Reads a count of elements, each of which takes at least 4 bytes.
  std::size_t count() {
    const std::size_t n = u32();
    whole_ = whole_ && n <= bytes_.size() / 4;
    return whole_ ? n : 0;
  }
  std::vector<TokenId> tokens() {
    std::vector<TokenId> out(count());
    for (TokenId& token : out) token = static_cast<TokenId>(u32());
    return out;
  }

 private:
  std::string_view bytes_;
  bool whole_ = true;
};

// False if the bytes are not a valid text.
bool read_body(std::string_view bytes, CollectedText& text) {
  BodyReader reader(bytes);
  Trajectory& t = text.trajectory;
  t.index = static_cast<std::int64_t>(reader.u64());
  const std::uint8_t drop = reader.u8(), flags = reader.u8();
  text.drop = static_cast<Drop>(drop);
  text.checked = (flags & 1) != 0;
  t.ended = (flags & 2) != 0;
  t.part = std::string(reader.take(reader.u32()));
  t.prompt = reader.tokens();
  t.output = reader.tokens();
  t.truth = reader.tokens();
  t.blocks.resize(reader.count());
  for (BlockPoints& points : t.blocks) {
    points.resize(reader.count());
    for (auto& point : points) point = reader.tokens();
  }
  return reader.whole() && drop <= static_cast<std::uint8_t>(Drop::Evaluation);
}

// Finds the body of the frame at `at` and advances `at` to the next frame. False if the frame is
// incomplete.
bool next_frame(std::string_view file, std::size_t& at, std::string_view& body) {
  const std::string_view left = file.substr(at);
  if (left.size() < kFrameHeadBytes || !left.starts_with(kFrameMarker)) return false;
  const std::uint32_t n = get_u32(left.substr(2));
  if (n > kMaxFrameBytes || n > left.size() - kFrameHeadBytes) return false;
  body = left.substr(kFrameHeadBytes, n);
  if (crc_of(body, crc_of(left.substr(2, 4))) != get_u32(left.substr(6))) return false;
  at += kFrameHeadBytes + n;
  return true;
}

std::string bytes_of(const std::string& path) {
  std::ostringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

}  // namespace

CollectCounts counts_of(const std::vector<CollectedText>& texts) {
  CollectCounts c;
  for (const CollectedText& text : texts) {
    c.n_evaluation += text.drop == Drop::Evaluation;
    c.n_texts += text.drop != Drop::Evaluation;
    c.n_wrong += text.drop == Drop::Wrong;
    c.n_token_runs += text.drop == Drop::TokenRun;
    c.n_sentence_runs += text.drop == Drop::SentenceRun;
    c.n_too_long += text.drop == Drop::TooLong;
    if (text.drop != Drop::None) continue;
    c.n_kept++;
    c.n_unchecked += !text.checked;
    c.n_not_ended += !text.trajectory.ended;
    c.n_tokens += static_cast<std::int64_t>(text.trajectory.output.size());
    for (const BlockPoints& points : text.trajectory.blocks) {
      c.n_blocks++;
      c.n_points += static_cast<std::int64_t>(points.size());
      c.n_iterations += static_cast<double>(points.size() - 1);
    }
  }
  return c;
}

std::string words_of(const CollectCounts& c) {
  std::string blocks;
  if (c.n_blocks > 0)
    blocks = fmt::format(": {} blocks, {} points, {:.1f} iterations a block", c.n_blocks,
                         c.n_points, c.n_iterations / static_cast<double>(c.n_blocks));
  std::string text = fmt::format(
      "{} answers, {} kept ({} not checked, {} not ended){}; dropped: {} wrong, {} with a "
      "repeated token, {} with a repeated sentence, {} too long",
      c.n_texts, c.n_kept, c.n_unchecked, c.n_not_ended, blocks, c.n_wrong, c.n_token_runs,
      c.n_sentence_runs, c.n_too_long);
  if (c.n_evaluation > 0)
    text += fmt::format("; not answered: {} that overlap an evaluation question", c.n_evaluation);
  return text;
}

TrajectoryFile::TrajectoryFile(const std::string& path, const std::string& header) : path_(path) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  const bool is_there = fs::exists(path, unknown);
  std::string beginning(kMagic);
  put_frame(beginning, header);
  if (is_there) {
    const std::string file = bytes_of(path);
    if (!std::string_view(file).starts_with(kMagic.substr(0, file.size()))) {
      throw Error(ErrorCode::BadInput,
                  path + ": expected collected trajectories; name another directory");
    }
    std::size_t at = kMagic.size();
    std::string_view body;
    const bool begun = file.size() > at && next_frame(file, at, body);
    if (begun && body != header) {
      throw Error(
          ErrorCode::BadInput,
          path + ": was collected with another recipe or model; use those, or another directory");
    }
    std::size_t whole = begun ? at : 0;
    while (begun && next_frame(file, at, body)) {
      CollectedText text;
      if (!read_body(body, text)) break;
      whole = at;
      indices_.push_back(text.trajectory.index);
      texts_.push_back(std::move(text));
    }
    if (whole < file.size()) fs::resize_file(path, whole, unknown);
    if (whole > 0) beginning.clear();
  }
  std::sort(indices_.begin(), indices_.end());
  file_.reset(std::fopen(path.c_str(), "ab"));
  if (!file_)
    throw Error(ErrorCode::Resources, path + ": cannot be written: " + std::strerror(errno));
  if (!beginning.empty()) append(beginning);
}

void TrajectoryFile::append(const std::string& bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size() ||
      std::fflush(file_.get()) != 0) {
    throw Error(ErrorCode::Resources, path_ + ": cannot be written: " + std::strerror(errno));
  }
}

void TrajectoryFile::add(const CollectedText& text) {
  std::string frame;
  put_frame(frame, body_of(text));
  append(frame);
  const std::int64_t index = text.trajectory.index;
  indices_.insert(std::ranges::lower_bound(indices_, index), index);
  texts_.push_back(text);
}

std::vector<CollectedText> TrajectoryFile::texts() const {
  std::vector<CollectedText> sorted = texts_;
  std::ranges::sort(sorted, {}, [](const CollectedText& t) { return t.trajectory.index; });
  return sorted;
}

bool TrajectoryFile::has(std::int64_t index) const {
  return std::ranges::binary_search(indices_, index);
}

std::int64_t TrajectoryFile::count_below(std::int64_t end) const {
  return std::ranges::lower_bound(indices_, end) - indices_.begin();
}

}  // namespace engine
