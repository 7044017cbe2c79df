#!/usr/bin/env python3
"""Stands in for the program under the scripts that measure: a run of it takes what its rows cost, and nothing else.

It logs what it was asked to $ASKED, a line a call. One that holds $FAILS ends half way with code 6, as after Ctrl+C; one that holds
$WAITS begins half a second later; $LOSES takes an output from the lists of one that holds it, and $DIFFERS changes its texts. $HAS names the models and draft heads that are there, and
$PARAMETERS counts those of the target.
"""
import json
import os
import sys
import time

TARGET = {rows: 6 + 0.1 * (rows - 1) for rows in range(1, 65)}
DRAFT = 2.1  # a forward, so that a draft of three takes what its verification takes
HEADS = 1.4  # asking all draft heads once
PREFILL = 50.0

asked = sys.argv[1:]


def has(setting):
    """Whether the environment's setting speaks of this call."""
    return bool(os.environ.get(setting)) and os.environ[setting] in " ".join(asked)


def given(option, default=None):
    return asked[asked.index(option) + 1] if option in asked else default


def chosen(name, default):
    sets = [asked[i + 1] for i, word in enumerate(asked) if word == "--set"]
    return next((one.split("=")[1] for one in sets if one.split("=")[0] == name), default)


def schedule(steps, rows, drafts=0, branches=0, together=1, overlap=1.0):
    """rows and drafts of one step."""
    verify = (TARGET[1] + 0.1 * (rows * together - 1)) / together
    figures = {"steps": steps, "runs": 30, "forwards": steps / together, "target_busy_ms": steps * verify, "draft_busy_ms": steps * drafts * DRAFT,
               "prefill_ms": PREFILL, "weight_bytes": 173000000, "target_busy": 0.5}
    figures["wall_ms"] = (figures["target_busy_ms"] + figures["draft_busy_ms"]) / overlap + PREFILL
    if branches:
        figures["draft_prefill_ms"] = 0.4 * PREFILL
        if overlap > 1:  # the draft reads while the target judges another text
            figures["wall_ms"] -= figures["draft_prefill_ms"]
        figures |= {"branches": branches, "overlapped": int(overlap > 1), "verifications": steps / together, "overlap": overlap,
                    "draft_weight_bytes": 2000000, "branch_cache_bytes": branches * 1000000, "cache_bytes": 3000000 + branches * 1000000,
                    "draft_cache_bytes": branches * 50000}
    return figures


def written():
    return "another" if has("DIFFERS") else "the same"


def tree():
    decoder, branches = given("--decoder"), int(chosen("branches", 0))
    if decoder == "ar":
        steps, rows, proposed, figures = 600, 1, 0, schedule(600, 1)
    else:
        # Three texts at a time or more: one works for each of the two models all the time.
        overlap = 2.0 if branches >= 3 and chosen("batch_verify", "1") == "1" else 1.0
        together = int(chosen("batch_verify", given("--batch", 1)))
        steps, rows, proposed = (300, 7, 6) if chosen("k_config", "") == "2,1,1" else (300, 4, 3)
        figures = schedule(steps, rows, 3, branches, together, overlap)
    items = [{"id": "1", "text": written(), "answer": "A", "nodes": [{"parts": {"plan": written()}}]}]
    return {"tokens_per_step": 600 / steps, "tokens_per_second": 600 / figures["wall_ms"] * 1e3, "steps": steps, "rows": steps * rows,
            "proposed": steps * proposed, "schedule": figures, "n_correct": 1, "data": "generated", "items": items[has("LOSES"):]}


