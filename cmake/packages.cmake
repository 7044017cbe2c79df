# The installed files, and the packages that CPack makes of them (scripts/package.sh): a .deb, which takes its libraries from Debian, and a
# .tar.xz, which contains them and runs in any folder.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)  # the packages need the program alone
include(GNUInstallDirs)
set(data_dir ${CMAKE_INSTALL_DATADIR})

# The tar's libraries are beside the program; RPATH, not RUNPATH, because they need each other. Without that folder it has no effect.
set_target_properties(decoscope PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/decoscope")
target_link_options(decoscope PRIVATE -Wl,--disable-new-dtags)
install(TARGETS decoscope RUNTIME_DEPENDENCY_SET libraries RUNTIME COMPONENT program)
# Libraries of the C and C++ runtime, of OpenGL and of X11 belong to the system that runs the program.
install(RUNTIME_DEPENDENCY_SET libraries
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s)\\.so" "^lib(GL|EGL|OpenGL|GLX|GLdispatch|X|xcb|drm|cuda|nvidia)"
  LIBRARY DESTINATION lib/decoscope COMPONENT libraries)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/assets/ DESTINATION ${data_dir}/decoscope COMPONENT program PATTERN desktop EXCLUDE)
set(desktop ${PROJECT_SOURCE_DIR}/assets/desktop)
install(FILES ${desktop}/decoscope.desktop ${desktop}/decoscope-open.desktop DESTINATION ${data_dir}/applications COMPONENT program)
install(FILES ${desktop}/decoscope.svg DESTINATION ${data_dir}/icons/hicolor/scalable/apps COMPONENT program)
install(FILES ${desktop}/decoscope.xml DESTINATION ${data_dir}/mime/packages COMPONENT program)

# Notices: ours, those of the parts inside the program, and in the tar those of its libraries, as Debian states them.
set(notices ${data_dir}/doc/decoscope)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${notices} RENAME copyright COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/docs/dependencies.md DESTINATION ${notices} COMPONENT program)
install(FILES ${DECOSCOPE_LLAMA_DIR}/llama.cpp/LICENSE DESTINATION ${notices}/licences RENAME llama.cpp COMPONENT program)
if(WITH_UI)
  install(FILES ${DECOSCOPE_IMGUI_DIR}/external/imgui/imgui/LICENSE.txt DESTINATION ${notices}/licences RENAME dear-imgui COMPONENT program)
  install(FILES ${implot_src}/LICENSE DESTINATION ${notices}/licences RENAME implot COMPONENT program)
  install(FILES ${ui_fonts_dir}/Roboto/LICENSE.txt DESTINATION ${notices}/licences RENAME roboto COMPONENT program)
endif()
foreach(package nlohmann-json3-dev libcli11-dev libprotozero-dev)  # headers alone
  if(EXISTS /usr/share/doc/${package}/copyright)
    install(FILES /usr/share/doc/${package}/copyright DESTINATION ${notices}/licences RENAME ${package} COMPONENT program)
  endif()
endforeach()
install(CODE [[
  file(GLOB libraries "${CMAKE_INSTALL_PREFIX}/lib/decoscope/*.so*")
  file(MAKE_DIRECTORY "${CMAKE_INSTALL_PREFIX}/share/doc/decoscope/licences")
  foreach(library ${libraries})
    get_filename_component(name ${library} NAME)
    execute_process(COMMAND dpkg-query --search "*/${name}" OUTPUT_VARIABLE found ERROR_QUIET)
    if(found MATCHES "^([^:]+):")
      file(COPY_FILE /usr/share/doc/${CMAKE_MATCH_1}/copyright "${CMAKE_INSTALL_PREFIX}/share/doc/decoscope/licences/${CMAKE_MATCH_1}")
    endif()
  endforeach()
]] COMPONENT libraries)

set(CPACK_PACKAGE_VENDOR "Decoscope")
set(CPACK_PACKAGE_CONTACT "Decoscope <decoscope@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "runs language models with parallel decoders and shows what they do")
set(CPACK_PACKAGE_FILE_NAME decoscope-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package_kinds.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libgl1-mesa-dri, bubblewrap, python3")
include(CPack)
