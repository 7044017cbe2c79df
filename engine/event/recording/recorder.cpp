#include "engine/event/recording/recorder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "engine/base/output_file.h"
#include "engine/base/text.h"
#include "engine/event/clock.h"
#include "engine/event/recording/recording_format.h"
#include "engine/event/serialise.h"

namespace engine {
namespace {

std::int64_t unix_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

}  // namespace

std::string partial_name(const std::string& path) {
  constexpr std::string_view kEnding = ".pdrun";
  const std::size_t n = path.size() - (path.ends_with(kEnding) ? kEnding.size() : 0);
  return path.substr(0, n) + "-partial" + path.substr(n);
}

Recorder::Recorder(const std::string& path, RecorderOptions options)
    : options_(std::move(options)) {
  if (path.empty()) throw Error(ErrorCode::Usage, "record: found no file name, expected one");
  if (!options_.write) options_.write = ::write;
  // Creates the file exclusively, so of two recorders only one gets a name.
  const bool refuse = options_.if_exists == RecorderOptions::IfExists::Refuse;
  for (int n = 1; n <= (refuse ? 1 : kMaxNames) && fd_ < 0; ++n) {
    path_ = numbered(path, n);
    fd_ = create_exclusively(path_);
    if (fd_ < 0 && errno != EEXIST) break;
  }
  if (fd_ < 0) {
    const bool exists = errno == EEXIST;
    throw Error(exists ? ErrorCode::Usage : ErrorCode::Resources,
                fmt::format("{}: cannot be created: {}{}", escaped(path), std::strerror(errno),
                            exists ? "; choose another name" : ""));
  }
  ::flock(fd_, LOCK_EX | LOCK_NB);  // marks the file as in use for other programs
  pending_ = recording_header(unix_seconds());
  footer_.reserve(64);  // a close allocates nothing
  writer_ = std::thread([this] { write_loop(); });
}

Recorder::~Recorder() {
  close();
}

void Recorder::push(Event event) {
  const Payload payload = payload_of(event);
  if (payload.n_bytes == 0 || !is_behind()) {
    frame(event);
    return;
  }
  const PayloadDropped drop = drop_of(event, payload);
  if (strip(event)) frame(event);
  frame(drop);
}

bool Recorder::is_behind() const {
  const std::lock_guard lock(mutex_);
  return pending_.size() > options_.max_pending_payload_bytes;
}

void Recorder::frame(const Event& event) {
  std::string body;
  encode(event, body);
  const std::lock_guard lock(mutex_);
  if (failed_ || closing_) return;
  if (body.size() > kMaxFrameBytes || pending_.size() + body.size() > options_.max_pending_bytes) {
    end_recording(fmt::format("{} bytes wait for the disk, limit {}", pending_.size() + body.size(),
                              options_.max_pending_bytes));
    return;
  }
  const bool was_empty = pending_.empty();
  std::string crc;
  put_u32(crc, put_frame(pending_, body));
  crc_of_crcs_ = crc_of(crc, crc_of_crcs_);
  ++n_events_;
  if (was_empty || pending_.size() >= options_.flush_bytes) wanted_.notify_one();
}

void Recorder::write_loop() {
  std::unique_lock lock(mutex_);
  while (!closed_) {
    wanted_.wait(lock, [this] { return closing_ || !pending_.empty(); });
    wanted_.wait_for(lock, std::chrono::milliseconds(options_.flush_ms),
                     [this] { return closing_ || pending_.size() >= options_.flush_bytes; });
    if (closing_) {
      std::string body;
      put_u16(body, kFooterKind);
      put_u64(body, static_cast<std::uint64_t>(n_events_));
      put_u32(body, crc_of_crcs_);
      put_frame(footer_, body);
      closed_ = true;
    }
    const std::string bytes = std::exchange(pending_, {});
    const bool skip = failed_, is_last = closed_;
    lock.unlock();
    if (!skip && write_all(bytes) && is_last) write_all(footer_);
    lock.lock();
  }
}

bool Recorder::write_all(const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = options_.write(fd_, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      fail("write", n < 0 ? errno : ENOSPC);
      return false;
    }
    done += static_cast<std::size_t>(n);
    const std::lock_guard lock(mutex_);
    n_written_ += static_cast<std::uint64_t>(n);
  }
  return true;
}

