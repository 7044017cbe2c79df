# compiled_by_nvcc(<target> <source> <all files it is made of>): one object for the GPUs of DECOSCOPE_CUDA_ARCHS, PTX of the
# last for those to come, and the runtime linked statically, so that the program starts where there is no driver.
# Sets BUILT_ARCHS, "80,90".
# CMake's own CUDA support is not used: CMake 3.25 does not know that nvcc 13 supports C++20, and its check of nvcc doubles the
# configure time.
set(DECOSCOPE_CUDA_ARCHS "" CACHE STRING "Compute capabilities from 80 on, 80;90; empty: of the GPU that is found, else 90")
option(DECOSCOPE_SHARED_CUDART "Link CUDA's runtime as a shared library, so that another library can intercept its calls (scripts/gpu_check.sh)" OFF)

function(compiled_by_nvcc target source)
  wanted_cuda_archs(archs)
  set(code "")
  foreach(arch ${archs})
    # Hopper's products of a group of warps (kernels/cuda/row_tiles.cuh) are in code for it alone, never in PTX.
    string(REGEX REPLACE "^90$" "90a" of_arch ${arch})
    list(APPEND code -gencode arch=compute_${of_arch},code=sm_${of_arch})
  endforeach()
  list(GET archs -1 last)
  list(APPEND code -gencode arch=compute_${last},code=compute_${last})
  list(JOIN archs ", sm_" names)
  list(JOIN archs "," built)
  set(BUILT_ARCHS ${built} PARENT_SCOPE)
  message(STATUS "CUDA kernels: ${NVCC} for sm_${names} and PTX")

  set(object ${CMAKE_CURRENT_BINARY_DIR}/${source}.o)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
  # Checks before every launch, which find faults of this program, are for the emulation and debug builds only.
  set(ndebug -DNDEBUG)
  if(CMAKE_BUILD_TYPE STREQUAL Debug)
    set(ndebug "")
  endif()
  # No fused multiply-add unless the source says fmaf: the emulation then computes the same.
  add_custom_command(OUTPUT ${object}
    COMMAND ${NVCC} -std=c++20 -O3 -fmad=false --threads 2 ${ndebug} ${code} -I${PROJECT_SOURCE_DIR} -Xcompiler -Wall,-Wextra,-fPIE
            -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
    DEPENDS ${files} VERBATIM COMMENT "Building ${source} with nvcc")
  # The rule belongs to this folder and the target to another.
  add_custom_target(${target}_nvcc DEPENDS ${object})
  add_dependencies(${target} ${target}_nvcc)
  target_sources(${target} PRIVATE ${object})
  set_source_files_properties(${object} TARGET_DIRECTORY ${target} PROPERTIES GENERATED ON EXTERNAL_OBJECT ON)
  get_filename_component(toolkit ${NVCC} DIRECTORY)
  set(places HINTS ${toolkit}/../lib64 ${toolkit}/../targets/x86_64-linux/lib)
  if(DECOSCOPE_SHARED_CUDART)
    find_library(CUDART_SHARED cudart ${places} REQUIRED)
    target_link_libraries(${target} PUBLIC ${CUDART_SHARED})
  else()
    find_library(CUDART_STATIC cudart_static ${places} REQUIRED)
    target_link_libraries(${target} PUBLIC ${CUDART_STATIC} ${CMAKE_DL_LIBS} rt Threads::Threads)
  endif()
endfunction()
