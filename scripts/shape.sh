#!/usr/bin/env bash
# Prints the shape of the source tree beside its limits: files a folder, headers reached, documented share, function lengths, docs' sizes,
# test names, wording. `scripts/shape.sh check` fails where a limit does not hold; `sample ROOM --seed N` draws 40 phrases to read.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/shape.py" "${@:-report}"
