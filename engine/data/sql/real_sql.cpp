// Readers of the open text-to-SQL data sets.
#include <algorithm>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/data/real_set.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Json = nlohmann::json;

struct TableSchema {
  std::string name;
  std::vector<std::string> columns;
};

std::string spider_prompt(const std::vector<TableSchema>& tables, const std::string& question) {
  std::string prompt =
      "### Instruction:\nCould you translate the following question into SQL. Please only generate "
      "SQL, don't include explanation in the answer. The SQL database has ";
  for (const TableSchema& table : tables)
    prompt += "table named " + table.name + " with columns [" + joined(table.columns, ", ") + "], ";
  return prompt + "Question: " + question + "\n### Response:\n";
}

// --- advising ------------------------------------------------------------------------------------

// Reads lines of "TABLE COLUMN".
std::vector<TableSchema> tables_of_fields(const std::string& path) {
  std::vector<TableSchema> tables;
  int number = 0;
  for (const std::string& line : split_text(read_whole_file(path), '\n')) {
    number++;
    if (trimmed(line).empty()) continue;
    const auto words = split_text(trimmed(line), ' ');
    if (words.size() != 2)
      throw Error(ErrorCode::BadInput, path + ":" + std::to_string(number) + ": found \"" + line +
                                           "\", expected a table and a column");
    if (tables.empty() || tables.back().name != words[0]) tables.push_back({words[0], {}});
    tables.back().columns.push_back(words[1]);
  }
  return tables;
}

// The tables that a query reads: an alias follows their names ("FROM COURSE AS COURSEalias0").
std::vector<TableSchema> tables_read(const std::vector<TableSchema>& all, const std::string& sql) {
  std::vector<TableSchema> read;
  std::copy_if(all.begin(), all.end(), std::back_inserter(read), [&](const TableSchema& table) {
    return sql.find(" " + table.name + " AS ") != std::string::npos;
  });
  return read;
}

// The value of each variable of a query: the question's, or the example if the question has none.
std::map<std::string, std::string> values_for(const Json& query, const Json& sentence) {
  std::map<std::string, std::string> values;
  for (const Json& variable : query.at("variables"))
    values[variable.at("name")] = variable.at("example");
  for (const auto& [name, value] : sentence.at("variables").items())
    if (!value.get<std::string>().empty() || !values.contains(name)) values[name] = value;
  return values;
}

std::string with_values(std::string text, const std::map<std::string, std::string>& values) {
  for (const auto& [name, value] : values) text = replaced_all(std::move(text), name, value);
  return text;
}

// --- defog_sql -----------------------------------------------------------------------------------

// Reads comma-separated values. A quoted field may contain commas, line ends and doubled quotes.
std::vector<std::vector<std::string>> csv_records(const std::string& path) {
  const std::string text = read_whole_file(path);
  std::vector<std::vector<std::string>> records(1, std::vector<std::string>(1));
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); i++) {
    std::string& field = records.back().back();
    const char c = text[i];
    if (c == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"') {
      field += text[i++];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      records.back().emplace_back();
    } else if (c == '\n' && !quoted) {
      records.emplace_back(1);
    } else if (c != '\r' || quoted) {
      field += c;
    }
  }
  if (quoted)
    throw Error(ErrorCode::BadInput, path + ": found a quoted field without a closing quote");
  std::erase(records, std::vector<std::string>{""});
  return records;
}

// Splits a text into statements at each ";" outside quotes.
std::vector<std::string> statements_of(std::string_view text) {
  std::vector<std::string> statements(1);
  char quote = 0;
  for (const char c : text) {
    if (c == ';' && quote == 0) {
      statements.emplace_back();
      continue;
    }
    if (quote != 0 ? c == quote : c == '\'' || c == '"') quote = quote != 0 ? '\0' : c;
    statements.back() += c;
  }
  for (std::string& statement : statements) statement = std::string(trimmed(statement));
  std::erase(statements, "");
  return statements;
}

