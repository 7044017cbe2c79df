#include "engine/data/arith/problem.h"

#include "engine/data/text.h"

namespace engine {

namespace {

constexpr std::string_view kNames[] = {
    "Anna", "Ben",    "Carla",  "David",  "Emma", "Felix", "Grace", "Henry", "Iris",  "Jack",
    "Kate", "Leo",    "Mia",    "Noah",   "Olga", "Paul",  "Quinn", "Rosa",  "Sam",   "Tina",
    "Uma",  "Victor", "Wendy",  "Xavier", "Yara", "Zoe",   "Alan",  "Bella", "Chris", "Dora",
    "Eric", "Fiona",  "George", "Hanna",  "Ivan", "Julia", "Kevin", "Lucy",  "Mark",  "Nina"};
constexpr std::string_view kThings[] = {
    "sticker", "marble", "book",   "apple",   "pencil", "coin",   "card",   "shell",    "stamp",
    "button",  "cookie", "flower", "stone",   "ribbon", "bead",   "candle", "ticket",   "toy",
    "balloon", "orange", "lemon",  "egg",     "nut",    "plum",   "pear",   "carrot",   "onion",
    "potato",  "cup",    "plate",  "spoon",   "bottle", "basket", "chair",  "lamp",     "kite",
    "ball",    "doll",   "puzzle", "game",    "pen",    "crayon", "eraser", "notebook", "letter",
    "photo",   "magnet", "badge",  "feather", "acorn",  "seed",   "tulip",  "rose",     "cake",
    "muffin",  "bun",    "pie",    "jar",     "brick",  "tile"};
constexpr std::string_view kColours[] = {"red",    "blue",   "green", "yellow",
                                         "purple", "orange", "black", "white"};

std::string plural(std::string_view thing) {
  return std::string(thing) + (thing == "potato" ? "es" : "s");
}

int max_value(int level) {
  return level == 1 ? 99 : 999;
}

// Builds a problem step by step. Every step method appends one step, or returns false if the step does
// not fit the current value.
class Builder {
 public:
  Builder(Random& rng, int level, ArithProblem& problem) : rng_(rng), level_(level), p_(problem) {
    name_ = rng_.pick(kNames);
    do {
      other_ = rng_.pick(kNames);
    } while (other_ == name_);
    thing_ = rng_.pick(kThings);
    things_ = plural(thing_);
    p_.thing = things_;
    value_ = rng_.between(3, level == 1 ? 60 : 200);
    p_.start = value_;
    p_.key = std::to_string(value_);
    add_text(fill(rng_.one_of({"{0} has {1} {2}.", "{0} owns {1} {2}.", "At first {0} has {1} {2}.",
                               "{0} starts with {1} {2}.", "There are {1} {2} in {0}'s room."}),
                  {name_, std::to_string(value_), things_}));
    if (rng_.chance(40))
      p_.opening = fill(rng_.one_of({"{0} starts with {1} {2}.", "At first there are {1} {2}.",
                                     "The problem begins with {1} {2}.", "We start from {1} {2}."}),
                        {name_, std::to_string(value_), things_});
  }

  bool add_step(bool last, int n_left) {
    const bool hard = level_ == 3;
    const bool two_people = level_ >= 2;
    switch (rng_.weighted({5, 5, 3, 3, 3, two_people ? 3 : 0, last ? 2 : 0, hard && last ? 3 : 0,
                           hard ? 3 : 0, two_people && last ? 3 : 0})) {
      case 0:
        return gain();
      case 1:
        return loss();
      case 2:
        return scale();
      case 3:
        return split();
      case 4:
        return fraction();
      case 5:
        return compare();
      case 6:
        return price();
      case 7:
        return percent();
      case 8:
        return rate();
      default:
        return n_left == 1 && together();
    }
  }

  void add_distractor() {
    const int n = rng_.between(2, 30);
    std::string toy;
    do {
      toy = rng_.pick(kThings);
    } while (toy == thing_);
    add_text(fill(rng_.one_of({"{0} also has {1} {2} at home.", "{0} is {1} years old.",
                               "{3} lives in house number {1}.", "{3} has {1} {2}, too."}),
                  {name_, std::to_string(n), plural(toy), other_}));
  }

