#!/usr/bin/env python3
"""Measures the shape of the source tree: folders, includes, documentation, functions, sizes of pages, test names, wording.

  shape.py report [--json]            every measure with its limit and the worst places
  shape.py check                      compares the measures with their limits; exit code 1 and a line for each limit that is exceeded
  shape.py undocumented [FOLDER]      public types and functions without a comment, as file:line: name
  shape.py sample PLACE [--seed N] [--count N]
                                      comments, names and messages of a room (or of a folder or file), drawn at random, to be
                                      read by a person
  shape.py wording [FOLDER]           sentences in the old dialect, as file:line: text
  shape.py rooms                      the names of the rooms

Reads the files that git tracks and parses C++ by its tokens; needs only Python and git.
"""
import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
from collections import Counter, defaultdict

CODE = (".cpp", ".h", ".cu", ".cuh")
PUBLIC_ROOTS = ("engine/", "kernels/", "ui/")

# The largest allowed value (MOST) or the smallest (LEAST) of each measure. The limits come from the project's style guide.
MOST = {
    "files in one folder": 30,
    "own headers reached, ui/panels, median": 20,
    "own headers reached, app, median": 25,
    "own headers reached, most": 60,
    "functions over 100 lines": 0,
    "docs without decoders, KB": 120,
    "docs/cuda.md, KB": 15,
    "docs/testing.md, KB": 8,
    "test names over 60 characters": 0,
    "pairs of files that include each other's headers": 0,
    "sentences in the old dialect": 0,
    "types of one name that meet": 0,
}
LEAST = {"types documented, %": 95, "functions documented, %": 95}

# Words and openers that the style guide replaces. Matched in comments of C++ and of scripts, in docstrings, and in Markdown pages.
DIALECT = re.compile(
    r"\b(is told|are told|was told|told (of|to|as|with|where|that|by)|tells? of|whoever|anew|so many|so often|behind (it|them|a|the|each)|"
    r"is asked|are asked|asked (of|for|to)|what (is|was|are|were|it|they|a|no) |nobody's|goes on|laws? of|wherefore|thereof|"
    r"comes? but once)\b",
    re.IGNORECASE)


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-z", *patterns], capture_output=True, check=True).stdout.decode()
    return [name for name in out.split("\0") if name and os.path.exists(name)]


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


# ---- C++ by its tokens ----------------------------------------------------------------------------------------------------------------

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*(?:\\\n[^\n]*)*|/\*.*?\*/)"""
    r"""|(?P<raw>R"(?P<delim>[^\s()\\]{0,16})\(.*?\)(?P=delim)")"""
    r"""|(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')"""
    r"""|(?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)"""
    r"""|(?P<word>[A-Za-z_]\w*|\d[\w.']*)"""
    r"""|(?P<mark>::|->|<<=|[{}()\[\];:,<>=~&*!.+\-/%|^?])""",
    re.DOTALL | re.MULTILINE | re.VERBOSE)


def tokens_of(text):
    """(kind, text, line) of every token; comments are tokens too."""
    line, at = 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        kind = match.lastgroup if match.lastgroup != "delim" else "raw"
        yield kind, match.group(), line


class Scope:
    def __init__(self, kind, public):
        self.kind, self.public = kind, public  # namespace, class, other


ACCESS = ("public", "private", "protected")


