# GCC throws away what it no longer needs less often: 6 % of the time its compilations take, for memory up to 600 MB each.
# Not under a sanitizer, which needs more memory itself.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT DECOSCOPE_SANITIZERS)
  add_compile_options("SHELL:--param ggc-min-heapsize=600000")
endif()

# compiled_as_one(<target> <group> <sources>): the group's files in one go, because each of them would read the same large
# headers for itself. So names in these files' unnamed namespaces have to differ.
function(compiled_as_one target group)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
endfunction()

# compiled_together(<target> <group> <sources>): likewise, with -Og in a release, for what does not run often enough to be felt and is
# much to compile: its objects take two thirds of the time. (CMake takes no file with options of its own into a group.)
# <target>_needs is the interface library that says what <target>'s sources include and link.
function(compiled_together target group)
  set(together ${target}_${group})
  add_library(${together} OBJECT ${ARGN})
  set_target_properties(${together} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  target_compile_options(${together} PRIVATE $<$<CONFIG:RelWithDebInfo>:-Og>)
  target_link_libraries(${together} PRIVATE ${target}_needs)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${together}>)
endfunction()
