#include "engine/data/sql/query.h"

#include <cctype>
#include <set>
#include <vector>

#include "engine/data/text.h"

namespace engine {

namespace {

using Kind = SqlColumn::Kind;

struct Ref {
  int table = 0;
  int column = 0;
};

struct Phrase {
  std::string sql;
  std::string english;
};

// Draws the parts of a query over one schema. With two or more tables the query writes table.column, and
// the question names the table of a column.
class QueryDrawer {
 public:
  QueryDrawer(Random& rng, const SqlSchema& schema) : rng_(rng), schema_(schema) {}

  bool draw(int level, SqlQuestion& out) {
    table_ = rng_.below(static_cast<int>(schema_.tables.size()));
    if (level == 1) {
      switch (rng_.weighted({5, 3, 3, 1})) {
        case 0:
          return select_columns(out, rng_.chance(75) ? 1 : 0);
        case 1:
          return count_rows(out, rng_.chance(75) ? 1 : 0);
        case 2:
          return aggregate(out, rng_.chance(65) ? 1 : 0);
        default:
          return count_distinct(out);
      }
    }
    if (level == 2) {
      switch (rng_.weighted({3, 2, 4, 2, 1, 1, 4, 2})) {
        case 0:
          return group_count(out);
        case 1:
          return group_aggregate(out);
        case 2:
          return ordered(out);
        case 3:
          return select_columns(out, 2);
        case 4:
          return count_rows(out, 2);
        case 5:
          return aggregate(out, 2);
        case 6:
          return join_select(out);
        default:
          return join_count(out);
      }
    }
    switch (rng_.weighted({3, 3, 3, 3, 3, 2})) {
      case 0:
        return nested_in(out);
      case 1:
        return above_average(out);
      case 2:
        return set_operation(out);
      case 3:
        return join_group(out);
      case 4:
        return two_joins(out);
      default:
        return join_ordered(out);
    }
  }

 private:
  const SqlTable& table(int t) const { return schema_.tables[t]; }
  const SqlColumn& column(Ref r) const { return schema_.tables[r.table].columns[r.column]; }

  std::string sql(Ref r) const {
    return qualified_ ? table(r.table).name + "." + column(r).name : column(r).name;
  }
  std::string words(Ref r) const {
    return qualified_ ? in_words(column(r).name) + " of the " + in_words(table(r.table).name)
                      : in_words(column(r).name);
  }
  std::string plural() const { return table_plural(table(table_).name); }

  std::vector<Ref> columns_of(int t, Kind kind) const {
    std::vector<Ref> refs;
    for (int c = 0; c < static_cast<int>(table(t).columns.size()); c++)
      if (table(t).columns[c].kind == kind) refs.push_back({t, c});
    return refs;
  }
  Ref any_column(int t) {
    std::vector<Ref> refs = columns_of(t, Kind::Text);
    for (const Ref r : columns_of(t, Kind::Number)) refs.push_back(r);
    return rng_.pick(refs);
  }
  Ref number_column(int t) { return rng_.pick(columns_of(t, Kind::Number)); }
  Ref text_column(int t) { return rng_.pick(columns_of(t, Kind::Text)); }

  Phrase condition(Ref r) {
    const std::string c = words(r);
    if (column(r).kind == Kind::Number) return number_condition(r, c);
    const auto values = column_words(schema_, r.table, r.column);
    const std::string value = rng_.pick(values);
    switch (rng_.weighted({6, 1, 1})) {
      case 0:
        return {sql(r) + " = '" + value + "'",
                fill(rng_.one_of({"the {0} is {1}", "the {0} equals {1}", "{1} is the {0}",
                                  "the value of the {0} is {1}"}),
                     {c, value})};
      case 1:
        return {sql(r) + " != '" + value + "'",
                fill(rng_.one_of({"the {0} is not {1}", "the {0} differs from {1}",
                                  "the {0} is anything but {1}", "{1} is not the {0}"}),
                     {c, value})};
      default:
        break;
    }
    const std::string part = value.substr(0, std::min<std::size_t>(value.size(), 3));
    return {sql(r) + " LIKE '%" + part + "%'",
            fill(rng_.one_of({"the {0} contains {1}", "the {0} includes the text {1}",
                              "{1} occurs in the {0}", "{1} is part of the {0}"}),
                 {c, part})};
  }

