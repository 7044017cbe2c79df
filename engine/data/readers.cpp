#include "engine/data/readers.h"

#include <algorithm>
#include <map>
#include <set>

#include <zlib.h>
#include <nlohmann/json.hpp>

#include "engine/data/blocks/text.h"
#include "engine/data/real_set.h"
#include "engine/data/text.h"

namespace engine {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;

std::string read_gzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr)
    throw Error(ErrorCode::BadInput,
                path + ": cannot be opened, expected a gzip file; check --data or $DECOSCOPE_DATA");
  std::string text;
  char buffer[1 << 16];
  int n = 0;
  while ((n = gzread(file, buffer, sizeof buffer)) > 0 && text.size() < kMaxFileBytes)
    text.append(buffer, static_cast<std::size_t>(n));
  const bool whole = n == 0 && gzclose(file) == Z_OK;
  if (!whole)
    throw Error(
        ErrorCode::BadInput,
        path + ": found a damaged or truncated gzip file, expected a whole one; download it again");
  return text;
}

void gsm8k(RealRecords& out, const std::string& dir) {
  const std::string path = dir + (out.train() ? "/train.jsonl" : "/test.jsonl");
  for_each_json_line(path, [&](const Json& item) {
    const std::string answer = item.at("answer");
    const auto at = answer.rfind("#### ");
    const std::string number = at == std::string::npos ? std::string() : answer.substr(at + 5);
    out.add("Question:\n" + item.at("question").get<std::string>() +
                "\nAnswer:\nLet's think step by step.\n",
            answer + "\n", number, {{"form", "number"}});
  });
}

// Rationales by question id. Leaves out those of fewer than four words, and those that occur more
// than twice in the file: a rationale that often repeats says nothing about its question.
std::map<std::string, std::string> rationales(const std::string& path) {
  std::map<std::string, std::string> by_id;
  std::map<std::string, int> times;
  for_each_json_line(path, [&](const Json& item) {
    const std::string text = item.at("explanation").at("open-ended");
    by_id[item.at("id")] = text;
    times[text]++;
  });
  std::erase_if(by_id, [&](const auto& entry) {
    const std::string& text = entry.second;
    return times[text] > 2 || std::count(text.begin(), text.end(), ' ') < 3;
  });
  return by_id;
}

std::string sentence_of(std::string text) {
  text = std::string(trimmed(text));
  if (!text.empty() && text.back() != '.' && text.back() != '!' && text.back() != '?') text += '.';
  return capitalised(text);
}

void commonsenseqa(RealRecords& out, const std::string& dir) {
  const std::string name = out.train() ? "train" : "dev";
  const auto why = rationales(dir + "/../cos_e/cose_" + name + "_v1.11.jsonl");
  const std::string path = dir + "/" + name + "_rand_split.jsonl";
  for_each_json_line(path, [&](const Json& item) {
    const auto found = why.find(item.at("id").get<std::string>());
    if (out.train() && found == why.end()) return;
    std::string choices;
    for (const auto& choice : item.at("question").at("choices"))
      choices += " (" + choice.at("label").get<std::string>() + ") " +
                 choice.at("text").get<std::string>();
    const std::string letter = item.at("answerKey");
    const std::string rationale = found == why.end() ? "" : " " + sentence_of(found->second);
    out.add("Q: " + item.at("question").at("stem").get<std::string>() +
                " Answer Choices:" + choices + "\nA:",
            rationale + " So the answer is (" + letter + ").", letter, {{"form", "letter"}});
  });
}

void strategyqa(RealRecords& out, const std::string& dir) {
  for_each_json_item(dir + (out.train() ? "/train.json" : "/dev.json"), [&](const Json& item) {
    std::string facts;
    for (const auto& fact : item.at("facts")) facts += " " + sentence_of(fact.get<std::string>());
    const std::string answer = item.at("answer").get<bool>() ? "yes" : "no";
    out.add("Q: " + item.at("question").get<std::string>() + "\nA:",
            facts + " So the answer is " + answer + ".", answer, {{"form", "yes/no"}});
  });
}

