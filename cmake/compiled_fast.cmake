# compiled_fast(<target> <sources>): with -O1 in a release. For what does not run often enough to be felt and is much to
# compile: its objects take two thirds of the time.
function(compiled_fast target)
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:RelWithDebInfo>:-O1>)
endfunction()
