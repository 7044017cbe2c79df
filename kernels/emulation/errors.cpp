// What the runtime's errors are called, and what they say.
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
      return "a grid, block or shared memory no device takes";
    case cudaErrorDevicesUnavailable:
      return "the device is in use, or gone";
    case cudaErrorInvalidDeviceFunction:
      return "no kernel of this program";
    case cudaErrorNoDevice:
      return "no device";
    case cudaErrorInvalidDevice:
      return "no such device";
    case cudaErrorECCUncorrectable:
      return "memory of the device lost a bit for good";
    case cudaErrorNotReady:
      return "the work goes on";
    case cudaErrorIllegalAddress:
      return "an illegal address was touched";
    case cudaErrorLaunchTimeout:
      return "a kernel took longer than the display's driver lets it";
    case cudaErrorAssert:
      return "an assertion of a kernel failed";
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
