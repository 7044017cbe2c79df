#!/usr/bin/env python3
"""Times eager `generate` of transformers on a GPU: the speed that scripts/gpu_check.sh expects to exceed.

  eager_floor.py MODEL_DIR [CONTEXT] [TOKENS]

Prints a JSON document: milliseconds a token, the median of three, or "absent" with the reason if it cannot run. Exit code 0.
"""
import json
import statistics
import sys
import time


def measured(folder, context, tokens):
    import torch
    import transformers

    if not torch.cuda.is_available():
        return {"absent": "torch finds no GPU"}
    # transformers 5 calls the option dtype, most releases of 4 torch_dtype.
    name = "dtype" if int(transformers.__version__.split(".")[0]) >= 5 else "torch_dtype"
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, **{name: torch.bfloat16}).to("cuda").eval()
    prompt = torch.randint(3, model.config.vocab_size, (1, context), device="cuda")

    def seconds(n):
        torch.cuda.synchronize()
        began = time.perf_counter()
        model.generate(prompt, attention_mask=torch.ones_like(prompt), min_new_tokens=n, max_new_tokens=n, do_sample=False)
        torch.cuda.synchronize()
        return time.perf_counter() - began

    seconds(4)
    # The difference excludes reading the prompt.
    each = [(seconds(tokens) - seconds(1)) / (tokens - 1) * 1000 for _ in range(3)]
    return {"transformers": transformers.__version__, "torch": torch.__version__, "context": context, "tokens": tokens,
            "ms_per_token": statistics.median(each)}


def main(arguments):
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    context, tokens = (int(arguments[i]) if len(arguments) > i else default for i, default in ((1, 512), (2, 64)))
    try:
        out = measured(arguments[0], context, tokens)
    except Exception as error:  # not installed, another version, no memory
        out = {"absent": f"{type(error).__name__}: {error}"}
    print(json.dumps(out, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
