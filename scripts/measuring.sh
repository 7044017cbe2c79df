# For the scripts that measure, which source it with `here` set to the repository: the program, what is run once, unseen problems.
# shellcheck shell=bash disable=SC2154
program=${DECOSCOPE_PROGRAM:-"$here/build/release/bin/decoscope"}
export PYTHONPATH=$here/scripts PYTHONDONTWRITEBYTECODE=1

# FILE and arguments of the program: its document, whole or not at all. A file that is there is not made again; an empty one is none.
# Says itself what failed and returns its status: where a caller's `set -e` does not reach, in $(...), that must be passed on.
# `fine=3 into ..` takes a document that the program ends with that status, as `data check` does where a record is wrong.
into() {
  local file=$1 status=0
  shift
  [ -s "$file" ] && return
  "$program" "$@" > "$file.part" || status=$?
  [ "$status" -ne "${fine:-0}" ] || status=0
  if [ "$status" -eq 0 ] && [ ! -s "$file.part" ]; then
    echo "$program $*: printed nothing, expected a document" >&2
    status=1
  fi
  if [ "$status" -ne 0 ]; then
    rm -f "$file.part"
    echo "$file was not made (status $status)" >&2
    return "$status"
  fi
  mv "$file.part" "$file"
}

# TASK COUNT: so many of its problems, levels 1 and 2 half each.
problems() {
  "$program" data generate "$1" --split test --level 1 --start 0 --count $(($2 / 2)) || return
  "$program" data generate "$1" --split test --level 2 --start 0 --count $(($2 - $2 / 2))
}

# Records from standard input; those whose prompt is empty get their text's first eight words for it.
with_beginnings() {
  python3 -c '
import json, sys
for line in sys.stdin:
    record = json.loads(line)
    if not record["prompt"]:
        record["prompt"] = " ".join(record["completion"].split()[:8])
    print(json.dumps(record))'
}
