#include "engine/trace/reader.h"

#include <istream>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>
#include <nlohmann/json.hpp>

#include "engine/base/byte_source.h"
#include "engine/base/output_file.h"
#include "engine/base/text.h"
#include "engine/base/types.h"

namespace engine {
namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxString = 16'000'000;
constexpr std::size_t kMaxRuns = 10'000;  // with metadata kept
constexpr std::size_t kChunkBytes = 256u << 10;

/// Passes bytes on to the parser, and records what the parser does not report: the beginning of the
/// file and escaped surrogates. Also checks for cancellation, as every byte passes here.
class Watcher : public std::streambuf {
 public:
  Watcher(std::streambuf& from, RawTrace& trace, const std::function<bool()>& stop)
      : from_(from), trace_(trace), stop_(stop) {}

 protected:
  int_type underflow() override {
    if (stop_ && stop_()) throw Error(ErrorCode::Cancelled, "cancelled while the trace was read");
    const std::streamsize n = from_.sgetn(chunk_, sizeof(chunk_));
    if (n <= 0) return traits_type::eof();
    for (std::streamsize i = 0; i < n; ++i) look_at(chunk_[i]);
    setg(chunk_, chunk_, chunk_ + n);
    return traits_type::to_int_type(chunk_[0]);
  }

 private:
  void look_at(char c) {
    if (beginning_.size() < 3 && !(c == ' ' || c == '\n' || c == '\r' || c == '\t')) {
      beginning_ += c;
      trace_.good_beginning = beginning_.substr(0, 2) == "{\"" || beginning_ == "[{\"";
    }
    // Recognises an escaped surrogate: after an unescaped backslash u, then d or D, then 8 to b.
    if (escape_ == 0) {
      escape_ = c == '\\' ? 1 : 0;
    } else if (escape_ == 1) {
      escape_ = c == 'u' ? 2 : 0;
    } else if (escape_ == 2) {
      escape_ = c == 'd' || c == 'D' ? 3 : 0;
    } else {
      const bool high = (c >= '8' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if (high) trace_.escaped_surrogates = true;
      escape_ = 0;
    }
  }

  std::streambuf& from_;
  RawTrace& trace_;
  const std::function<bool()>& stop_;  // these three outlive this object
  std::string beginning_;
  int escape_ = 0;
  char chunk_[16 << 10];
};

/// Tracks the parser's position in the document; passes each event on when it is complete.
class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  Handler(RawTrace& trace, const std::function<void(RawTraceEvent&&)>& on_event)
      : trace_(trace), on_event_(on_event) {}

  bool null() override { return value({}); }
  bool boolean(bool x) override {
    return value({.type = TraceValue::Type::Bool, .number = x ? 1.0 : 0.0, .text = {}});
  }
  bool number_integer(number_integer_t x) override {
    return number(static_cast<double>(x), true, std::to_string(x));
  }
  bool number_unsigned(number_unsigned_t x) override {
    return number(static_cast<double>(x), true, std::to_string(x));
  }
  bool number_float(number_float_t x, const string_t& text) override {
    return number(x, false, text);
  }
  bool string(string_t& text) override {
    if (text.size() > kMaxString) return refuse("a string of more than 16 MB");
    return value({.type = TraceValue::Type::String, .text = text});
  }
  bool binary(binary_t& /*x*/) override { return refuse("binary data"); }

