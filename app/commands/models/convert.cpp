#include "app/commands/models/convert.h"

#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/cli/terminal.h"
#include "app/commands/named_model.h"
#include "engine/base/output_file.h"
#include "engine/base/text.h"
#include "engine/checkpoint/gguf/convert.h"
#include "engine/checkpoint/gguf/ggml_blocks.h"
#include "engine/checkpoint/model_files.h"
#include "engine/train/run/output_folder.h"

namespace app {
namespace {

using engine::Error;
using engine::ErrorCode;

std::string known_types() {
  std::vector<std::string> names;
  for (const engine::GgmlType type : engine::writable_ggml_types())
    names.emplace_back(engine::name_of(type));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::optional<engine::GgmlType> type_named(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const auto type = engine::writable_ggml_type(name);
  if (!type)
    throw Error(ErrorCode::Usage,
                fmt::format("--type {}: expected one of {}", engine::escaped(name), known_types()));
  return type;
}

std::optional<kernels::DType> dtype_of(std::optional<engine::GgmlType> type) {
  if (!type) return std::nullopt;
  switch (*type) {
    case engine::GgmlType::F32:
      return kernels::DType::F32;
    case engine::GgmlType::F16:
      return kernels::DType::F16;
    case engine::GgmlType::BF16:
      return kernels::DType::BF16;
    default:
      throw Error(ErrorCode::Usage,
                  fmt::format("--type {}: expected F32, F16 or BF16 for a directory; a name that "
                              "ends in .gguf makes a GGUF file",
                              engine::name_of(*type)));
  }
}

engine::WriteProgress progress_on(ProgressLine& line) {
  return [&line](std::int64_t done, std::int64_t total) {
    constexpr std::int64_t kMegabyte = 1'000'000;
    line.show(done / kMegabyte, total / kMegabyte, "MB");
    return !interrupted();
  };
}

void write_file(const engine::ModelFiles& files,
                const std::string& out,
                std::optional<engine::GgmlType> type,
                std::vector<std::string>& notices) {
  engine::refuse_inputs_as_output_file(out, {{.what = "the model", .path = files.path}});
  std::error_code error;
  if (std::filesystem::exists(out, error))
    throw Error(ErrorCode::Usage,
                engine::escaped(out) + ": exists; choose another file, or remove it first");
  engine::check_can_be_written(out);
  const engine::OutputLock lock = engine::OutputLock::beside(out);
  ProgressLine line("convert");
  engine::write_gguf(files, out, type, progress_on(line), notices);
}

void write_folder(const engine::ModelFiles& files,
                  const std::string& out,
                  std::optional<engine::GgmlType> type,
                  std::vector<std::string>& notices) {
  const std::optional<kernels::DType> dtype = dtype_of(type);
  const engine::OutputFolder folder(out, engine::Existing::Nothing,
                                    {{.what = "the model", .path = files.path}});
  ProgressLine line("convert");
  try {
    engine::write_directory(files, out, dtype, progress_on(line), notices);
  } catch (const Error&) {
    folder.remove_written_files();
    throw;
  }
}

}  // namespace

void convert_model(const ModelCommandOptions& options) {
  const std::optional<engine::GgmlType> type = type_named(options.type);
  const engine::ModelFiles files = engine::open_model(
      model_folder(options.path), {.allow_external_shards = options.allow_external_shards,
                                   .needs_tokenizer = false,
                                   .limits = options.limits});
  std::vector<std::string> notices;
  if (options.out.ends_with(".gguf"))
    write_file(files, options.out, type, notices);
  else
    write_folder(files, options.out, type, notices);
  for (const std::string& notice : notices) print_error("note: " + notice);
}

}  // namespace app
