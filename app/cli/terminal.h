// Terminal input and output: progress on stderr, results on stdout, Ctrl+C as a flag to check.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace app {

/// Thrown when stdout is a pipe whose reader has exited, as `head` does: the program then ends
/// without a message. Not derived from Error, so that it is not reported.
class OutputClosed {};

/// Installs the handlers of signals. Ctrl+C, SIGTERM and SIGHUP set interrupted(); a second signal
/// ends the process at once. SIGHUP stays ignored if it was ignored at the start, as by nohup.
/// SIGPIPE and SIGXFSZ have no effect; the write fails with EPIPE or EFBIG instead. SIGXCPU, sent
/// at the soft limit of CPU time, sets interrupted() and cpu_time_is_over(). If the soft limit
/// equals the hard limit, at which the system kills the process, the soft limit is lowered.
void install_signal_handlers();
/// Opens /dev/null in place of each standard stream that the caller of the program has closed.
/// Otherwise the next opened file would get that descriptor and receive the program's messages. If
/// standard output was closed, writes to it still fail.
void fill_closed_streams();
/// True after a signal has asked the program to stop.
bool interrupted();
/// True after SIGXCPU has arrived, so the CPU time of ulimit -t is nearly used up.
bool cpu_time_is_over();
/// While `on`, the first Ctrl+C, SIGTERM or SIGHUP ends the process at once, with the exit code for
/// cancellation. Used around library calls that cannot be cancelled.
void end_when_interrupted(bool on);

/// Marks the scope in which the program reads an input file. A read from a pipe may never return,
/// so in this scope the first Ctrl+C ends the process. If the input is the terminal, the
/// constructor prints what the program waits for.
class ReadingInput {
 public:
  /// @param what  describes the input: "prompts, one JSON object per line"
  ReadingInput(const std::string& path, std::string_view what);
  ~ReadingInput() { end_when_interrupted(false); }
  ReadingInput(const ReadingInput&) = delete;
  ReadingInput& operator=(const ReadingInput&) = delete;
};

/// Prints "decoscope: message" to stderr as one line, control characters escaped.
void print_error(std::string_view message);
/// Prints each notice to stderr that this process has not printed yet.
void print_once(const std::vector<std::string>& notices);
/// Makes text safe for a terminal: control characters except newline and tab become visible
/// symbols.
std::string for_terminal(std::string_view text);

/// Writes to stdout.
/// @throws Error(Resources)  stdout is closed or its disk is full
/// @throws OutputClosed      stdout is a pipe whose reader has exited
void print(std::string_view text);

/// A progress line on stderr, redrawn at most ten times a second and cut at the terminal's width.
/// Not shown if stderr is not a terminal. Erased by finish() and the destructor.
class ProgressLine {
 public:
  /// @param label  the beginning of the line
  explicit ProgressLine(std::string label) : label_(std::move(label)) {}
  ~ProgressLine() { finish(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// Shows "label [===   ] done/total detail".
  void show(std::int64_t done, std::int64_t total, std::string_view detail = {});
  /// Shows "label [===   ] words".
  /// @param share  fraction done, 0 to 1; at 1 the line is always redrawn
  void show_words(double share, std::string_view words);
  /// Erases the line.
  void finish();

 private:
  std::string label_;
  double last_s_ = -1;
  bool shown_ = false;
};

}  // namespace app