def declarations(text):
    """Public types and functions of a header: (kind, name, line, documented)."""
    found, stack, statement = [], [], []
    comments = {}  # line: True if it contains only a comment
    items = list(tokens_of(text))
    code_lines = {line for kind, _, line in items if kind not in ("comment",)}
    for kind, piece, line in items:
        if kind == "comment":
            for i in range(piece.count("\n") + 1):
                comments[line + i] = line not in code_lines

    def documented(first, last):
        if comments.get(first - 1):  # a comment of its own on the line above
            return True
        return any(line in comments for line in range(first, last + 1))  # beside it

    def visible():
        return all(scope.public and scope.kind in ("namespace", "class") for scope in stack)

    def finish(last_line, body):
        words = [piece for _, piece, _ in statement]
        if not words or not visible():
            return
        first = statement[0][2]
        while words[:1] == ["template"]:  # skip its parameters
            depth = n = 0
            for n, word in enumerate(words[1:], 1):
                depth += (word == "<") - (word == ">")
                if depth == 0:
                    break
            words = words[n + 1:]
            if words[:1] == ["requires"]:
                words = words[1:]
        if not words or words[0] in ("using", "typedef", "friend", "static_assert", "extern", "namespace", "return", "if", "for", "while"):
            return
        is_type = words[0] in ("class", "struct", "enum", "union") and "(" not in words
        if is_type:
            if body:
                names = [word for word in words[1:] if word not in ("class", "struct", "final", "alignas")]
                if names and re.match(r"[A-Za-z_]", names[0]):
                    found.append(("type", names[0], first, documented(first, last_line)))
            return
        if "(" not in words:
            return
        at = words.index("(")
        equals = words.index("=") if "=" in words else len(words)
        if equals < at or at == 0:
            return
        name = words[at - 1]
        tail = words[at:]
        if not re.match(r"[A-Za-z_]", name) and "operator" not in words:
            return
        if at >= 2 and words[at - 2] == "~":
            return
        if "override" in tail or tail[-2:] in (["=", "default"], ["=", "delete"]):
            return
        if name in ("alignas", "decltype", "noexcept", "static_assert"):
            return
        found.append(("function", name, first, documented(first, last_line)))

    i = 0
    significant = [item for item in items if item[0] not in ("comment", "directive")]
    parens = 0
    while i < len(significant):
        kind, piece, line = significant[i]
        if piece in "()" and kind == "mark":
            parens += 1 if piece == "(" else -1
            statement.append(significant[i])
        elif piece == "{" and kind == "mark" and parens == 0:
            words = [word for _, word, _ in statement]
            if "namespace" in words:
                stack.append(Scope("namespace", len(words) > 1 and "detail" not in words))
                statement = []
            elif words and any(word in ("class", "struct", "union") for word in words) and "(" not in words and "=" not in words:
                finish(line, True)
                stack.append(Scope("class", "class" not in words or "struct" in words))
                statement = []
            elif words and "extern" in words and kind == "mark" and '"C"' in words:
                stack.append(Scope("namespace", True))
                statement = []
            else:
                is_enum = bool(words) and "enum" in words
                is_value = "=" in words and "(" not in words[:words.index("=")]
                if is_enum or not is_value:
                    finish(line, True)
                depth = 1  # skip the body
                while depth and i + 1 < len(significant):
                    i += 1
                    depth += (significant[i][1] == "{" and significant[i][0] == "mark") - (
                        significant[i][1] == "}" and significant[i][0] == "mark")
                following = significant[i + 1][1] if i + 1 < len(significant) else ""
                constructor_list = bool(words) and ":" in words and ")" in words and following in (",", "{")
                if constructor_list or (is_value and following != ";"):
                    pass  # an initialiser of a member: the statement continues
                elif following == ";" or is_enum:
                    pass
                else:
                    statement = []
                    i += 1
                    continue
                if is_enum:
                    statement = []
                elif not constructor_list:
                    statement = statement if is_value else []
        elif piece == "}" and kind == "mark" and parens == 0:
            if stack:
                stack.pop()
            statement = []
        elif piece == ";" and parens == 0:
            finish(line, False)
            statement = []
        elif piece == ":" and len(statement) == 1 and statement[0][1] in ACCESS:
            if stack:
                stack[-1].public = statement[0][1] == "public"
            statement = []
        else:
            statement.append(significant[i])
        i += 1
    # The comment that opens a header documents the first type that it declares.
    opens = bool(items) and items[0][0] == "comment"
    first_type = next((n for n, one in enumerate(found) if one[0] == "type"), None)
    if opens and first_type is not None:
        kind, name, line, _ = found[first_type]
        found[first_type] = (kind, name, line, True)
    return found


