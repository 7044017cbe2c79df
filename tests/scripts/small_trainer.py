#!/usr/bin/env python3
"""Replaces the program in tests of train_family.sh. Trains nothing; its weights are hashes of their inputs.

Appends each call to $ASKED. A call that contains $FAILS stops half way with code 6, as after Ctrl+C (a measurement then writes nothing). A call
that contains $KILLS kills this process and the calling script. A stopped training leaves a checkpoint and an incomplete file.
"""
import hashlib
import os
import signal
import sys

MODEL = ["config.json", "generation_config.json", "model.safetensors", "tokenizer.model", "tokenizer_config.json"]
HEADS = ["config.json", "model.safetensors", "accuracies.json"]
FILES = {"tokenizer": ["tokenizer.model"], "outputs": ["own_outputs.jsonl"], "target": MODEL, "draft": MODEL,
         "cllm": MODEL + ["decoscope.json"], "medusa": HEADS, "chimera": HEADS}

asked = sys.argv[1:]


def has(setting):
    """True if this call contains the text of the environment variable."""
    return bool(os.environ.get(setting)) and os.environ[setting] in " ".join(asked)


def given(option):
    return asked[asked.index(option) + 1] if option in asked else None


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def made_of():
    """A hash of the call's kind and of every file that it reads."""
    read = hashlib.sha256(asked[1].encode())
    for path in filter(None, map(given, ("--recipe", "--tokenizer", "--target", "--from", "--texts"))):
        if os.path.isdir(path):
            names = ("model.safetensors", "tokenizer.model")
            path = next(file for file in (os.path.join(path, name) for name in names) if os.path.exists(file))
        with open(path, "rb") as file:
            read.update(file.read())
    return read.hexdigest()


def train(kind, out):
    os.makedirs(out, exist_ok=True)
    write(f"{out}/checkpoint.bin", "half of it")
    write(f"{out}/model.safetensors.part1", "half a file")
    if has("FAILS"):
        sys.exit(6)
    if has("KILLS"):
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    os.remove(f"{out}/model.safetensors.part1")
    for name in FILES[kind]:
        write(f"{out}/{name}", made_of() + "\n")
    if kind not in ("tokenizer", "outputs"):
        write(f"{out}/README.md", f"# demo-{kind}\n\n## Scores\n\nNone.\n")


def main():
    with open(os.environ["ASKED"], "a") as log:
        log.write(" ".join(asked) + "\n")
    if asked[0] == "train":
        train(asked[1], given("--out"))
    elif has("FAILS"):
        sys.exit(6)
    elif asked[:2] == ["model", "tree"]:
        write(given("--out"), "{}\n")
    else:
        write(given("--resume"), "figures\n")


main()
