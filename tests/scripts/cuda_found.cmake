# Prints the results of cmake/cuda_found.cmake, for cuda_found_test.cpp.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/cuda_found.cmake)
nvcc_serves(serves)
wanted_cuda_archs(archs)
message(STATUS "nvcc ${serves}, archs ${archs}")
