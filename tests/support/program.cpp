#include "tests/support/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "tests/support/files.h"

namespace {

using engine::test::read_file;
using Clock = std::chrono::steady_clock;

// Runs in the child between fork and exec.
void redirect(const std::string& path, int descriptor) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || dup2(file, descriptor) < 0) _exit(126);
}

}  // namespace

const char* program_path() {
  return DECOSCOPE_PROGRAM;
}

std::optional<std::string> run_on_terminal(const std::vector<std::string>& arguments, int columns) {
  const int here = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (here < 0 || grantpt(here) != 0 || unlockpt(here) != 0) return std::nullopt;
  const int there = open(ptsname(here), O_RDWR | O_NOCTTY | O_CLOEXEC);
  winsize size{};
  size.ws_row = 25;
  size.ws_col = static_cast<unsigned short>(columns);
  if (there < 0 || ioctl(there, TIOCSWINSZ, &size) != 0) return std::nullopt;
  std::vector<char*> argv{const_cast<char*>(program_path())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error("cannot start a process");
  if (pid == 0) {
    redirect("/dev/null", STDIN_FILENO);
    redirect("/dev/null", STDOUT_FILENO);
    if (dup2(there, STDERR_FILENO) < 0) _exit(126);
    execv(argv[0], argv.data());
    _exit(126);
  }
  close(there);
  std::string text;
  char buffer[4096];
  // The read fails when the program, the terminal's only user, has ended.
  for (ssize_t n = 0; (n = read(here, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  close(here);
  int status = 0;
  waitpid(pid, &status, 0);
  return text;
}

Program::Program(const std::vector<std::string>& arguments, const std::string& folder)
    : folder_(folder), signalled_(Clock::now()) {
  std::vector<char*> argv{const_cast<char*>(program_path())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::string out_path = folder_ + "/program.out", err_path = folder_ + "/program.err";
  // Clears the output of an earlier program in this folder.
  for (const std::string& path : {out_path, err_path}) std::ofstream(path, std::ios::trunc);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("cannot start a process");
  if (pid_ == 0) {
    setpgid(0, 0);
    redirect("/dev/null", STDIN_FILENO);
    redirect(out_path, STDOUT_FILENO);
    redirect(err_path, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(126);
  }
  setpgid(pid_, pid_);
}

long Program::sum_in_proc(const std::string& file, const std::vector<std::string>& names) const {
  std::ifstream lines("/proc/" + std::to_string(pid_) + "/" + file);
  long sum = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = std::min(line.find(':'), line.size());
    if (std::find(names.begin(), names.end(), line.substr(0, colon)) != names.end())
      sum += std::stol(line.substr(colon + 1));
  }
  return sum;
}

long Program::private_memory() const {
  return 1024 * sum_in_proc("status", {"RssAnon", "RssShmem"});
}

long Program::mapped_memory() const {
  return 1024 * sum_in_proc("status", {"RssFile", "RssShmem"});
}

long Program::bytes_read() const {
  return sum_in_proc("io", {"rchar"});
}

Program::~Program() {
  if (over()) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, &status_, 0);
}

bool Program::over() {
  over_ = over_ || waitpid(pid_, &status_, WNOHANG) == pid_;
  return over_;
}

bool Program::until(const std::function<bool()>& come, std::chrono::seconds at_most) {
  const auto end = Clock::now() + at_most;
  while (!over() && Clock::now() < end) {
    if (come()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

void Program::interrupt() {
  signalled_ = Clock::now();
  kill(-pid_, SIGINT);
}

void Program::suspend() {
  kill(-pid_, SIGSTOP);
}

void Program::resume() {
  kill(-pid_, SIGCONT);
}

ProgramEnd Program::wait(std::chrono::seconds at_most) {
  until([] { return false; }, at_most);
  const double seconds = std::chrono::duration<double>(Clock::now() - signalled_).count();
  if (!over()) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, &status_, 0);
    over_ = true;
  }
  return {WIFEXITED(status_) ? WEXITSTATUS(status_) : -1, out(), err(), seconds};
}

std::string Program::out() const {
  return read_file(folder_ + "/program.out");
}

std::string Program::err() const {
  return read_file(folder_ + "/program.err");
}
