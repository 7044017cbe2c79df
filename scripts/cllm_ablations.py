#!/usr/bin/env python3
"""The ablations of CLLM (arXiv 2403.00835) on the bundled target: one short training for each setting, by the paper's recipe but for that
setting, all with the same number of training steps.
  scripts/cllm_ablations.py OUT_DIR [NAME...]     default: all; NAME: a key of SETTINGS
Prints a Markdown table and writes OUT_DIR/ablations.json: tokens per step in blocks of 16 and with a sliding window, right answers, and the
rows of the training. Runs that have ended are kept, one that was stopped continues. About three minutes a setting on two cores.
  DECOSCOPE_PROGRAM          the program (build/release/bin/decoscope)
  DECOSCOPE_ABLATION_PROMPTS (800) prompts, DECOSCOPE_ABLATION_EPOCHS (4) passes over them, DECOSCOPE_ABLATION_SCORES (60) problems of each task
Exit codes: the program's.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("DECOSCOPE_PROGRAM", HERE / "build/release/bin/decoscope")
PROMPTS, EPOCHS, SCORES = (int(os.environ.get("DECOSCOPE_ABLATION_" + name, value))
                           for name, value in (("PROMPTS", 800), ("EPOCHS", 4), ("SCORES", 60)))
TASKS = ("arith", "kb", "sql", "py", "blocks")

PAPER = {
    "name": "ablation", "target": "demo-target", "mixture": {task: {"weight": 1} for task in TASKS},
    "block": 16, "prompts": PROMPTS, "max_new_tokens": 160, "lanes": 32, "drop_wrong": True, "token_run": 10, "sentence_run": 3,
    "augment": True, "consistency": "global", "divergence": "forward", "smoothing": 0, "teacher": "student", "consistency_weight": 1,
    "ar_weight": 10, "ar_labels": "own", "points": 8, "batch_texts": 4, "replay_texts": 0, "context": 640, "epochs": EPOCHS,
    "peak_lr": 0.0005, "final_lr": 0.04, "warmup_steps": 20, "weight_decay": 0, "clip": 1, "checkpoint_minutes": 3, "probe_minutes": 0,
    "probe_problems": 2, "score_problems": SCORES, "seed": 1,
}
SETTINGS = {
    "paper's recipe": {},
    "blocks of 8": {"block": 8},
    "blocks of 32": {"block": 32},
    "local loss": {"consistency": "local"},
    "reverse KL": {"divergence": "reverse"},
    "Jensen-Shannon": {"divergence": "js"},
    "hard labels": {"divergence": "hard"},
    "AR weight 0": {"ar_weight": 0},
    "AR weight 1": {"ar_weight": 1},
    "no augmentation": {"augment": False},
    "a quarter of the prompts": {"prompts": PROMPTS // 4, "epochs": EPOCHS * 4},
    "fresh chains": {"points": 0, "fresh_points": 24, "fresh_block": 12, "fresh_iterations": 1, "chain_decay": 0.85, "ar_weight": 1,
                     "consistency_weight": 2, "final_consistency_weight": 0.25},
}


def train(out, name, changes):
    """Trains one model, or continues. Returns the document that the program prints."""
    folder = out / name.replace(" ", "-").replace("'", "")
    document = folder.with_suffix(".json")
    if document.exists():
        return json.loads(document.read_text())
    recipe = folder.with_suffix(".recipe.json")
    recipe.write_text(json.dumps({**PAPER, **changes}))
    resume = ["--resume"] if folder.exists() else []
    first = out / "papers-recipe"
    same_answers = not {"block", "prompts", "points"} & set(changes)
    if not resume and name != "paper's recipe" and same_answers and (first / "trajectories.bin").exists():
        folder.mkdir()
        for file in ("trajectories.bin", "stages.json"):
            shutil.copy(first / file, folder)
        resume = ["--resume"]
    done = subprocess.run([PROGRAM, "train", "cllm", "--recipe", recipe, "--from", "demo-target", "--out", folder, "--json", *resume],
                          stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    document.write_text(done.stdout)
    return json.loads(done.stdout)


def mean(scores, name):
    """Mean over the tasks."""
    return sum(score[name] for score in scores) / len(scores)


def row_of(name, scores, rows, steps):
    """A row of the table."""
    return [name, round(mean(scores, "tokens_per_step_block"), 2), round(mean(scores, "tokens_per_step_slide"), 2),
            round(100 * sum(s["n_correct"] for s in scores) / sum(s["n_checked"] for s in scores), 1), steps, rows]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    columns = ["setting", "tokens per step, block", "sliding", "right answers, %", "steps", "rows"]
    rows = []
    for name in sys.argv[2:] or SETTINGS:
        found = train(out, name, SETTINGS[name])
        if not rows:
            rows.append(row_of("not trained", found["before"], 0, 0))
        rows.append(row_of(name, found["after"], found["rows"], found["steps"]))
        print(rows[-1], file=sys.stderr)
    (out / "ablations.json").write_text(json.dumps({"recipe": PAPER, "settings": SETTINGS, "columns": columns, "rows": rows}, indent=1) + "\n")
    for row in [columns, ["---"] * len(columns), *rows]:
        print("| " + " | ".join(map(str, row)) + " |")


if __name__ == "__main__":
    main()
