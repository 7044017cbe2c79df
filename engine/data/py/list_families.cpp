// Functions of lists of numbers.
#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "engine/data/py/families.h"

namespace engine {

namespace {

PyInt sum_of(const PyNumbers& items) {
  return std::accumulate(items.begin(), items.end(), PyInt{0});
}

bool contains(const PyNumbers& items, PyInt x) {
  return std::ranges::find(items, x) != items.end();
}

// items[:k]
PyNumbers first_of(PyNumbers items, PyInt k) {
  if (std::ssize(items) > k) items.resize(static_cast<std::size_t>(k));
  return items;
}

// items[::k]
PyNumbers every_kth(const PyNumbers& items, PyInt k) {
  PyNumbers out;
  for (std::size_t i = 0; i < items.size(); i += static_cast<std::size_t>(k))
    out.push_back(items[i]);
  return out;
}

template <class Order = std::ranges::less, class Key = std::identity>
PyNumbers sorted(PyNumbers items, Order order = {}, Key key = {}) {
  std::ranges::stable_sort(items, order, key);
  return items;
}

// sorted(set(items))
PyNumbers distinct(const PyNumbers& items) {
  const std::set<PyInt> set(items.begin(), items.end());
  return {set.begin(), set.end()};
}

constexpr PyFamily kListFamilies[] = {
    // Lists of numbers.
    {"filter",
     "l",
     "keep select filter",
     "the $p in $a",
     1,
     {"return [$x for $x in $a if $P]",
      "$r = []\nfor $x in $a:\n    if $P:\n        $r.append($x)\nreturn $r"},
     [](const PyCall& c) { return py_repr(c.kept(c.list())); }},
    {"map",
     "l",
     "change convert map",
     "a list of the numbers of $a, each $o",
     1,
     {"return [$O for $x in $a]", "$r = []\nfor $x in $a:\n    $r.append($O)\nreturn $r"},
     [](const PyCall& c) { return py_repr(c.mapped(c.list())); }},
    {"filter_map",
     "l",
     "pick transform collect",
     "the $p of $a, each $o",
     2,
     {"return [$O for $x in $a if $P]",
      "$r = []\nfor $x in $a:\n    if $P:\n        $r.append($O)\nreturn $r"},
     [](const PyCall& c) { return py_repr(c.mapped(c.kept(c.list()))); }},
    {"sum_if",
     "l",
     "sum add total",
     "the sum of the $p in $a",
     1,
     {"return sum($x for $x in $a if $P)",
      "$t = 0\nfor $x in $a:\n    if $P:\n        $t += $x\nreturn $t"},
     [](const PyCall& c) { return py_repr(sum_of(c.kept(c.list()))); }},
    {"sum_map",
     "l",
     "sum add total",
     "the sum of the numbers of $a, each $o first",
     1,
     {"return sum($O for $x in $a)", "$t = 0\nfor $x in $a:\n    $t += $O\nreturn $t"},
     [](const PyCall& c) { return py_repr(sum_of(c.mapped(c.list()))); }},
    {"count_if",
     "l",
     "count tally number_of",
     "how many $p there are in $a",
     1,
     {"return len([$x for $x in $a if $P])", "return sum(1 for $x in $a if $P)",
      "$t = 0\nfor $x in $a:\n    if $P:\n        $t += 1\nreturn $t"},
     [](const PyCall& c) { return py_repr(std::ssize(c.kept(c.list()))); }},
    {"max_if",
     "l",
     "largest max highest",
     "the largest of the $p in $a, or 0 if there are none",
     2,
     {"return max([$x for $x in $a if $P], default=0)",
      "$r = [$x for $x in $a if $P]\nif not $r:\n    return 0\nreturn max($r)"},
     [](const PyCall& c) {
       const PyNumbers kept = c.kept(c.list());
       return py_repr(kept.empty() ? 0 : std::ranges::max(kept));
     }},
    {"min_if",
     "l",
     "smallest min lowest",
     "the smallest of the $p in $a, or 0 if there are none",
     2,
     {"return min([$x for $x in $a if $P], default=0)",
      "$r = [$x for $x in $a if $P]\nif not $r:\n    return 0\nreturn min($r)"},
     [](const PyCall& c) {
       const PyNumbers kept = c.kept(c.list());
       return py_repr(kept.empty() ? 0 : std::ranges::min(kept));
     }},
    {"any_if",
     "l",
     "has any contains",
     "whether there are any $p in $a",
     1,
     {"return any($P for $x in $a)",
      "for $x in $a:\n    if $P:\n        return True\nreturn False"},
     [](const PyCall& c) { return py_repr(!c.kept(c.list()).empty()); }},
    {"all_if",
     "l",
     "all only every",
     "whether $a holds only $p",
     1,
     {"return all($P for $x in $a)",
      "for $x in $a:\n    if not ($P):\n        return False\nreturn True"},
     [](const PyCall& c) { return py_repr(c.kept(c.list()).size() == c.list().size()); }},
    {"first_if",
     "l",
     "first find next",
     "the first of the $p in $a, or None",
     2,
     {"for $x in $a:\n    if $P:\n        return $x\nreturn None",
      "$r = [$x for $x in $a if $P]\nreturn $r[0] if $r else None"},
     [](const PyCall& c) {
       const PyNumbers kept = c.kept(c.list());
       return kept.empty() ? "None" : py_repr(kept.front());
     }},
    {"last_if",
     "l",
     "last final latest",
     "the last of the $p in $a, or None",
     2,
     {"$r = None\nfor $x in $a:\n    if $P:\n        $r = $x\nreturn $r",
      "$r = [$x for $x in $a if $P]\nreturn $r[-1] if $r else None"},
     [](const PyCall& c) {
       const PyNumbers kept = c.kept(c.list());
       return kept.empty() ? "None" : py_repr(kept.back());
     }},
    {"index_if",
     "l",
     "index position where",
     "the index of the first of the $p in $a, or -1",
     2,
     {"for i, $x in enumerate($a):\n    if $P:\n        return i\nreturn -1",
      "for i in range(len($a)):\n    $x = $a[i]\n    if $P:\n        return i\nreturn -1"},
     [](const PyCall& c) {
       const PyNumbers& a = c.list();
       const auto found = std::ranges::find_if(a, [&](PyInt x) { return c.holds(x); });
       return py_repr(found == a.end() ? PyInt{-1} : found - a.begin());
     }},
    {"product_if",
     "l",
     "product multiply",
     "the product of the $p in $a",
     2,
     {"$r = 1\nfor $x in $a:\n    if $P:\n        $r *= $x\nreturn $r",
      "$r = 1\nfor $x in [$y for $y in $a]:\n    if $P:\n        $r = $r * $x\nreturn $r"},
     [](const PyCall& c) {
       PyInt product = 1;
       for (const PyInt x : c.kept(c.list())) product *= x;
       return py_repr(product);
     }},
    {"running_sum",
     "l",
     "running accumulate prefix",
     "the running totals of $a, starting from $K",
     2,
     {"$t = $K\n$r = []\nfor $x in $a:\n    $t += $x\n    $r.append($t)\nreturn $r",
      "$r = []\n$t = $K\nfor $x in $a:\n    $t = $t + $x\n    $r.append($t)\nreturn $r"},
     [](const PyCall& c) {
       PyInt total = c.k;
       PyNumbers totals;
       for (const PyInt x : c.list()) totals.push_back(total += x);
       return py_repr(totals);
     }},
    {"running_max",
     "l",
     "running_max best_so_far",
     "the largest number seen so far at each place of $a, at least $K",
     2,
     {"$t = $K\n$r = []\nfor $x in $a:\n    $t = max($t, $x)\n    $r.append($t)\nreturn $r",
      "$t = $K\n$r = []\nfor $x in $a:\n    if $x > $t:\n        $t = $x\n    "
      "$r.append($t)\nreturn $r"},
     [](const PyCall& c) {
       PyInt largest = c.k;
       PyNumbers out;
       for (const PyInt x : c.list()) out.push_back(largest = std::max(largest, x));
       return py_repr(out);
     }},
    {"differences",
     "l",
     "differences steps gaps",
     "the differences of neighbours in $a, each times $K",
     2,
     {"return [($a[i + 1] - $a[i]) * $K for i in range(len($a) - 1)]",
      "$r = []\nfor i in range(1, len($a)):\n    $r.append(($a[i] - $a[i - 1]) * $K)\nreturn $r"},
     [](const PyCall& c) {
       const PyNumbers& a = c.list();
       PyNumbers out;
       for (std::size_t i = 1; i < a.size(); i++) out.push_back((a[i] - a[i - 1]) * c.k);
       return py_repr(out);
     }},
    {"every_kth",
     "l",
     "every step skip",
     "every item of $a at an index divisible by $K",
     1,
     {"return $a[::$K]", "return [$a[i] for i in range(0, len($a), $K)]",
      "$r = []\nfor i, $x in enumerate($a):\n    if i % $K == 0:\n        $r.append($x)\nreturn "
      "$r"},
     [](const PyCall& c) { return py_repr(every_kth(c.list(), c.k)); }},
    {"first_k",
     "l",
     "first head start",
     "the first $K items of $a",
     1,
     {"return $a[:$K]",
      "$r = []\nfor $x in $a:\n    if len($r) < $K:\n        $r.append($x)\nreturn $r"},
     [](const PyCall& c) { return py_repr(first_of(c.list(), c.k)); }},
    {"last_k",
     "l",
     "last tail end",
     "the last $K items of $a",
     1,
     {"return $a[-$K:]", "return $a[max(0, len($a) - $K):]"},
     [](const PyCall& c) {
       const PyNumbers& a = c.list();
       return py_repr(PyNumbers(a.end() - std::min(c.k, std::ssize(a)), a.end()));
     }},
    {"rotate",
     "l",
     "rotate turn shift",
     "$a rotated to the left by $K places",
     2,
     {"return $a[$K:] + $a[:$K]",
      "$r = list($a)\nfor i in range(min($K, len($a))):\n    $r.append($r.pop(0))\nreturn $r"},
     [](const PyCall& c) {
       PyNumbers a = c.list();
       std::ranges::rotate(a, a.begin() + std::min(c.k, std::ssize(a)));
       return py_repr(a);
     }},
    {"largest_k",
     "l",
     "top largest best",
     "the $K largest numbers of $a, largest first",
     1,
     {"return sorted($a, reverse=True)[:$K]", "$r = sorted($a)\nreturn $r[::-1][:$K]"},
     [](const PyCall& c) { return py_repr(first_of(sorted(c.list(), std::greater<>()), c.k)); }},
    {"smallest_k",
     "l",
     "bottom smallest least",
     "the $K smallest numbers of $a in rising order",
     1,
     {"return sorted($a)[:$K]", "$r = sorted($a)\nreturn $r[:$K]"},
     [](const PyCall& c) { return py_repr(first_of(sorted(c.list()), c.k)); }},
    {"sort_by",
     "l",
     "sort order arrange",
     "$a sorted by the remainder modulo $K",
     2,
     {"return sorted($a, key=lambda $x: $x % $K)",
      "$r = sorted($a, key=lambda $x: $x % $K)\nreturn $r"},
     [](const PyCall& c) {
       return py_repr(sorted(c.list(), {}, [&](PyInt x) { return py_modulo(x, c.k); }));
     }},
    {"unique_if",
     "l",
     "unique distinct once",
     "the $p of $a without repeats, in order",
     2,
     {"$r = []\nfor $x in $a:\n    if $P and $x not in $r:\n        $r.append($x)\nreturn $r",
      "$r = []\nfor $x in $a:\n    if $x in $r:\n        continue\n    if $P:\n        "
      "$r.append($x)\nreturn $r"},
     [](const PyCall& c) {
       PyNumbers out;
       for (const PyInt x : c.kept(c.list()))
         if (!contains(out, x)) out.push_back(x);
       return py_repr(out);
     }},
    {"frequent",
     "l",
     "frequent repeated common",
     "the numbers that occur at least $K times in $a, sorted",
     2,
     {"return sorted($x for $x in set($a) if $a.count($x) >= $K)",
      "$r = []\nfor $x in sorted(set($a)):\n    if $a.count($x) >= $K:\n        "
      "$r.append($x)\nreturn $r"},
     [](const PyCall& c) {
       const PyNumbers& a = c.list();
       PyNumbers out;
       for (const PyInt x : distinct(a))
         if (std::ranges::count(a, x) >= c.k) out.push_back(x);
       return py_repr(out);
     }},
    {"group",
     "l",
     "group bucket split",
     "a dictionary from each remainder modulo $K to the numbers of $a that have it",
     2,
     {"$r = {}\nfor $x in $a:\n    $r[$x % $K] = $r.get($x % $K, []) + [$x]\nreturn $r",
      "$r = {}\nfor $x in $a:\n    if $x % $K not in $r:\n        $r[$x % $K] = []\n    $r[$x % "
      "$K].append($x)\nreturn $r"},
     [](const PyCall& c) {
       PyDict<PyInt, PyNumbers> groups;
       for (const PyInt x : c.list()) py_entry(groups, py_modulo(x, c.k)).push_back(x);
       return py_repr(groups);
     }},
    {"partition",
     "l",
     "partition divide separate",
     "a list of two lists: the $p of $a, and the others",
     2,
     {"$r = [$x for $x in $a if $P]\nreturn [$r, [$x for $x in $a if not ($P)]]",
      "$r = []\n$t = []\nfor $x in $a:\n    if $P:\n        $r.append($x)\n    else:\n        "
      "$t.append($x)\nreturn [$r, $t]"},
     [](const PyCall& c) {
       PyNumbers others;
       for (const PyInt x : c.list())
         if (!c.holds(x)) others.push_back(x);
       return py_repr(PyGrid{c.kept(c.list()), others});
     }},
    {"clamp",
     "l",
     "clamp limit cap",
     "the numbers of $a with everything above $K replaced by $K",
     1,
     {"return [min($x, $K) for $x in $a]", "return [$x if $x < $K else $K for $x in $a]",
      "$r = []\nfor $x in $a:\n    $r.append(min($x, $K))\nreturn $r"},
     [](const PyCall& c) {
       PyNumbers out = c.list();
       for (PyInt& x : out) x = std::min(x, c.k);
       return py_repr(out);
     }},
    {"replace_if",
     "l",
     "replace reset mask",
     "the numbers of $a with all $p replaced by 0",
     1,
     {"return [0 if $P else $x for $x in $a]",
      "$r = []\nfor $x in $a:\n    if $P:\n        $r.append(0)\n    else:\n        "
      "$r.append($x)\nreturn $r"},
     [](const PyCall& c) {
       PyNumbers out = c.list();
       for (PyInt& x : out)
         if (c.holds(x)) x = 0;
       return py_repr(out);
     }},
    {"recursive_sum",
     "l",
     "recursive_sum fold",
     "the sum of the numbers of $a plus $K, by recursion",
     2,
     {"if not $a:\n    return $K\nreturn $a[0] + $F($a[1:])",
      "if len($a) == 0:\n    return $K\nreturn $F($a[:-1]) + $a[-1]"},
     [](const PyCall& c) { return py_repr(sum_of(c.list()) + c.k); }},
    {"longest_run",
     "l",
     "run streak longest_run",
     "the length of the longest run of $p in $a",
     2,
     {"$t = 0\n$r = 0\nfor $x in $a:\n    $t = $t + 1 if $P else 0\n    $r = max($r, $t)\nreturn "
      "$r",
      "$r = 0\n$t = 0\nfor $x in $a:\n    if $P:\n        $t += 1\n        $r = max($r, $t)\n    "
      "else:\n        $t = 0\nreturn $r"},
     [](const PyCall& c) {
       PyInt run = 0, longest = 0;
       for (const PyInt x : c.list()) {
         run = c.holds(x) ? run + 1 : 0;
         longest = std::max(longest, run);
       }
       return py_repr(longest);
     }},
    // Two arguments.
    {"pair_sum",
     "ln",
     "pair two_sum match",
     "whether two different places of $a add up to $b plus $K",
     2,
     {"$r = sorted($a)\ni = 0\nj = len($r) - 1\nwhile i < j:\n    $t = $r[i] + $r[j]\n    if $t == "
      "$b + $K:\n        return True\n    if $t < $b + $K:\n        i += 1\n    else:\n        j "
      "-= 1\nreturn False",
      "for i in range(len($a)):\n    for j in range(i + 1, len($a)):\n        if $a[i] + $a[j] == "
      "$b + $K:\n            return True\nreturn False"},
     [](const PyCall& c) {
       const PyNumbers& a = c.list();
       bool found = false;
       for (std::size_t i = 0; i < a.size(); i++)
         for (std::size_t j = i + 1; j < a.size(); j++)
           found = found || a[i] + a[j] == c.number(1) + c.k;
       return py_repr(found);
     }},
    {"common",
     "ll",
     "common shared both",
     "the $p that are in both $a and $b, sorted and without repeats",
     2,
     {"return sorted($x for $x in set($a) if $x in $b and $P)",
      "$r = []\nfor $x in sorted(set($a)):\n    if $x in $b and $P:\n        $r.append($x)\nreturn "
      "$r"},
     [](const PyCall& c) {
       PyNumbers out;
       for (const PyInt x : c.kept(distinct(c.list())))
         if (contains(c.list(1), x)) out.push_back(x);
       return py_repr(out);
     }},
    {"only_first",
     "ll",
     "without minus difference",
     "the $p of $a that are not in $b",
     2,
     {"return [$x for $x in $a if $P and $x not in $b]",
      "$r = []\nfor $x in $a:\n    if $P and $x not in $b:\n        $r.append($x)\nreturn $r"},
     [](const PyCall& c) {
       PyNumbers out;
       for (const PyInt x : c.kept(c.list()))
         if (!contains(c.list(1), x)) out.push_back(x);
       return py_repr(out);
     }},
    {"dot",
     "ll",
     "dot combine weigh",
     "the sum of the products of $a and $b place by place, plus $K",
     2,
     {"return sum($x * $y for $x, $y in zip($a, $b)) + $K",
      "$t = $K\nfor $x, $y in zip($a, $b):\n    $t += $x * $y\nreturn $t"},
     [](const PyCall& c) {
       const PyNumbers &a = c.list(), &b = c.list(1);
       PyInt sum = c.k;
       for (std::size_t i = 0; i < std::min(a.size(), b.size()); i++) sum += a[i] * b[i];
       return py_repr(sum);
     }},
    {"interleave",
     "ll",
     "merge join mix",
     "the $p of $a followed by those of $b",
     1,
     {"return [$x for $x in $a + $b if $P]",
      "$r = []\nfor $x in $a + $b:\n    if $P:\n        $r.append($x)\nreturn $r"},
     [](const PyCall& c) {
       PyNumbers all = c.list();
       all.insert(all.end(), c.list(1).begin(), c.list(1).end());
       return py_repr(c.kept(all));
     }},
    {"above",
     "lk",
     "above over exceeding",
     "how many numbers of $a are greater than $b times $K",
     1,
     {"return len([$x for $x in $a if $x > $b * $K])",
      "$t = 0\nfor $x in $a:\n    if $x > $b * $K:\n        $t += 1\nreturn $t"},
     [](const PyCall& c) {
       return py_repr(
           std::ranges::count_if(c.list(), [&](PyInt x) { return x > c.number(1) * c.k; }));
     }}};

}  // namespace

std::span<const PyFamily> py_list_families() {
  return kListFamilies;
}

}  // namespace engine
