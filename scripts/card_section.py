"""Puts standard input into a model's card as one section, in the place of the section of that name: card_section.py README.md "Time"."""
import os
import sys


def with_section(card, heading, text):
    """The card with the section, which goes to its end where there was none."""
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
