#include "engine/event/recording/training_report.h"

#include <nlohmann/json.hpp>

#include "engine/base/byte_source.h"
#include "engine/base/types.h"

namespace engine {
namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t kMaxLogBytes = std::uint64_t{1} << 30;

ordered_json object_of(const NamedFigures& figures) {
  auto object = ordered_json::object();
  for (const auto& [name, value] : figures) object[name] = value;
  return object;
}

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Error(ErrorCode::BadInput, where + ": " + what);
}

double number(const ordered_json& value, const std::string& where, const std::string& field) {
  if (value.is_null()) return 0;
  if (!value.is_number())
    refuse(where, field + ": found " + value.type_name() + ", expected a number");
  return value.get<double>();
}

class ReportFields {
 public:
  ReportFields(const ordered_json& object, const std::string& where)
      : object_(object), where_(where) {}

  void read(const char* field, double& to) const {
    if (const auto found = object_.find(field); found != object_.end())
      to = number(*found, where_, field);
  }
  void read(const char* field, std::int64_t& to) const {
    const auto found = object_.find(field);
    if (found == object_.end() || !found->is_number_integer())
      refuse(where_, std::string(field) + ": expected a whole number");
    to = found->get<std::int64_t>();
  }
  void read(const char* field, NamedFigures& to) const {
    const auto found = object_.find(field);
    if (found == object_.end()) return;
    if (!found->is_object()) {
      refuse(where_, std::string(field) + ": found " + found->type_name() +
                         ", expected an object of numbers");
    }
    for (const auto& [name, value] : found->items())
      to.emplace_back(name, number(value, where_, std::string(field) + "." + name));
  }

 private:
  const ordered_json& object_;
  const std::string& where_;
};

std::string contents(const std::string& path) {
  const auto file = open_file(path);
  if (file->size() > kMaxLogBytes) refuse(path, "found more than 1 GiB, expected a training log");
  std::string text(static_cast<std::size_t>(file->size()), '\0');
  std::size_t n = 0;
  while (n < text.size()) {
    const std::size_t more = file->read_at(n, std::span(text).subspan(n));
    if (more == 0) break;  // another process truncated it
    n += more;
  }
  text.resize(n);
  return text;
}

}  // namespace

std::string to_json_line(const TrainingReport& r) {
  const ordered_json line = {{"step", r.step},
                             {"tokens", r.tokens},
                             {"seconds", r.seconds},
                             {"seconds_left", r.seconds_left},
                             {"tokens_per_second", r.tokens_per_second},
                             {"lr", r.lr},
                             {"gradient_norm", r.gradient_norm},
                             {"loss", r.loss},
                             {"losses", object_of(r.losses)},
                             {"probes", object_of(r.probes)}};
  return line.dump();
}

TrainingReport training_report_from(std::string_view line, const std::string& where) {
  const ordered_json object = ordered_json::parse(line, nullptr, false);
  if (!object.is_object()) refuse(where, "found no JSON object, expected a report of a training");
  const ReportFields fields(object, where);
  TrainingReport r;
  fields.read("step", r.step);
  fields.read("tokens", r.tokens);
  fields.read("seconds", r.seconds);
  fields.read("seconds_left", r.seconds_left);
  fields.read("tokens_per_second", r.tokens_per_second);
  fields.read("lr", r.lr);
  fields.read("gradient_norm", r.gradient_norm);
  fields.read("loss", r.loss);
  fields.read("losses", r.losses);
  fields.read("probes", r.probes);
  return r;
}

std::vector<TrainingReport> read_training_reports(const std::string& path) {
  const std::string text = contents(path);
  std::vector<TrainingReport> reports;
  std::size_t begin = 0;
  for (int n = 1;; n++) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) return reports;
    const auto line = std::string_view(text).substr(begin, end - begin);
    if (!line.empty())
      reports.push_back(training_report_from(line, path + ":" + std::to_string(n)));
    begin = end + 1;
  }
}

}  // namespace engine
