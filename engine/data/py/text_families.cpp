// Functions of strings and of lists of words.
#include <algorithm>

#include "engine/data/py/families.h"
#include "engine/data/text.h"

namespace engine {

namespace {

// The characters of the text for which $P holds.
std::string kept_text(const PyCall& c) {
  std::string out;
  for (const char x : c.text())
    if (c.holds(x)) out += x;
  return out;
}

// text.split()
PyWords words_in(const std::string& text) {
  PyWords words = split_text(text, ' ');
  std::erase(words, "");
  return words;
}

constexpr PyFamily kTextFamilies[] = {
    // Strings.
    {"char_count",
     "s",
     "count tally number_of",
     "how many $p there are in $a",
     1,
     {"return len([$x for $x in $a if $P])", "return sum(1 for $x in $a if $P)",
      "$t = 0\nfor $x in $a:\n    if $P:\n        $t += 1\nreturn $t"},
     [](const PyCall& c) { return py_repr(std::ssize(kept_text(c))); }},
    {"char_filter",
     "s",
     "keep only filter",
     "the $p of $a as a string",
     1,
     {"return ''.join($x for $x in $a if $P)",
      "$r = ''\nfor $x in $a:\n    if $P:\n        $r += $x\nreturn $r"},
     [](const PyCall& c) { return py_repr(kept_text(c)); }},
    {"char_reverse",
     "s",
     "reverse backwards flip",
     "the $p of $a in reverse order as a string",
     1,
     {"return ''.join($x for $x in $a[::-1] if $P)",
      "$r = ''\nfor $x in $a:\n    if $P:\n        $r = $x + $r\nreturn $r"},
     [](const PyCall& c) {
       const std::string kept = kept_text(c);
       return py_repr(std::string(kept.rbegin(), kept.rend()));
     }},
    {"char_replace",
     "s",
     "replace mask hide",
     "$a with all $p replaced by '*'",
     1,
     {"return ''.join('*' if $P else $x for $x in $a)",
      "$r = ''\nfor $x in $a:\n    $r += '*' if $P else $x\nreturn $r"},
     [](const PyCall& c) {
       std::string out = c.text();
       for (char& x : out)
         if (c.holds(x)) x = '*';
       return py_repr(out);
     }},
    {"char_repeat",
     "s",
     "repeat stretch double",
     "$a with every character written $K times",
     1,
     {"return ''.join($x * $K for $x in $a)",
      "$r = ''\nfor $x in $a:\n    $r += $x * $K\nreturn $r"},
     [](const PyCall& c) {
       std::string out;
       for (const char x : c.text()) out.append(static_cast<std::size_t>(c.k), x);
       return py_repr(out);
     }},
    {"char_dict",
     "s",
     "histogram frequencies char_counts",
     "a dictionary of how often each of the $p occurs in $a",
     2,
     {"$r = {}\nfor $x in $a:\n    if $P:\n        $r[$x] = $r.get($x, 0) + 1\nreturn $r",
      "$r = {}\nfor $x in $a:\n    if not ($P):\n        continue\n    if $x not in $r:\n        "
      "$r[$x] = 0\n    $r[$x] += 1\nreturn $r"},
     [](const PyCall& c) {
       PyDict<char, PyInt> counts;
       for (const char x : kept_text(c)) py_entry(counts, x)++;
       return py_repr(counts);
     }},
    {"char_index",
     "s",
     "positions places indices",
     "the indices of the $p in $a",
     2,
     {"return [i for i, $x in enumerate($a) if $P]",
      "$r = []\nfor i in range(len($a)):\n    $x = $a[i]\n    if $P:\n        $r.append(i)\nreturn "
      "$r"},
     [](const PyCall& c) {
       PyNumbers places;
       for (std::size_t i = 0; i < c.text().size(); i++)
         if (c.holds(c.text()[i])) places.push_back(static_cast<PyInt>(i));
       return py_repr(places);
     }},
    {"palindrome",
     "s",
     "palindrome mirror same",
     "whether the $p of $a read the same backwards",
     2,
     {"$r = [$x for $x in $a if $P]\nreturn $r == $r[::-1]",
      "$r = [$x for $x in $a if $P]\ni = 0\nj = len($r) - 1\nwhile i < j:\n    if $r[i] != "
      "$r[j]:\n        return False\n    i += 1\n    j -= 1\nreturn True"},
     [](const PyCall& c) {
       const std::string kept = kept_text(c);
       return py_repr(std::equal(kept.begin(), kept.end(), kept.rbegin()));
     }},
    {"word_count",
     "s",
     "count_words words_longer",
     "how many words of $a have more than $K characters",
     1,
     {"return len([$x for $x in $a.split() if len($x) > $K])",
      "$t = 0\nfor $x in $a.split():\n    if len($x) > $K:\n        $t += 1\nreturn $t"},
     [](const PyCall& c) {
       return py_repr(std::ranges::count_if(
           words_in(c.text()), [&](const std::string& x) { return std::ssize(x) > c.k; }));
     }},
    {"initials",
     "s",
     "initials first_letters acronym",
     "the first letters of the words of $a joined by '$L'",
     1,
     {"return '$L'.join($x[0] for $x in $a.split())",
      "$r = []\nfor $x in $a.split():\n    $r.append($x[0])\nreturn '$L'.join($r)"},
     [](const PyCall& c) {
       PyWords letters;
       for (const std::string& x : words_in(c.text())) letters.push_back(x.substr(0, 1));
       return py_repr(joined(letters, std::string(1, c.letter)));
     }},
    {"reverse_words",
     "s",
     "reverse_words turn_words",
     "the words of $a in reverse order joined by '$L'",
     1,
     {"return '$L'.join($a.split()[::-1])", "$r = $a.split()\n$r.reverse()\nreturn '$L'.join($r)"},
     [](const PyCall& c) {
       PyWords words = words_in(c.text());
       std::ranges::reverse(words);
       return py_repr(joined(words, std::string(1, c.letter)));
     }},
    // Lists of words.
    {"word_filter",
     "w",
     "keep select filter",
     "the $p in $a",
     1,
     {"return [$x for $x in $a if $P]",
      "$r = []\nfor $x in $a:\n    if $P:\n        $r.append($x)\nreturn $r"},
     [](const PyCall& c) { return py_repr(c.kept(c.words())); }},
    {"word_map",
     "w",
     "change convert map",
     "a list of the words of $a, each $o",
     1,
     {"return [$O for $x in $a]", "$r = []\nfor $x in $a:\n    $r.append($O)\nreturn $r"},
     [](const PyCall& c) { return py_repr(c.mapped(c.words())); }},
    {"word_filter_map",
     "w",
     "pick transform collect",
     "the $p of $a, each $o",
     2,
     {"return [$O for $x in $a if $P]",
      "$r = []\nfor $x in $a:\n    if $P:\n        $r.append($O)\nreturn $r"},
     [](const PyCall& c) { return py_repr(c.mapped(c.kept(c.words()))); }},
    {"word_tally",
     "w",
     "count tally number_of",
     "how many $p there are in $a",
     1,
     {"return len([$x for $x in $a if $P])",
      "$t = 0\nfor $x in $a:\n    if $P:\n        $t += 1\nreturn $t"},
     [](const PyCall& c) { return py_repr(std::ssize(c.kept(c.words()))); }},
    {"word_join",
     "w",
     "join concat glue",
     "the words of $a, each $o, joined by '-'",
     1,
     {"return '-'.join($O for $x in $a)",
      "$r = []\nfor $x in $a:\n    $r.append($O)\nreturn '-'.join($r)"},
     [](const PyCall& c) { return py_repr(joined(c.mapped(c.words()), "-")); }},
    {"word_longest",
     "w",
     "longest widest biggest",
     "the longest of the $p in $a, or an empty string",
     2,
     {"return max([$x for $x in $a if $P], key=len, default='')",
      "$r = ''\nfor $x in $a:\n    if $P and len($x) > len($r):\n        $r = $x\nreturn $r"},
     [](const PyCall& c) {
       std::string longest;
       for (const std::string& x : c.kept(c.words()))
         if (x.size() > longest.size()) longest = x;
       return py_repr(longest);
     }},
    {"word_sort",
     "w",
     "sort order arrange",
     "the $p of $a sorted by length",
     2,
     {"return sorted([$x for $x in $a if $P], key=lambda $x: len($x))",
      "$r = [$x for $x in $a if $P]\nreturn sorted($r, key=len)"},
     [](const PyCall& c) {
       PyWords kept = c.kept(c.words());
       std::ranges::stable_sort(kept, {}, &std::string::size);
       return py_repr(kept);
     }},
    {"word_dict",
     "w",
     "lengths sizes measure",
     "a dictionary from the $p of $a to their lengths",
     2,
     {"return {$x: len($x) for $x in $a if $P}",
      "$r = {}\nfor $x in $a:\n    if $P:\n        $r[$x] = len($x)\nreturn $r"},
     [](const PyCall& c) {
       PyTable lengths;
       for (const std::string& x : c.kept(c.words())) py_entry(lengths, x) = std::ssize(x);
       return py_repr(lengths);
     }},
    {"word_counts",
     "w",
     "counts occurrences tally_words",
     "a dictionary of how often each of the $p occurs in $a",
     2,
     {"$r = {}\nfor $x in $a:\n    if $P:\n        $r[$x] = $r.get($x, 0) + 1\nreturn $r",
      "$r = {}\nfor $x in $a:\n    if not ($P):\n        continue\n    $r[$x] = $r.get($x, 0) + "
      "1\nreturn $r"},
     [](const PyCall& c) {
       PyTable counts;
       for (const std::string& x : c.kept(c.words())) py_entry(counts, x)++;
       return py_repr(counts);
     }}};

}  // namespace

std::span<const PyFamily> py_text_families() {
  return kTextFamilies;
}

}  // namespace engine
