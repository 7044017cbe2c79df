# Functions of the measuring scripts, which source this file with `here` set to the repository.
# shellcheck shell=bash disable=SC2154
program=${DECOSCOPE_PROGRAM:-"$here/build/release/bin/decoscope"}
export PYTHONPATH=$here/scripts PYTHONDONTWRITEBYTECODE=1

# FILE ARGUMENT...: runs the program and writes its standard output to FILE, completely or not at all. Keeps a FILE that is not empty.
# Reports a failure and returns the program's status. Inside $(...) `set -e` has no effect, so a caller there must return the status itself.
# `also_ok=3 into ...` accepts that status too, as `data check` returns for a wrong record.
into() {
  local file=$1 status=0
  shift
  [ -s "$file" ] && return
  "$program" "$@" > "$file.part" || status=$?
  [ "$status" -ne "${also_ok:-0}" ] || status=0
  if [ "$status" -eq 0 ] && [ ! -s "$file.part" ]; then
    echo "$program $*: printed nothing, expected a document" >&2
    status=1
  fi
  if [ "$status" -ne 0 ]; then
    rm -f "$file.part"
    echo "$file: not written, the program ended with status $status" >&2
    return "$status"
  fi
  mv "$file.part" "$file"
}

# TASK COUNT: prints COUNT problems of the task, half of level 1 and half of level 2.
problems() {
  "$program" data generate "$1" --split test --level 1 --start 0 --count $(($2 / 2)) || return
  "$program" data generate "$1" --split test --level 2 --start 0 --count $(($2 - $2 / 2))
}

# Copies records from standard input; an empty prompt becomes the first eight words of the text.
with_beginnings() {
  python3 -c '
import json, sys
for line in sys.stdin:
    record = json.loads(line)
    if not record["prompt"]:
        record["prompt"] = " ".join(record["completion"].split()[:8])
    print(json.dumps(record))'
}