  Phrase number_condition(Ref r, const std::string& c) {
    const auto [low, high] = column_range(column(r));
    const int value = rng_.between(low + (high - low) / 5, high - (high - low) / 5);
    struct Operator {
      const char* sign;
      std::initializer_list<std::string_view> wordings;
    };
    static const Operator kOperators[] = {
        {">",
         {"the {0} is above {1}", "the {0} is more than {1}", "the {0} exceeds {1}",
          "the {0} is greater than {1}"}},
        {"<",
         {"the {0} is below {1}", "the {0} is less than {1}", "the {0} is under {1}",
          "the {0} is smaller than {1}"}},
        {">=",
         {"the {0} is at least {1}", "the {0} is {1} or more", "the {0} is no less than {1}",
          "the {0} reaches {1}"}},
        {"<=",
         {"the {0} is at most {1}", "the {0} is {1} or less", "the {0} is no more than {1}",
          "the {0} does not exceed {1}"}}};
    const Operator& op = kOperators[rng_.weighted({3, 3, 1, 1})];
    const std::string number = std::to_string(value);
    return {sql(r) + " " + op.sign + " " + number, fill(rng_.one_of(op.wordings), {c, number})};
  }

  // The WHERE clause with n conditions on different columns of the given tables.
  bool where(int n, const std::vector<int>& tables, Phrase& out) {
    out = {};
    if (n == 0) return true;
    std::set<std::pair<int, int>> used;
    Phrase joined_conditions;
    const bool both = rng_.chance(65);
    for (int i = 0; i < n; i++) {
      const Ref r = any_column(rng_.pick(tables));
      if (!used.emplace(r.table, r.column).second) return false;
      const Phrase one = condition(r);
      if (i > 0) {
        joined_conditions.sql += both ? " AND " : " OR ";
        joined_conditions.english += both ? " and " : " or ";
      }
      joined_conditions.sql += one.sql;
      joined_conditions.english += one.english;
    }
    out.sql = " WHERE " + joined_conditions.sql;
    out.english = std::string(rng_.one_of({" where ", " for which ", " such that ", " if "})) +
                  joined_conditions.english;
    return true;
  }

  // One or two selected columns.
  bool items(int t, int n, Phrase& out) {
    std::set<int> used;
    std::vector<std::string> names;
    std::vector<std::string> phrases;
    for (int i = 0; i < n; i++) {
      const Ref r = any_column(t);
      if (!used.insert(r.column).second) return false;
      names.push_back(sql(r));
      phrases.push_back("the " + words(r));
    }
    out = {joined(names, ", "), enumerated(phrases)};
    return true;
  }

  std::string show(const std::string& what, const std::string& whose) {
    return fill(rng_.one_of({"Show {0} of all {1}", "List {0} of the {1}", "Give me {0} of the {1}",
                             "Find {0} of all {1}", "I want to see {0} of the {1}"}),
                {what, whose});
  }

  Phrase aggregate_of(Ref r) {
    const std::string c = words(r);
    switch (rng_.below(4)) {
      case 0:
        return {"AVG(" + sql(r) + ")", fill(rng_.one_of({"the average {0}", "the mean {0}"}), {c})};
      case 1:
        return {"MAX(" + sql(r) + ")",
                fill(rng_.one_of({"the highest {0}", "the largest {0}", "the maximum {0}"}), {c})};
      case 2:
        return {"MIN(" + sql(r) + ")",
                fill(rng_.one_of({"the lowest {0}", "the smallest {0}", "the minimum {0}"}), {c})};
      default:
        break;
    }
    return {"SUM(" + sql(r) + ")", fill(rng_.one_of({"the total {0}", "the sum of the {0}"}), {c})};
  }

