# Read by CPack once per kind of package: only the archive brings the libraries.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_COMPONENTS_ALL program)
else()
  set(CPACK_COMPONENTS_ALL program libraries)
endif()
