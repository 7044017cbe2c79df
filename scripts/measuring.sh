# For the scripts that measure, which source it with `here` set to the repository: the program, what is run once, unseen problems.
# shellcheck shell=bash disable=SC2154
program=${DECOSCOPE_PROGRAM:-"$here/build/release/bin/decoscope"}
export PYTHONPATH=$here/scripts PYTHONDONTWRITEBYTECODE=1

# FILE and arguments of the program: its document, whole or not at all. A file that is there is not made again; an empty one is none.
# Says itself what failed and returns its status: where a caller's `set -e` does not reach, in $(...), that must be passed on.
into() {
  local file=$1 status=0
  shift
  [ -s "$file" ] && return
  "$program" "$@" > "$file.part" || status=$?
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
