// Random database schemas: tables of everyday nouns, text and number columns with fixed domains,
// foreign keys that make a tree, and rows that depend on a seed alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/random.h"

namespace engine {

struct SqlColumn {
  std::string name;
  enum class Kind { Id, Text, Number, Reference } kind = Kind::Text;
  int domain = 0;       ///< index of the column's domain (Text, Number)
  int references = -1;  ///< the table a Reference points to
};

struct SqlTable {
  std::string name;
  std::vector<SqlColumn> columns;
};

struct SqlSchema {
  std::vector<SqlTable> tables;
  std::uint64_t rows_seed = 0;
};

/// Sets of rows that a query is judged on.
constexpr int kSqlRowSets = 3;

/// @param n_tables  1..4; each table but the first is referenced by one before it
SqlSchema draw_schema(Random& rng, int n_tables);

/// The words (Text) that a column takes in every row set of this schema: 6 of its domain's.
std::vector<std::string> column_words(const SqlSchema& schema, int table, int column);

/// The range of a number column, both ends included.
std::pair<int, int> column_range(const SqlColumn& column);

/// CREATE TABLE and INSERT statements of one row set.
std::string schema_script(const SqlSchema& schema, int row_set);

/// JSON of the schema, and back. @throws Error(BadInput)  naming the field; names are identifiers
std::string schema_to_json(const SqlSchema& schema);
SqlSchema schema_from_json(std::string_view json, const std::string& where);

/// "students" of "student".
std::string table_plural(std::string_view name);

/// "first name" of "first_name".
std::string spoken(std::string_view identifier);

}  // namespace engine
