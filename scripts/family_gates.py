"""Helpers of family_gates.sh, on the documents in its folder.

  family_gates.py plans OUT COUNT      writes prompt files of problems with plans of four and six steps
  family_gates.py answers RUN          writes the records with a model's texts as completions
  family_gates.py tokens OUT SHARE     tokens of SHARE % of a mean rationale
  family_gates.py table|draft|cllm OUT the Markdown tables; `table` fails if a gate is missed
"""
import json
import sys

TRIGGER = " So the answer is"
# Task, level (None: both levels), least share of correct answers of a target below 10 M parameters, and of a larger one (None: no gate).
RIGHT = [("arith", 1, 0.90, None), ("arith", 2, None, 0.90), ("kb", None, 0.85, 0.95), ("sql", 1, 0.85, 0.95), ("py", None, None, 0.85)]
DRAFTED = ["arith", "blocks", "chat"]
# Gates of a consistency model: the least tokens per step, in blocks and in a sliding window, as means over these tasks; and the most points
# of accuracy that it may lose on any of them.
CONSISTENT = ["arith", "sql", "py", "blocks"]
BLOCK, SLIDE, LOST = 3.5, 4.2, 3.0


def document(path):
    with open(path) as file:
        return json.load(file)


def records(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def plans(out, count):
    """Writes the problems with plans of four steps, and of six steps with four blocks, as prompt files."""
    wanted = {4: [], 6: []}
    for level in (1, 2):
        for record in records(f"{out}/blocks-{level}.jsonl"):
            check = record["check"]
            if check["form"] != "plan":
                continue
            # The answer lists the actions of the shortest plan, separated by semicolons. Every block is on another block or on the table.
            steps = len(record["answer"].split("; "))
            blocks = sum(fact.startswith(("on ", "ontable ")) for fact in check["init"])
            if (steps == 4 and level == 1) or (steps == 6 and blocks == 4):
                wanted[steps].append(record)
    for steps, found in wanted.items():
        if len(found) < min(count, 20):
            sys.exit(f"{out}: found {len(found)} plans of {steps} steps, expected {count}")
        with open(f"{out}/plans-{steps}.jsonl", "w") as file:
            for record in found[:count]:
                file.write(json.dumps(record) + "\n")


def answers(run):
    """Writes the records with the model's texts as completions, for the checker."""
    written = {answer["id"]: answer["text"] for answer in document(f"{run}.json")}
    with open(f"{run}.answers.jsonl", "w") as file:
        for record in records(f"{run}.jsonl"):
            file.write(json.dumps(record | {"completion": written[record["id"]]}) + "\n")


def rationale_tokens(out):
    """Mean tokens of a rationale. An item counts the answer's tokens too, so its count is scaled by the rationale's share of the text."""
    items = document(f"{out}/rationale-100.json")["items"]
    before = [len(item["text"].split(TRIGGER)[0]) / max(1, len(item["text"])) for item in items]
    return sum(item["tokens"] * share for item, share in zip(items, before)) / len(items)


def accepted(out, task):
    """Accepted / verified and accepted / drafted tokens at depth four, and the number of problems."""
    metrics = [answer["metrics"] for answer in document(f"{out}/draft-{task}.json")]
    kept, refused, drafted = (sum(m[name] for m in metrics) for name in ("accepted", "rejected", "proposed"))
    return kept / max(1, kept + refused), kept / max(1, drafted), len(metrics)


def gates(out):
    """Yields (gate, measured, met); met is None if a target of this size has no such gate."""
    large = document(f"{out}/target.json")["parameters"] >= 10e6
    scores = [s for task in ("arith", "kb", "sql", "py", "blocks", "write", "chat")
              for s in document(f"{out}/score-{task}.json")["scores"]]
    worst = min(scores, key=lambda s: s["n_ended"] / s["n"])
    share = worst["n_ended"] / worst["n"]
    yield ("ends by itself, of every task and level at least 99 %",
           f"{100 * share:.1f} % of {worst['n']} ({worst['task']}, level {worst['level']})", share >= 0.99)
    for task, level, small_least, large_least in RIGHT:
        least = large_least if large else small_least
        of = [s for s in scores if s["task"] == task and level in (None, s["level"])]
        checked = sum(s["n_checked"] for s in of)
        name = task + (f", level {level}" if level else ", levels 1 and 2")
        right = sum(s["n_correct"] for s in of) / checked if checked else 0
        met = None if least is None else right >= least
        yield f"{name} right" + (f", at least {100 * least:.0f} %" if least else ""), f"{100 * right:.1f} % of {checked}", met
    for steps, required in ((4, not large), (6, large)):
        plan = document(f"{out}/plans-{steps}.checked.json")
        right = plan["correct"] / plan["records"]
        words = "plans of four steps" if steps == 4 else "plans of six steps, 4 blocks"
        yield (words + " right" + (", at least 90 %" if required else ""), f"{100 * right:.1f} % of {plan['records']}",
               right >= 0.90 if required else None)
    ends = [sum(of) for of in zip(*(s["end_sentences"] for s in scores if "end_sentences" in s))]
    if ends:
        right = ends[4] / sum(ends)
        yield ("passages whose four paragraphs end in their sentences" + (", at least 80 %" if large else ""), f"{100 * right:.1f} % of {sum(ends)}",
               right >= 0.80 if large else None)
    tokens = sum(s["tokens"] for s in scores)
    entropy = sum(s["entropy"] * s["tokens"] for s in scores) / tokens
    answered = sum(s["n"] for s in scores)
    yield "entropy on its own outputs, 0.05 to 0.5 nats a token", f"{entropy:.3f} ({answered} answers)", 0.05 <= entropy <= 0.5
    for task in DRAFTED:
        of_verified, drafted, n_problems = accepted(out, task)
        yield (f"draft of depth 4 on {task}: accepted / verified, 0.5 to 0.9",
               f"{of_verified:.2f} (of all drafted {drafted:.2f}; {n_problems} problems)",
               0.5 <= of_verified <= 0.9)
    by_share = [document(f"{out}/rationale-{share}.json") for share in (0, 25, 50, 75, 100)]
    right = [100 * d["n_correct"] / d["n"] for d in by_share]
    yield ("kb right by share of the rationale (0, 25, 50, 75, 100 %), at least 20 points from none to all",
           ", ".join(f"{r:.1f}" for r in right) + f" % of {by_share[0]['n']} (level 1)", right[-1] - right[0] >= 20)
    jacobi = [answer["metrics"] for answer in document(f"{out}/jacobi.json")]
    blocks = sum(m["blocks"] for m in jacobi)
    iterations = sum(m["iterations"] for m in jacobi) / max(1, blocks)
    yield ("iterations of a Jacobi block of 16 on arith, more than 10",
           f"{iterations:.1f} ({blocks:.0f} blocks of {len(jacobi)} problems, level 1)", iterations > 10)


def consistent(out):
    """Yields the gates of the consistency model with the figures that its training measured on the test split; nothing if the training has not
    finished."""
    try:
        stages = document(f"{out}/cllm.json")
    except FileNotFoundError:
        stages = {}
    before, after = ({s["task"]: s for s in stages.get(when, [])} for when in ("before", "after"))
    if any(task not in after for task in CONSISTENT):
        return
    of_each = f"of {after[CONSISTENT[0]]['n']} problems each, test split"
    for refill, least in (("block", BLOCK), ("slide", SLIDE)):
        name = f"tokens_per_step_{refill}"
        mean, base = (sum(of[task][name] for task in CONSISTENT) / len(CONSISTENT) for of in (after, before))
        yield (f"consistency model, tokens a step with refill={refill}, mean of {', '.join(CONSISTENT)}, at least {least}",
               f"{mean:.2f} ({', '.join(f'{after[task][name]:.2f}' for task in CONSISTENT)}; before {base:.2f}) {of_each}",
               mean >= least)
    lost = {task: 100 * (before[task]["n_correct"] / before[task]["n_checked"] - after[task]["n_correct"] / after[task]["n_checked"])
            for task in CONSISTENT}
    yield (f"points of accuracy that it lost, at most {LOST:.0f} on each",
           ", ".join(f"{task} {points:+.1f}" for task, points in lost.items()) + f" {of_each}",
           max(lost.values()) <= LOST)


def print_rows(rows):
    """Prints the table. @return  the gates that are missed"""
    print("| gate | measured | |\n| --- | --- | --- |")
    missed = []
    for gate, found, met in rows:
        print(f"| {gate} | {found} | {'no gate of this size' if met is None else 'met' if met else 'MISSED'} |")
        if met is False:
            missed.append(gate)
    return missed


def table(out):
    print("Unseen problems of the dev split, greedy; made by `scripts/family_gates.sh`.\n")
    of_cllm = [*consistent(out)]
    if not of_cllm:
        print("family_gates.sh: demo-cllm is not finished: skipping its gates", file=sys.stderr)
    missed = print_rows([*gates(out), *of_cllm])
    if missed:
        sys.exit("missed: " + "; ".join(missed))


def cllm(out):
    rows = [*consistent(out)]
    if rows:
        print("Measured by its training on unseen problems, greedy; made by `scripts/family_gates.sh`.\n")
        print_rows(rows)


def draft(out):
    print("Drafts of depth 4 that the target accepts, unseen problems of the dev split,\n"
          "greedy:\n\n| task | problems | accepted / verified | accepted / drafted | tokens a step | gate, 0.5 to 0.9 |\n"
          "| --- | --- | --- | --- | --- | --- |")
    for task in DRAFTED:
        answered = document(f"{out}/draft-{task}.json")
        steps = sum(answer["steps"] for answer in answered)
        of_verified, drafted, n_problems = accepted(out, task)
        tokens = sum(len(answer["tokens"]) for answer in answered)
        met = "met" if 0.5 <= of_verified <= 0.9 else "missed"
        print(f"| {task} | {n_problems} | {of_verified:.2f} | {drafted:.2f} | {tokens / steps:.2f} | {met} |")


def main():
    what, *rest = sys.argv[1:]
    if what == "plans":
        plans(rest[0], int(rest[1]))
    elif what == "tokens":
        print(max(1, round(rationale_tokens(rest[0]) * int(rest[1]) / 100)))
    else:
        {"answers": answers, "table": table, "draft": draft, "cllm": cllm}[what](rest[0])


if __name__ == "__main__":
    main()
