#!/usr/bin/env bash
# Measures the shape of the source tree against its limits (folders, includes, documentation, functions, pages, test names, wording).
#   scripts/shape.sh [report [--json] | check | undocumented [FOLDER] | wording [FOLDER] | sample PLACE [--seed N] [--count N] | rooms]
# PLACE: a room (`rooms` lists them), a folder or a file. Prints the report by default. Exit code: 1 if `check` finds an exceeded limit or
# PLACE has no text; 2 for wrong usage.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/shape.py" "${@:-report}"
