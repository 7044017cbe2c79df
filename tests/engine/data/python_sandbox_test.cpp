#include "engine/data/sandbox/python_sandbox.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <gtest/gtest.h>

#include "engine/data/sandbox/bubblewrap.h"
#include "engine/data/sandbox/child_process.h"
#include "tests/support/in_environment.h"
#include "tests/support/needs.h"

namespace engine {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr PythonLimits kShort{.wall = milliseconds(1500)};

PythonRun run_one(PythonSandbox& sandbox, const std::string& program) {
  return sandbox.run(std::span(&program, 1))[0];
}

// All descendants of a process.
std::vector<pid_t> descendants(pid_t ancestor) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string stat((std::istreambuf_iterator<char>(file)), {});
    const auto after_name = stat.rfind(')');
    if (after_name == std::string::npos) continue;
    const pid_t parent = std::stoi(stat.substr(after_name + 4));
    if (parent != ancestor) continue;
    const pid_t child = std::stoi(name);
    found.push_back(child);
    for (const pid_t below : descendants(child)) found.push_back(below);
  }
  return found;
}

bool is_gone(pid_t process) {
  for (int i = 0; i < 500; i++) {
    if (kill(process, 0) != 0) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

// A sandbox, and a folder with a file that no program in it may read.
class Sandbox : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS(isolated.start().empty(), isolated.start());
    std::string pattern = (fs::temp_directory_path() / "decoscope_sandbox.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    std::ofstream(folder + "/notes.txt") << "notes";
  }
  void TearDown() override {
    if (!folder.empty()) fs::remove_all(folder);
  }

  void expect_passed(const std::string& program) {
    const PythonRun run = run_one(isolated, program);
    EXPECT_TRUE(run.available && run.passed) << run.reason << "\n" << program;
  }
  // Expects that the program fails and that the next program still runs.
  void expect_failed(const std::string& program) {
    const PythonRun run = run_one(isolated, program);
    EXPECT_TRUE(run.available && !run.passed) << run.reason << "\n" << program;
    EXPECT_FALSE(run.reason.empty());
    expect_passed("assert 1 + 1 == 2");
  }
  // Prepends the function refused(f, *a), which is true if the call f(*a) fails.
  static std::string refusing(const std::string& program) {
    return "def refused(f, *a):\n  try:\n    f(*a)\n  except (OSError, MemoryError):\n    return "
           "True\n  return False\n" +
           program;
  }

  PythonSandbox isolated{PythonIsolation::Full, kShort};
  std::string folder;
};

TEST_F(Sandbox, valid_programs_pass) {
  expect_passed("");
  expect_passed("def f(n):\n  return n * 2\nassert f(3) == 6\n");
  expect_passed("if __name__ == '__main__':\n  x = 1\nassert x == 1\n");
  expect_passed(
      "import bisect, collections, copy, dataclasses, datetime, decimal, enum, fractions, "
      "functools, hashlib, heapq, itertools, json, math, operator, random, re, statistics, "
      "string, sys, time, typing, unittest\n"
      "assert hashlib.md5(b'a').hexdigest()[:4] == '0cc1'\n"
      "P = collections.namedtuple('P', 'x y')\n"
      "assert P(1, 2).y == 2 and math.isclose(decimal.Decimal('0.5'), 0.5)\n");
  expect_passed("import sqlite3, zlib, lzma, bz2, ctypes\n");
  expect_passed("print('a' * 100000)\nimport sys\nsys.stderr.write('b' * 100000)\n");
  expect_passed("import os\nassert os.getpgrp() == os.getpid() and not os.environ\n");
}

TEST_F(Sandbox, wrong_programs_fail_with_their_error) {
  EXPECT_EQ(run_one(isolated, "assert 1 == 2").reason, "AssertionError");
  EXPECT_EQ(run_one(isolated, "x = [1][5]").reason, "IndexError: list index out of range");
  EXPECT_NE(run_one(isolated, "def f(:").reason.find("SyntaxError"), std::string::npos);
  EXPECT_FALSE(run_one(isolated, std::string("x = 1\0y", 7)).passed);
  EXPECT_FALSE(run_one(isolated, std::string(200000, '(')).passed);
}

TEST_F(Sandbox, files_of_the_user_are_not_readable) {
  const InEnvironment home("HOME", folder);
  expect_failed("open('" + folder + "/notes.txt').read()\n");
  expect_failed("open('/etc/passwd').read()\n");
  expect_passed(refusing(
      "import os\n"
      "for path in ['" +
      folder + "', '" + fs::current_path().string() +
      "', '/home', '/root/.bashrc', '/tmp', '/proc', '/proc/self/maps', '/sys', '/var', '/run',\n"
      "             '/usr/bin/env', '/bin/sh', '/usr/share', '/etc/passwd', '/etc/hosts', "
      "'/dev/shm',\n"
      "             '/dev/tty', '/dev/mem', '" DECOSCOPE_SOURCE_DIR "', '../" +
      folder +
      "']:\n"
      "  assert refused(os.listdir, path) and refused(open, path), path\n"
      "assert set(os.listdir('/etc')) <= {'ld.so.cache'}, os.listdir('/etc')\n"
      "assert os.path.expanduser('~') in ('~', '/') or not "
      "os.path.exists(os.path.expanduser('~'))\n"
      "refused(os.symlink, '" +
      folder +
      "', 'link')\n"
      "assert refused(os.listdir, 'link')\n"));
}

TEST_F(Sandbox, only_the_scratch_folder_is_writable) {
  expect_failed("open('" + folder + "/new.txt', 'w')\n");
  expect_failed("import shutil\nshutil.rmtree('" + folder + "')\n");
  EXPECT_TRUE(fs::exists(folder + "/notes.txt"));
  EXPECT_FALSE(fs::exists(folder + "/new.txt"));
  expect_passed(refusing(
      "import os\n"
      "for path in ['/', '/usr', '/usr/lib', '/dev', '/etc', os.path.dirname(os.__file__)]:\n"
      "  assert refused(open, path + '/x', 'w') and refused(os.mkdir, path + '/y'), path\n"
      "  assert refused(os.chmod, path, 0o777), path\n"
      "assert refused(os.remove, os.__file__) and refused(open, os.__file__, 'a')\n"
      "assert refused(os.remove, '/etc/ld.so.cache')\n"));
}

TEST_F(Sandbox, the_scratch_folder_is_limited_and_starts_empty) {
  const std::vector<std::string> bwrap = found_on_path("bwrap");
  NEEDS(!bwrap.empty() && bubblewrap_limits_size(bwrap.front()), "bwrap is older than 0.7");
  expect_passed("open('x', 'w').write('1')");
  expect_passed("import os\nassert os.listdir('.') == [], os.listdir('.')\n");
  expect_failed("for i in range(64):\n  open('f%d' % i, 'wb').write(b'x' * (1 << 20))\n");
  expect_failed("open('f', 'wb').truncate(1 << 30)\n");
  expect_failed("import os\nos.makedirs('a/b/c')\nos.chmod('a', 0)\nos.chmod('.', 0)\nassert 0\n");
  expect_passed("import os\nassert os.listdir('.') == [], os.listdir('.')\n");
}

TEST_F(Sandbox, a_program_cannot_start_processes_or_threads) {
  expect_failed("import os\nfor i in range(1000):\n  os.fork()\n");
  expect_failed("import threading\nt = threading.Thread(target=print)\nt.start()\nt.join()\n");
  expect_failed("import subprocess\nsubprocess.run(['/bin/sh', '-c', 'true'])\n");
  expect_failed("import os\nif os.fork() == 0:\n  os.setsid()\n  while True: pass\n");
  expect_passed(refusing("import os\nassert all(refused(os.fork) for _ in range(1000))\n"));
}

TEST_F(Sandbox, sockets_are_refused) {
  expect_failed("import socket\nsocket.create_connection(('127.0.0.1', 80))\n");
  expect_failed("import socket\nsocket.socket(socket.AF_UNIX)\n");
  expect_passed(
      refusing("import socket\n"
               "for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, 16, 17, 38, 40):\n"
               "  for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):\n"
               "    assert refused(socket.socket, family, kind), family\n"));
}

TEST_F(Sandbox, dangerous_system_calls_are_refused) {
  expect_passed(
      "import ctypes, os\n"
      "libc = ctypes.CDLL(None, use_errno=True)\n"
      "def refused(name, *a):\n"
      "  return getattr(libc, name)(*a) == -1 and ctypes.get_errno() == 1\n"
      "assert refused('unshare', 0x10000000)\n"
      "assert refused('ptrace', 16, 1, 0, 0)\n"
      "assert refused('mount', b'none', b'/scratch', b'tmpfs', 0, 0)\n"
      "assert refused('setns', 0, 0)\n"
      "assert refused('memfd_create', b'x', 0)\n"
      "assert refused('shmget', 0, 4096, 0o1600)\n"
      "assert refused('prlimit', 1, 0, ctypes.byref((ctypes.c_long * 2)(0, 0)), None)\n"
      "assert refused('setpriority', 0, 1, 19)\n"
      "assert os.getuid() != 0 and libc.setuid(0) == -1 and libc.setgid(0) == -1\n");
}

TEST_F(Sandbox, memory_is_limited) {
  expect_failed("x = bytearray(8 << 30)\n");
  expect_failed("x = []\nwhile True:\n  x.append(bytearray(1 << 24))\n");
  expect_passed("x = bytearray(64 << 20)\n");
}

TEST_F(Sandbox, time_is_limited) {
  for (const char* program : {"while True:\n  pass\n", "import time\ntime.sleep(3600)\n",
                              "import os\nos.close(2)\nwhile True:\n  pass\n",
                              "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"
                              "while True:\n  pass\n",
                              "try:\n  import time\n  time.sleep(3600)\nfinally:\n"
                              "  while True:\n    pass\n"}) {
    const auto begun = Clock::now();
    expect_failed(program);
    EXPECT_LT(Clock::now() - begun, std::chrono::seconds(10)) << program;
  }
  EXPECT_EQ(run_one(isolated, "import time\ntime.sleep(3600)\n").reason,
            "longer than the time limit");
}

TEST_F(Sandbox, output_is_limited) {
  expect_failed("while True:\n  print('x' * 10000)\n");
  const auto flood = run_one(isolated, "import os\nwhile True:\n  os.write(2, b'x' * 10000)\n");
  EXPECT_TRUE(flood.available && !flood.passed);
  EXPECT_EQ(flood.reason, "more output than the limit");
  const auto many = run_one(isolated, "raise Exception('x' * 100000)\n");
  EXPECT_LE(many.reason.size(), 300u);
}

TEST_F(Sandbox, an_early_exit_does_not_pass) {
  for (const char* end : {"raise SystemExit(0)\n", "import sys\nsys.exit()\n", "exit(0)\n",
                          "import os\nos._exit(0)\n", "import os\nos.execv('/x', ['x'])\n",
                          "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n",
                          "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"})
    expect_failed(std::string(end) + "assert False\n");
  expect_passed("try:\n  raise SystemExit(0)\nexcept SystemExit:\n  pass\n");
  EXPECT_EQ(run_one(isolated, "raise SystemExit(0)\n").reason,
            "ended before its last line, with exit code 0");
}

TEST_F(Sandbox, a_program_cannot_forge_its_result) {
  expect_failed(
      "import os\n"
      "for fd in range(256):\n"
      "  for text in (b'P', b'\\x01\\0\\0\\0P', b'x' * 32):\n"
      "    try: os.write(fd, text)\n"
      "    except OSError: pass\n"
      "os._exit(0)\n");
}

TEST_F(Sandbox, a_program_cannot_end_the_driver) {
  expect_passed(
      "import os, signal\n"
      "assert os.getppid() == 1\n"
      "for s in range(1, 65):\n"
      "  if s not in (32, 33): os.kill(1, s)\n");
  expect_failed("import os, signal\nos.kill(-1, signal.SIGKILL)\nos.kill(0, signal.SIGKILL)\n");
}

TEST_F(Sandbox, other_processes_are_invisible) {
  expect_passed(refusing("import os\nassert refused(os.kill, " + std::to_string(getpid()) +
                         ", 0) or os.getpid() == " + std::to_string(getpid()) + "\n"));
}

TEST_F(Sandbox, descriptors_and_environment_are_not_inherited) {
  const InEnvironment secret("DECOSCOPE_SECRET", "a secret");
  PythonSandbox later(PythonIsolation::Full, kShort);
  const int fd = open((folder + "/notes.txt").c_str(), O_RDONLY);  // without O_CLOEXEC
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(
      run_one(later, refusing("import os\n"
                              "assert not os.environ and os.getenv('PATH') is None\n"
                              "assert all(refused(os.read, fd, 1) for fd in range(3, 256))\n"
                              "assert os.read(0, 1) == b''\n"))
          .passed);
  close(fd);
}

TEST_F(Sandbox, programs_share_no_state) {
  const std::vector<std::string> programs = {
      "import builtins, sys, math\nbuiltins.left = 1\nmath.pi = 3\nsys.modules['re'] = None\n"
      "import signal\nsignal.alarm(1)\n",
      "import math, re\nassert 'left' not in dir(__builtins__) and math.pi > 3.1\n", "assert False",
      "import os\nos._exit(0)", "import time\ntime.sleep(1.2)\n"};
  const auto runs = isolated.run(programs);
  ASSERT_EQ(runs.size(), programs.size());
  EXPECT_TRUE(runs[0].passed && runs[1].passed && runs[4].passed) << runs[4].reason;
  EXPECT_FALSE(runs[2].passed || runs[3].passed);
}

TEST_F(Sandbox, one_start_runs_many_programs) {
  std::vector<std::string> programs;
  for (int i = 0; i < 100; i++)
    programs.push_back("assert " + std::to_string(i) + " % 7 != 3, " + std::to_string(i));
  const std::vector<pid_t> started = descendants(getpid());
  const auto runs = isolated.run(programs);
  for (int i = 0; i < 100; i++) {
    const PythonRun& run = runs[static_cast<std::size_t>(i)];
    EXPECT_EQ(run.passed, i % 7 != 3);
    EXPECT_EQ(run.reason, i % 7 != 3 ? "" : "AssertionError: " + std::to_string(i));
  }
  EXPECT_EQ(descendants(getpid()), started);
}

TEST_F(Sandbox, no_process_survives_the_sandbox) {
  std::vector<pid_t> processes;
  {
    PythonSandbox sandbox(PythonIsolation::Full, kShort);
    ASSERT_EQ(sandbox.start(), "");
    run_one(sandbox, "import os\nif os.fork() == 0:\n  os.setsid()\n  while True: pass\n");
    processes = descendants(getpid());
    EXPECT_GE(processes.size(), 4u);  // the other sandbox has processes too
  }
  for (const pid_t process : descendants(getpid())) std::erase(processes, process);
  EXPECT_EQ(processes.size(), 2u);
  for (const pid_t process : processes) EXPECT_TRUE(is_gone(process));
}

TEST_F(Sandbox, the_sandbox_ends_with_its_caller) {
  const pid_t caller = fork();
  if (caller == 0) {
    PythonSandbox sandbox(PythonIsolation::Full,
                          {.cpu_seconds = 100, .wall = milliseconds(100'000)});
    run_one(sandbox, "while True:\n  pass\n");
    _exit(0);
  }
  std::vector<pid_t> processes;
  for (int i = 0; i < 1000 && processes.size() < 3; i++) {
    std::this_thread::sleep_for(milliseconds(10));
    processes = descendants(caller);
  }
  EXPECT_EQ(processes.size(), 3u);  // bwrap, the interpreter, the program
  kill(caller, SIGKILL);
  waitpid(caller, nullptr, 0);
  for (const pid_t process : processes) EXPECT_TRUE(is_gone(process)) << process;
}

TEST_F(Sandbox, interpreters_of_shims_and_venvs_run) {
  const std::string real = fs::exists("/usr/bin/python3") ? "/usr/bin/python3" : "";
  NEEDS(!real.empty(), "no /usr/bin/python3 here");
  const char* before = std::getenv("PATH");
  const std::string path = before == nullptr ? "/usr/bin:/bin" : before;
  fs::create_directories(folder + "/shim");
  std::ofstream(folder + "/shim/python3") << "#!/bin/sh\nexec " + real + " \"$@\"\n";
  fs::permissions(folder + "/shim/python3", fs::perms::owner_all);
  fs::create_directories(folder + "/venv/bin");
  std::ofstream(folder + "/venv/pyvenv.cfg") << "home = /usr/bin\n";
  fs::create_symlink(real, folder + "/venv/bin/python3");
  for (const char* in : {"/shim", "/venv/bin"}) {
    const InEnvironment first("PATH", folder + in + ":" + path);
    PythonSandbox sandbox(PythonIsolation::Full, kShort);
    EXPECT_EQ(sandbox.start(), "") << in;
    EXPECT_TRUE(run_one(sandbox, "import json, sqlite3\n").passed) << in;
  }
}

// This bwrap prints no help, so it passes for a version before 0.7, which cannot limit the size of
// a folder.
TEST_F(Sandbox, without_size_limits_there_is_no_scratch_folder) {
  const char* before = std::getenv("PATH");
  const std::string path = before == nullptr ? "/usr/bin:/bin" : before;
  std::ofstream(folder + "/bwrap")
      << "#!/bin/sh\nPATH='" + path + "'\n[ \"$1\" = --help ] && exit 0\nexec bwrap \"$@\"\n";
  fs::permissions(folder + "/bwrap", fs::perms::owner_all);
  const InEnvironment first("PATH", folder + ":" + path);
  PythonSandbox sandbox(PythonIsolation::Full, kShort);
  ASSERT_EQ(sandbox.start(), "");
  EXPECT_TRUE(run_one(sandbox, "assert 1 + 1 == 2").passed);
  EXPECT_FALSE(run_one(sandbox, "open('x', 'w')").passed);
  EXPECT_FALSE(run_one(sandbox, "open('/scratch/x', 'w')").passed);
}

TEST(SandboxAbsent, nothing_runs_without_bubblewrap) {
  std::string pattern = (fs::temp_directory_path() / "decoscope_sandbox.XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  PythonSandbox plain(PythonIsolation::None, kShort);
  const bool has_python = plain.start().empty();
  if (has_python) {
    const char* path = std::getenv("PATH");
    std::ofstream(pattern + "/python3")
        << "#!/bin/sh\nPATH='" << (path ? path : "/usr/bin:/bin") << "' exec python3 \"$@\"\n";
    fs::permissions(pattern + "/python3", fs::perms::owner_all);
    const InEnvironment without("PATH", pattern);
    PythonSandbox isolated(PythonIsolation::Full, kShort);
    EXPECT_EQ(isolated.start(), "bwrap is not on the search path");
    const PythonRun run = run_one(isolated, "open('" + pattern + "/trace', 'w')\n");
    EXPECT_FALSE(run.available || run.passed);
    EXPECT_EQ(run.reason, "bwrap is not on the search path");
    // A bwrap that cannot create namespaces.
    std::ofstream(pattern + "/bwrap") << "#!/bin/sh\necho 'bwrap: No permissions' >&2\nexit 1\n";
    fs::permissions(pattern + "/bwrap", fs::perms::owner_all);
    EXPECT_EQ(isolated.start(), "bwrap: No permissions");
  }
  fs::remove_all(pattern);
  NEEDS(has_python, "no python3 here");
}

TEST(SandboxAbsent, limits_and_results_hold_without_isolation) {
  PythonSandbox plain(PythonIsolation::None, kShort);
  NEEDS(plain.start().empty(), plain.start());
  EXPECT_TRUE(run_one(plain, "import os\nassert os.getpgrp() == os.getpid()\n").passed);
  for (const char* program :
       {"while True:\n  pass\n", "import time\ntime.sleep(3600)\n", "raise SystemExit(0)\n",
        "import os\nos._exit(0)\n", "x = bytearray(8 << 30)\n",
        "import tempfile\nwith tempfile.TemporaryFile() as f:\n  f.write(b'x')\n",
        "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nwhile True: pass\n"}) {
    const PythonRun run = run_one(plain, program);
    EXPECT_TRUE(run.available && !run.passed) << program;
  }
  EXPECT_TRUE(run_one(plain, "assert 1 + 1 == 2").passed);
}

TEST(SandboxAbsent, a_signal_from_outside_gives_no_result) {
  PythonSandbox plain(PythonIsolation::None, kShort);
  NEEDS(plain.start().empty(), plain.start());
  for (const char* signal : {"SIGINT", "SIGTERM", "SIGHUP"}) {
    const auto run = run_one(plain, std::string("import os, signal\nos.kill(os.getpid(), signal.") +
                                        signal + ")\nwhile True:\n  pass\n");
    EXPECT_FALSE(run.available || run.passed) << signal << ": " << run.reason;
  }
}

}  // namespace
}  // namespace engine