  bool select_columns(SqlQuestion& out, int n_conditions) {
    Phrase shown, filter;
    if (!items(table_, rng_.between(1, 2), shown) || !where(n_conditions, {table_}, filter))
      return false;
    out.query = "SELECT " + shown.sql + " FROM " + table(table_).name + filter.sql;
    out.question = show(shown.english, plural()) + filter.english + ".";
    return true;
  }

  bool count_rows(SqlQuestion& out, int n_conditions) {
    Phrase filter;
    if (!where(n_conditions, {table_}, filter)) return false;
    out.query = "SELECT COUNT(*) FROM " + table(table_).name + filter.sql;
    out.question =
        fill(rng_.one_of({"How many {0} are there{1}?", "Count the {0}{1}.",
                          "What is the number of {0}{1}?", "Tell me how many {0} exist{1}."}),
             {plural(), filter.english});
    return true;
  }

  bool aggregate(SqlQuestion& out, int n_conditions) {
    Phrase filter;
    if (!where(n_conditions, {table_}, filter)) return false;
    const Phrase value = aggregate_of(number_column(table_));
    out.query = "SELECT " + value.sql + " FROM " + table(table_).name + filter.sql;
    out.question = fill(rng_.one_of({"What is {0} of the {1}{2}?", "Find {0} of all {1}{2}.",
                                     "Give {0} among the {1}{2}.", "I need {0} of the {1}{2}."}),
                        {value.english, plural(), filter.english});
    return true;
  }

  bool count_distinct(SqlQuestion& out) {
    const Ref r = text_column(table_);
    out.query = "SELECT COUNT(DISTINCT " + sql(r) + ") FROM " + table(table_).name;
    out.question = fill(rng_.one_of({"How many different values of {0} do the {1} have?",
                                     "Count the distinct values of {0} of the {1}.",
                                     "What is the number of different {0} values among the {1}?",
                                     "In how many kinds of {0} do the {1} come?"}),
                        {words(r), plural()});
    return true;
  }

  std::string for_each(const std::string& group) {
    return fill(rng_.one_of({" for each {0}", " per {0}", " grouped by {0}", " for every {0}"}),
                {group});
  }

  // In half of the draws " HAVING COUNT(*) > n".
  Phrase having() {
    if (rng_.chance(50)) return {};
    const std::string n = std::to_string(rng_.between(1, 3));
    return {
        " HAVING COUNT(*) > " + n,
        fill(rng_.one_of({", but only groups with more than {0} rows",
                          ", keeping groups that have more than {0} entries",
                          ", for groups of more than {0}", ", if there are more than {0} of them"}),
             {n})};
  }

  bool group_count(SqlQuestion& out) {
    const Ref group = text_column(table_);
    const Phrase limit = having();
    out.query = "SELECT " + sql(group) + ", COUNT(*) FROM " + table(table_).name + " GROUP BY " +
                sql(group) + limit.sql;
    out.question = fill(rng_.one_of({"Count the {0}", "How many {0} are there",
                                     "Show the number of {0}", "Give the number of {0}"}),
                        {plural()}) +
                   for_each(words(group)) + limit.english + ".";
    return true;
  }

  bool group_aggregate(SqlQuestion& out) {
    const Ref group = text_column(table_);
    const Phrase value = aggregate_of(number_column(table_));
    Phrase filter;
    if (!where(rng_.below(2), {table_}, filter)) return false;
    out.query = "SELECT " + sql(group) + ", " + value.sql + " FROM " + table(table_).name +
                filter.sql + " GROUP BY " + sql(group);
    out.question = show(value.english, plural()) + for_each(words(group)) + filter.english + ".";
    return true;
  }

