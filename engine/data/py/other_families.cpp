// Functions of dictionaries, of numbers and of grids of numbers.
#include <algorithm>
#include <numeric>

#include "engine/data/py/families.h"

namespace engine {

namespace {

// The decimal digits, the last one first.
PyNumbers digits_of(PyInt n) {
  PyNumbers digits;
  for (; n > 0; n /= 10) digits.push_back(n % 10);
  return digits;
}

// first, first + 1, .., last
PyNumbers range(PyInt first, PyInt last) {
  PyNumbers out;
  for (PyInt x = first; x <= last; x++) out.push_back(x);
  return out;
}

// All numbers of all rows.
PyNumbers cells(const PyGrid& grid) {
  PyNumbers out;
  for (const PyNumbers& row : grid) out.insert(out.end(), row.begin(), row.end());
  return out;
}

constexpr PyFamily kOtherFamilies[] = {
    // Dictionaries.
    {"dict_filter",
     "d",
     "keep select filter",
     "a dictionary of the entries of $a with values of at least $K",
     1,
     {"return {$x: $y for $x, $y in $a.items() if $y >= $K}",
      "$r = {}\nfor $x, $y in $a.items():\n    if $y >= $K:\n        $r[$x] = $y\nreturn $r"},
     [](const PyCall& c) {
       PyTable out;
       for (const auto& one : c.table())
         if (one.second >= c.k) out.push_back(one);
       return py_repr(out);
     }},
    {"dict_sum",
     "d",
     "sum add total",
     "the sum of the values of $a, each times $K",
     1,
     {"return sum($a.values()) * $K", "$t = 0\nfor $x in $a:\n    $t += $a[$x] * $K\nreturn $t"},
     [](const PyCall& c) {
       PyInt sum = 0;
       for (const auto& [x, y] : c.table()) sum += y * c.k;
       return py_repr(sum);
     }},
    {"dict_keys",
     "d",
     "names keys over",
     "the sorted keys of $a with values greater than $K",
     1,
     {"return sorted($x for $x in $a if $a[$x] > $K)",
      "$r = []\nfor $x, $y in $a.items():\n    if $y > $K:\n        $r.append($x)\nreturn "
      "sorted($r)"},
     [](const PyCall& c) {
       PyWords keys;
       for (const auto& [x, y] : c.table())
         if (y > c.k) keys.push_back(x);
       std::ranges::sort(keys);
       return py_repr(keys);
     }},
    {"dict_best",
     "d",
     "best winner top",
     "the key of $a with the largest value, or '$L' if $a is empty",
     2,
     {"if not $a:\n    return '$L'\nreturn max($a, key=lambda $x: $a[$x])",
      "$r = '$L'\nfor $x in $a:\n    if $r not in $a or $a[$x] > $a[$r]:\n        $r = $x\nreturn "
      "$r"},
     [](const PyCall& c) {
       return py_repr(std::ranges::max_element(c.table(), {}, &PyTable::value_type::second)->first);
     }},
    {"dict_invert",
     "d",
     "invert swap flip",
     "a dictionary from the values of $a, each increased by $K, to their keys",
     2,
     {"return {$y + $K: $x for $x, $y in $a.items()}",
      "$r = {}\nfor $x, $y in $a.items():\n    $r[$y + $K] = $x\nreturn $r"},
     [](const PyCall& c) {
       PyDict<PyInt, std::string> out;
       for (const auto& [x, y] : c.table()) py_entry(out, y + c.k) = x;
       return py_repr(out);
     }},
    {"dict_raise",
     "d",
     "raise increase update",
     "a dictionary with all values of $a increased by $K",
     1,
     {"return {$x: $y + $K for $x, $y in $a.items()}",
      "$r = {}\nfor $x in $a:\n    $r[$x] = $a[$x] + $K\nreturn $r"},
     [](const PyCall& c) {
       PyTable out = c.table();
       for (auto& one : out) one.second += c.k;
       return py_repr(out);
     }},
    {"dict_order",
     "d",
     "rank order sort_keys",
     "the first $K keys of $a in the order of rising values",
     2,
     {"return sorted($a, key=lambda $x: $a[$x])[:$K]",
      "$r = sorted($a.items(), key=lambda $x: $x[1])\nreturn [$x[0] for $x in $r[:$K]]"},
     [](const PyCall& c) {
       PyTable rising = c.table();
       std::ranges::stable_sort(rising, {}, &PyTable::value_type::second);
       PyWords keys;
       for (const auto& [x, y] : rising)
         if (std::ssize(keys) < c.k) keys.push_back(x);
       return py_repr(keys);
     }},
    // Numbers.
    {"digit_sum",
     "n",
     "digit_sum add_digits",
     "the sum of the digits of $a, plus $K",
     1,
     {"return sum(int($x) for $x in str($a)) + $K",
      "$t = $K\nwhile $a > 0:\n    $t += $a % 10\n    $a //= 10\nreturn $t"},
     [](const PyCall& c) {
       PyInt sum = c.k;
       for (const PyInt digit : digits_of(c.number())) sum += digit;
       return py_repr(sum);
     }},
    {"digit_count",
     "n",
     "count_digits digits_over",
     "how many digits of $a are greater than $K",
     1,
     {"return len([$x for $x in str($a) if int($x) > $K])",
      "$t = 0\nwhile $a > 0:\n    if $a % 10 > $K:\n        $t += 1\n    $a //= 10\nreturn $t"},
     [](const PyCall& c) {
       return py_repr(
           std::ranges::count_if(digits_of(c.number()), [&](PyInt x) { return x > c.k; }));
     }},
    {"range_sum",
     "n",
     "sum_to add_up total_to",
     "the sum of the $p from 1 to $a",
     1,
     {"return sum($x for $x in range(1, $a + 1) if $P)",
      "$t = 0\nfor $x in range(1, $a + 1):\n    if $P:\n        $t += $x\nreturn $t"},
     [](const PyCall& c) {
       PyInt sum = 0;
       for (const PyInt x : c.kept(range(1, c.number()))) sum += x;
       return py_repr(sum);
     }},
    {"range_list",
     "n",
     "list_to numbers_to up_to",
     "the $p from 1 to $a",
     1,
     {"return [$x for $x in range(1, $a + 1) if $P]",
      "$r = []\nfor $x in range(1, $a + 1):\n    if $P:\n        $r.append($x)\nreturn $r"},
     [](const PyCall& c) { return py_repr(c.kept(range(1, c.number()))); }},
    {"divisors",
     "n",
     "divisors factors parts",
     "the divisors of $a that are greater than $K",
     2,
     {"return [$x for $x in range(1, $a + 1) if $a % $x == 0 and $x > $K]",
      "$r = []\nfor $x in range($K + 1, $a + 1):\n    if $a % $x == 0:\n        "
      "$r.append($x)\nreturn $r"},
     [](const PyCall& c) {
       PyNumbers out;
       for (const PyInt x : range(c.k + 1, c.number()))
         if (c.number() % x == 0) out.push_back(x);
       return py_repr(out);
     }},
    {"steps_down",
     "n",
     "steps halvings count_steps",
     "how many times $a can be divided by $K, rounding down, until it is 0",
     2,
     {"$t = 0\nwhile $a > 0:\n    $a //= $K\n    $t += 1\nreturn $t",
      "if $a == 0:\n    return 0\nreturn 1 + $F($a // $K)"},
     [](const PyCall& c) {
       PyInt n = 0;
       for (PyInt a = c.number(); a > 0; a /= c.k) n++;
       return py_repr(n);
     }},
    {"power",
     "n",
     "power raise_to",
     "$K to the power of $a modulo 1000, by recursion",
     2,
     {"if $a == 0:\n    return 1\nreturn $K * $F($a - 1) % 1000",
      "if $a <= 0:\n    return 1\n$r = $F($a - 1)\nreturn $r * $K % 1000"},
     [](const PyCall& c) {
       PyInt power = 1;
       for (PyInt i = 0; i < c.number(); i++) power = power * c.k % 1000;
       return py_repr(power);
     }},
    {"sequence",
     "n",
     "sequence series grow",
     "the first $a numbers of the sequence that starts with 1 and $K and goes on with the sum of "
     "the last two",
     2,
     {"$r = [1, $K]\nwhile len($r) < $a:\n    $r.append($r[-1] + $r[-2])\nreturn $r[:$a]",
      "$r = []\nx, y = 1, $K\nfor i in range($a):\n    $r.append(x)\n    x, y = y, x + y\nreturn "
      "$r"},
     [](const PyCall& c) {
       PyNumbers out = {1, c.k};
       while (std::ssize(out) < c.number()) out.push_back(out.back() + out[out.size() - 2]);
       out.resize(static_cast<std::size_t>(c.number()));
       return py_repr(out);
     }},
    {"gcd",
     "nn",
     "gcd common_divisor",
     "the greatest common divisor of $a and $b, times $K",
     2,
     {"while $b:\n    $a, $b = $b, $a % $b\nreturn $a * $K",
      "if $b == 0:\n    return $a * $K\nreturn $F($b, $a % $b)"},
     [](const PyCall& c) { return py_repr(std::gcd(c.number(), c.number(1)) * c.k); }},
    {"between",
     "nn",
     "between inside count_between",
     "how many $p there are from $a to $b",
     2,
     {"return len([$x for $x in range($a, $b + 1) if $P])",
      "$t = 0\nfor $x in range($a, $b + 1):\n    if $P:\n        $t += 1\nreturn $t"},
     [](const PyCall& c) { return py_repr(std::ssize(c.kept(range(c.number(), c.number(1))))); }},
    // Grids.
    {"grid_rows",
     "g",
     "row_sums sum_rows",
     "the sum of each row of $a, plus $K",
     2,
     {"return [sum($x) + $K for $x in $a]",
      "$r = []\nfor $x in $a:\n    $r.append(sum($x) + $K)\nreturn $r"},
     [](const PyCall& c) {
       PyNumbers sums;
       for (const PyNumbers& row : c.grid())
         sums.push_back(std::accumulate(row.begin(), row.end(), c.k));
       return py_repr(sums);
     }},
    {"grid_count",
     "g",
     "count_cells cells",
     "how many $p there are in the rows of $a",
     2,
     {"return sum(1 for $y in $a for $x in $y if $P)",
      "$t = 0\nfor $y in $a:\n    for $x in $y:\n        if $P:\n            $t += 1\nreturn $t"},
     [](const PyCall& c) { return py_repr(std::ssize(c.kept(cells(c.grid())))); }},
    {"grid_flat",
     "g",
     "flatten cells_of",
     "the $p of all rows of $a as one list",
     2,
     {"return [$x for $y in $a for $x in $y if $P]",
      "$r = []\nfor $y in $a:\n    for $x in $y:\n        if $P:\n            "
      "$r.append($x)\nreturn $r"},
     [](const PyCall& c) { return py_repr(c.kept(cells(c.grid()))); }},
    {"grid_map",
     "g",
     "map_cells change_cells",
     "the rows of $a with every number $o",
     2,
     {"return [[$O for $x in $y] for $y in $a]",
      "$r = []\nfor $y in $a:\n    $r.append([$O for $x in $y])\nreturn $r"},
     [](const PyCall& c) {
       PyGrid out;
       for (const PyNumbers& row : c.grid()) out.push_back(c.mapped(row));
       return py_repr(out);
     }},
    {"grid_column",
     "g",
     "column column_of",
     "the numbers of the first column of $a, each times $K",
     2,
     {"return [$y[0] * $K for $y in $a]",
      "$r = []\nfor $y in $a:\n    $r.append($y[0] * $K)\nreturn $r"},
     [](const PyCall& c) {
       PyNumbers out;
       for (const PyNumbers& row : c.grid()) out.push_back(row[0] * c.k);
       return py_repr(out);
     }},
    {"grid_make",
     "n",
     "grid make_grid square",
     "a square grid with $a rows where each cell is row plus column plus $K",
     2,
     {"return [[i + j + $K for j in range($a)] for i in range($a)]",
      "$r = []\nfor i in range($a):\n    $t = []\n    for j in range($a):\n        $t.append(i + j "
      "+ $K)\n    $r.append($t)\nreturn $r"},
     [](const PyCall& c) {
       PyGrid out;
       for (PyInt i = 0; i < c.number(); i++)
         out.push_back(range(i + c.k, i + c.k + c.number() - 1));
       return py_repr(out);
     }}};

}  // namespace

std::span<const PyFamily> py_other_families() {
  return kOtherFamilies;
}

}  // namespace engine
