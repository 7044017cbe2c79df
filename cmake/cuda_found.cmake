# What of CUDA is on this machine, as far as the kernels can use it.
set(OLDEST_CUDA_ARCH 80) # tensor cores take bf16, and there are asynchronous copies, from compute capability 8.0 on
set(OLDEST_NVCC 12)      # speaks C++20

find_program(NVCC nvcc PATHS /usr/local/cuda/bin)

# ON where the nvcc that was found can compile the kernels; else OFF, and a message says why.
function(nvcc_serves result)
  set(${result} OFF PARENT_SCOPE)
  if(NOT NVCC)
    return()
  endif()
  execute_process(COMMAND ${NVCC} --version OUTPUT_VARIABLE told ERROR_QUIET)
  if(NOT told MATCHES "release ([0-9]+\\.[0-9]+)")
    message(STATUS "CUDA kernels: left out; ${NVCC} does not say which CUDA it is of")
  elseif(CMAKE_MATCH_1 VERSION_LESS ${OLDEST_NVCC})
    message(STATUS "CUDA kernels: left out; ${NVCC} is of CUDA ${CMAKE_MATCH_1}, and they need ${OLDEST_NVCC} at least")
  else()
    set(${result} ON PARENT_SCOPE)
  endif()
endfunction()

# Of the GPUs that are here those that the kernels can run on, "80;90"; 90 where there are none.
function(found_cuda_archs result)
  find_program(NVIDIA_SMI nvidia-smi)
  set(archs "")
  if(NVIDIA_SMI)
    execute_process(COMMAND ${NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE told ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]" capabilities "${told}")
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

# Those of DECOSCOPE_CUDA_ARCHS or, where it names none, of the GPUs that are here.
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
