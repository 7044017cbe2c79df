#!/usr/bin/env bash
# Plants each fault of tests/mutations.json in a separate work tree and checks that a test fails. `scripts/mutate.sh --help` has the options.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/mutate.py" "$@"