  // " ORDER BY c ASC|DESC [LIMIT n]"
  Phrase order(Ref r) {
    const bool falling = rng_.chance(50);
    Phrase out;
    out.sql = " ORDER BY " + sql(r) + (falling ? " DESC" : " ASC");
    const std::string c = words(r);
    if (rng_.chance(50)) {
      const std::string n = std::to_string(rng_.between(1, 5));
      out.sql += " LIMIT " + n;
      out.english =
          falling ? fill(rng_.one_of({", only the {1} with the highest {0}", ", the top {1} by {0}",
                                      ", just the {1} largest by {0}",
                                      ", limited to the {1} with the greatest {0}"}),
                         {c, n})
                  : fill(rng_.one_of({", only the {1} with the lowest {0}",
                                      ", the bottom {1} by {0}", ", just the {1} smallest by {0}",
                                      ", limited to the {1} with the least {0}"}),
                         {c, n});
      return out;
    }
    out.english =
        falling
            ? fill(rng_.one_of({", sorted by {0} from high to low", ", in descending order of {0}",
                                ", with the highest {0} first", ", ordered by falling {0}"}),
                   {c})
            : fill(rng_.one_of({", sorted by {0} from low to high", ", in ascending order of {0}",
                                ", with the lowest {0} first", ", ordered by rising {0}"}),
                   {c});
    return out;
  }

  bool ordered(SqlQuestion& out) {
    Phrase shown, filter;
    if (!items(table_, rng_.between(1, 2), shown) || !where(rng_.below(2), {table_}, filter))
      return false;
    const Phrase by = order(number_column(table_));
    out.query = "SELECT " + shown.sql + " FROM " + table(table_).name + filter.sql + by.sql;
    out.question = show(shown.english, plural()) + filter.english + by.english + ".";
    return true;
  }

  // Draws a table that references another, and makes the FROM clause of both.
  bool join(Phrase& from, int& other) {
    std::vector<Ref> references;
    for (int t = 0; t < static_cast<int>(schema_.tables.size()); t++)
      for (const Ref r : columns_of(t, Kind::Reference)) references.push_back(r);
    if (references.empty()) return false;
    const Ref r = rng_.pick(references);
    table_ = r.table;
    other = column(r).references;
    qualified_ = true;
    from.sql = " FROM " + table(table_).name + join_clause(r);
    from.english = fill(rng_.one_of({" together with their {0}", " and their {0}",
                                     " with their {0}", " joined with their {0}"}),
                        {in_words(table(other).name)});
    return true;
  }

  std::string join_clause(Ref r) const {
    const std::string& to = table(column(r).references).name;
    return " JOIN " + to + " ON " + table(r.table).name + "." + column(r).name + " = " + to + ".id";
  }

  bool join_select(SqlQuestion& out) {
    Phrase from, shown, filter;
    int other = 0;
    if (!join(from, other) || !items(table_, 1, shown)) return false;
    if (rng_.chance(40)) {
      Phrase more;
      if (!items(other, 1, more)) return false;
      shown = {shown.sql + ", " + more.sql, shown.english + " and " + more.english};
    }
    if (!where(1, {other}, filter)) return false;
    out.query = "SELECT " + shown.sql + from.sql + filter.sql;
    out.question =
        fill(rng_.one_of({"Show {0}{1}.", "List {0}{1}.", "Find {0}{1}.", "What is {0}{1}?"}),
             {shown.english, filter.english});
    return true;
  }

  bool join_count(SqlQuestion& out) {
    Phrase from, filter;
    int other = 0;
    if (!join(from, other) || !where(1, {other}, filter)) return false;
    out.query = "SELECT COUNT(*)" + from.sql + filter.sql;
    out.question =
        fill(rng_.one_of({"How many {0} are there{1}?", "Count the {0}{1}.",
                          "What is the number of {0}{1}?", "Tell me how many {0} exist{1}."}),
             {plural(), filter.english});
    return true;
  }

