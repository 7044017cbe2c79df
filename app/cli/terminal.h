// The terminal: progress on stderr, results on stdout, Ctrl+C as a question each step asks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace app {

/// The reader of stdout has gone, as `head` does when it has enough: the program ends, quietly. Not
/// an Error, so that nobody reports it.
class OutputClosed {};

/// Ctrl+C, SIGTERM and SIGHUP set interrupted(); a second one ends the process at once. SIGHUP stays
/// ignored where the program was started so (nohup). SIGPIPE and SIGXFSZ end nothing: the write
/// fails instead, with EPIPE or EFBIG. SIGXCPU sets interrupted() and cpu_time_is_over(); the soft
/// limit of CPU time is lowered below a hard one that equals it, because at the hard one the system
/// kills the process.
void install_signal_handlers();
/// Opens /dev/null in place of each standard stream that the caller closed. Otherwise the next file
/// opened would get that descriptor and receive the program's messages. Writes to standard output
/// fail.
void fill_closed_streams();
bool interrupted();
/// True once SIGXCPU has arrived: the CPU time limit (ulimit -t) is nearly used up.
bool cpu_time_is_over();
/// While on, the first of these signals ends the process at once, with the code of what was
/// cancelled: for the time that a library works and asks nobody.
void end_when_interrupted(bool on);

/// Scope in which the program reads an input file. A pipe may never end, so the first Ctrl+C ends
/// the process. If the input is the terminal, a note says which input the program waits for.
class ReadingInput {
 public:
  /// @param what  "prompts, one JSON object a line"
  ReadingInput(const std::string& path, std::string_view what);
  ~ReadingInput() { end_when_interrupted(false); }
  ReadingInput(const ReadingInput&) = delete;
  ReadingInput& operator=(const ReadingInput&) = delete;
};

/// One line on stderr, "decoscope: message", control characters escaped.
void print_error(std::string_view message);
/// Text for a person's terminal: control characters but newline and tab become visible symbols.
std::string for_terminal(std::string_view text);

/// Writes to stdout and checks it.
/// @throws Error(Resources)  if stdout is closed or its disk is full
/// @throws OutputClosed      if it is a pipe that nobody reads any more
void print(std::string_view text);

/// A line on stderr that replaces itself, at most ten times a second, cut at the terminal's edge;
/// nothing when stderr is no terminal. Erased by finish() and by its end.
class ProgressLine {
 public:
  explicit ProgressLine(std::string label) : label_(std::move(label)) {}
  ~ProgressLine() { finish(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// "label [===   ] done/total detail"
  void show(std::int64_t done, std::int64_t total, std::string_view detail = {});
  /// "label [===   ] words"
  /// @param share  of the work that is done, 0 to 1; at 1 the line is shown however soon it comes
  void show_words(double share, std::string_view words);
  void finish();

 private:
  std::string label_;
  double last_s_ = -1;
  bool shown_ = false;
};

}  // namespace app