def named_types(text):
    """(namespaces, name, line) of every type that is defined in namespaces; "" is one without a name."""
    found, statement, stack = [], [], []  # a scope of the stack: names of a namespace, or None
    for kind, piece, line in tokens_of(text):
        if kind in ("comment", "directive"):
            continue
        if kind != "mark" or piece not in "{};":
            statement.append(piece)
            continue
        words, statement = statement, []
        while words[:1] == ["template"]:
            words = words[words.index(">") + 1:]
        if piece == "}":
            del stack[-1:]
        elif piece == "{" and words[:1] == ["namespace"]:
            stack.append([word for word in words[1:] if word != "::"] or [""])
        elif piece == "{":
            heads = [word for word in words[1:] if word not in ("class", "struct", "final", "alignas")]
            is_type = words[:1] and words[0] in ("struct", "class", "enum", "union") and None not in stack
            if is_type and heads and re.match(r"[A-Za-z_]", heads[0]) and heads[1:2] != ["::"]:
                found.append((sum(stack, []), heads[0], line))
            stack.append(None)
    return found


JOINED = ("app/", "engine/data/")  # compiled several files at a time by the preset release (cmake/precompiled.cmake)


def doubled_types(files):
    """Types of one name that meet in one compilation: one of an unnamed namespace and one of the namespace around it, or two of unnamed
    namespaces of joined files."""
    places = {}
    for path in files:
        for namespaces, name, line in named_types(text_of(path)):
            group = next((folder for folder in JOINED if path.startswith(folder)), path) if "" in namespaces else ""
            places.setdefault(("::".join(filter(None, namespaces)), name), {}).setdefault(group, []).append(f"{path}:{line}")
    for (_, name), groups in sorted(places.items()):
        if len(groups) > 1 and "" in groups:
            yield f"{name}: {', '.join(sum(groups.values(), []))}"
        yield from (f"{name}: {', '.join(found)}" for group, found in groups.items() if group in JOINED and len(found) > 1)


def functions(text):
    """(name, line, number of lines) of every function with a body."""
    found, statement, stack, parens = [], [], [], 0
    for kind, piece, line in tokens_of(text):
        if kind in ("comment", "directive"):
            continue
        if kind == "mark" and piece in "()":
            parens += 1 if piece == "(" else -1
        if kind == "mark" and piece == "{":
            words = [word for _, word in statement]
            inside = any(scope[0] == "function" for scope in stack)
            is_scope = any(word in ("namespace", "class", "struct", "union", "enum") for word in words) and "(" not in words
            if not inside and not is_scope and "(" in words and words[words.index("(") - 1:words.index("(")] and "=" not in words[:1]:
                at = words.index("(")
                name = words[at - 1] if at else "?"
                stack.append(("function", name, statement[0][0], parens))
            else:
                stack.append(("other", "", line, parens))
            if not (inside or stack[-1][0] == "function"):
                statement = []
            continue
        if kind == "mark" and piece == "}":
            if stack:
                what, name, first, _ = stack.pop()
                if what == "function":
                    found.append((name, first, line - first + 1))
                    statement = []
            if not any(scope[0] == "function" for scope in stack):
                statement = []
            continue
        if any(scope[0] == "function" for scope in stack):
            continue
        if kind == "mark" and piece == ";" and parens == 0:
            statement = []
        else:
            statement.append((line, piece))
    return found


# ---- Measures ------------------------------------------------------------------------------------------------------------------------

