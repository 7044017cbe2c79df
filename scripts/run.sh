#!/usr/bin/env bash
# Installs what is missing, builds, and opens the window on a race of decoders on a bundled prompt. Without a display:
# the race in the terminal. Which decoders race depends on the models that are there (scripts/lanes.sh).
# Arguments go to the program: scripts/run.sh generate --prompt "..." runs a subcommand instead.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
"$here/scripts/setup.sh"
"$here/scripts/build.sh" release --target decoscope >&2
program="$here/build/release/bin/decoscope"
# shellcheck source=scripts/lanes.sh
source "$here/scripts/lanes.sh"

# Options alone are the window's. What only a window can do is refused where there is no display; the rest is raced with. DISPLAY
# alone names one: Debian's GLFW opens X11 displays, and under Wayland that of Xwayland.
if [ -z "${DISPLAY:-}" ] && { [ $# -eq 0 ] || [[ $1 == -* ]]; }; then
  first_race
  prompts=(--prompt-file "$here/assets/prompts/bundled.jsonl")
  scale=(--scale 4x2)  # what the window's form chooses for the bundled model: soon over on every machine
  tokens=(--max-tokens 96)
  for argument in "$@"; do
    case $argument in
      -h | --help | --version) exec "$program" "$@" ;;
      --open | --open=* | --panel | --panel=* | --screen | --screen=* | --screenshot | --screenshot=* | --start | --step | --step=* \
        | --theme | --theme=*)
        echo "run: ${argument%%=*} needs a display and there is none (DISPLAY is empty);" \
          "with the package xvfb installed, xvfb-run -a scripts/run.sh $* makes one" >&2
        exit 2
        ;;
      --model | --model=*) # any model has these
        scale=()
        [ ${#race[@]} -eq 0 ] || race=(--decoders "ar,jacobi,lookahead,prompt-lookup")
        ;;
      --scale | --scale=*) scale=() ;;
      --max-tokens | --max-tokens=*) tokens=() ;;
      --decoders | --decoders=*) race=() ;;
      --prompt | --prompt=* | --prompt-file | --prompt-file=*) prompts=() ;;
    esac
  done
  echo "No display here: a race in the terminal instead of the window." >&2
  exec "$program" compare "${race[@]}" "${prompts[@]}" "${scale[@]}" "${tokens[@]}" "$@"
fi
[ $# -gt 0 ] || set -- --screen compare --start
exec "$program" "$@"
