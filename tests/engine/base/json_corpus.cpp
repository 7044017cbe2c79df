#include "tests/engine/base/json_corpus.h"

#include <initializer_list>
#include <string_view>

namespace engine::test {
namespace {

using namespace std::string_literals;

std::string repeated(std::string_view text, int n) {
  std::string all;
  for (int i = 0; i < n; i++) all += text;
  return all;
}

/// The text as the only element of an array.
std::string item(std::string_view text) {
  return "[" + std::string(text) + "]";
}

class Corpus {
 public:
  void add(const char* category, Verdict verdict, std::initializer_list<std::string> texts) {
    for (const std::string& text : texts) all_.push_back({category, text, verdict});
  }
  void add_items(const char* category,
                 Verdict verdict,
                 std::initializer_list<std::string_view> texts) {
    for (const std::string_view text : texts) all_.push_back({category, item(text), verdict});
  }
  std::vector<OddJson> take() { return std::move(all_); }

 private:
  std::vector<OddJson> all_;
};

void add_structures(Corpus& c) {
  c.add("nothing", Verdict::Reject, {"", " ", "\n\t\r ", "\0"s, "\xEF\xBB\xBF"});
  c.add("open", Verdict::Reject,
        {"{", "[", "[[", "[{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":[", "[1",
         "[1,", "[\"a\",\n4\n,1,", "[{\"b\":[]}"});
  c.add("closed too often", Verdict::Reject,
        {"]", "}", "[1]]", "{\"a\":1}}", "[}", "{]", "[1}", "{\"a\":1]", "[[1]}]"});
  c.add("commas", Verdict::Reject,
        {"[,1]", "[1,,2]", "[1,]", "[,]", "{,}", "{\"a\":1,}", "{\"a\":1,,\"b\":2}", "{,\"a\":1}",
         ",", "[1],"});
  c.add("separators", Verdict::Reject,
        {"[1 2]", "[1:2]", "[1;2]", "{\"a\" 1}", "{\"a\",1}", "{\"a\"::1}", "{\"a\":1 \"b\":2}",
         "{\"a\":1;\"b\":2}", ":", "\"a\":1", "{\"a\":}", "{\"a\"}", "[\"a\"\"b\"]"});
  c.add("keys", Verdict::Reject,
        {"{a:1}", "{'a':1}", "{1:1}", "{null:1}", "{true:1}", "{[1]:1}", "{{}:1}", "{:1}",
         "{\"a\n\":1}", "{\"a\\q\":1}"});
  c.add("two documents", Verdict::Reject,
        {"{}{}", "[][]", "[1]x", "{} []", "[1] 2", "[]\0"s, "{\"a\":1}#"});
  c.add("depth", Verdict::Reject,
        {repeated("[", 100'000), repeated("{\"a\":", 100'000), repeated("[{\"a\":", 50'000),
         repeated("]", 100'000)});
  c.add("depth", Verdict::Either,
        {repeated("[", 500) + repeated("]", 500), repeated("[", 100'000) + repeated("]", 100'000),
         repeated("{\"a\":", 20'000) + "1" + repeated("}", 20'000)});
  c.add("keys twice", Verdict::Either,
        {"{\"a\":1,\"a\":2}", "{\"a\":1,\"\\u0061\":1}", "{\"\":0,\"\":0}"});
}

void add_words(Corpus& c) {
  c.add_items("words", Verdict::Reject,
              {"nul",       "nulll",      "NULL", "Null",      "tru",        "True", "TRUE",
               "truefalse", "true false", "fals", "undefined", "nan",        "NaN",  "-NaN",
               "Infinity",  "-Infinity",  "inf",  "x",         "new Date()", "@",    "*"});
  c.add("comments", Verdict::Reject,
        {"[1]//c", "/*c*/[1]", "[1/*c*/]", "#c\n[1]", "[1] -- c", "<!-- -->[1]"});
  c.add("spaces", Verdict::Reject,
        {"[\f]", "[\v1]", "[\xC2\xA0"s + "1]", "[\xE2\x80\xA8"s + "1]", "[\xE3\x80\x80]"s,
         "\xE2\x81\xA0[1]"s});
}

void add_numbers(Corpus& c) {
  c.add_items(
      "numbers", Verdict::Reject,
      {"01",   "-01",   "00",    "1.",           ".5",    "-.5",  "+1",   "++1", "--1",
       "-",    "- 1",   "1e",    "1e+",          "1E-",   "1.e3", "1.5e", "0e",  ".",
       "0x10", "1_000", "0.1.2", "1e1.5",        "1e1e1", "1f",   "1L",   "1/2", "1,000.5.2",
       "0b1",  "1e2e",  "-x",    "\xEF\xBC\x91", "9.e+",  "2.e-3"});
  c.add_items("numbers", Verdict::Accept,
              {"0", "-0", "0.0", "-0.0", "10", "1e5", "1E5", "1e+5", "1e-5", "1.5e3", "123.456e-7",
               "0e0", "0e+1", "20.10e00", "9007199254740993", "18446744073709551615",
               "-9223372036854775808", "1e300"});
  c.add_items("huge numbers", Verdict::Either,
              {"1e400", "-1e400", "1e-400", "18446744073709551616", "1e99999999999999999999",
               "123456789012345678901234567890123456789012345678901234567890"});
}

void add_strings(Corpus& c) {
  c.add("strings", Verdict::Reject,
        {"[\"a]",         "[\"a",          "[\"\\\"]",           "['a']",
         "[a\"]",         "[\"\\x41\"]",   "[\"\\a\"]",          "[\"\\'\"]",
         "[\"\\0\"]",     "[\"\\u\"]",     "[\"\\u12\"]",        "[\"\\u123g\"]",
         "[\"\\U0041\"]", "[\"\\u+041\"]", "[\"\\u 041\"]",      "[\"\\\n\"]",
         "[\"\\",         "[\"\\u00",      "[\"\\ud83d\\u12\"]", "[\"a\nb\"]",
         "[\"a\tb\"]",    "[\"\x01\"]",    "[\"\x1F\"]",         "[\"a\0b\"]"s,
         "[\"\\ \"]"});
  c.add("surrogates", Verdict::Either,
        {"[\"\\ud800\"]", "[\"\\udc00\"]", "[\"\\ud83d\\ud83d\"]", "[\"\\ude00\\ud83d\"]",
         "[\"\\ud83dx\"]", "[\"\\ud800\\n\"]"});
  c.add("strings", Verdict::Accept,
        {"[\"\"]", "[\"a\"]", "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]", "[\"\\u0041\"]", "[\"\\u0000\"]",
         "[\"\\uFFFF\"]", "[\"\\ud83d\\ude00\"]", "[\"\\uD834\\uDD1E\"]", "[\"\x7F\"]",
         "[\"\xC3\xA9\"]"s, "[\"\xE2\x82\xAC\"]"s, "[\"\xF0\x9F\x98\x80\"]"s, "[\"\xE2\x80\xA8\"]"s,
         "[\"\xEF\xBF\xBD\"]"s, "[\"\xEF\xBB\xBF\"]"s, "[\"%n %s ## [31m\"]"});
}

void add_bytes(Corpus& c) {
  c.add("not UTF-8", Verdict::Reject,
        {"[\"\xFF\"]"s, "[\"\x80\"]"s, "[\"\xC0\xAF\"]"s, "[\"\xE0\x80\xAF\"]"s,
         "[\"\xF0\x80\x80\xAF\"]"s, "[\"\xED\xA0\x80\"]"s, "[\"\xED\xBF\xBF\"]"s,
         "[\"\xF4\x90\x80\x80\"]"s, "[\"\xF8\x88\x80\x80\x80\"]"s, "[\"\xE2\x82\"]"s, "[\"\xC3\"]"s,
         "{\"\xFF\":1}"s, "\xFF"s, "[\xC3\xA9]"s});
  c.add("other encodings", Verdict::Reject,
        {"\xFF\xFE[\0]\0"s, "\xFE\xFF\0[\0]"s, "[\0]\0"s, "\0[\0]"s, "\xFF\xFE\0\0"s,
         "\x1F\x8B\x08\0"s, "PK\x03\x04"s});
  c.add("byte order mark", Verdict::Either, {"\xEF\xBB\xBF[1]"s, "\xEF\xBB\xBF{}"s});
}

void add_good(Corpus& c) {
  c.add("documents", Verdict::Accept,
        {"[]",
         "{}",
         "[ ]",
         "{ }",
         " [1] ",
         "\n[\r1\t]\n",
         "[[]]",
         "[{}]",
         "{\"a\":[]}",
         "{\"a\":{\"b\":{}}}",
         "[null]",
         "[true]",
         "[false]",
         "[1,2,3]",
         "[1,null,1,2,null]",
         "{\"\":0}",
         "{\"a\\u0000b\":0}",
         "{\"a\":1,\"b\":\"\",\"c\":null}",
         repeated("[", 30) + repeated("]", 30),
         "[" + repeated("0,", 2000) + "0]"});
}

}  // namespace

std::vector<OddJson> odd_json() {
  Corpus corpus;
  add_structures(corpus);
  add_words(corpus);
  add_numbers(corpus);
  add_strings(corpus);
  add_bytes(corpus);
  add_good(corpus);
  return corpus.take();
}

std::string shown(const OddJson& odd) {
  std::string text = odd.category + ": ";
  for (const char c : odd.text.substr(0, 60)) text += c >= ' ' && c < 0x7F ? c : '?';
  return text;
}

}  // namespace engine::test
