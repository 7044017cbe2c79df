#include "engine/data/sql/schema.h"

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "engine/base/types.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kTables[] = {
    "student", "teacher",  "course",   "school",  "book",       "author",   "library",  "player",
    "team",    "coach",    "match",    "stadium", "singer",     "song",     "album",    "concert",
    "film",    "actor",    "director", "cinema",  "doctor",     "patient",  "hospital", "nurse",
    "car",     "driver",   "garage",   "race",    "flight",     "airport",  "airline",  "pilot",
    "hotel",   "guest",    "room",     "tour",    "shop",       "product",  "customer", "supplier",
    "farm",    "farmer",   "animal",   "crop",    "museum",     "painting", "painter",  "visitor",
    "company", "employee", "office",   "project", "restaurant", "cook",     "dish",     "waiter",
    "ship",    "captain",  "harbor",   "sailor"};

struct TextColumn {
  std::string_view name;
  int domain;  // index in kDomains
};
constexpr TextColumn kTextColumns[] = {
    {"first_name", 0}, {"last_name", 1},   {"nickname", 0},       {"owner", 1},
    {"manager", 1},    {"city", 2},        {"birth_place", 2},    {"home_town", 2},
    {"location", 2},   {"destination", 2}, {"country", 3},        {"nationality", 3},
    {"origin", 3},     {"color", 4},       {"eye_color", 4},      {"main_color", 4},
    {"material", 5},   {"surface", 5},     {"genre", 6},          {"style", 6},
    {"theme", 6},      {"month", 7},       {"start_month", 7},    {"end_month", 7},
    {"weekday", 8},    {"opening_day", 8}, {"language", 9},       {"second_language", 9},
    {"status", 10},    {"condition", 10},  {"level", 10},         {"category", 11},
    {"type", 11},      {"group_name", 11}, {"sport", 12},         {"hobby", 12},
    {"subject", 13},   {"major", 13},      {"brand", 14},         {"sponsor", 14},
    {"street", 15},    {"address", 15},    {"favorite_food", 16}, {"meal", 16},
    {"weather", 17}};

struct NumberColumn {
  std::string_view name;
  int low;
  int high;
};
constexpr NumberColumn kNumberColumns[] = {{"age", 18, 80},
                                           {"year", 1950, 2020},
                                           {"price", 5, 500},
                                           {"salary", 20, 99},
                                           {"weight", 1, 120},
                                           {"height", 50, 220},
                                           {"length", 10, 400},
                                           {"width", 5, 90},
                                           {"rating", 1, 10},
                                           {"score", 0, 100},
                                           {"points", 0, 60},
                                           {"capacity", 20, 900},
                                           {"size", 1, 50},
                                           {"distance", 1, 999},
                                           {"duration", 5, 240},
                                           {"budget", 10, 900},
                                           {"population", 1, 99},
                                           {"rank", 1, 40},
                                           {"number_of_pages", 40, 700},
                                           {"floors", 1, 60},
                                           {"seats", 2, 300},
                                           {"speed", 10, 300},
                                           {"wins", 0, 30},
                                           {"losses", 0, 30},
                                           {"goals", 0, 50},
                                           {"votes", 1, 900},
                                           {"sales", 1, 800},
                                           {"stock", 0, 200},
                                           {"discount", 0, 60},
                                           {"temperature", 0, 40},
                                           {"experience", 1, 45},
                                           {"members", 2, 90},
                                           {"visitors", 5, 950},
                                           {"hours", 1, 60},
                                           {"credits", 1, 12}};

