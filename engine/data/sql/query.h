// Random SQL queries with their English questions.
#pragma once

#include <string>

#include "engine/data/random.h"
#include "engine/data/sql/schema.h"

namespace engine {

/// A query and the question it answers.
struct SqlQuestion {
  std::string query;
  std::string question;
};

/// Draws a query over a schema.
/// @param level  1: one table, at most one condition; 2: grouping, order, two conditions or one
///               join; 3: nested queries, set operations, two joins
/// @return  false if the schema has no columns for the drawn kind of query
bool draw_query(Random& rng, const SqlSchema& schema, int level, SqlQuestion& out);

/// The query with names replaced by "_" and values by "?": "SELECT _ FROM _ WHERE _ > ?".
std::string query_skeleton(const std::string& query);

}  // namespace engine