struct DefogDatabase {
  std::vector<TableSchema> tables;
  std::string script;
};

DefogDatabase read_defog_database(const std::string& dir, const std::string& name) {
  const std::string path = dir + "/schema/" + name + ".json";
  DefogDatabase database;
  const auto schema = nlohmann::ordered_json::parse(read_whole_file(path), nullptr, false);
  try {
    for (const auto& [table, columns] : schema.at("table_metadata").items()) {
      database.tables.push_back({table, {}});
      for (const auto& column : columns)
        database.tables.back().columns.push_back(column.at("column_name"));
    }
  } catch (const nlohmann::ordered_json::exception& e) {
    throw Error(ErrorCode::BadInput, path + ": table_metadata: " + e.what());
  }
  database.script = read_whole_file(dir + "/sqlite/" + name + ".sql");
  return database;
}

// True if the question asks for sorted rows. Most accepted queries sort theirs even if it does not.
bool asks_for_order(const std::string& question) {
  const std::string words = " " + normalised(question);
  for (const char* word : {" order", " sort", " starting from "})
    if (words.find(word) != std::string::npos) return true;
  return false;
}

}  // namespace

void read_wikisql(RealRecords& out, const std::string& dir) {
  const std::string path = dir + (out.train() ? "/train.jsonl" : "/dev.jsonl");
  for_each_json_line(path, [&](const Json& item) {
    const std::string sql = item.at("sql");
    out.add(spider_prompt({{"data", item.at("columns").get<std::vector<std::string>>()}},
                          item.at("question")),
            sql + "\n", sql, {{"form", "exact"}});
  });
}

void read_advising(RealRecords& out, const std::string& dir) {
  const auto tables = tables_of_fields(dir + "/advising-fields.txt");
  for_each_json_item(dir + "/advising.json", [&](const Json& query) {
    const std::string sql = query.at("sql").at(0);
    const auto read = tables_read(tables, sql);
    for (const Json& sentence : query.at("sentences")) {
      if (sentence.at("question-split") != split_name(out.split())) continue;
      const auto values = values_for(query, sentence);
      const std::string filled = with_values(sql, values);
      out.add(spider_prompt(read, with_values(sentence.at("text"), values)), filled + "\n", filled,
              {{"form", "exact"}});
    }
  });
}

void read_defog_sql(RealRecords& out, const std::string& dir) {
  if (out.train()) return;
  const std::string path = dir + "/questions_gen_sqlite.csv";
  const auto records = csv_records(path);
  const std::vector<std::string> header = {"db_name", "db_type",  "query_category",
                                           "query",   "question", "instructions"};
  if (records.empty() || records[0] != header)
    throw Error(ErrorCode::BadInput, path + ": header: expected " + joined(header, ",") +
                                         "; is it another version of the file?");
  std::map<std::string, DefogDatabase> databases;
  for (std::size_t i = 1; i < records.size(); i++) {
    const auto& fields = records[i];
    if (fields.size() != header.size())
      throw Error(ErrorCode::BadInput, path + ": record " + std::to_string(i) + ": found " +
                                           std::to_string(fields.size()) + " fields, expected 6");
    const std::string &name = fields[0], &question = fields[4], &instructions = fields[5];
    const auto accepted = statements_of(fields[3]);
    if (accepted.empty())
      throw Error(ErrorCode::BadInput,
                  path + ": record " + std::to_string(i) + ": query: found none, expected SQL");
    if (!databases.contains(name)) databases[name] = read_defog_database(dir, name);
    const DefogDatabase& database = databases[name];
    out.add(
        spider_prompt(database.tables, question + (instructions.empty() ? "" : " " + instructions)),
        accepted[0] + "\n", accepted[0],
        {{"form", "rows"},
         {"category", fields[2]},
         {"accepted", accepted},
         {"ordered", asks_for_order(question)},
         {"script", database.script}});
  }
}

}  // namespace engine
