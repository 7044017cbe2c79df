// Runs a query on a database in memory, read-only and with a bound on its work.
#pragma once

#include <string>
#include <string_view>
#include <vector>

struct sqlite3;

namespace engine {

struct SqlResult {
  std::string error;  ///< empty if the query ran
  std::vector<std::vector<std::string>> rows;
};

class SqlDatabase {
 public:
  /// @param script  what makes the tables and fills them; it reaches no file and works for a
  ///                bounded time
  /// @param field   where the script comes from, for messages
  /// @throws Error(BadInput)  if SQLite refuses the script
  /// @throws Error(Resources)  if there is no memory for a database
  SqlDatabase(const std::string& script, const std::string& field);
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

/// The query in a completion: from the first SELECT or WITH to its line's end or ";"; "": none.
std::string query_in(std::string_view text);

}  // namespace engine
