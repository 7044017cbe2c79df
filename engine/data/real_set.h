// What the readers of the open sets share: files of JSON, one record a line or one list, and the
// records they are gathered into.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/data/record.h"

namespace engine {

/// @throws Error(Resources)  if the file cannot be opened
std::string read_whole_file(const std::string& path);

/// Runs `each` on every JSON line of a file's text; empty lines are skipped.
/// @throws Error(BadInput)  "path:line: .." for what is no object or lacks what `each` asks for
void for_each_json_line(const std::string& path,
                        const std::string& text,
                        const std::function<void(const nlohmann::json&)>& each);

/// Runs `each` on every item of the JSON list that a file holds.
/// @throws Error(Resources)  if the file cannot be opened
/// @throws Error(BadInput)  "path: [index]: .."
void for_each_json_item(const std::string& path,
                        const std::function<void(const nlohmann::json&)>& each);

/// A line's sentences: they end where ".", "!" or "?" and perhaps a closing quote stand before a
/// space.
std::vector<std::string> sentences_in(std::string_view line);

/// The records of one set, numbered in the order they come. Training texts longer than 1,700
/// characters are left out.
class RealRecords {
 public:
  RealRecords(std::string_view set, Split split) : set_(set), split_(split) {}

  void add(std::string prompt,
           std::string completion,
           std::string answer,
           const nlohmann::json& check);

  Split split() const { return split_; }
  bool train() const { return split_ == Split::Train; }

  std::vector<Record> records;

 private:
  std::string set_;
  Split split_;
  int n_ = 0;
};

// Questions to be answered in SQL, in CLLM's prompt form for Spider.
void read_wikisql(RealRecords& out, const std::string& dir);
/// Of the database's 18 tables the prompt names those that the query reads: all of them would not
/// fit the cap of training texts.
void read_advising(RealRecords& out, const std::string& dir);
/// Evaluation alone. The check holds the script that makes the database.
void read_defog_sql(RealRecords& out, const std::string& dir);

}  // namespace engine