// The words of each domain of text columns, separated by spaces; "_" is a space within a word.
constexpr std::string_view kDomains[] = {
    // first names
    "Alice Bruno Clara Daniel Elena Frank Gina Hugo Irene Jonas Karen Louis Maria Nils "
    "Oscar Petra Rita Simon Tessa Ulrich Vera Walter Yvonne Zara Adam Betty Carl Diana "
    "Edgar Flora",
    // last names
    "Adler Baker Cooper Dixon Evans Fisher Gray Hill Irwin Jordan Keller Lane Mason Nolan "
    "Owens Parker Reed Shaw Turner Vance Wells Young Abbott Bishop Carter Doyle Ellis "
    "Foster Grant Hayes",
    // cities
    "Paris London Rome Madrid Berlin Vienna Oslo Lisbon Dublin Athens Prague Warsaw Cairo "
    "Tokyo Lima Boston Denver Austin Seattle Miami Sydney Perth Delhi Seoul Quito Milan "
    "Lyon Porto Geneva Munich",
    // countries
    "France Spain Italy Germany Austria Norway Sweden Finland Poland Greece Ireland "
    "Portugal Japan China India Brazil Chile Peru Mexico Canada Egypt Kenya Ghana Turkey "
    "Iran Nepal Cuba Malta Iceland Denmark",
    // colours
    "red blue green yellow orange purple brown black white gray pink silver gold beige "
    "violet cyan magenta olive navy teal maroon ivory amber coral lilac mint peach ruby "
    "tan indigo",
    // materials
    "wood steel glass stone brick paper plastic cotton wool silk leather copper iron "
    "marble clay rubber linen bamboo granite concrete sand grass carpet tile cork brass "
    "bronze tin wax felt",
    // genres
    "jazz rock pop folk blues soul opera classical metal punk reggae disco drama comedy "
    "horror romance action mystery fantasy western crime history travel science nature "
    "poetry satire thriller family war",
    // months
    "January February March April May June July August September October November "
    "December",
    // weekdays
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    // languages
    "English French Spanish German Italian Dutch Swedish Danish Polish Russian Greek "
    "Turkish Arabic Hindi Chinese Japanese Korean Thai Latin Welsh Irish Czech Finnish "
    "Hungarian Hebrew Persian Swahili Malay Tamil Basque",
    // states
    "new old good bad open closed active idle ready busy full empty early late high low "
    "strong weak fresh broken clean dirty safe risky calm free sold hidden public private",
    // categories
    "alpha beta gamma delta basic advanced special regular junior senior local global "
    "indoor outdoor small large short long single double standard premium classic modern "
    "mixed plain major minor inner outer",
    // sports and hobbies
    "tennis soccer hockey golf rugby boxing rowing sailing skiing chess cycling running "
    "swimming diving fencing judo karate cricket baseball basketball archery bowling "
    "climbing dancing fishing skating surfing yoga painting reading",
    // subjects
    "math physics chemistry biology history geography art music law medicine economics "
    "logic grammar algebra statistics botany zoology geology ethics drawing drama latin "
    "sports design computing politics finance marketing nursing astronomy",
    // brands
    "Acme Borex Calto Dynor Elvix Fontis Galmo Hexon Intero Juvel Kastor Lumex Mondar "
    "Nexia Orbis Pelora Quanta Rivoli Solara Tempo Ultis Vantor Wexel Xenta Yolo Zenit "
    "Arvo Brio Corda Delphi",
    // streets
    "Oak_Street Elm_Street Park_Lane Mill_Road High_Street Lake_Road King_Street "
    "Hill_Road Bay_Avenue Rose_Lane Main_Street Pine_Road River_Road Station_Road "
    "Church_Lane Market_Square Castle_Road Garden_Street Bridge_Street School_Lane",
    // food
    "pizza pasta soup salad rice bread cheese fish steak curry tacos sushi noodles beans "
    "eggs pancakes stew burger sandwich omelet porridge dumplings lentils pie risotto "
    "gnocchi kebab ramen waffles toast",
    // weather
    "sunny rainy cloudy windy snowy foggy stormy icy mild hot cold dry humid clear"};

// The words of all domains. [18][words]
const std::vector<std::vector<std::string>>& domains() {
  static const auto lists = [] {
    std::vector<std::vector<std::string>> out;
    for (const std::string_view words : kDomains) {
      out.push_back(split_text(words, ' '));
      for (auto& word : out.back()) word = replaced_all(word, "_", " ");
    }
    return out;
  }();
  return lists;
}

bool is_identifier(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

const char* type_of(const SqlColumn& column) {
  return column.kind == SqlColumn::Kind::Text ? "TEXT" : "INTEGER";
}

}  // namespace

SqlSchema draw_schema(Random& rng, int n_tables) {
  SqlSchema schema;
  schema.rows_seed = rng.bits();
  std::vector<int> names(std::size(kTables));
  std::iota(names.begin(), names.end(), 0);
  rng.shuffle(names);
  std::vector<int> texts(std::size(kTextColumns));
  std::iota(texts.begin(), texts.end(), 0);
  std::vector<int> numbers(std::size(kNumberColumns));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (int t = 0; t < n_tables; t++) {
    SqlTable table;
    table.name = kTables[names[t]];
    table.columns.push_back({"id", SqlColumn::Kind::Id});
    rng.shuffle(texts);
    rng.shuffle(numbers);
    const int n_texts = rng.between(2, n_tables > 1 ? 3 : 4);
    const int n_numbers = rng.between(1, n_tables > 1 ? 2 : 3);
    std::vector<SqlColumn> columns;
    for (int i = 0; i < n_texts; i++)
      columns.push_back(
          {std::string(kTextColumns[texts[i]].name), SqlColumn::Kind::Text, texts[i]});
    for (int i = 0; i < n_numbers; i++)
      columns.push_back(
          {std::string(kNumberColumns[numbers[i]].name), SqlColumn::Kind::Number, numbers[i]});
    rng.shuffle(columns);
    for (auto& column : columns) table.columns.push_back(std::move(column));
    schema.tables.push_back(std::move(table));
  }
  // A tree: an earlier table references table t.
  for (int t = 1; t < n_tables; t++) {
    auto& parent = schema.tables[rng.chance(60) ? t - 1 : 0];
    parent.columns.push_back({schema.tables[t].name + "_id", SqlColumn::Kind::Reference, 0, t});
  }
  return schema;
}

