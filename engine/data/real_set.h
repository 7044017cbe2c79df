// Helpers of the readers of the open data sets: files of JSON (one object a line, or one list), and
// the list of records that a reader fills.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/data/record.h"

namespace engine {

/// The text of a file of at most 16 GiB. @throws Error(Resources)  if the file cannot be opened
std::string read_whole_file(const std::string& path);

/// Calls `each` with the JSON object of every line of a text. Skips empty lines.
/// @param path  of the text's file, for messages
/// @throws Error(BadInput)  "path:line: .." if a line is no object, or lacks a field that `each` reads
void for_each_json_line(const std::string& path,
                        const std::string& text,
                        const std::function<void(const nlohmann::json&)>& each);
/// The same for the text of the file. @throws Error(Resources)  if the file cannot be opened
void for_each_json_line(const std::string& path,
                        const std::function<void(const nlohmann::json&)>& each);

/// Calls `each` with every item of the JSON list in a file.
/// @throws Error(Resources)  if the file cannot be opened
/// @throws Error(BadInput)  "path: [index]: .."
void for_each_json_item(const std::string& path,
                        const std::function<void(const nlohmann::json&)>& each);

/// The sentences of a line. A sentence ends at a word that ends in ".", "!" or "?", perhaps followed
/// by a closing quote.
std::vector<std::string> sentences_in(std::string_view line);

/// Collects the records of one data set, numbered in the order of the file. Leaves out training texts
/// of more than 1,700 characters.
class RealRecords {
 public:
  /// @param set    name of the data set
  /// @param split  the part of it that is read
  RealRecords(std::string_view set, Split split) : set_(set), split_(split) {}

  /// Adds a record of level 0. @param check  Record::check
  void add(std::string prompt,
           std::string completion,
           std::string answer,
           const nlohmann::json& check);

  Split split() const { return split_; }                 ///< the part that is read
  bool train() const { return split_ == Split::Train; }  ///< true for the training part

  std::vector<Record> records;

 private:
  std::string set_;
  Split split_;
  int n_ = 0;
};

/// Reads WikiSQL: questions whose answer is SQL, in the prompt form that CLLM uses for Spider.
void read_wikisql(RealRecords& out, const std::string& dir);
/// Reads Advising in the same prompt form. The prompt names only the tables that the query reads: all
/// 18 tables of the database would exceed the limit of training texts.
void read_advising(RealRecords& out, const std::string& dir);
/// Reads Defog SQL in the same prompt form, for evaluation only. Record::check contains the script
/// that creates the database.
void read_defog_sql(RealRecords& out, const std::string& dir);

}  // namespace engine
