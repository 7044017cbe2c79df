// Runs queries on a database in memory: read-only, and with a limit on their work.
#pragma once

#include <string>
#include <string_view>
#include <vector>

struct sqlite3;

namespace engine {

/// The result of a query.
struct SqlResult {
  std::string error;                           ///< empty if the query ran
  std::vector<std::vector<std::string>> rows;  ///< [rows][columns] values as text
};

/// A SQLite database in memory.
class SqlDatabase {
 public:
  /// Creates the database.
  /// @param script  statements that create and fill the tables; they cannot access files, and their
  ///                work is limited
  /// @param field   the origin of the script, for messages
  /// @throws Error(BadInput)  if SQLite refuses the script
  /// @throws Error(Resources)  if there is no memory for a database
  SqlDatabase(const std::string& script, const std::string& field);
  ~SqlDatabase();
  SqlDatabase(const SqlDatabase&) = delete;
  SqlDatabase& operator=(const SqlDatabase&) = delete;

  /// Runs one SELECT statement. SqlResult::error refuses all other statements.
  SqlResult run(std::string_view query) const;

 private:
  sqlite3* db_ = nullptr;
};

/// True if both queries ran and gave equal rows: in the same order if `ordered`, else in any order.
bool same_rows(SqlResult a, SqlResult b, bool ordered);

/// The query in a completion: from the first SELECT or WITH to the end of the line or ";". Empty if
/// there is none.
std::string query_in(std::string_view text);

}  // namespace engine
