// A filter of system calls for untrusted programs, in addition to namespaces and limits. It
// refuses (EPERM) what those do not cover or what programs have no use for: sockets of any family
// (AF_VSOCK has no namespace), looking into or limiting another process, mounts, new namespaces,
// keys, bpf, userfaultfd, io_uring, perf, shared memory that outlives a process.
#pragma once

#include <string>

namespace engine {

/// The filter as the kernel takes it (struct sock_filter[]); empty for a processor that it does not
/// know.
std::string seccomp_filter();

}  // namespace engine
