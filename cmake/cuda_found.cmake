# Finds nvcc and the GPUs of this machine.
set(OLDEST_CUDA_ARCH 80) # tensor cores take bf16, and there are asynchronous copies, from compute capability 8.0 on
set(OLDEST_NVCC 12)      # supports C++20

find_program(NVCC nvcc PATHS /usr/local/cuda/bin)

# Sets the result to ON if the nvcc that was found can compile the kernels; else to OFF, with a message that says why.
function(nvcc_serves result)
  set(${result} OFF PARENT_SCOPE)
  if(NOT NVCC)
    return()
  endif()
  execute_process(COMMAND ${NVCC} --version OUTPUT_VARIABLE output ERROR_QUIET)
  if(NOT output MATCHES "release ([0-9]+\\.[0-9]+)")
    message(STATUS "CUDA kernels: left out; the version of ${NVCC} is unknown")
  elseif(CMAKE_MATCH_1 VERSION_LESS ${OLDEST_NVCC})
    message(STATUS "CUDA kernels: left out; ${NVCC} belongs to CUDA ${CMAKE_MATCH_1}, and they need ${OLDEST_NVCC} or later")
  else()
    set(${result} ON PARENT_SCOPE)
  endif()
endfunction()

# Sets the result to the architectures of this machine's GPUs that can run the kernels, "80;90"; to 90 if there are none.
function(found_cuda_archs result)
  find_program(NVIDIA_SMI nvidia-smi)
  set(archs "")
  if(NVIDIA_SMI)
    execute_process(COMMAND ${NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE output ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]" capabilities "${output}")
    list(REMOVE_DUPLICATES capabilities)
    foreach(capability ${capabilities})
      string(REPLACE "." "" arch ${capability})
      if(arch LESS ${OLDEST_CUDA_ARCH})
        message(STATUS "CUDA kernels: none for the GPU of compute capability ${capability}; they need 8.0 at least")
      else()
        list(APPEND archs ${arch})
      endif()
    endforeach()
    list(SORT archs COMPARE NATURAL)
  endif()
  if(NOT archs)
    set(archs 90)
  endif()
  set(${result} ${archs} PARENT_SCOPE)
endfunction()

# The architectures of DECOSCOPE_CUDA_ARCHS; if it is empty, those of this machine's GPUs.
function(wanted_cuda_archs result)
  if(NOT DECOSCOPE_CUDA_ARCHS)
    found_cuda_archs(archs)
    set(${result} ${archs} PARENT_SCOPE)
    return()
  endif()
  foreach(arch ${DECOSCOPE_CUDA_ARCHS})
    if(NOT arch MATCHES "^[0-9]+$" OR arch LESS ${OLDEST_CUDA_ARCH})
      message(FATAL_ERROR "DECOSCOPE_CUDA_ARCHS: found ${arch}, expected ${OLDEST_CUDA_ARCH} or more: "
                          "the kernels need compute capability 8.0")
    endif()
  endforeach()
  set(${result} ${DECOSCOPE_CUDA_ARCHS} PARENT_SCOPE)
endfunction()
