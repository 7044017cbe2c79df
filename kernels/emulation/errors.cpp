// Names and descriptions of the runtime's errors.
#include "kernels/emulation/emulation.h"

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
    case cudaErrorDevicesUnavailable:
      return "cudaErrorDevicesUnavailable";
    case cudaErrorInvalidDeviceFunction:
      return "cudaErrorInvalidDeviceFunction";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorECCUncorrectable:
      return "cudaErrorECCUncorrectable";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorLaunchTimeout:
      return "cudaErrorLaunchTimeout";
    case cudaErrorAssert:
      return "cudaErrorAssert";
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
      return "invalid grid, block or shared memory size";
    case cudaErrorDevicesUnavailable:
      return "the device is busy or unavailable";
    case cudaErrorInvalidDeviceFunction:
      return "not a kernel of this program";
    case cudaErrorNoDevice:
      return "no device";
    case cudaErrorInvalidDevice:
      return "no such device";
    case cudaErrorECCUncorrectable:
      return "uncorrectable memory error";
    case cudaErrorNotReady:
      return "the work is not finished";
    case cudaErrorIllegalAddress:
      return "illegal address";
    case cudaErrorLaunchTimeout:
      return "a kernel exceeded the time limit of the display driver";
    case cudaErrorAssert:
      return "an assertion of a kernel failed";
    case cudaErrorMisalignedAddress:
      return "misaligned address";
    case cudaErrorLaunchFailure:
      return "a kernel failed";
    case cudaErrorUnknown:
      break;
  }
  return "unknown error";
}

}  // namespace kernels::emulation
