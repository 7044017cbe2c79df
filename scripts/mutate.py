#!/usr/bin/env python3
"""Plants deliberate faults and checks that the tests notice them.

  mutate.sh                 every fault of tests/mutations.json that has no result yet for this commit
  mutate.sh --only NAME     this fault alone (may be repeated); it runs again even if it has a result
  mutate.sh --list          names, test programs and faults
  mutate.sh --check         no build: every text to replace occurs exactly once, every test program and suite exists

A fault is a text replacement in one source file, a test program, and a GoogleTest filter. The script works in a git worktree of the current
commit (build/mutations/tree; changes that are not committed are not in it). It builds only the named program, first without a fault, where
the filtered tests must pass, then with it, where one must fail, crash or hang. Results are appended to build/mutations/results.json, so a
run that was stopped continues. Exit code 0: every fault was caught; 1: a fault survived; 3: the list does not fit the code, or a build failed.
"""
import argparse
import glob
import json
import os
import re
import subprocess
import sys

LIST = "tests/mutations.json"
WORK = "build/mutations"
FIELDS = {"name", "fault", "file", "find", "replace", "target", "filter"}
PATIENCE_S = 900  # a test that takes longer counts as hanging, and the fault as caught


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def joined(lines):
    return lines if isinstance(lines, str) else "\n".join(lines)


def read_list():
    faults = json.loads(text_of(LIST))
    for one in faults:
        if set(one) != FIELDS:
            sys.exit(f"{LIST}: {one.get('name', one)}: found fields {sorted(one)}, expected {sorted(FIELDS)}")
        one["find"], one["replace"] = joined(one["find"]), joined(one["replace"])
    return faults


# ---- checks that the list fits the code ---------------------------------------------------------------------------------------------------

def declared_targets():
    declared = "\n".join(text_of(name) for name in glob.glob("tests/**/CMakeLists.txt", recursive=True))
    return set(re.findall(r"decoscope_test\((\w+)", declared))


def declared_suites():
    found = set()
    for name in glob.glob("tests/**/*.cpp", recursive=True) + glob.glob("tests/**/*.h", recursive=True):
        found.update(re.findall(r"^\s*TEST(?:_F|_P)?\(\s*(\w+)", text_of(name), re.MULTILINE))
    return found


def suites_of(test_filter):
    """Suites that a filter names: "*CudaVerify.*:Graphs.a*-Graphs.b" names CudaVerify and Graphs."""
    wanted = test_filter.partition("-")[0]
    return [one.partition(".")[0].strip("*") for one in wanted.split(":")]


def misfits(faults):
    targets, suites, names = declared_targets(), declared_suites(), set()
    for one in faults:
        place = f"{LIST}: {one['name']}"
        if one["name"] in names:
            yield f"{place}: the name occurs twice"
        names.add(one["name"])
        if not os.path.exists(one["file"]):
            yield f"{place}: {one['file']}: no such file"
        elif (n := text_of(one["file"]).count(one["find"])) != 1:
            yield f"{place}: {one['file']}: found the text {n} times, expected once: {one['find'].strip()[:80]}"
        if one["find"] == one["replace"]:
            yield f"{place}: the replacement changes nothing"
        if one["target"] not in targets:
            yield f"{place}: {one['target']}: no such test program"
        for suite in suites_of(one["filter"]):
            if suite not in suites:
                yield f"{place}: {suite}: no such test suite"


# ---- planting -----------------------------------------------------------------------------------------------------------------------------

def run(command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **more)


def commit():
    return subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, check=True, text=True).stdout.strip()