def chain():
    n, bound = int(given("--count")), int(chosen("bound", 40))
    window = int(chosen("window", 0))
    steps = {0: 40, 1: 36, 2: 34, 3: 32, 5: 30, 9: 28}[window]
    steps = min(steps, bound)
    figures = schedule(n * steps, window + 1)
    figures["wall_ms"] += n * 8 * TARGET[1]  # the answers, a row a step
    if bound < 40:  # what asks for the answer behind the cut is read
        figures["prefill_ms"] += n * 10
        figures["wall_ms"] += n * 10
    right = n - n // 100 if bound < 40 else n
    if "--max-tokens" in asked:  # a rationale has 36 tokens of an item's 48, as it has of its text
        right = n * min(36, int(given("--max-tokens"))) // 36
    items = [{"id": f"kb/{i}", "steps": steps + 8, "text": f"{i} bound {bound} {written()}".ljust(66) + " So the answer is (A).",
              "answer": "A", "tokens": 48} for i in range(n)]
    metrics = {"rows": n * steps * (window + 1)} | ({"iterations": n * steps} if window else {})
    return {"n": n, "n_correct": right, "tokens": n * 48, "seconds": figures["wall_ms"] / 1e3, "metrics": metrics, "schedule": figures,
            "data": "generated", "items": items}


def prompts():
    with open(given("--prompt-file")) as file:
        ids = [json.loads(line)["id"] for line in file]
    return ids[:len(ids) - has("LOSES")]


def written_tokens():
    return [3 if has("DIFFERS") else 2] * 100


def race():
    summary, results, alone = [], [], {}
    for lane in given("--decoders").split(","):
        decoder = lane.split("@")[0]
        forwards = decoder in ("speculative", "mcsd", "seed")
        steps, rows = {"ar": (100, 1), "speculative": (50, 5)}.get(decoder, (50, 7))
        drafting = steps * (forwards * DRAFT + (decoder in ("medusa", "chimera")) * HEADS)
        ms = steps * TARGET[rows] + drafting
        ids = prompts()
        if "--rows-alone" in asked:
            alone = {"rows_ms": len(ids) * steps * TARGET[rows], "drafting_ms": len(ids) * drafting, "of_its_rows": 1.0}
        summary.append(alone | {"lane": lane, "decoder": decoder, "tokens_per_step": 100 / steps, "tokens_per_second": 1e5 / ms,
                        "speedup": 600 / ms, "identical": len(ids) - has("DIFFERS"), "n": len(ids)})
        metrics = {"rows": steps * rows}
        if decoder != "ar":
            metrics |= {"accepted": 50, "proposed": 200}
        if decoder in ("medusa", "chimera"):
            metrics |= {"head_1_judged": 50, "head_1_accepted": 30}
        if decoder == "jacobi" and chosen("refill", "block") == "block":
            metrics |= {"fast_forward_mean": 6.0 if "@" in lane else 1.5}
        if forwards:
            metrics |= {"draft_forwards": steps * forwards, "draft_rows": steps * forwards}
        results += [{"id": id, "lane": lane, "decoder": decoder, "steps": steps, "speedup": 600 / ms, "metrics": metrics,
                     "prompt_tokens": [1] * 50, "tokens": written_tokens(), "identical_to_ar": True} for id in ids]
    return {"summary": summary, "results": results}


def blocks_problem(i):
    """By turns a plan of 4 steps and two of 6, of which one moves 3 blocks alone, in other words than the answer's; a single action."""
    steps, blocks = [(4, 4), (6, 4), (6, 3), (1, 4)][i % 4]
    on_table = ["ontable " + colour for colour in ("blue", "white", "black")[:blocks - 1]]
    return {"completion": "Lift the red block.\n" * steps, "answer": "; ".join(["pick up the red block"] * steps),
            "check": {"form": "plan" if steps > 1 else "action", "init": ["clear red", "handempty", "on red blue", *on_table]}}


def problems(task):
    """No task has more than 200; the first question of humaneval is too long to be asked."""
    for i in range(min(int(given("--count")), 200)):
        text = "Ravens are birds. They are black and they are clever. Ravens eat fish." if task == "plain" else "so"
        prompt = "" if task == "plain" else "a question" * (200 if (task, i) == ("humaneval", 0) else 1)
        record = {"id": f"{task}/{given('--level', 0)}/{i}", "prompt": prompt, "completion": text}
        print(json.dumps(record | (blocks_problem(i) if task == "blocks" else {})))