std::vector<std::string> column_words(const SqlSchema& schema, int table, int column) {
  const auto& c = schema.tables[table].columns[column];
  auto words = domains()[kTextColumns[c.domain].domain];
  Random rng(schema.rows_seed * 64 + static_cast<std::uint64_t>(table * 16 + column));
  rng.shuffle(words);
  words.resize(std::min<std::size_t>(words.size(), 6));
  return words;
}

std::pair<int, int> column_range(const SqlColumn& column) {
  const auto& range = kNumberColumns[column.domain];
  return {range.low, range.high};
}

std::string schema_script(const SqlSchema& schema, int row_set) {
  Random rng(fnv1a("rows/" + std::to_string(schema.rows_seed) + "/" + std::to_string(row_set)));
  std::vector<int> n_rows;
  for (std::size_t t = 0; t < schema.tables.size(); t++) n_rows.push_back(rng.between(8, 20));
  std::string script;
  for (std::size_t t = 0; t < schema.tables.size(); t++) {
    const auto& table = schema.tables[t];
    script += "CREATE TABLE " + table.name + " (";
    std::vector<std::vector<std::string>> words(table.columns.size());
    for (std::size_t c = 0; c < table.columns.size(); c++) {
      script += (c > 0 ? ", " : "") + table.columns[c].name + " " + type_of(table.columns[c]);
      if (table.columns[c].kind == SqlColumn::Kind::Text)
        words[c] = column_words(schema, static_cast<int>(t), static_cast<int>(c));
    }
    script += ");\nINSERT INTO " + table.name + " VALUES ";
    for (int row = 0; row < n_rows[t]; row++) {
      script += row > 0 ? ",(" : "(";
      for (std::size_t c = 0; c < table.columns.size(); c++) {
        const auto& column = table.columns[c];
        if (c > 0) script += ',';
        if (column.kind == SqlColumn::Kind::Id) script += std::to_string(row + 1);
        if (column.kind == SqlColumn::Kind::Text) script += "'" + rng.pick(words[c]) + "'";
        if (column.kind == SqlColumn::Kind::Number) {
          const auto [low, high] = column_range(column);
          script += std::to_string(rng.between(low, high));
        }
        if (column.kind == SqlColumn::Kind::Reference)
          script += std::to_string(rng.between(1, n_rows[column.references]));
      }
      script += ')';
    }
    script += ";\n";
  }
  return script;
}

std::string schema_to_json(const SqlSchema& schema) {
  Json out;
  out["rows_seed"] = schema.rows_seed;
  out["tables"] = Json::array();
  for (const auto& table : schema.tables) {
    Json columns = Json::array();
    for (const auto& c : table.columns)
      columns.push_back({c.name, static_cast<int>(c.kind), c.domain, c.references});
    out["tables"].push_back({{"name", table.name}, {"columns", columns}});
  }
  return out.dump();
}

SqlSchema schema_from_json(std::string_view json, const std::string& where) {
  const auto bad = [&](const std::string& what) {
    return Error(ErrorCode::BadInput, where + ": check.schema: " + what);
  };
  try {
    const Json in = Json::parse(json);
    SqlSchema schema;
    schema.rows_seed = in.at("rows_seed");
    const int n_tables = static_cast<int>(in.at("tables").size());
    if (n_tables < 1 || n_tables > 8) throw bad("found " + std::to_string(n_tables) + " tables");
    for (const auto& t : in.at("tables")) {
      SqlTable table;
      table.name = t.at("name");
      if (!is_identifier(table.name)) throw bad("a table name that is no identifier");
      if (t.at("columns").size() > 16) throw bad("more than 16 columns in " + table.name);
      for (const auto& c : t.at("columns")) {
        const int kind = c.at(1);
        SqlColumn column{c.at(0), static_cast<SqlColumn::Kind>(kind), c.at(2), c.at(3)};
        if (!is_identifier(column.name)) throw bad("a column name that is no identifier");
        const int n_domains =
            static_cast<int>(kind == 1 ? std::size(kTextColumns) : std::size(kNumberColumns));
        if (kind < 0 || kind > 3 || column.domain < 0 || column.domain >= n_domains ||
            (kind == 3 && (column.references < 0 || column.references >= n_tables)))
          throw bad("column " + column.name + " out of range");
        table.columns.push_back(std::move(column));
      }
      schema.tables.push_back(std::move(table));
    }
    return schema;
  } catch (const Json::exception& e) {
    throw bad(e.what());
  }
}

std::string table_plural(std::string_view name) {
  std::string word(name);
  if (word == "match" || word == "dish") return word + "es";
  if (word.ends_with("y") && word != "play") return word.substr(0, word.size() - 1) + "ies";
  return word + "s";
}

std::string in_words(std::string_view identifier) {
  return replaced_all(std::string(identifier), "_", " ");
}

}  // namespace engine
