// Random queries with their English questions.
#pragma once

#include <string>

#include "engine/data/random.h"
#include "engine/data/sql/schema.h"

namespace engine {

struct SqlQuestion {
  std::string query;
  std::string question;
};

/// @param level  1: one table, at most one condition; 2: grouping, order, two conditions or one
///               join; 3: nested queries, set operations, two joins
/// @return  false if the schema does not allow what was drawn
bool draw_query(Random& rng, const SqlSchema& schema, int level, SqlQuestion& out);

/// The query with names and values removed: "SELECT _ FROM _ WHERE _ > ?".
std::string query_skeleton(const std::string& query);

}  // namespace engine
