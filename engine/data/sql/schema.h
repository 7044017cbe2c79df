// Random database schemas: tables named by everyday nouns, text and number columns with fixed domains,
// foreign keys that form a tree, and rows that depend only on a seed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/random.h"

namespace engine {

/// A column of a table.
struct SqlColumn {
  std::string name;
  /// Primary key, words, whole numbers, or a foreign key.
  enum class Kind { Id, Text, Number, Reference } kind = Kind::Text;
  int domain = 0;       ///< index of the domain (Text, Number)
  int references = -1;  ///< index of the referenced table (Reference)
};

/// A table.
struct SqlTable {
  std::string name;
  std::vector<SqlColumn> columns;
};

/// A database without its rows.
struct SqlSchema {
  std::vector<SqlTable> tables;
  std::uint64_t rows_seed = 0;  ///< the rows are a function of it
};

/// The number of row sets that a query is checked on; a wrong query may give the right rows of one.
constexpr int kSqlRowSets = 3;

/// Draws a schema. @param n_tables  1..4; an earlier table references each table after the first
SqlSchema draw_schema(Random& rng, int n_tables);

/// The values of a Text column in all row sets: six words of its domain.
std::vector<std::string> column_words(const SqlSchema& schema, int table, int column);

/// The smallest and the largest value of a Number column.
std::pair<int, int> column_range(const SqlColumn& column);

/// The CREATE TABLE and INSERT statements of one row set. @param row_set  0..kSqlRowSets-1
std::string schema_script(const SqlSchema& schema, int row_set);

/// The schema as JSON.
std::string schema_to_json(const SqlSchema& schema);
/// Reads a schema from JSON. Names have to be identifiers. @throws Error(BadInput)  naming the field
SqlSchema schema_from_json(std::string_view json, const std::string& where);

/// The plural of a table's name: "student" -> "students".
std::string table_plural(std::string_view name);

/// An identifier in words: "first_name" -> "first name".
std::string in_words(std::string_view identifier);

}  // namespace engine