void Recorder::fail(const std::string& what, int error) {
  const std::lock_guard lock(mutex_);
  try {
    end_recording(fmt::format("{}: {} after {} bytes", what, std::strerror(error), n_written_));
  } catch (const std::bad_alloc&) {
    // An exception that leaves the writer's thread would end the process.
    failed_ = true;
    pending_.clear();
    trouble_ = "out of memory";
  }
}

void Recorder::end_recording(const std::string& why) {
  failed_ = true;
  pending_.clear();
  trouble_ = fmt::format("{}: {}; recording is off, {}", escaped(path_), why, set_aside());
}

// Only a whole recording may have the recording's name, so renames or removes the file.
std::string Recorder::set_aside() const {
  const bool keep = options_.if_failed == RecorderOptions::IfFailed::KeepPart && n_written_ > 0;
  if (!keep) {
    ::unlink(path_.c_str());
    return "the file was removed";
  }
  const std::string part = partial_name(path_);
  for (int n = 1; n <= kMaxNames; ++n) {
    const std::string name = numbered(part, n);
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, name.c_str(), RENAME_NOREPLACE) == 0)
      return "the part written so far is in " + escaped(name);
    if (errno != EEXIST) break;
  }
  return "the part written so far is kept";
}

void Recorder::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wanted_.notify_one();
  if (writer_.joinable()) writer_.join();
  if (fd_ < 0) return;
  if (!failed_ && ::fsync(fd_) != 0 && errno != EINVAL) fail("sync", errno);
  if (::close(fd_) != 0 && !failed_) fail("close", errno);
  fd_ = -1;
}

bool Recorder::recording() const {
  const std::lock_guard lock(mutex_);
  return !failed_ && !closing_;
}

std::uint64_t Recorder::n_bytes_written() const {
  const std::lock_guard lock(mutex_);
  return n_written_;
}

std::size_t Recorder::n_bytes_pending() const {
  const std::lock_guard lock(mutex_);
  return pending_.size();
}

std::optional<std::string> Recorder::trouble() {
  const std::lock_guard lock(mutex_);
  return std::exchange(trouble_, std::nullopt);
}

void RecordingTap::push(Event event) {
  remember(event);
  if (recorder_) recorder_->push(event);
  next_.push(std::move(event));
  report_trouble();
}

void RecordingTap::record_to(const std::string& path, const RecorderOptions& options) {
  std::unique_ptr<Recorder> begun;
  if (!path.empty()) begun = std::make_unique<Recorder>(path, options);
  if (recorder_) {
    recorder_->close();
    const std::uint64_t n_bytes = recorder_->n_bytes_written();
    const std::string name = escaped(recorder_->path());
    const std::optional<std::string> trouble = recorder_->trouble();
    next_.push(
        Notice{.t = now_ns(),
               .level = trouble ? Notice::Level::Error : Notice::Level::Info,
               .text = trouble ? *trouble : fmt::format("{}: recorded, {} bytes", name, n_bytes)});
  }
  recorder_ = std::move(begun);
  if (!recorder_) return;
  for (const auto& [id, model] : models_) recorder_->push(model);
  for (const auto& [id, run] : open_runs_) recorder_->push(run);
  next_.push(Notice{.t = now_ns(), .text = "recording to " + escaped(recorder_->path())});
}

std::string RecordingTap::path() const {
  return recording() ? recorder_->path() : std::string();
}

void RecordingTap::remember(const Event& event) {
  if (const auto* model = std::get_if<ModelLoaded>(&event)) models_[model->model] = event;
  if (std::holds_alternative<RunStarted>(event)) open_runs_[run_of(event)] = event;
  if (std::holds_alternative<RunFinished>(event) || std::holds_alternative<RunFailed>(event)) {
    open_runs_.erase(run_of(event));
  }
}

void RecordingTap::report_trouble() {
  if (!recorder_) return;
  if (const std::optional<std::string> trouble = recorder_->trouble()) {
    next_.push(Notice{.t = now_ns(), .level = Notice::Level::Error, .text = *trouble});
    recorder_.reset();
  }
}

}  // namespace engine