def checked():
    """Of the answers all but the last are right."""
    with open(asked[2]) as file:
        n = len(file.readlines())
    print(json.dumps({"records": n, "correct": n - 1, "not_checked": 0}))
    sys.exit(3)


def scores():
    """All but one of twenty are right; a tenth does not end where the call $LOSES."""
    task, n = given("--task"), int(given("--count"))
    of_level = {"task": task, "n": n, "n_checked": n, "n_correct": n - n // 20, "n_ended": n - has("LOSES") * n // 10, "tokens": 1000,
                "entropy": 0.25} | ({"end_sentences": [0, 0, 0, n // 10, n - n // 10]} if task == "write" else {})
    return {"scores": [of_level | {"level": level} for level in (1, 2)]}


def tree_of_heads():
    with open(given("--out"), "w") as file:
        file.write("{}")
    return {"rows": 7, "depth": 3, "costs": {"heads_ms": HEADS}}


def main():
    with open(os.environ["ASKED"], "a") as log:
        log.write(" ".join(asked) + "\n")
    if has("WAITS"):
        time.sleep(0.5)
    if has("FAILS"):
        print('{"half": ')
        sys.exit(6)
    if asked[:2] == ["data", "generate"]:
        problems(asked[2])
    elif asked[0] == "devices":
        print(json.dumps([{"name": "cpu", "available": True}, {"name": "cuda:0", "available": True}]))
    elif asked[:2] == ["bench", "kernels"]:
        print(json.dumps({"kernels": [{"rows": int(rows), "us": 10} for rows in given("--rows").split(",")]}))
    elif asked[:2] == ["trace", "validate"]:
        print("whole")
    elif asked[:2] == ["data", "check"]:
        checked()
    elif asked[:2] == ["model", "info"]:
        if "--json" not in asked:
            sys.exit(0 if asked[2] in os.environ.get("HAS", "").split() else 3)
        # Heads are copied from where they are told to be: any folder with files.
        path = os.path.dirname(os.path.abspath(__file__)) if asked[2] in ("demo-medusa", "demo-chimera") else asked[2]
        print(json.dumps({"path": path, "parameters": int(os.environ.get("PARAMETERS", 4000000))}))
    elif asked[:2] == ["model", "score"]:
        print(json.dumps(scores()))
    elif asked[:2] == ["model", "tree"]:
        print(json.dumps(tree_of_heads()))
    elif asked[:2] == ["model", "scale"]:
        os.mkdir(asked[3])
    elif asked[:2] == ["bench", "decode"]:
        if int(given("--repeat", 15)) > 100000:
            sys.exit(2)  # as the program refuses it
        time.sleep(600)  # works beside what is measured, until it is ended
    elif asked[0] == "bench":
        texts = int(given("--texts", 1))
        known = {int(rows): DRAFT if "--model" in asked else TARGET[int(rows) * texts] for rows in given("--rows").split(",")}
        decoder = given("--decoder", "ar")
        draft = {"ar": None, "speculative": int(given("--draft-forwards", 4)) * DRAFT}.get(decoder, HEADS)
        behind = [int(steps) for steps in given("--behind", "").split(",") if steps]
        print(json.dumps({"rows": [{"rows": rows, "ms": ms, "behind": [{"steps": steps, "ms": ms, "draft_ms": draft} for steps in behind]}
                                   for rows, ms in known.items()]}))
    elif asked[0] == "compare":
        if given("--record"):
            with open(given("--record"), "w") as file:
                file.write("a recording")
        print(json.dumps(race()))
    elif asked[0] == "generate":
        metrics = {"accepted": 30, "rejected": 10, "proposed": 60, "blocks": 2, "iterations": 28}
        print(json.dumps([{"id": id, "decoder": given("--decoder"), "prompt_tokens": [1] * 50, "tokens": written_tokens(), "text": written(), "identical_to_ar": True,
                           "steps": 50, "metrics": metrics} for id in prompts()]))
    elif "--find-bound" in asked:
        print(json.dumps({"bound": 24 if chosen("window", "") == "3" else None}))
    else:
        print(json.dumps(tree() if asked[1] == "tot" else chain()))


main()
