#include "engine/data/sql/run.h"

#include <algorithm>
#include <cstdio>

#include <sqlite3.h>

#include "engine/base/types.h"
#include "engine/data/text.h"

namespace engine {

namespace {

// more than a join of four tables of 20 rows needs
constexpr int kMaxInstructions = 400'000;
constexpr int kMaxScriptInstructions = 2'000'000;  // per statement; 20 kB of rows need fewer
constexpr std::size_t kMaxRows = 20'000;

// A script may come from a file of records, so it may change only this database.
int allow_creating(void*, int action, const char*, const char*, const char*, const char*) {
  return action == SQLITE_ATTACH || action == SQLITE_DETACH || action == SQLITE_PRAGMA ? SQLITE_DENY
                                                                                       : SQLITE_OK;
}

int allow_reading(void*, int action, const char*, const char*, const char*, const char*) {
  return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION
             ? SQLITE_OK
             : SQLITE_DENY;
}

int stop_work(void*) {
  return 1;
}

std::string cell(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_NULL:
      return "\x01null";
    case SQLITE_FLOAT: {
      char text[40];
      std::snprintf(text, sizeof text, "%.9g", sqlite3_column_double(statement, column));
      return text;
    }
    default:
      break;
  }
  const auto* text = sqlite3_column_text(statement, column);
  return text == nullptr ? std::string() : reinterpret_cast<const char*>(text);
}

}  // namespace

SqlDatabase::SqlDatabase(const std::string& script, const std::string& field) {
  if (sqlite3_open_v2(":memory:", &db_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr) !=
      SQLITE_OK) {
    sqlite3_close(db_);
    throw Error(ErrorCode::Resources, "SQLite cannot open a database in memory");
  }
  sqlite3_set_authorizer(db_, allow_creating, nullptr);
  sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, 1 << 20);
  sqlite3_limit(db_, SQLITE_LIMIT_EXPR_DEPTH, 50);
  sqlite3_progress_handler(db_, kMaxScriptInstructions, stop_work, nullptr);
  if (sqlite3_exec(db_, script.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    const std::string why = sqlite3_errmsg(db_);
    sqlite3_close(db_);
    throw Error(ErrorCode::BadInput, field + ": SQLite refuses it: " + why);
  }
  sqlite3_set_authorizer(db_, allow_reading, nullptr);
}

SqlDatabase::~SqlDatabase() {
  sqlite3_close(db_);
}

SqlResult SqlDatabase::run(std::string_view query) const {
  SqlResult result;
  if (query.size() > 4096) return {"the query is longer than 4,096 bytes", {}};
  sqlite3_stmt* statement = nullptr;
  const char* tail = nullptr;
  if (sqlite3_prepare_v2(db_, query.data(), static_cast<int>(query.size()), &statement, &tail) !=
      SQLITE_OK)
    return {sqlite3_errmsg(db_), {}};
  if (statement == nullptr) return {"found no statement", {}};
  sqlite3_progress_handler(db_, kMaxInstructions, stop_work, nullptr);
  int status = SQLITE_ROW;
  while ((status = sqlite3_step(statement)) == SQLITE_ROW && result.rows.size() < kMaxRows) {
    const int n_columns = sqlite3_column_count(statement);
    std::vector<std::string> row;
    row.reserve(static_cast<std::size_t>(n_columns));
    for (int c = 0; c < n_columns; c++) row.push_back(cell(statement, c));
    result.rows.push_back(std::move(row));
  }
  if (status != SQLITE_DONE)
    result.error =
        status == SQLITE_ROW ? "the query gives more than 20,000 rows" : sqlite3_errmsg(db_);
  sqlite3_finalize(statement);
  return result;
}

bool same_rows(SqlResult a, SqlResult b, bool ordered) {
  if (!a.error.empty() || !b.error.empty()) return false;
  if (!ordered) {
    std::sort(a.rows.begin(), a.rows.end());
    std::sort(b.rows.begin(), b.rows.end());
  }
  return a.rows == b.rows;
}

std::string query_in(std::string_view text) {
  const auto at = std::min(text.find("SELECT"), text.find("WITH "));
  if (at == std::string_view::npos) return {};
  text = text.substr(at);
  return std::string(trimmed(text.substr(0, text.find_first_of(";\n"))));
}

}  // namespace engine
