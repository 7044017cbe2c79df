#include "tests/app/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// In the child between fork and exec.
void redirect(const std::string& path, int descriptor) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || dup2(file, descriptor) < 0) _exit(126);
}

}  // namespace

Program::Program(const std::vector<std::string>& arguments, const std::string& folder)
    : folder_(folder), signalled_(Clock::now()) {
  std::vector<char*> argv{const_cast<char*>(DECOSCOPE_PROGRAM)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::string out_path = folder_ + "/program.out", err_path = folder_ + "/program.err";
  // Emptied before the program runs: what an earlier one said in this folder is not its word.
  for (const std::string& path : {out_path, err_path}) std::ofstream(path, std::ios::trunc);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("no process can be started");
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

long Program::private_memory() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  long kilobytes = 0;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:") || line.starts_with("RssShmem:"))
      kilobytes += std::stol(line.substr(line.find(':') + 1));
  return kilobytes * 1024;
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
