#include "app/commands.h"
#include "app/terminal.h"
#include "engine/event/trace_tool.h"
#include "kernels/error.h"

namespace app {

int trace(const TraceOptions& options) {
  engine::TraceAnswer answer;
  if (options.what == "info") {
    answer = engine::trace_info(options.path);
  } else if (options.what == "validate") {
    answer = engine::trace_validate(options.path);
  } else {
    engine::ConvertOptions convert;
    convert.trace.prompt_text = options.with_prompt;
    answer = engine::trace_convert(options.path, options.out, convert);
  }
  print(options.json ? answer.json : for_terminal(answer.text));
  return answer.ok ? 0 : static_cast<int>(kernels::ErrorCode::BadInput);
}

}  // namespace app
