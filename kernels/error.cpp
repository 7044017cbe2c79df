#include "kernels/error.h"

namespace kernels {

void throw_contract_error(const char* why) {
  throw ContractError(why);
}

}  // namespace kernels
