#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>
#include <string>

#include "tests/support/display.h"

namespace display {
namespace {

pid_t server = -1;

void stop() {
  if (server <= 0) return;
  kill(server, SIGTERM);
  waitpid(server, nullptr, 0);
}

bool start() {
  int pipes[2];
  if (pipe(pipes) != 0) return false;
  server = fork();
  if (server == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    close(pipes[0]);
    const int quiet = open("/dev/null", O_WRONLY);
    dup2(quiet, 2);
    const std::string fd = std::to_string(pipes[1]);
    execlp("Xvfb", "Xvfb", "-displayfd", fd.c_str(), "-screen", "0", "2560x1440x24", "-nolisten",
           "tcp", "-noreset", nullptr);
    _exit(127);
  }
  close(pipes[1]);
  std::string number;
  pollfd waiting{pipes[0], POLLIN, 0};
  char c = 0;
  while (poll(&waiting, 1, 10'000) == 1 && read(pipes[0], &c, 1) == 1 && c != '\n') number += c;
  close(pipes[0]);
  if (number.empty()) return false;
  setenv("DISPLAY", (":" + number).c_str(), 1);
  setenv("LIBGL_ALWAYS_SOFTWARE", "1", 1);
  std::atexit(stop);
  return true;
}

}  // namespace

bool ready() {
  static const bool is = [] {
    const char* have = std::getenv("DISPLAY");
    return (have && *have) || start();
  }();
  return is;
}

}  // namespace display
