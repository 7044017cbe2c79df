# The one place where warnings are said. Targets of this project link it PRIVATE.
add_library(decoscope_warnings INTERFACE)
target_compile_options(decoscope_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
                                                    -Wno-missing-field-initializers)
target_link_libraries(decoscope_warnings INTERFACE decoscope_sanitizers)