  bool nested_in(SqlQuestion& out) {
    Phrase from;
    int other = 0;
    if (!join(from, other)) return false;
    qualified_ = false;
    const bool negated = rng_.chance(50);
    Phrase shown, inner;
    if (!items(other, rng_.between(1, 2), shown)) return false;
    const int n_inner = rng_.below(3);
    if (!where(n_inner, {table_}, inner)) return false;
    out.query = "SELECT " + shown.sql + " FROM " + table(other).name + " WHERE id " +
                (negated ? "NOT IN" : "IN") + " (SELECT " + table(other).name + "_id FROM " +
                table(table_).name + inner.sql + ")";
    const std::string linked =
        fill(negated ? rng_.one_of({" that have no {0}", " without any {0}",
                                    " to which no {0} belongs", " that are not used by any {0}"})
                     : rng_.one_of({" that have a {0}", " with at least one {0}",
                                    " to which a {0} belongs", " that are used by some {0}"}),
             {in_words(table(table_).name)});
    out.question =
        show(shown.english, table_plural(table(other).name)) + linked + inner.english + ".";
    return true;
  }

  bool above_average(SqlQuestion& out) {
    Phrase shown, filter;
    const bool counted = rng_.chance(30);
    if (!items(table_, rng_.between(1, 2), shown)) return false;
    const Ref r = number_column(table_);
    const bool above = rng_.chance(50);
    Phrase extra;
    if (rng_.chance(40)) {
      const Ref e = text_column(table_);
      extra = condition(e);
      extra.sql = " AND " + extra.sql;
      extra.english = " and " + extra.english;
    }
    const char* aggregate = rng_.chance(75) ? "AVG" : above ? "MIN" : "MAX";
    const std::string level = aggregate == std::string_view("AVG")   ? "average"
                              : aggregate == std::string_view("MIN") ? "minimum"
                                                                     : "maximum";
    out.query = "SELECT " + (counted ? std::string("COUNT(*)") : shown.sql) + " FROM " +
                table(table_).name + " WHERE " + sql(r) + (above ? " > " : " < ") + "(SELECT " +
                aggregate + "(" + sql(r) + ") FROM " + table(table_).name + ")" + extra.sql;
    const std::string compared = fill(
        above ? rng_.one_of({" where the {0} is above the {1}", " with more than the {1} {0}",
                             " whose {0} is higher than the {1}", " whose {0} exceeds the {1}"})
              : rng_.one_of({" where the {0} is below the {1}", " with less than the {1} {0}",
                             " whose {0} is lower than the {1}", " whose {0} is under the {1}"}),
        {words(r), level});
    out.question = (counted ? "Count the " + plural() : show(shown.english, plural())) + compared +
                   extra.english + ".";
    return true;
  }

  bool set_operation(SqlQuestion& out) {
    const Ref r = any_column(table_);
    Phrase first, second;
    if (!where(rng_.between(1, 2), {table_}, first) || !where(1, {table_}, second)) return false;
    if (first.sql == second.sql) return false;
    const std::string head = "SELECT " + sql(r) + " FROM " + table(table_).name;
    const int kind = rng_.below(3);
    out.query = head + first.sql +
                (kind == 0   ? " UNION "
                 : kind == 1 ? " INTERSECT "
                             : " EXCEPT ") +
                head + second.sql;
    const std::string link(kind == 0 ? rng_.one_of({" together with those", " and also those",
                                                    " plus those", " combined with those"})
                           : kind == 1
                               ? rng_.one_of({" that also occur", " shared with those",
                                              " which are also found", " in common with those"})
                               : rng_.one_of({" except those", " but not those", " without those",
                                              " leaving out those"}));
    out.question = show("the different values of " + words(r), plural()) + first.english + link +
                   second.english + ".";
    return true;
  }