void aqua(RealRecords& out, const std::string& dir) {
  const std::string path = dir + (out.train() ? "/train.json" : "/test.json");
  for_each_json_line(path, [&](const Json& item) {
    std::string choices;
    for (const auto& option : item.at("options")) {
      const std::string text = option;
      if (text.size() < 2)
        throw Error(ErrorCode::BadInput, path + ": options: found \"" + text +
                                             "\", expected a letter, \")\" and a text");
      choices += std::string(" (") + text[0] + ") " + text.substr(2);
    }
    const std::string letter = item.at("correct");
    std::string rationale(trimmed(item.at("rationale").get<std::string>()));
    if (!rationale.empty() && rationale.back() != '.') rationale += '.';
    out.add("Q: " + item.at("question").get<std::string>() + " Answer Choices:" + choices + "\nA:",
            " " + rationale + " So the answer is (" + letter + ").", letter, {{"form", "letter"}});
  });
}

void mbpp(RealRecords& out, const std::string& dir) {
  const std::string path = dir + "/mbpp.jsonl";
  for_each_json_line(path, [&](const Json& item) {
    const int id = item.at("task_id");
    if (out.train() ? id < 511 || id > 974 : id < 11 || id > 510) return;
    const auto tests = item.at("test_list").get<std::vector<std::string>>();
    const std::string code = replaced_all(item.at("code"), "\r\n", "\n");
    out.add(
        "You are an expert Python programmer, and here is your task: " +
            item.at("text").get<std::string>() + " Your code should pass these tests:\n\n" +
            joined(tests, "\n") + "\n[BEGIN]\n",
        replaced_all(code, "\t", "    ") + "\n[DONE]\n", "",
        {{"form", "mbpp"}, {"before", item.at("test_setup_code")}, {"after", joined(tests, "\n")}});
  });
}

void humaneval(RealRecords& out, const std::string& dir) {
  if (out.train()) return;
  const std::string path = dir + "/HumanEval.jsonl.gz";
  for_each_json_line(path, read_gzip(path), [&](const Json& item) {
    const std::string prompt = item.at("prompt");
    out.add(prompt, item.at("canonical_solution"), item.at("entry_point"),
            {{"form", "humaneval"},
             {"before", prompt},
             {"after", item.at("test").get<std::string>() + "\ncheck(" +
                           item.at("entry_point").get<std::string>() + ")"}});
  });
}

void blocksworld(RealRecords& out, const std::string& dir) {
  if (out.train()) return;
  const auto coloured = [](const std::string& fact) {
    auto words = split_text(fact, ' ');
    for (std::size_t i = 1; i < words.size(); i++)
      words[i] = block_colours().at(static_cast<std::size_t>(words[i].at(0) - 'a'));
    return joined(words, " ");
  };
  const std::string path = dir + "/problems.jsonl";
  for_each_json_line(path, [&](const Json& item) {
    Json check = {{"form", "plan"}};
    std::vector<std::string> init;
    std::vector<std::string> goal;
    for (const auto& fact : item.at("init")) {
      check["init"].push_back(coloured(fact));
      init.push_back(fact_phrase(coloured(fact)));
    }
    for (const auto& fact : item.at("goal")) {
      check["goal"].push_back(coloured(fact));
      goal.push_back(fact_phrase(coloured(fact)));
    }
    std::string plan;
    for (const auto& raw : item.at("plan")) {
      auto words = split_text(replaced_all(replaced_all(raw, "(", ""), ")", ""), ' ');
      for (std::size_t i = 1; i < words.size(); i++)
        words[i] =
            "the " + block_colours().at(static_cast<std::size_t>(words[i].at(0) - 'a')) + " block";
      if (words[0] == "pick-up") plan += "pick up " + words.at(1) + "\n";
      if (words[0] == "put-down") plan += "put down " + words.at(1) + "\n";
      if (words[0] == "unstack")
        plan += "unstack " + words.at(1) + " from on top of " + words.at(2) + "\n";
      if (words[0] == "stack") plan += "stack " + words.at(1) + " on top of " + words.at(2) + "\n";
    }
    out.add("[STATEMENT]\nAs initial conditions I have that, " + enumerated(init) +
                ".\nMy goal is to have that " + enumerated(goal) +
                ".\n\nMy plan is as follows:\n\n[PLAN]\n",
            plan + "[PLAN END]\n", std::to_string(item.at("steps").get<int>()) + " steps", check);
  });
}

void bench(RealRecords& out, const std::string& dir) {
  if (out.train()) return;
  const std::string path = dir + "/question.jsonl";
  for_each_json_line(path, [&](const Json& item) {
    out.add("USER: " + item.at("turns").at(0).get<std::string>() + " ASSISTANT:", "",
            item.at("category"), {{"form", "chat"}, {"turns", item.at("turns")}});
  });
}