  bool start_object(std::size_t /*n*/) override { return open(TraceValue::Type::Object); }
  bool start_array(std::size_t /*n*/) override { return open(TraceValue::Type::Array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& text) override {
    keys_.back() = text.substr(0, 4096);
    return true;
  }
  bool parse_error(std::size_t position,
                   const std::string& /*last_token*/,
                   const nlohmann::detail::exception& error) override {
    const std::string what = error.what();
    const bool at_end = what.find("unexpected end of input") != std::string::npos;
    trace_.cut = trace_.array_form && at_end && n_events_ > 0;
    if (!trace_.cut) {
      trace_.error = fmt::format("byte {}: {}", position, escaped(what));
    }
    return false;
  }

 private:
  bool refuse(std::string why) {
    trace_.error = std::move(why);
    return false;
  }

  bool number(double x, bool integer, std::string text) {
    return value({.type = TraceValue::Type::Number,
                  .number = x,
                  .integer = integer,
                  .text = std::move(text)});
  }

  /// The nesting depth of the events.
  std::size_t event_depth() const { return trace_.array_form ? 1 : 2; }
  bool in_events() const {
    return trace_.array_form ? !keys_.empty() : keys_.size() >= 2 && keys_[0] == "traceEvents";
  }

  bool value(TraceValue x) {
    const std::size_t depth = keys_.size();
    if (depth == 0) return refuse("the document is a single value, expected an object or array");
    if (in_events() && depth == event_depth()) {
      begin_event(false);
      end_event();
    } else if (in_events() && depth == event_depth() + 1 && event_.is_object) {
      keep(event_.fields, std::move(x));
    } else if (in_args()) {
      keep(event_.args, std::move(x));
    } else if (depth == 2 && keys_[0] == "metadata") {
      trace_.metadata[keys_[1]] = std::move(x);
    } else if (in_run()) {
      trace_.runs.back()[keys_[3]] = std::move(x);
    }
    return true;
  }

  /// True inside an element of "runs" in "metadata". Arrays and objects inside it are kept only as
  /// their type.
  bool in_run() const {
    return keys_.size() == 4 && keys_[0] == "metadata" && keys_[1] == "runs" &&
           !trace_.runs.empty();
  }

  bool in_args() const {
    return in_events() && keys_.size() == event_depth() + 2 && keys_[event_depth()] == "args" &&
           event_.is_object;
  }

  void keep(std::map<std::string, TraceValue>& fields, TraceValue x) {
    const std::string& name = keys_.back();
    if (!fields.emplace(name, std::move(x)).second) event_.duplicate_keys.push_back(name);
  }

  bool open(TraceValue::Type type) {
    const std::size_t depth = keys_.size();
    if (depth >= kMaxDepth) return refuse("nested more than 64 deep");
    if (depth == 0) {
      trace_.array_form = type == TraceValue::Type::Array;
      trace_.has_events = trace_.array_form;
    } else if (depth == 1 && !trace_.array_form && keys_[0] == "traceEvents") {
      if (type == TraceValue::Type::Array) trace_.has_events = true;
    } else if (in_events() && depth == event_depth()) {
      begin_event(type == TraceValue::Type::Object);
    } else {
      value({.type = type, .text = {}});
    }
    if (depth == 3 && keys_[0] == "metadata" && keys_[1] == "runs" &&
        trace_.runs.size() < kMaxRuns) {
      trace_.runs.emplace_back();
    }
    keys_.emplace_back();
    return true;
  }

  bool close() {
    keys_.pop_back();
    if (in_events() && keys_.size() == event_depth()) end_event();
    return true;
  }

  void begin_event(bool is_object) {
    event_ = {};
    event_.index = n_events_++;
    event_.is_object = is_object;
  }
  void end_event() { on_event_(std::move(event_)); }

  RawTrace& trace_;
  const std::function<void(RawTraceEvent&&)>& on_event_;
  std::vector<std::string> keys_;  // the latest key at each depth
  RawTraceEvent event_;
  std::int64_t n_events_ = 0;
};

/// Reads an uncompressed file.
class FileBuffer : public std::streambuf {
 public:
  FileBuffer(const std::string& path, std::uint64_t max_bytes) : file_(open_file(path)) {
    if (file_->size() > max_bytes) {
      throw Error(ErrorCode::Resources, fmt::format("{}: found {} bytes, limit {}", file_->name(),
                                                    file_->size(), max_bytes));
    }
    chunk_.resize(kChunkBytes);
  }

 protected:
  int_type underflow() override {
    const std::size_t n = file_->read_at(offset_, chunk_);
    if (n == 0) return traits_type::eof();
    offset_ += n;
    setg(chunk_.data(), chunk_.data(), chunk_.data() + n);
    return traits_type::to_int_type(chunk_[0]);
  }

 private:
  std::unique_ptr<ByteSource> file_;
  std::uint64_t offset_ = 0;
  std::string chunk_;
};

/// Decompresses while reading; fails if there are more bytes than the limit.
class GzipBuffer : public std::streambuf {
 public:
  GzipBuffer(const std::string& path, std::uint64_t max_bytes)
      : packed_(path, max_bytes), max_bytes_(max_bytes), name_(escaped(path)) {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) {
      throw Error(ErrorCode::Resources, name_ + ": no memory to unpack it");
    }
    in_.resize(kChunkBytes);
    out_.resize(kChunkBytes);
  }
  ~GzipBuffer() override { inflateEnd(&stream_); }
  GzipBuffer(const GzipBuffer&) = delete;
  GzipBuffer& operator=(const GzipBuffer&) = delete;

 protected:
  int_type underflow() override {
    while (!ended_) {
      if (stream_.avail_in == 0) {
        const std::streamsize n =
            packed_.sgetn(in_.data(), static_cast<std::streamsize>(in_.size()));
        stream_.next_in = reinterpret_cast<Bytef*>(in_.data());
        stream_.avail_in = static_cast<uInt>(n);
        if (n <= 0) throw Error(ErrorCode::BadInput, name_ + ": the gzip data is cut off");
      }
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        throw Error(ErrorCode::BadInput, name_ + ": not gzip data, in spite of its name");
      }
      ended_ = status == Z_STREAM_END;
      const std::size_t n = out_.size() - stream_.avail_out;
      n_unpacked_ += n;
      if (n_unpacked_ > max_bytes_) {
        throw Error(
            ErrorCode::Resources,
            fmt::format("{}: unpacks to more than the limit of {} bytes", name_, max_bytes_));
      }
      if (n > 0) {
        setg(out_.data(), out_.data(), out_.data() + n);
        return traits_type::to_int_type(out_[0]);
      }
    }
    return traits_type::eof();
  }

 private:
  FileBuffer packed_;
  std::uint64_t max_bytes_;
  std::string name_, in_, out_;
  z_stream stream_{};
  bool ended_ = false;
  std::uint64_t n_unpacked_ = 0;
};

}  // namespace

RawTrace read_trace(std::streambuf& from,
                    const std::function<void(RawTraceEvent&&)>& on_event,
                    const std::function<bool()>& stop) {
  RawTrace trace;
  Watcher watcher(from, trace, stop);
  std::istream stream(&watcher);
  stream.exceptions(std::ios::badbit);  // lets an Error of the buffer pass through the stream
  Handler handler(trace, on_event);
  nlohmann::json::sax_parse(stream, &handler);
  return trace;
}

std::unique_ptr<std::streambuf> open_trace(const std::string& path, std::uint64_t max_bytes) {
  if (is_gzip_name(path)) return std::make_unique<GzipBuffer>(path, max_bytes);
  return std::make_unique<FileBuffer>(path, max_bytes);
}

}  // namespace engine
