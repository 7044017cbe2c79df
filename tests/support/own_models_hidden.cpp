// Hides the models of this machine's user from all tests and the programs that they start.
#include <cstdlib>

namespace {

[[gnu::constructor]] void hide_own_models() {
  setenv("DECOSCOPE_MODELS_ONLY", "1", 1);
  unsetenv("DECOSCOPE_MODELS");
}

}  // namespace
