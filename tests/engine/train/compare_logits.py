#!/usr/bin/env python3
"""Compares the logits of a trained model in this program with those in Hugging Face transformers.

    compare_logits.py PRINT_LOGITS MODEL_DIRECTORY [PROMPT ...]

PRINT_LOGITS is build/tests/bin/print_logits. Both programs compute in f32. For each prompt the script compares the logits
after every token, the greedy choices, and the token ids with those of the SentencePiece model in the directory. It prints
the largest difference and exits with 1 if that is above the tolerance. Needs torch, transformers 5 and sentencepiece.

Tolerance: a sum of n f32 terms in another order changes by about sqrt(n) * 2^-24 of its size, 1.4e-6 for the longest (n up
to 512 here). Some 50 such sums follow one another from embedding to logits. Allow 1e-4 of the largest logit.
"""

import json
import pathlib
import subprocess
import sys

import torch
from sentencepiece import SentencePieceProcessor
from transformers import AutoModelForCausalLM

RELATIVE = 1e-4
PROMPTS = [
    "USER: Anna has 11 stickers and finds 33 more. How many stickers does Anna have? ASSISTANT:",
    "Question:\nThere are 58 shells in Grace's room. Grace gives away 9 shells. How many shells are left?\nAnswer:\n",
    "def count_even(items):\n    return len([x for x in items if x % 2 == 0])\n",
    "SELECT name FROM pet WHERE age > 3 ORDER BY name ASC\n",
]


def ours(program, directory, prompt):
    found = json.loads(subprocess.run([program, directory, prompt], check=True, capture_output=True, text=True).stdout)
    return found["tokens"], torch.tensor(found["logits"])


def compare(program, directory, prompts):
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    pieces = SentencePieceProcessor(model_file=str(pathlib.Path(directory) / "tokenizer.model"))
    worst = largest = 0.0
    n_rows = n_choices = 0
    for prompt in prompts:
        tokens, logits = ours(program, directory, prompt)
        if tokens != [pieces.bos_id()] + pieces.encode(prompt):
            sys.exit(f"{directory}: other token ids than SentencePiece's for {prompt!r}")
        with torch.no_grad():
            theirs = model(torch.tensor([tokens])).logits[0].float()
        if theirs.shape != logits.shape:
            sys.exit(f"{directory}: found logits {tuple(logits.shape)}, transformers gives {tuple(theirs.shape)}")
        worst = max(worst, (logits - theirs).abs().max().item())
        largest = max(largest, theirs.abs().max().item())
        n_rows += len(tokens)
        n_choices += int((logits.argmax(1) == theirs.argmax(1)).sum())
    print(f"{directory}: {n_rows} rows, largest logit {largest:.3f}, largest difference {worst:.2e} "
          f"({worst / largest:.1e} of it), {n_choices} of {n_rows} greedy choices equal")
    return worst <= RELATIVE * largest and n_choices == n_rows


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(0 if compare(sys.argv[1], sys.argv[2], sys.argv[3:] or PROMPTS) else 1)