  void finish() {
    if (question_.empty())
      question_ =
          last_was_loss_ && rng_.chance(50)
              ? fill(rng_.one_of({"How many {0} are left?", "How many {0} does {1} have left?"}),
                     {things_, name_})
              : fill(rng_.one_of({"How many {0} does {1} have?", "How many {0} does {1} have now?",
                                  "What is the number of {0} that {1} has at the end?",
                                  "How many {0} does {1} have in the end?"}),
                     {things_, name_});
    add_text(question_);
    p_.answer = value_;
  }

 private:
  void add_text(std::string_view sentence) {
    if (!p_.text.empty()) p_.text += ' ';
    p_.text += sentence;
  }

  bool fits(int value) const { return value >= 1 && value <= max_value(level_); }

  // The usual rationale line of a step: how much the person has now.
  std::string has_line(bool less) {
    if (less)
      return fill(rng_.one_of({"{1} has {0} {2}.", "Now {1} has {0} {2}.", "So {0} {2} are left.",
                               "{1} is left with {0} {2}.", "That leaves {0} {2}.",
                               "{1} then has {0} {2}."}),
                  {"{0}", name_, things_});
    return fill(
        rng_.one_of({"{1} has {0} {2}.", "Now {1} has {0} {2}.", "That makes {0} {2}.",
                     "{1} then has {0} {2}.", "So there are {0} {2}.", "This gives {1} {0} {2}."}),
        {"{0}", name_, things_});
  }

  bool push(std::string_view sentence_text,
            Calculation last,
            std::string line,
            std::string after,
            char turned) {
    if (!fits(last.result)) return false;
    const std::string sentence = capitalised(sentence_text);
    ArithStep step;
    step.sentence = sentence;
    step.calculations = {last};
    step.patterns = {std::move(line)};
    step.after = std::move(after);
    step.subject = name_;
    step.turned_op = turned;
    value_ = last.result;
    p_.key += "|" + last.expression;
    add_text(sentence);
    p_.steps.push_back(std::move(step));
    last_was_loss_ = false;
    return true;
  }

  void push_front(Calculation first, std::string line) {
    ArithStep& step = p_.steps.back();
    step.calculations.insert(step.calculations.begin(), std::move(first));
    step.patterns.insert(step.patterns.begin(), std::move(line));
  }

  bool gain() {
    const int room = max_value(level_) - value_;
    if (room < 2) return false;
    const int b = rng_.between(2, std::min(room, level_ == 1 ? 50 : 200));
    return push(fill(rng_.one_of({"{0} buys {1} more {2}.", "{0} finds {1} more {2}.",
                                  "{0} gets {1} {2} from a friend.", "{0} is given {1} more {2}.",
                                  "Then {0} picks up {1} more {2}."}),
                     {name_, std::to_string(b), things_}),
                {std::to_string(value_) + "+" + std::to_string(b), value_ + b}, has_line(false),
                "after getting " + std::to_string(b) + " more", '-');
  }

  bool loss() {
    if (value_ < 4) return false;
    const int b = rng_.between(2, value_ - 1);
    if (!push(fill(rng_.one_of({"{0} gives away {1} {2}.", "{0} sells {1} of them.",
                                "{0} loses {1} {2}.", "Then {0} uses {1} of the {2}."}),
                   {name_, std::to_string(b), things_}),
              {std::to_string(value_) + "-" + std::to_string(b), value_ - b}, has_line(true),
              "when " + std::to_string(b) + " are gone", '+'))
      return false;
    last_was_loss_ = true;
    return true;
  }

  bool scale() {
    const int m = rng_.between(2, 5);
    return push(fill(rng_.one_of({"The next day {0} has {1} times as many.",
                                  "A week later {0} has {1} times as many {2}.",
                                  "By the end of the month {0} has {1} times as many.",
                                  "Then {0}'s number of {2} becomes {1} times as large."}),
                     {name_, std::to_string(m), things_}),
                {std::to_string(value_) + "*" + std::to_string(m), value_ * m}, has_line(false),
                "when there are " + std::to_string(m) + " times as many", '/');
  }

  bool split() {
    const int d = rng_.between(2, 5);
    if (value_ % d != 0) return false;
    return push(
        fill(rng_.one_of({"{0} puts them into {1} equal boxes and keeps one box.",
                          "{0} splits the {2} into {1} equal piles and keeps one pile.",
                          "{0} divides them into {1} equal bags and keeps only one bag.",
                          "The {2} are shared equally by {1} children, and {0} is one of them."}),
             {name_, std::to_string(d), things_}),
        {std::to_string(value_) + "/" + std::to_string(d), value_ / d}, has_line(true),
        "with one of " + std::to_string(d) + " equal parts", '*');
  }