void self_instruct(RealRecords& out, const std::string& dir) {
  const std::string path =
      dir + (out.train() ? "/seed_tasks.jsonl" : "/user_oriented_instructions.jsonl");
  for_each_json_line(path, [&](const Json& item) {
    for (const auto& instance : item.at("instances")) {
      const std::string input = instance.at("input");
      out.add("USER: " + item.at("instruction").get<std::string>() +
                  (input.empty() ? "" : "\n" + input) + " ASSISTANT:",
              " " + instance.at("output").get<std::string>(), "", {{"form", "chat"}});
    }
  });
}

void creak(RealRecords& out, const std::string& dir) {
  const std::string path = dir + (out.train() ? "/train.json" : "/dev.json");
  for_each_json_line(path, [&](const Json& item) {
    const std::string answer = item.at("label") == "true" ? "yes" : "no";
    out.add("Q: Is it true that " + item.at("sentence").get<std::string>() + "\nA:",
            " " + sentence_of(item.at("explanation")) + " So the answer is " + answer + ".", answer,
            {{"form", "yes/no"}});
  });
}

void python_puzzles(RealRecords& out, const std::string& dir) {
  if (!out.train()) return;
  for_each_json_item(dir + "/puzzles.json", [&](const Json& item) {
    for (const auto& body : item.at("sol_bodies"))
      out.add("# Make this true.\n" + item.at("sat").get<std::string>() + "\n\n" +
                  item.at("sol_header").get<std::string>() + "\n",
              body.get<std::string>() + "\n", "", {{"form", "plain"}});
  });
}

void taskmaster4(RealRecords& out, const std::string& dir) {
  const std::string path = dir + (out.train() ? "/train.jsonl" : "/test.jsonl");
  for_each_json_line(path, [&](const Json& item) {
    std::string prompt;
    std::string rest;
    for (const auto& u : item.at("utterances")) {
      const bool user = u.at("speaker") == "user";
      const std::string text = u.at("text");
      std::string& to =
          prompt.empty() || (prompt.find("ASSISTANT:") == std::string::npos) ? prompt : rest;
      if (&to == &prompt && !user) {
        prompt += (prompt.empty() ? "ASSISTANT:" : " ASSISTANT:");
        rest += " " + text;
      } else {
        to += std::string(to.empty() ? "" : " ") + (user ? "USER: " : "ASSISTANT: ") + text;
      }
    }
    if (!rest.empty()) out.add(prompt, rest, "", {{"form", "chat"}});
  });
}

// Joins whole speeches up to kPiece characters a text.
void tinyshakespeare(RealRecords& out, const std::string& dir) {
  if (!out.train()) return;
  constexpr std::size_t kPiece = 600;
  std::string piece;
  std::string text = read_whole_file(dir + "/input.txt") + "\n\n";
  std::size_t begin = 0;
  for (std::size_t at = text.find("\n\n"); at != std::string::npos; at = text.find("\n\n", begin)) {
    piece += text.substr(begin, at + 2 - begin);
    begin = at + 2;
    if (piece.size() < kPiece) continue;
    out.add("", piece, "", {{"form", "plain"}});
    piece.clear();
  }
}

// Some published sentences lack their full stop ("The heat"), so that they run into the next one. Such
// a pair is split where it ends with a sentence of another line (`known`).
std::vector<std::string> four_sentences(const std::string& line,
                                        const std::set<std::string>& known) {
  std::vector<std::string> out;
  for (const std::string& piece : sentences_in(line)) {
    const auto inner = std::find_if(known.begin(), known.end(), [&](const std::string& sentence) {
      return piece.ends_with(" " + sentence);
    });
    if (inner != known.end()) out.push_back(piece.substr(0, piece.size() - inner->size() - 1));
    out.push_back(inner != known.end() ? *inner : piece);
  }
  return out;
}

