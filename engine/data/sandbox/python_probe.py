# Prints the files that this Python interpreter needs to run programs with its standard library. Each
# line is a word, a tab and a path:
#   program    the interpreter
#   folder     a folder of modules, with everything in it
#   hide       a folder in one of those with installed packages
#   file       a library, or the interpreter's loader; a second path follows if the sandbox has to
#              provide the file under another path
import importlib.machinery, os, sys

# Modules for terminals, windows and tests; the checked programs do not need their libraries.
LEFT_OUT = ("_test", "_xx", "xx", "_tkinter", "readline", "_curses", "_dbm", "_gdbm", "nis", "ossaudiodev", "spwd")


def load_extensions(folder):
    for name in os.listdir(folder):
        module = name.partition(".")[0]
        is_extension = name.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES))
        if is_extension and not module.startswith(LEFT_OUT):
            try:
                __import__(module)
            except Exception:
                pass


def mapped_files():
    files = set()
    with open("/proc/self/maps") as maps:
        for line in maps:
            parts = line.rstrip("\n").split(None, 5)
            if len(parts) == 6 and parts[5].startswith("/") and "x" in parts[1]:
                files.add(parts[5])
    return files


def links_to(files):
    """Yields the links by which the loader finds libraries, such as libz.so.1 for libz.so.1.2.13."""
    for folder in {os.path.dirname(file) for file in files}:
        for entry in os.scandir(folder):
            if ".so." in entry.name and entry.is_symlink():
                target = os.path.realpath(entry.path)
                if target in files:
                    yield target, entry.path


def loader_of(program):
    with open(program, "rb") as file:
        head = file.read(1 << 14)
    for text in head.split(b"\0"):
        if text.startswith(b"/") and b"/ld" in text and os.path.exists(text):
            return os.fsdecode(text)


def print_line(*words):
    if not any("\n" in word or "\t" in word for word in words):
        sys.stdout.write("\t".join(words) + "\n")


program = os.path.realpath(sys.executable)
folders = [folder for folder in sys.path if folder and os.path.isdir(folder)]
for folder in folders:
    load_extensions(folder)
print_line("program", program)
for folder in folders:
    if not any(folder.startswith(other + "/") for other in folders):
        print_line("folder", folder)
    for name in ("site-packages", "dist-packages"):
        if os.path.isdir(os.path.join(folder, name)):
            print_line("hide", os.path.join(folder, name))
files = mapped_files()
files = {f for f in files if not any(f.startswith(folder + "/") for folder in folders)}
loader = loader_of(program)
for file in sorted(files):
    print_line("file", file)
for target, link in sorted(links_to(files)):
    print_line("file", target, link)
if loader and loader not in files:
    print_line("file", os.path.realpath(loader), loader)