def includes_of(path):
    return [name for name in re.findall(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', text_of(path), re.MULTILINE)]


class Tree:
    def __init__(self):
        self.files = [name for name in tracked() if name.endswith(CODE)]
        known = set(self.files)
        self.includes = {}
        for name in self.files:
            self.includes[name] = [inc if inc in known else os.path.normpath(os.path.join(os.path.dirname(name), inc))
                                   for inc in includes_of(name)]
            self.includes[name] = [inc for inc in self.includes[name] if inc in known]

    def reached(self, name):
        seen, pending = set(), list(self.includes[name])
        while pending:
            inc = pending.pop()
            if inc not in seen:
                seen.add(inc)
                pending.extend(self.includes[inc])
        seen.discard(os.path.splitext(name)[0] + ".h")
        return len(seen)

    def folders(self):
        return Counter(os.path.dirname(name) for name in self.files)

    def mutual_pairs(self):
        """Pairs of file names without ending, each of which includes the other's header."""
        needs = defaultdict(set)
        for name, incs in self.includes.items():
            base = os.path.splitext(name)[0]
            needs[base].update(os.path.splitext(inc)[0] for inc in incs)
        return sorted((a, b) for a in needs for b in needs[a] if a < b and a in needs.get(b, ()))


def comments_of(path):
    """Whole comment blocks: (line, text)."""
    blocks, last = [], -2
    for kind, piece, line in tokens_of(text_of(path)):
        if kind != "comment":
            continue
        words = re.sub(r"^\s*(///?|/\*+|\*/|\*)\s?", "", piece.strip(), flags=re.MULTILINE).strip()
        if line == last + 1 and blocks:
            blocks[-1][1] += " " + words
        else:
            blocks.append([line, words])
        last = line + piece.count("\n")
    return [(line, words) for line, words in blocks if words]


def script_comments(path):
    """(line, text) of the comments of a shell or Python script, and of Python's docstrings. Adjacent comment lines are one text."""
    text = text_of(path)
    blocks, last = [], -2
    for n, line in enumerate(text.split("\n"), 1):
        if re.match(r"\s*# shellcheck ", line):
            continue
        if match := re.match(r"\s*#(?!!)\s?(.*)", line):
            if n == last + 1:
                blocks[-1][1] += " " + match.group(1).strip()
            else:
                blocks.append([n, match.group(1).strip()])
            last = n
        elif match := re.search(r"\s#\s(.*)", line):  # beside code
            blocks.append([n, match.group(1).strip()])
    if path.endswith(".py"):
        for match in re.finditer(r'^[ \t]*"""(.*?)"""', text, re.DOTALL | re.MULTILINE):
            blocks.append([text.count("\n", 0, match.start()) + 1, " ".join(match.group(1).split())])
    return sorted((line, words) for line, words in blocks if words)


def page_lines(path):
    """(line, text) of the paragraphs, list items and table rows of a Markdown page, without code."""
    blocks, fenced, last = [], False, -2
    for n, line in enumerate(text_of(path).split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        if fenced or not line.strip() or line.startswith("    "):
            continue
        starts = re.match(r"\s*([-*|#]|\d+\.)", line)
        if n == last + 1 and blocks and not starts:
            blocks[-1][1] += " " + line.strip()
        else:
            blocks.append([n, line.strip()])
        last = n
    return blocks


def prose():
    """(path, line, text) of everything that is checked for wording: comments of C++ and scripts, and Markdown pages."""
    for path in tracked():
        if path.endswith(CODE):
            found = comments_of(path)
        elif path.startswith("scripts/") and path.endswith((".sh", ".py")):
            found = () if path == "scripts/shape.py" else script_comments(path)  # shape.py lists the words
        elif path.endswith(".md") and not path.startswith("assets/"):
            found = [(line, re.sub(r"`[^`]*`", "", words)) for line, words in page_lines(path)]
        else:
            continue
        for line, words in found:
            yield path, line, words


def test_names(files):
    for path in files:
        for match in re.finditer(r"^\s*TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", text_of(path), re.MULTILINE):
            yield f"{match.group(1)}.{match.group(2)}", path, text_of(path).count("\n", 0, match.start()) + 1


def measure():
    tree = Tree()
    result = {"values": {}, "worst": {}}

    def put(name, value, worst=()):
        result["values"][name] = value
        result["worst"][name] = [str(one) for one in worst][:8]

    folders = tree.folders()
    put("files", len(tree.files))
    put("files in one folder", max(folders.values()), [f"{name}: {n}" for name, n in folders.most_common(8) if n > 30])
    put("files under 40 lines", sum(text_of(name).count("\n") < 40 for name in tree.files))
    put("lines", sum(text_of(name).count("\n") for name in tree.files))
    reached = {name: tree.reached(name) for name in tree.files if not name.startswith("tests/")}
    for room in ("ui/panels", "app", "engine/train"):
        counts = [n for name, n in reached.items() if name.startswith(room + "/") and name.endswith(".cpp")]
        if counts:
            put(f"own headers reached, {room}, median", statistics.median(counts))
    most = sorted(reached.items(), key=lambda one: -one[1])
    put("own headers reached, most", most[0][1], [f"{name}: {n}" for name, n in most if n > 60])
    pairs = tree.mutual_pairs()
    put("pairs of files that include each other's headers", len(pairs), [f"{a}, {b}" for a, b in pairs])
    kinds = {"type": [], "function": []}
    for name in tree.files:
        if name.startswith(PUBLIC_ROOTS) and name.endswith(".h"):
            for kind, what, line, documented in declarations(text_of(name)):
                kinds[kind].append((documented, f"{name}:{line}: {what}"))
    for kind, all_of_kind in kinds.items():
        share = 100 * sum(one[0] for one in all_of_kind) / len(all_of_kind) if all_of_kind else 100
        by_folder = Counter(os.path.dirname(place) for documented, place in all_of_kind if not documented)
        put(f"{kind}s documented, %", round(share, 1), [f"{name}: {n} without" for name, n in by_folder.most_common(8)])
        put(f"public {kind}s", len(all_of_kind))
    lengths = []
    for name in tree.files:
        if not name.startswith("tests/"):
            lengths += [(n, f"{name}:{line}: {what} {n}") for what, line, n in functions(text_of(name))]
    lengths.sort(reverse=True)
    only = [n for n, _ in lengths]
    put("functions", len(only))
    put("function lines, median", statistics.median(only))
    put("function lines, 90th percentile", sorted(only)[int(0.9 * len(only))])
    put("functions over 60 lines", sum(n > 60 for n in only), [place for n, place in lengths if n > 60])
    put("functions over 100 lines", sum(n > 100 for n in only), [place for n, place in lengths if n > 100])
    pages = {name: os.path.getsize(name) / 1024 for name in tracked("docs/*.md", "docs/**/*.md")}
    own = {name: size for name, size in pages.items() if not name.startswith("docs/decoders/")}
    put("docs without decoders, KB", round(sum(own.values()), 1),
        [f"{name}: {size:.1f}" for name, size in sorted(own.items(), key=lambda one: -one[1])])
    for name in ("docs/cuda.md", "docs/testing.md"):
        if name in pages:
            put(f"{name}, KB", round(pages[name], 1))
    doubled = list(doubled_types([name for name in tree.files if not name.startswith("tests/")]))
    put("types of one name that meet", len(doubled), doubled)
    names = sorted(test_names([name for name in tree.files if name.startswith("tests/")]), key=lambda one: -len(one[0]))
    put("tests", len(names))
    too_long = [one for one in names if len(one[0].partition(".")[2]) > 60]
    put("test names over 60 characters", len(too_long), [f"{path}:{line}: {name}" for name, path, line in too_long])
    odd = [(path, line) for path, line, words in prose() if DIALECT.search(words)]
    by_file = Counter(path for path, _ in odd)
    put("sentences in the old dialect", len(odd), [f"{path}: {n}" for path, n in by_file.most_common(8)])
    n_comment = sum(1 for path in tree.files for kind, _, _ in tokens_of(text_of(path)) if kind == "comment")
    put("comment lines, % of all", round(100 * n_comment / max(1, result["values"]["lines"]), 1))
    return result


def misses(result):
    for name, value in result["values"].items():
        if name in MOST and value > MOST[name]:
            yield f"{name}: {value}, at most {MOST[name]}", result["worst"][name]
        if name in LEAST and value < LEAST[name]:
            yield f"{name}: {value}, at least {LEAST[name]}", result["worst"][name]


def report(as_json):
    result = measure()
    if as_json:
        print(json.dumps(result, indent=1))
        return 0
    for name, value in result["values"].items():
        limit = f"  (at most {MOST[name]})" if name in MOST else f"  (at least {LEAST[name]})" if name in LEAST else ""
        print(f"{name:52} {value:>9}{limit}")
        for place in result["worst"][name]:
            print(f"    {place}")
    return 0


def check():
    missed = list(misses(measure()))
    for line, places in missed:
        print(f"shape: {line}", *(f"    {place}" for place in places), sep="\n", file=sys.stderr)
    return 1 if missed else 0


def undocumented(folder):
    for name in tracked():
        if name.startswith(PUBLIC_ROOTS) and name.startswith(folder) and name.endswith(".h"):
            for kind, what, line, documented in declarations(text_of(name)):
                if not documented:
                    print(f"{name}:{line}: {kind} {what}")
    return 0


ROOMS = {"decode": ["engine/decode"], "kernels": ["kernels"], "model": ["engine/model", "engine/tokenizer", "engine/checkpoint"],
         "run": ["engine/run", "engine/seed", "engine/store"], "event": ["engine/event", "engine/trace"],
         "train": ["engine/train"], "reason": ["engine/reason"], "data": ["engine/data"], "ui": ["ui"], "app": ["app"], "tests": ["tests"],
         "scripts": ["scripts"], "docs": ["docs", "README.md", "CONTRIBUTING.md"]}


def phrases(room):
    """(place, kind, text) of everything in a room, or below a path, that a person reads."""
    roots = ROOMS.get(room, [room.rstrip("/")])
    for name in tracked():
        if not any(name == root or name.startswith(root + "/") for root in roots):
            continue
        if name.endswith(CODE):
            text = text_of(name)
            for line, words in comments_of(name):
                if len(words) > 25:
                    yield f"{name}:{line}", "comment", words
            for kind, piece, line in tokens_of(text):
                if kind == "string" and piece.count(" ") >= 3:
                    yield f"{name}:{line}", "message", piece
            if name.endswith(".h"):
                for _, what, line, _ in declarations(text):
                    yield f"{name}:{line}", "name", what
            if room == "tests":
                for what, path, line in test_names([name]):
                    yield f"{path}:{line}", "test", what
        elif name.endswith((".sh", ".py")):
            for line, words in script_comments(name):
                if len(words) > 25:
                    yield f"{name}:{line}", "comment", words
            for n, line in enumerate(text_of(name).split("\n"), 1):
                for words in re.findall(r"(?:echo|sys\.exit\(|print\()\s*(f?\"[^\"]{20,}\")", line):
                    yield f"{name}:{n}", "message", words
        elif name.endswith(".md"):
            for line, words in page_lines(name):
                if len(words) > 40:
                    yield f"{name}:{line}", "text", words


def wording(folder):
    for path, line, words in prose():
        if path.startswith(folder) and (match := DIALECT.search(words)):
            print(f"{path}:{line}: {words[max(0, match.start() - 60):match.end() + 60]}")
    return 0


def sample(room, seed, count):
    all_of_room = sorted(phrases(room))
    if not all_of_room:
        sys.exit(f"shape.py: {room}: neither a room ({', '.join(sorted(ROOMS))}) nor a path of the tree with text")
    rng = random.Random(seed)
    for place, kind, words in rng.sample(all_of_room, min(count, len(all_of_room))):
        print(f"{place} [{kind}]\n    {words[:600]}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("report").add_argument("--json", action="store_true")
    verbs.add_parser("check")
    verbs.add_parser("rooms")
    for verb in ("undocumented", "wording"):
        verbs.add_parser(verb).add_argument("folder", nargs="?", default="")
    sampling = verbs.add_parser("sample")
    sampling.add_argument("room", help="a room's name, or a folder or file of the tree")
    sampling.add_argument("--seed", type=int, default=1)
    sampling.add_argument("--count", type=int, default=40)
    options = parser.parse_args()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    if options.verb == "report":
        return report(options.json)
    if options.verb == "check":
        return check()
    if options.verb in ("undocumented", "wording"):
        return {"undocumented": undocumented, "wording": wording}[options.verb](options.folder)
    if options.verb == "rooms":
        print(*sorted(ROOMS))
        return 0
    return sample(options.room, options.seed, options.count)


if __name__ == "__main__":
    sys.exit(main())