class Tree:
    """A worktree of this commit, in which faults are planted."""

    def __init__(self):
        self.path = os.path.abspath(f"{WORK}/tree")
        os.makedirs(WORK, exist_ok=True)
        if not os.path.exists(self.path):
            run(["git", "worktree", "prune"], check=True)
            run(["git", "worktree", "add", "--detach", self.path, "HEAD"], check=True)
        run(["git", "checkout", "--force", "--detach", commit()], cwd=self.path, check=True)
        self.passes = {}  # (target, filter): True if the tests pass without a fault

    def build(self, target):
        emulated = "emulated" in target
        folder = "emulated" if emulated else "plain"
        command = ["scripts/build.sh", "tests", "--folder", folder, "--target", target, "-DWITH_UI=OFF", "-DWITH_CUDA=OFF"]
        if not emulated:
            command.append("-DCUDA_EMULATION=OFF")
        done = run(command, cwd=self.path)
        if done.returncode != 0:
            print(done.stdout[-3000:], file=sys.stderr)
            return None
        return f"{self.path}/build/{folder}/bin/{target}"

    def failures(self, program, test_filter):
        """The names of failed tests, or one line for a crash or a hang; None if no test ran."""
        try:
            done = run([program, f"--gtest_filter={test_filter}", "--gtest_brief=1"], cwd=self.path, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            return [f"hangs for more than {PATIENCE_S} s"]
        ran = re.search(r"\[==========\] (\d+) tests? from", done.stdout)
        if done.returncode == 0:
            return [] if ran and int(ran.group(1)) > 0 else None
        names = [name.rstrip(",") for name in re.findall(r"\[  FAILED  \] (\S+)", done.stdout) if "." in name]
        return list(dict.fromkeys(names)) or [f"ends with status {done.returncode}"]

    def passes_without(self, fault):
        key = (fault["target"], fault["filter"])
        if key not in self.passes:
            program = self.build(fault["target"])
            self.passes[key] = program is not None and self.failures(program, fault["filter"]) == []
        return self.passes[key]

    def plant(self, fault):
        """@return  (result, details): caught with the failed tests, survived, or broken with the reason"""
        if not self.passes_without(fault):
            return "broken", ["without the fault the tests do not build, do not pass, or none runs"]
        path = f"{self.path}/{fault['file']}"
        sound = text_of(path)
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(sound.replace(fault["find"], fault["replace"]))
            program = self.build(fault["target"])
            if program is None:
                return "broken", ["it does not compile with the fault"]
            failed = self.failures(program, fault["filter"])
        finally:
            with open(path, "w", encoding="utf-8") as file:
                file.write(sound)
        return ("caught", failed) if failed else ("survived", [])


def results_so_far():
    path = f"{WORK}/results.json"
    return json.loads(text_of(path)) if os.path.exists(path) else {}


def keep(results):
    path = f"{WORK}/results.json"
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
    os.replace(path + ".part", path)


def plant_all(faults, only):
    here = commit()
    results = results_so_far()
    wanted = [one for one in faults if one["name"] in only] if only else \
        [one for one in faults if results.get(one["name"], {}).get("commit") != here]
    tree = Tree() if wanted else None
    for fault in sorted(wanted, key=lambda one: one["target"]):
        result, failed = tree.plant(fault)
        results[fault["name"]] = {"commit": here, "result": result, "failed": failed[:20]}
        keep(results)
        more = f" and {len(failed) - 2} more" if len(failed) > 2 else ""
        print(f"{result:9}{fault['name']:36}{', '.join(failed[:2])}{more}", flush=True)
    of_these = [results[one["name"]]["result"] for one in (wanted if only else faults)]
    print(f"{of_these.count('caught')} of {len(of_these)} caught, {of_these.count('survived')} survived, {of_these.count('broken')} broken")
    return 3 if "broken" in of_these else 1 if "survived" in of_these else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    faults = read_list()
    if options.list:
        for one in faults:
            print(f"{one['name']:36}{one['target']:24}{one['fault']}")
        return 0
    unknown = set(options.only) - {one["name"] for one in faults}
    if unknown:
        parser.error(f"--only: found {', '.join(sorted(unknown))}, expected a name of --list")
    found = list(misfits(faults))
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    if options.check or found:
        return 3 if found else 0
    return plant_all(faults, set(options.only))


if __name__ == "__main__":
    sys.exit(main())
