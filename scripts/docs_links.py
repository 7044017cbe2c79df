#!/usr/bin/env python3
"""Checks the links of the documentation: Markdown links, the headings they name, and paths in backticks.

  docs_links.py        prints a line for each broken link; exit code 1 if there is one

A path in backticks is checked if it begins with a folder of this repository and has a file name with an ending. Pages of docs/ that comments
of source files name must exist, too.
"""
import os
import re
import subprocess
import sys

LINK = re.compile(r"\]\(([^()\s]+)\)")
QUOTED = re.compile(r"`((?:docs|scripts|assets|tests|engine|kernels|ui|app|cmake)/[\w./*{},-]+)`")
PAGE = re.compile(r"\bdocs/[\w/]+\.md\b")
COMMENT = re.compile(r"(?:^\s*|\s{2})(?://|#)(.*)")


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns], capture_output=True, check=True)
    return [name for name in out.stdout.decode().split("\0") if name and os.path.exists(name)]


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", open(page, encoding="utf-8").read(), flags=re.DOTALL | re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def broken_links(page):
    folder = os.path.dirname(page)
    for line, text in enumerate(open(page, encoding="utf-8"), 1):
        for link in LINK.findall(text):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(folder, name)) if name else page
            if not os.path.exists(target):
                yield f"{page}:{line}: {link}: no such file"
            elif anchor and anchor not in anchors(target):
                yield f"{page}:{line}: {link}: no such heading in {target}"
        for name in QUOTED.findall(text):
            if "*" not in name and "{" not in name and "." in os.path.basename(name) and not os.path.exists(name):
                yield f"{page}:{line}: `{name}`: no such file"


def broken_pages(source):
    for line, text in enumerate(open(source, encoding="utf-8", errors="replace"), 1):
        comment = COMMENT.search(text)
        for name in PAGE.findall(comment.group(1)) if comment else ():
            if not os.path.exists(name):
                yield f"{source}:{line}: {name}: no such page"


def main():
    broken = []
    for page in tracked("*.md"):
        broken += broken_links(page)
    for source in tracked("*.cpp", "*.h", "*.cu", "*.cuh", "*.py", "*.sh", "*.cmake", "*CMakeLists.txt"):
        broken += broken_pages(source)
    print("\n".join(broken), end="\n" if broken else "")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
