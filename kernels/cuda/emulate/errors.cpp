// What the runtime's errors are called, and what they say.
#include "kernels/cuda/emulate/emulation.h"

namespace kernels::emulation {

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDeviceFunction:
      return "cudaErrorInvalidDeviceFunction";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorLaunchTimeout:
      return "cudaErrorLaunchTimeout";
    case cudaErrorMisalignedAddress:
      return "cudaErrorMisalignedAddress";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorUnknown:
      break;
  }
  return "cudaErrorUnknown";
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "a grid, block or shared memory no device takes";
    case cudaErrorInvalidDeviceFunction:
      return "no kernel of this program";
    case cudaErrorNoDevice:
      return "no device";
    case cudaErrorInvalidDevice:
      return "no such device";
    case cudaErrorNotReady:
      return "the work goes on";
    case cudaErrorIllegalAddress:
      return "an illegal address was touched";
    case cudaErrorLaunchTimeout:
      return "a kernel took longer than the display's driver lets it";
    case cudaErrorMisalignedAddress:
      return "an address was touched that is no multiple of the size";
    case cudaErrorLaunchFailure:
      return "a kernel failed";
    case cudaErrorUnknown:
      break;
  }
  return "unknown error";
}

}  // namespace kernels::emulation