  bool fraction() {
    const int d = rng_.between(2, 4);
    if (value_ % d != 0 || value_ / d < 1) return false;
    const std::string part = d == 2 ? "half" : d == 3 ? "a third" : "a quarter";
    const int before = value_;
    if (!push(fill(rng_.one_of({"{0} gives {1} of them to {2}.", "{0} hands {1} of the {3} to {2}.",
                                "{2} takes {1} of {0}'s {3}.", "{0} sends {1} of the {3} to {2}."}),
                   {name_, part, other_, things_}),
              {std::to_string(before) + "-" + std::to_string(before / d), before - before / d},
              has_line(true), "without the part that goes to " + other_, '+'))
      return false;
    push_front({std::to_string(before) + "/" + std::to_string(d), before / d},
               fill(rng_.one_of({"{1} gets {0} {2}.", "{3} of them is {0} {2}.",
                                 "The part for {1} is {0} {2}.", "So {1} receives {0} {2}."}),
                    {"{0}", other_, things_, capitalised(part)}));
    last_was_loss_ = true;
    p_.key += "f";
    return true;
  }

  bool compare() {
    const bool more = rng_.chance(50);
    if (!more && value_ < 4) return false;
    const int b = more ? rng_.between(2, level_ == 1 ? 30 : 100) : rng_.between(2, value_ - 1);
    const int before = value_;
    std::swap(name_, other_);
    const bool done =
        push(fill(rng_.one_of({"{0} has {1} {2} {3} than {4}.", "{0} owns {1} {2} {3} than {4}.",
                               "{0} counts {1} {2} {3} than {4}.",
                               "{0}, a friend, has {1} {2} {3} than {4}."}),
                  {name_, std::to_string(b), more ? "more" : "fewer", things_, other_}),
             {std::to_string(before) + (more ? "+" : "-") + std::to_string(b),
              more ? before + b : before - b},
             fill(rng_.one_of({"{1} has {0} {2}.", "So {1} has {0} {2}.", "{1} owns {0} {2}.",
                               "For {1} that is {0} {2}."}),
                  {"{0}", name_, things_}),
             "with " + std::to_string(b) + (more ? " more than " : " fewer than ") + other_,
             more ? '-' : '+');
    if (!done) return false;
    p_.key += "c";
    return true;
  }

  bool price() {
    const int p = rng_.between(2, 9);
    if (!push(fill(rng_.one_of({"Each {0} costs {1} dollars.", "One {0} costs {1} dollars.",
                                "The price of one {0} is {1} dollars.",
                                "A shop sells each {0} for {1} dollars."}),
                   {thing_, std::to_string(p)}),
              {std::to_string(value_) + "*" + std::to_string(p), value_ * p},
              fill(rng_.one_of({"They cost {0} dollars.", "All the {1} cost {0} dollars.",
                                "The price is {0} dollars.", "Together that is {0} dollars."}),
                   {"{0}", things_}),
              "at " + std::to_string(p) + " dollars each", '/'))
      return false;
    question_ =
        fill(rng_.one_of(
                 {"How much do all of {0}'s {1} cost?", "How many dollars do the {1} of {0} cost?",
                  "What do {0}'s {1} cost together?", "How much are all the {1} of {0} worth?"}),
             {name_, things_});
    p_.key += "p";
    return true;
  }

  bool percent() {
    static constexpr int kPercents[] = {10, 20, 25, 50, 75};
    const int q = rng_.pick(kPercents);
    if (value_ * q % 100 != 0) return false;
    const std::string colour(rng_.pick(kColours));
    if (!push(fill(rng_.one_of({"{0} % of the {1} are {2}.", "Of these {1}, {0} % are {2}.",
                                "Exactly {0} % of {3}'s {1} are {2}.",
                                "{2} is the colour of {0} % of the {1}."}),
                   {std::to_string(q), things_, colour, name_}),
              {std::to_string(value_) + "*" + std::to_string(q) + "/100", value_ * q / 100},
              fill(rng_.one_of({"So {0} {1} are {2}.", "{0} of them are {2}.",
                                "That is {0} {2} {1}.", "The number of {2} {1} is {0}."}),
                   {"{0}", things_, colour}),
              "counting only the " + colour + " ones", '+'))
      return false;
    question_ = fill(rng_.one_of({"How many of {0}'s {1} are {2}?", "How many {2} {1} are there?",
                                  "How many {1} are {2}?", "What is the number of {2} {1}?"}),
                     {name_, things_, colour});
    return true;
  }