  bool join_group(SqlQuestion& out) {
    Phrase from, filter;
    int other = 0;
    if (!join(from, other)) return false;
    const Ref group = text_column(other);
    const bool counted = rng_.chance(60);
    const Phrase value = counted ? Phrase{"COUNT(*)", "the number of " + plural()}
                                 : aggregate_of(number_column(table_));
    const Phrase limit = counted ? having() : Phrase{};
    if (!where(rng_.below(2), {table_, other}, filter)) return false;
    out.query = "SELECT " + sql(group) + ", " + value.sql + from.sql + filter.sql + " GROUP BY " +
                sql(group) + limit.sql;
    out.question =
        fill(rng_.one_of({"Show {0}", "Give {0}", "What is {0}", "List {0}"}), {value.english}) +
        for_each(words(group)) + filter.english + limit.english + ".";
    return true;
  }

  bool two_joins(SqlQuestion& out) {
    // a references b; a or b references c.
    for (int tries = 0; tries < 4; tries++) {
      Phrase from;
      int other = 0;
      if (!join(from, other)) return false;
      std::vector<Ref> second;
      for (const int t : {table_, other})
        for (const Ref r : columns_of(t, Kind::Reference))
          if (column(r).references != other) second.push_back(r);
      if (second.empty()) continue;
      const Ref link = rng_.pick(second);
      const int third = column(link).references;
      Phrase shown, filter;
      const bool counted = rng_.chance(25);
      if (!items(table_, 1, shown)) return false;
      if (!counted && rng_.chance(40)) {
        Phrase more;
        if (!items(other, 1, more)) return false;
        shown = {shown.sql + ", " + more.sql, shown.english + " and " + more.english};
      }
      if (!where(rng_.between(1, 2), {other, third}, filter)) return false;
      if (filter.sql.find(table(third).name + ".") == std::string::npos) return false;
      out.query = "SELECT " + (counted ? std::string("COUNT(*)") : shown.sql) + from.sql +
                  join_clause(link) + filter.sql;
      out.question = counted ? fill(rng_.one_of({"How many {0} are there{1}?", "Count the {0}{1}.",
                                                 "What is the number of {0}{1}?",
                                                 "Tell me how many {0} exist{1}."}),
                                    {plural(), filter.english})
                             : fill(rng_.one_of({"Show {0}{1}.", "List {0}{1}.", "Find {0}{1}.",
                                                 "What is {0}{1}?"}),
                                    {shown.english, filter.english});
      return true;
    }
    return false;
  }

  bool join_ordered(SqlQuestion& out) {
    Phrase from, shown, filter;
    int other = 0;
    if (!join(from, other) || !items(table_, 1, shown)) return false;
    if (!where(rng_.below(2), {table_}, filter)) return false;
    const Phrase by = order(number_column(other));
    out.query = "SELECT " + shown.sql + from.sql + filter.sql + by.sql;
    out.question =
        fill(rng_.one_of({"Show {0}", "List {0}", "Find {0}", "Give me {0}"}), {shown.english}) +
        filter.english + by.english + ".";
    return true;
  }

  Random& rng_;
  const SqlSchema& schema_;
  int table_ = 0;
  bool qualified_ = false;
};

}  // namespace

bool draw_query(Random& rng, const SqlSchema& schema, int level, SqlQuestion& out) {
  return QueryDrawer(rng, schema).draw(level, out);
}

std::string query_skeleton(const std::string& query) {
  std::string skeleton;
  for (std::size_t i = 0; i < query.size();) {
    const char c = query[i];
    if (c == '\'') {
      const auto end = query.find('\'', i + 1);
      skeleton += '?';
      i = end == std::string::npos ? query.size() : end + 1;
    } else if (std::isdigit(static_cast<unsigned char>(c))) {
      while (i < query.size() && std::isdigit(static_cast<unsigned char>(query[i]))) i++;
      skeleton += '?';
    } else if (std::islower(static_cast<unsigned char>(c))) {
      while (i < query.size() &&
             (std::islower(static_cast<unsigned char>(query[i])) ||
              std::isdigit(static_cast<unsigned char>(query[i])) || query[i] == '_'))
        i++;
      skeleton += '_';
    } else {
      skeleton += c;
      i++;
    }
  }
  return skeleton;
}

}  // namespace engine
