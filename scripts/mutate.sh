#!/usr/bin/env bash
# Plants each fault of tests/mutations.json in turn, in a tree of its own, and shows that a test fails. `scripts/mutate.sh --help`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/mutate.py" "$@"