void creative_writing(RealRecords& out, const std::string& dir) {
  if (out.train()) return;
  const std::string path = dir + "/data_100_random_text.txt";
  const auto lines = split_text(read_whole_file(path), '\n');
  std::set<std::string> known;
  for (const std::string& line : lines) {
    const auto sentences = sentences_in(trimmed(line));
    if (sentences.size() == 4) known.insert(sentences.begin(), sentences.end());
  }
  int number = 0;
  for (const std::string& raw : lines) {
    number++;
    const std::string line(trimmed(raw));
    if (line.empty()) continue;
    const auto sentences = four_sentences(line, known);
    if (sentences.size() != 4)
      throw Error(ErrorCode::BadInput, path + ":" + std::to_string(number) + ": found " +
                                           std::to_string(sentences.size()) +
                                           " sentences, expected 4");
    out.add(
        "Write a coherent passage of 4 short paragraphs. The end sentence of each paragraph must "
        "be: " +
            line + "\n",
        "", "4 end sentences", {{"form", "passage"}, {"sentences", sentences}});
  }
}

struct RealSet {
  std::string_view name;
  void (*read)(RealRecords&, const std::string& dir);
  bool by_default = true;
};
constexpr RealSet kSets[] = {{"gsm8k", gsm8k},
                             {"commonsenseqa", commonsenseqa},
                             {"strategyqa", strategyqa},
                             {"aqua", aqua},
                             {"mbpp", mbpp},
                             {"wikisql", read_wikisql},
                             {"creak", creak},
                             {"python_puzzles", python_puzzles},
                             {"taskmaster4", taskmaster4},
                             {"self_instruct", self_instruct},
                             {"tinyshakespeare", tinyshakespeare},
                             {"advising", read_advising, false},
                             {"humaneval", humaneval},
                             {"blocksworld", blocksworld},
                             {"mt_bench", bench},
                             {"vicuna_bench", bench},
                             {"creative_writing", creative_writing},
                             {"defog_sql", read_defog_sql}};

}  // namespace

std::vector<std::string> real_set_names() {
  std::vector<std::string> names;
  for (const RealSet& set : kSets) names.emplace_back(set.name);
  return names;
}

std::vector<std::string> default_training_sets() {
  std::vector<std::string> names;
  for (const RealSet& set : kSets)
    if (set.by_default) names.emplace_back(set.name);
  return names;
}

std::vector<RealSetTerms> real_set_terms() {
  return {{"gsm8k", "MIT", "github.com/openai/grade-school-math"},
          {"commonsenseqa", "MIT", "github.com/kojima-takeshi188/zero_shot_cot"},
          {"cos_e", "BSD-3-Clause", "github.com/salesforce/cos-e"},
          {"strategyqa", "MIT", "github.com/eladsegal/strategyqa"},
          {"aqua", "Apache-2.0", "github.com/google-deepmind/AQuA"},
          {"mbpp", "CC BY 4.0", "github.com/google-research/google-research"},
          {"wikisql", "BSD-3-Clause", "github.com/salesforce/WikiSQL"},
          {"creak", "MIT", "github.com/yasumasaonoe/creak"},
          {"python_puzzles", "MIT", "github.com/microsoft/PythonProgrammingPuzzles"},
          {"taskmaster4", "CC BY 4.0", "github.com/google-research-datasets/Taskmaster"},
          {"self_instruct", "Apache-2.0", "github.com/yizhongw/self-instruct"},
          {"tinyshakespeare", "public domain", "github.com/karpathy/char-rnn"},
          {"advising", "CC BY 4.0", "github.com/jkkummerfeld/text2sql-data"}};
}

// Removes test prompts that also occur in training. In taskmaster4 a hundred dialogs of the two parts
// begin with the same words; in advising two questions differ only in punctuation.
static void drop_trained_prompts(std::vector<Record>& test,
                                 std::string_view name,
                                 const std::string& data_dir) {
  if (name != "taskmaster4" && name != "advising") return;
  std::set<std::string> trained;
  for (const Record& record : read_real_set(name, Split::Train, data_dir))
    trained.insert(normalised(record.prompt));
  std::erase_if(test,
                [&](const Record& record) { return trained.contains(normalised(record.prompt)); });
}

std::vector<Record> read_real_set(std::string_view name, Split split, const std::string& data_dir) {
  for (const RealSet& set : kSets) {
    if (set.name != name) continue;
    RealRecords out(name, split);
    set.read(out, data_dir + "/" + std::string(name));
    if (split == Split::Test) drop_trained_prompts(out.records, name, data_dir);
    return std::move(out.records);
  }
  throw Error(ErrorCode::Usage, "data set: found '" + std::string(name) + "', expected one of " +
                                    joined(real_set_names(), ", "));
}

}  // namespace engine
