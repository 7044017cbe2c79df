// Terminal input and output: progress on stderr, results on stdout, Ctrl+C as a flag to check.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace app {

/// Thrown when stdout is a pipe whose reader has exited, as `head` does: the program then ends
/// without a message. Not derived from Error, so that it is not reported.
class OutputClosed {};

/// Ctrl+C, SIGTERM and SIGHUP set interrupted(); a second one ends the process at once. SIGHUP
/// stays ignored if it was at the start (nohup). SIGPIPE and SIGXFSZ are ignored; the write fails
/// with EPIPE or EFBIG instead. SIGXCPU sets interrupted() and cpu_time_is_over(); the soft
/// limit of CPU time is lowered below a hard one that equals it, because at the hard one the system
/// kills the process.
void install_signal_handlers();
/// Opens /dev/null in place of each standard stream that the caller closed. Otherwise the next file
/// opened would get that descriptor and receive the program's messages. Writes to standard output
/// fail.
void fill_closed_streams();
/// Whether a signal has asked the program to stop.
bool interrupted();
/// Whether SIGXCPU has arrived: the CPU time limit (ulimit -t) is nearly used up.
bool cpu_time_is_over();
/// While on, the first of these signals ends the process at once, with the exit code for
/// cancellation; for library calls that cannot be cancelled.
void end_when_interrupted(bool on);

/// Scope in which the program reads an input file. A pipe may never end, so the first Ctrl+C ends
/// the process. If the input is the terminal, a note says which input the program waits for.
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
