// The sql task: questions over random schemas. The checker runs the answer (execution match).
//   key   levels 1 and 2: the set of table names, so that no schema of the test split occurs in training;
//         level 3: the query without names and values, so that no query skeleton does
#include <algorithm>

#include <nlohmann/json.hpp>

#include "engine/data/sql/query.h"
#include "engine/data/sql/run.h"
#include "engine/data/sql/schema.h"
#include "engine/data/tasks.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Json = nlohmann::json;

std::string columns_text(const SqlTable& table) {
  std::vector<std::string> names;
  for (const auto& column : table.columns) names.push_back(column.name);
  return joined(names, ", ");
}

std::string paper_prompt(const SqlSchema& schema, const std::string& question) {
  std::string prompt =
      "### Instruction:\nCould you translate the following question into SQL. Please only generate "
      "SQL, don't include explanation in the answer. The SQL database has ";
  for (const auto& table : schema.tables)
    prompt += "table named " + table.name + " with columns [" + columns_text(table) + "], ";
  return prompt + "Question: " + question + "\n### Response:\n";
}

std::string chat_question(Random& rng, const SqlSchema& schema, const std::string& question) {
  std::vector<std::string> tables;
  for (const auto& table : schema.tables)
    tables.push_back(table.name + "(" + columns_text(table) + ")");
  return fill(
      rng.one_of({"Tables: {0}. {1} Write it in SQL.", "Given {0}: {1} Answer with a query.",
                  "{1} Use SQL. The tables are {0}.", "My database has {0}. {1}"}),
      {joined(tables, "; "), question});
}

SqlDatabase database_of(const SqlSchema& schema, int row_set) {
  return SqlDatabase(schema_script(schema, row_set), "check.schema");
}

class SqlTask final : public TaskGenerator {
 public:
  std::string_view name() const override { return "sql"; }

  CheckResult check(const Record& record, std::string_view completion) const override {
    std::string gold;
    SqlSchema schema;
    try {
      const Json check = Json::parse(record.check);
      gold = check.at("gold");
      schema = schema_from_json(check.at("schema").dump(), record.id);
    } catch (const Json::exception& e) {
      throw Error(ErrorCode::BadInput, record.id + ": check: " + e.what());
    }
    const std::string query = query_in(completion_body(completion));
    if (query.empty()) return {false, "found no SELECT"};
    const bool ordered = gold.find(" ORDER BY ") != std::string::npos;
    for (int set = 0; set < kSqlRowSets; set++) {
      const SqlDatabase database = database_of(schema, set);
      const SqlResult expected = database.run(gold);
      if (!expected.error.empty())
        throw Error(ErrorCode::BadInput, record.id + ": check.gold: " + expected.error);
      const SqlResult found = database.run(query);
      if (!found.error.empty()) return {false, found.error};
      if (!same_rows(expected, found, ordered))
        return {false, "the rows differ from the expected ones on row set " + std::to_string(set)};
    }
    return {true, {}};
  }

 protected:
  std::optional<Record> draw(Random& rng, int level, Split split) const override {
    const int n_tables = level == 1   ? 1 + rng.weighted({7, 2, 1})
                         : level == 2 ? 1 + rng.weighted({4, 5, 1})
                                      : 1 + rng.weighted({2, 4, 4, 1});
    const SqlSchema schema = draw_schema(rng, n_tables);
    if (level < 3 && split_of_key(schema_key(schema)) != split) return std::nullopt;
    SqlQuestion q;
    if (!draw_query(rng, schema, level, q)) return std::nullopt;
    if (level == 3 && split_of_key(query_skeleton(q.query)) != split) return std::nullopt;
    if (!rng.chance(10) && !has_rows(schema, q.query)) return std::nullopt;

    Record record;
    record.answer = q.query;
    Json check;
    check["form"] = level == 1 ? "one table" : level == 2 ? "group, order, join" : "nested";
    check["gold"] = q.query;
    check["schema"] = Json::parse(schema_to_json(schema));
    record.check = check.dump();
    if (rng.chance(50)) {
      record.prompt = paper_prompt(schema, q.question);
      record.completion = q.query + "\n";
      return record;
    }
    const std::string lead(rng.one_of(
        {"", "Here is the query:\n", "You can use this:\n", "SQL: ", "This query answers it:\n"}));
    set_chat(record, chat_question(rng, schema, q.question), lead + q.query + "\n");
    return record;
  }

 private:
  static std::string schema_key(const SqlSchema& schema) {
    std::vector<std::string> names;
    for (const auto& table : schema.tables) names.push_back(table.name);
    std::sort(names.begin(), names.end());
    return joined(names, ",");
  }

  static bool has_rows(const SqlSchema& schema, const std::string& query) {
    for (int set = 0; set < kSqlRowSets; set++)
      if (!database_of(schema, set).run(query).rows.empty()) return true;
    return false;
  }
};

}  // namespace

std::unique_ptr<TaskGenerator> make_sql_task() {
  return std::make_unique<SqlTask>();
}

}  // namespace engine
