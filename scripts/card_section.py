"""Writes standard input into a model's card as the section HEADING, replacing a section of that name.

  card_section.py README.md HEADING
"""
import os
import sys


def with_section(card, heading, text):
    """The card with the section replaced, or appended if it has none."""
    lines, kept, inside, done = card.splitlines(), [], False, False
    section = [f"## {heading}", "", *text.strip("\n").splitlines(), ""]
    fenced = False
    for line in lines:
        fenced ^= line.startswith("```")
        if not fenced and line.startswith("## "):
            inside = line == f"## {heading}"
            if inside and not done:
                kept += section
                done = True
        if not inside:
            kept.append(line)
    if not done:
        kept += ["", *section] if kept and kept[-1] else section
    return "\n".join(kept).rstrip("\n") + "\n"


def main():
    path, heading = sys.argv[1:]
    with open(path) as file:
        card = file.read()
    with open(path + ".part", "w") as file:
        file.write(with_section(card, heading, sys.stdin.read()))
    os.replace(path + ".part", path)


if __name__ == "__main__":
    main()
