// A filter of system calls for untrusted programs, in addition to namespaces and limits. It refuses
// (EPERM) calls that those do not cover, and calls that programs do not need: sockets of any family
// (AF_VSOCK has no namespace), access to other processes, mounts, new namespaces, keys, bpf,
// userfaultfd, io_uring, perf, and shared memory that outlives a process.
#pragma once

#include <string>

namespace engine {

/// The filter in the kernel's form (struct sock_filter[]); empty on processors other than x86-64 and
/// AArch64.
std::string seccomp_filter();

}  // namespace engine
