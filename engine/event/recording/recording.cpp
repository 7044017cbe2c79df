#include "engine/event/recording/recording.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "engine/base/file_kind.h"
#include "engine/event/recording/recording_format.h"
#include "engine/event/serialise.h"

namespace engine {
namespace {

constexpr std::size_t kChunkBytes = 1 << 20;
constexpr std::int64_t kEventsPerReport = 4096;

/// Names the format that a file which is not a recording probably has.
std::string guess_type(std::string_view head) {
  if (const std::string kind = recognised_as(head); !kind.empty()) return kind;
  if (head.starts_with("SQLite format 3")) return "an SQLite database";
  const std::size_t text = head.find_first_not_of(" \t\r\n");
  if (text != std::string_view::npos && (head[text] == '{' || head[text] == '[')) {
    return "JSON (an exported trace opens in a trace viewer)";
  }
  return "something else";
}

}  // namespace

std::vector<std::string> RecordingReport::notices() const {
  std::vector<std::string> all;
  if (!stopped.empty())
    all.push_back(fmt::format("reading ended after {} events: {}", n_events, stopped));
  if (incomplete_bytes > 0) {
    all.push_back(
        fmt::format("last {} bytes incomplete: the recording was cut off", incomplete_bytes));
  }
  if (n_damaged > 0) {
    all.push_back(fmt::format("{} damaged events left out, {} bytes", n_damaged, skipped_bytes));
  }
  if (n_unknown_kinds > 0) {
    all.push_back(fmt::format("{} events of kinds this version does not know", n_unknown_kinds));
  }
  if (n_unknown_fields > 0) {
    all.push_back(fmt::format("{} fields this version does not know", n_unknown_fields));
  }
  if (closed && !footer_agrees && stopped.empty()) {
    all.push_back(fmt::format("checksum mismatch: the file says {} events, {} were read",
                              n_events_stated, n_events));
  }
  if (!closed && stopped.empty()) all.push_back("the recording was not closed");
  return all;
}

RecordingReader::RecordingReader(std::unique_ptr<ByteSource> source, const ReadLimits& limits)
    : source_(std::move(source)), limits_(limits) {
  ensure(source_ != nullptr, "reading a recording needs a source");
  report_.file_bytes = source_->size();
  read_header();
}

void RecordingReader::read_header() {
  const std::string_view head = bytes_at(0, kHeaderHeadBytes);
  const std::size_t n_magic = std::min(head.size(), kRecordingMagic.size());
  if (head.substr(0, n_magic) != kRecordingMagic.substr(0, n_magic)) {
    const std::string looks_like = guess_type(bytes_at(0, 64));
    throw Error(ErrorCode::BadInput,
                fmt::format("{}: bytes 0..8: found {}, expected a Decoscope recording (.pdrun)",
                            source_->name(), looks_like));
  }
  if (head.size() < kHeaderHeadBytes) return give_up_at(0);
  report_.version = get_u32(head.substr(8));
  if (report_.version < 1 || report_.version > kRecordingVersion) {
    throw Error(ErrorCode::BadInput,
                fmt::format("{}: version: found {}, expected 1 to {}; a newer program recorded it",
                            source_->name(), report_.version, kRecordingVersion));
  }
  const std::uint32_t n = get_u32(head.substr(12));
  pos_ = kHeaderHeadBytes;
  const bool is_cut = kHeaderHeadBytes + std::uint64_t{n} + 4 > report_.file_bytes;
  if (n >= 12 && n <= kMaxHeaderBytes && !is_cut) {
    const std::string_view whole = bytes_at(8, 8 + std::size_t{n} + 4);
    if (whole.size() < 8 + std::size_t{n} + 4) return give_up_at(0);  // truncated meanwhile
    const std::string_view fields = whole.substr(8, n);
    if (crc_of(whole.substr(0, 8 + n)) == get_u32(whole.substr(8 + n))) {
      const std::size_t n_version = std::min<std::size_t>(get_u32(fields), n - 12);
      report_.program_version = fields.substr(4, n_version);
      report_.unix_seconds = static_cast<std::int64_t>(get_u64(fields.substr(4 + n_version)));
      pos_ = kHeaderHeadBytes + n + 4;
      return;
    }
  }
  // The header is damaged, perhaps its length; the frame marker finds the frames after it.
  const auto found = next_frame_after(pos_ - 1);
  if (!found && is_cut) return give_up_at(0);
  ++report_.n_damaged;
  if (!found) return give_up_at(pos_);
  report_.skipped_bytes += *found - pos_;
  pos_ = *found;
}

std::string_view RecordingReader::bytes_at(std::uint64_t offset, std::size_t n) {
  if (offset >= report_.file_bytes) return {};
  n = static_cast<std::size_t>(std::min<std::uint64_t>(n, report_.file_bytes - offset));
  const bool inside = offset >= buffer_offset_ && offset + n <= buffer_offset_ + buffer_.size();
  if (!inside) {
    const std::uint64_t left = report_.file_bytes - offset;
    buffer_.resize(
        static_cast<std::size_t>(std::min<std::uint64_t>(left, std::max(n, kChunkBytes))));
    buffer_offset_ = offset;
    std::size_t filled = 0;
    while (filled < buffer_.size()) {
      const std::size_t got = source_->read_at(offset + filled, std::span(buffer_).subspan(filled));
      if (got == 0) break;  // another process truncated the file
      filled += got;
    }
    if (filled < buffer_.size()) report_.file_bytes = offset + filled;
    buffer_.resize(filled);
  }
  return std::string_view(buffer_).substr(static_cast<std::size_t>(offset - buffer_offset_), n);
}

std::optional<RecordingReader::Frame> RecordingReader::frame_at(std::uint64_t offset) {
  std::string_view head = bytes_at(offset, kFrameHeadBytes);
  if (head.size() < kFrameHeadBytes || head.substr(0, 2) != kFrameMarker) return std::nullopt;
  const std::uint32_t length = get_u32(head.substr(2));
  const std::uint32_t crc = get_u32(head.substr(6));
  if (length > kMaxFrameBytes || length > report_.file_bytes - offset - kFrameHeadBytes) {
    return std::nullopt;
  }
  const std::string_view whole = bytes_at(offset, kFrameHeadBytes + length);
  if (whole.size() < kFrameHeadBytes + length) return std::nullopt;
  const std::string_view body = whole.substr(kFrameHeadBytes);
  n_searched_ += length;
  if (crc_of(body, crc_of(whole.substr(2, 4))) != crc) return std::nullopt;
  return Frame{.body = body, .crc = crc};
}

std::optional<std::uint64_t> RecordingReader::next_frame_after(std::uint64_t offset) {
  // Limits the search for frames: in a malicious file each of many markers could make the reader
  // checksum megabytes.
  const std::uint64_t budget = 8 * report_.file_bytes + kMaxFrameBytes;
  for (std::uint64_t at = offset + 1; at < report_.file_bytes && n_searched_ < budget;) {
    const std::string_view chunk = bytes_at(at, kChunkBytes);
    if (chunk.empty()) break;
    const std::size_t found = chunk.find(kFrameMarker);
    if (found == std::string_view::npos) {
      // The next chunk begins with the last byte of this one, because a marker may lie across both.
      at += chunk.size() == 1 ? 1 : chunk.size() - 1;
      if (at + 1 >= report_.file_bytes) break;
      continue;
    }
    at += found;
    if (frame_at(at)) return at;
    ++at;
  }
  return std::nullopt;
}

void RecordingReader::give_up_at(std::uint64_t offset) {
  report_.incomplete_bytes = report_.file_bytes - offset;
  report_.read_bytes = report_.file_bytes;
  done_ = true;
}

void RecordingReader::take_footer(std::string_view body) {
  if (body.size() < kFooterBytes) return;
  report_.closed = true;
  report_.n_events_stated = static_cast<std::int64_t>(get_u64(body.substr(2)));
  const std::int64_t n_frames = report_.n_events + report_.n_unknown_kinds;
  report_.footer_agrees =
      report_.n_events_stated == n_frames && get_u32(body.substr(10)) == crc_of_crcs_;
}

bool RecordingReader::within_limits() {
  if (report_.n_events >= limits_.max_events) {
    report_.stopped = fmt::format("limit of {} events", limits_.max_events);
  } else if (pos_ >= limits_.max_bytes) {
    report_.stopped = fmt::format("limit of {} bytes", limits_.max_bytes);
  } else {
    return true;
  }
  done_ = true;
  return false;
}

std::optional<Event> RecordingReader::next() {
  while (!done_) {
    if (pos_ >= report_.file_bytes) {
      done_ = true;
      break;
    }
    if (!within_limits()) break;
    const std::optional<Frame> frame = frame_at(pos_);
    if (!frame) {
      const std::optional<std::uint64_t> found = next_frame_after(pos_);
      if (!found) {
        give_up_at(pos_);
        break;
      }
      ++report_.n_damaged;
      report_.skipped_bytes += *found - pos_;
      pos_ = *found;
      continue;
    }
    pos_ += kFrameHeadBytes + frame->body.size();
    report_.read_bytes = pos_;
    if (frame->body.size() >= 2 && get_u16(frame->body) == kFooterKind) {
      take_footer(frame->body);
      continue;
    }
    std::string crc;
    put_u32(crc, frame->crc);
    crc_of_crcs_ = crc_of(crc, crc_of_crcs_);
    try {
      Decoded decoded = decode(frame->body);
      report_.n_unknown_fields += decoded.n_unknown_fields;
      if (!decoded.event) {
        ++report_.n_unknown_kinds;
        continue;
      }
      ++report_.n_events;
      return std::move(decoded.event);
    } catch (const Error&) {  // the checksum is right, but the content is no event of this program
      ++report_.n_damaged;
      report_.skipped_bytes += frame->body.size();
    }
  }
  return std::nullopt;
}

RecordingReport read_recording(const std::string& path,
                               EventSink& into,
                               const ReadLimits& limits,
                               const ReadProgress& progress) {
  RecordingReader reader(open_file(path), limits);
  const auto fraction = [&] {
    const RecordingReport& r = reader.report();
    return r.file_bytes > 0 ? static_cast<double>(r.read_bytes) / static_cast<double>(r.file_bytes)
                            : 1.0;
  };
  while (std::optional<Event> event = reader.next()) {
    into.push(std::move(*event));
    const bool due = reader.report().n_events % kEventsPerReport == 0;
    if (due && progress && !progress(fraction())) {
      RecordingReport report = reader.report();
      report.stopped = "cancelled";
      return report;
    }
  }
  if (progress) progress(1.0);
  return reader.report();
}

RecordingReport load_recording(const std::string& path,
                               Timeline& timeline,
                               const ReadLimits& limits,
                               const ReadProgress& progress) {
  class IntoTimeline : public EventSink {
   public:
    explicit IntoTimeline(Timeline& t) : timeline_(t) {}
    void push(Event event) override { timeline_.apply(event); }

   private:
    Timeline& timeline_;  // outlives the call
  };
  IntoTimeline sink(timeline);
  return read_recording(path, sink, limits, progress);
}

}  // namespace engine
