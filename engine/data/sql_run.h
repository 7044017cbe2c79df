// Runs a query on one row set of a schema, in memory, read-only and with a bound on its work.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/data/sql_schema.h"

struct sqlite3;

namespace engine {

struct SqlResult {
  std::string error;  ///< empty if the query ran
  std::vector<std::vector<std::string>> rows;
};

class SqlDatabase {
 public:
  SqlDatabase(const SqlSchema& schema, int row_set);
  ~SqlDatabase();
  SqlDatabase(const SqlDatabase&) = delete;
  SqlDatabase& operator=(const SqlDatabase&) = delete;

  /// One SELECT statement; anything else is refused in SqlResult::error.
  SqlResult run(std::string_view query) const;

 private:
  sqlite3* db_ = nullptr;
};

/// Equal rows: in order if `ordered`, else as multisets.
bool same_rows(SqlResult a, SqlResult b, bool ordered);

}  // namespace engine
