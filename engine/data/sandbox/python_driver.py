# Runs Python programs one after the other, each in a forked child process with limits.
# engine/data/sandbox/python_sandbox.cpp starts this file with python3 -c. Inside bubblewrap it is process 1
# of a process namespace of its own, so no program can signal it.
#
# Standard input is a socket. A request is a length (4 bytes, little endian) and the text of a program.
# A reply has the same form; its text is one letter and a reason:
#   R ready    P passed    F failed    O ended from outside    X cannot run programs here
# A program passes only if its last line was reached: the child then writes a random number (the nonce) that
# this process drew for it. The exit code is no proof, because a program can choose it.
import os, resource, select, signal, sys, time

ISOLATED = sys.argv[1] == "isolated"
CPU_SECONDS, WALL_MS, MEMORY_BYTES, FILE_BYTES, ERROR_BYTES = map(int, sys.argv[2:7])
SCRATCH = sys.argv[7]
NOBODY = 65534
KEPT = 4096  # bytes of standard error that are kept
FROM_OUTSIDE = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TOO_LONG = "longer than the time limit"


def take_control():
    os.closerange(3, 256)
    control = os.dup(0)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1):
        os.dup2(null, fd)
    os.close(null)
    sys.path[:] = [folder for folder in sys.path if folder]
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.clear()
    return control


control = take_control()


def send(letter, reason=""):
    body = (letter + reason[:300]).encode("utf-8", "replace")
    try:
        os.write(control, len(body).to_bytes(4, "little") + body)
    except OSError:
        os._exit(0)


def receive(size):
    data = bytearray()
    while len(data) < size:
        piece = os.read(control, min(size - len(data), 1 << 16))
        if not piece:
            os._exit(0)
        data += piece
    return bytes(data)


def drop_root():
    """Changes to the user nobody, because root is exempt from the limit of processes. bubblewrap keeps the
    capabilities that this call needs."""
    if os.getuid() != 0:
        return
    if SCRATCH:
        os.chmod(SCRATCH, 0o777)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def set_limits():
    for what, most in (
        (resource.RLIMIT_NPROC, 0),  # no further process or thread, so RLIMIT_AS bounds all memory
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 1),  # 0 would still let a crash start the system's core dump handler
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        hard = resource.getrlimit(what)[1]
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        # With a higher hard limit, the soft limit ends the program with SIGXCPU, which names the reason.
        more = 1 if what == resource.RLIMIT_CPU and most + 1 <= hard % (1 << 64) else 0
        resource.setrlimit(what, (most, most + more))


def limits_hold():
    pid = os.fork()
    if pid == 0:
        try:
            set_limits()
            if os.fork() == 0:
                os._exit(0)
        except BlockingIOError:
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(pid, 0)[1]
    end_all(pid)
    return status == 0


def end_all(pid):
    """Kills the processes that a program left running."""
    try:
        os.kill(-1, signal.SIGKILL) if os.getpid() == 1 else os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    while os.getpid() == 1:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break


def run_program(text, nonce, proof, write=os.write, leave=os._exit):
    os.setsid()
    set_limits()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main = type(sys)("__main__")
    sys.modules["__main__"] = main
    sys.argv[:] = ["-"]
    try:
        exec(compile(text, "<stdin>", "exec", dont_inherit=True), main.__dict__)
    except SystemExit:
        leave(0)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        sys.__excepthook__(*sys.exc_info())
        leave(1)
    write(proof, nonce)
    leave(0)


class Pipe:
    def __init__(self):
        self.read_end, self.write_end = os.pipe()
        os.set_blocking(self.read_end, False)
        self.data = b""
        self.size = 0
        self.open = True

    def take(self):
        """Reads the bytes that are available now."""
        while self.open and self.size <= ERROR_BYTES:
            try:
                piece = os.read(self.read_end, 1 << 16)
            except BlockingIOError:
                return
            self.open = bool(piece)
            self.size += len(piece)
            self.data = (self.data + piece)[-KEPT:]


def watch(pid, proof, errors, nonce):
    """@return  the child's status, as waitpid gives it, or None if it exceeded its time or output"""
    deadline = time.monotonic() + WALL_MS / 1000
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        proof.take()
        errors.take()
        if ended:
            return status
        left = deadline - time.monotonic()
        if left <= 0 or errors.size > ERROR_BYTES or proof.data == nonce:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            proof.take()
            return None
        poller = select.poll()
        for pipe in (proof, errors):
            if pipe.open:
                poller.register(pipe.read_end, select.POLLIN)
        poller.register(control, select.POLLIN)
        # Polls with a timeout: a process that the program left may keep the pipes open after its end.
        events = poller.poll(min(left * 1000, 50 if proof.open or errors.open else 1))
        if any(fd == control for fd, _ in events):
            os._exit(0)  # the caller closed the socket


def verdict(status, proof, errors, nonce):
    if proof.data == nonce:
        return "P", ""
    if errors.size > ERROR_BYTES:
        return "F", "more output than the limit"
    if status is None:
        return "F", TOO_LONG
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return "F", TOO_LONG
        if number in FROM_OUTSIDE and not ISOLATED:
            return "O", "python3 was ended from outside"
        return "F", "ended by signal %d" % number
    code = os.WEXITSTATUS(status)
    lines = errors.data.decode("utf-8", "replace").strip().splitlines()
    if code != 0 and lines:
        return "F", lines[-1].strip()
    return "F", "ended before its last line, with exit code %d" % code


def run(text):
    nonce = os.urandom(32)
    proof, errors = Pipe(), Pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(errors.write_end, 2)
            for fd in (control, errors.read_end, errors.write_end, proof.read_end):
                os.close(fd)
            write_end = proof.write_end
            del proof, errors
            run_program(text, nonce, write_end)
        finally:
            os._exit(1)
    for pipe in (proof, errors):
        os.close(pipe.write_end)
    result = verdict(watch(pid, proof, errors, nonce), proof, errors, nonce)
    end_all(pid)
    for pipe in (proof, errors):
        os.close(pipe.read_end)
    return result


def scratch_is_clean():
    try:
        return not SCRATCH or not os.listdir(SCRATCH)
    except OSError:
        return False


try:
    if ISOLATED:
        drop_root()
    if ISOLATED and os.getpid() != 1:
        send("X", "the process namespace is not its own")
        os._exit(1)
    if ISOLATED and not limits_hold():
        send("X", "the limit of processes does not hold for this user")
        os._exit(1)
except OSError as e:
    send("X", "%s" % e)
    os._exit(1)
send("R")
while True:
    send(*run(receive(int.from_bytes(receive(4), "little"))))
    if not scratch_is_clean():
        os._exit(0)  # the next program gets an empty folder in a new sandbox
