#include "engine/data/sandbox/bubblewrap.h"

#include <chrono>
#include <set>

#include "engine/data/sandbox/child_process.h"

namespace engine {

namespace {

constexpr const char* kDevices[] = {"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"};
constexpr const char* kNobody = "65534";

// "/usr/lib/python3.11" -> "/usr", "/usr/lib".
std::set<std::string> parent_folders(const std::string& path) {
  std::set<std::string> parents;
  for (auto at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    parents.insert(path.substr(0, at));
  return parents;
}

}  // namespace

std::vector<std::string> bubblewrap_command(const PythonPaths& python,
                                            const BubblewrapOptions& options) {
  std::vector<std::string> command = {options.bwrap};
  const auto add = [&](std::initializer_list<std::string> words) {
    command.insert(command.end(), words);
  };
  add({"--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"});
  add({"--hostname", "sandbox", "--die-with-parent", "--new-session", "--as-pid-1"});
  add({"--cap-drop", "ALL"});
  // If root starts bwrap, it creates no user namespace, and the driver changes to the user nobody. In a
  // user namespace created by root the kernel treats every user as root, and root is exempt from the
  // limit of processes.
  if (options.as_root)
    add({"--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"});
  else
    add({"--unshare-user", "--uid", kNobody, "--gid", kNobody});
  // Creates the parent folders explicitly: bubblewrap would make them readable only by their owner, and
  // the user nobody does not own them.
  std::set<std::string> parents = {"/dev", "/etc"};
  for (const std::string& folder : python.folders) parents.merge(parent_folders(folder));
  for (const auto& [from, to] : python.files) parents.merge(parent_folders(to));
  for (const std::string& folder : parents) add({"--dir", folder});
  for (const std::string& folder : python.folders) add({"--ro-bind", folder, folder});
  for (const std::string& folder : python.hidden) add({"--tmpfs", folder, "--remount-ro", folder});
  for (const auto& [from, to] : python.files) add({"--ro-bind", from, to});
  add({"--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"});
  for (const char* device : kDevices) add({"--dev-bind-try", device, device});
  if (options.has_scratch)
    add({"--size", std::to_string(options.scratch_bytes), "--tmpfs", kScratch});
  add({"--remount-ro", "/", "--chdir", options.has_scratch ? kScratch : "/"});
  if (options.has_seccomp) add({"--seccomp", "3"});
  add({"--"});
  return command;
}

bool bubblewrap_limits_size(const std::string& bwrap) {
  const auto help = output_of({bwrap, "--help"}, {}, std::chrono::seconds(10));
  return help && help->find("--size ") != std::string::npos;
}

}  // namespace engine
