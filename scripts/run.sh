#!/usr/bin/env bash
# Installs what is missing, builds, and opens the window. Without a display: a race in the terminal.
# Arguments go to the program: scripts/run.sh generate --prompt "..." runs a subcommand instead.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
"$here/scripts/setup.sh"
"$here/scripts/build.sh" release >&2
program="$here/build/release/bin/decoscope"
if [ $# -eq 0 ] && [ -z "${DISPLAY:-}" ] && [ -z "${WAYLAND_DISPLAY:-}" ]; then
  echo "No display here: a race in the terminal instead of the window." >&2
  exec "$program" compare --decoders ar,jacobi,lookahead,prompt-lookup --prompt-file "$here/assets/prompts/bundled.jsonl" \
    --scale auto --max-tokens 96
fi
exec "$program" "$@"
