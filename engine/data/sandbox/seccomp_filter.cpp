#include "engine/data/sandbox/seccomp_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace engine {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif

constexpr std::uint32_t kX32 = 0x4000'0000;  // call numbers of the x32 ABI

constexpr std::uint32_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                         CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

// clang-format off
constexpr int kRefused[] = {
    SYS_socket, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4,
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp,
    SYS_setpriority, SYS_sched_setaffinity, SYS_sched_setscheduler, SYS_sched_setparam,
    SYS_sched_setattr, SYS_ioprio_set, SYS_migrate_pages, SYS_move_pages,
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns,
    SYS_name_to_handle_at, SYS_open_by_handle_at, SYS_fanotify_init, SYS_quotactl,
    SYS_keyctl, SYS_add_key, SYS_request_key,
    SYS_bpf, SYS_userfaultfd, SYS_perf_event_open, SYS_personality, SYS_syslog, SYS_acct,
    SYS_memfd_create, SYS_shmget, SYS_semget, SYS_msgget, SYS_mq_open,
    SYS_kexec_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_reboot,
    SYS_swapon, SYS_swapoff, SYS_vhangup,
#if defined(__x86_64__)
    SYS_modify_ldt, SYS_iopl, SYS_ioperm, SYS_uselib,
#endif
    // By number, because older headers lack the names. The numbers are the same on all processors.
    424 /* pidfd_send_signal */, 425, 426, 427 /* io_uring_* */, 428 /* open_tree */,
    429 /* move_mount */, 430, 431, 432, 433 /* fsopen, fsconfig, fsmount, fspick */,
    434 /* pidfd_open */, 438 /* pidfd_getfd */, 440 /* process_madvise */, 442 /* mount_setattr */,
    443 /* quotactl_fd */, 447 /* memfd_secret */, 448 /* process_mrelease */};
// clang-format on

constexpr sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}

// Skips `n` instructions unless the comparison of the loaded word holds.
constexpr sock_filter skip_unless(int comparison, std::uint32_t value, int n) {
  return BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | comparison | BPF_K), value, 0,
                  static_cast<std::uint8_t>(n));
}

constexpr sock_filter end_with(std::uint32_t action) {
  return BPF_STMT(BPF_RET | BPF_K, action);
}

constexpr std::uint32_t refused(int error) {
  return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
}

constexpr std::size_t kNumber = offsetof(seccomp_data, nr);
constexpr std::size_t kArchOffset = offsetof(seccomp_data, arch);
constexpr std::size_t kFirstArgument = offsetof(seccomp_data, args);  // its lower 32 bits

std::vector<sock_filter> instructions() {
  std::vector<sock_filter> out = {
    load(kArchOffset),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
    end_with(SECCOMP_RET_KILL_PROCESS),
    load(kNumber),
#if defined(__x86_64__)
    skip_unless(BPF_JGE, kX32, 1),
    end_with(SECCOMP_RET_KILL_PROCESS),
#endif
    // Refuses clone3, because a filter cannot read its flags. Libraries then use clone, whose flags
    // a filter can read.
    skip_unless(BPF_JEQ, 435, 1),
    end_with(refused(ENOSYS)),
    skip_unless(BPF_JEQ, SYS_clone, 4),
    load(kFirstArgument),
    skip_unless(BPF_JSET, kNewNamespaces, 1),
    end_with(refused(EPERM)),
    end_with(SECCOMP_RET_ALLOW),
    // Allows prlimit64 for the calling process only (pid 0).
    skip_unless(BPF_JEQ, SYS_prlimit64, 4),
    load(kFirstArgument),
    skip_unless(BPF_JEQ, 0, 1),
    end_with(SECCOMP_RET_ALLOW),
    end_with(refused(EPERM)),
  };
  for (const int number : kRefused) {
    out.push_back(skip_unless(BPF_JEQ, static_cast<std::uint32_t>(number), 1));
    out.push_back(end_with(refused(EPERM)));
  }
  out.push_back(end_with(SECCOMP_RET_ALLOW));
  return out;
}

}  // namespace

std::string seccomp_filter() {
  if (kArchitecture == 0) return {};
  const std::vector<sock_filter> filter = instructions();
  return {reinterpret_cast<const char*>(filter.data()), filter.size() * sizeof(sock_filter)};
}

}  // namespace engine