  bool rate() {
    const int r = rng_.between(2, 20);
    const int t = rng_.between(2, 9);
    const std::string unit(rng_.chance(50) ? "hour" : "day");
    const int before = value_;
    if (!push(fill(rng_.one_of({"Then {0} collects {1} {2} per {3} for {4} {3}s.",
                                "For {4} {3}s {0} gets {1} {2} each {3}.",
                                "{0} then adds {1} {2} every {3} for {4} {3}s.",
                                "During the next {4} {3}s {0} makes {1} {2} per {3}."}),
                   {name_, std::to_string(r), things_, unit, std::to_string(t)}),
              {std::to_string(before) + "+" + std::to_string(r * t), before + r * t},
              has_line(false), "after the " + std::to_string(t) + " " + unit + "s", '-'))
      return false;
    push_front({std::to_string(r) + "*" + std::to_string(t), r * t},
               fill(rng_.one_of({"In {1} {2}s that is {0} {3}.", "{4} adds {0} {3} in {1} {2}s.",
                                 "The {2}s bring {0} {3}.", "Over {1} {2}s this makes {0} {3}."}),
                    {"{0}", std::to_string(t), unit, things_, name_}));
    p_.key += "r" + std::to_string(r) + "*" + std::to_string(t);
    return true;
  }

  // The sum for two people: a step that compares them, and the final sum, which only the question states.
  bool together() {
    const int before = value_;
    if (!compare()) return false;
    const int sum = before + value_;
    if (!fits(sum)) return false;
    ArithStep step;
    step.calculations = {{std::to_string(before) + "+" + std::to_string(value_), sum}};
    step.patterns = {fill(rng_.one_of({"Together they have {0} {1}.", "Both together have {0} {1}.",
                                       "In all they have {0} {1}.", "That is {0} {1} for both."}),
                          {"{0}", things_})};
    step.after = "when both are counted";
    step.subject = name_;
    step.turned_op = '-';
    p_.steps.push_back(std::move(step));
    question_ = fill(rng_.one_of({"How many {0} do they have together?",
                                  "How many {0} do {1} and {2} have together?",
                                  "How many {0} do {2} and {1} have in all?",
                                  "What is the number of {0} that both have together?"}),
                     {things_, name_, other_});
    value_ = sum;
    p_.key += "t";
    return true;
  }

  Random& rng_;
  int level_;
  ArithProblem& p_;
  std::string name_, other_, thing_, things_, question_;
  int value_ = 0;
  bool last_was_loss_ = false;
};

}  // namespace

bool draw_arith_problem(Random& rng, int level, ArithProblem& problem) {
  problem = {};
  Builder builder(rng, level, problem);
  const int n_steps = level == 1   ? rng.between(1, 2)
                      : level == 2 ? rng.between(2, 4)
                                   : rng.between(3, 6);
  const int distractor_at = level == 3 && rng.chance(20) ? rng.below(n_steps) : -1;
  for (int i = 0; i < n_steps; i++) {
    if (i == distractor_at) builder.add_distractor();
    const std::size_t n_before = problem.steps.size();
    for (int tries = 0; tries < 8 && problem.steps.size() == n_before; tries++)
      if (!builder.add_step(i + 1 == n_steps, n_steps - i) && problem.steps.size() != n_before)
        return false;  // together() added only its first step
    if (problem.steps.size() == n_before) return false;
  }
  builder.finish();
  return true;
}

std::string calculation_mark(const Calculation& calculation) {
  const std::string result = std::to_string(calculation.result);
  return calculation.expression + "=<<" + calculation.expression + "=" + result + ">>" + result;
}

std::string step_lines(const ArithStep& step, std::string_view separator) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < step.calculations.size(); i++)
    lines.push_back(fill(step.patterns[i], {calculation_mark(step.calculations[i])}));
  return joined(lines, separator);
}

std::string arith_rationale(const ArithProblem& problem, std::string_view separator) {
  std::vector<std::string> lines;
  if (!problem.opening.empty()) lines.push_back(problem.opening);
  for (const auto& step : problem.steps) lines.push_back(step_lines(step, separator));
  return joined(lines, separator);
}

}  // namespace engine
