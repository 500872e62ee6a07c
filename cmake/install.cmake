# What `cmake --install` puts where: the program with its pages, the public headers, the library,
# and what CMake and pkg-config need to find it. Two components: program and development.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
# Tests are not installed, so installing does not wait for them.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)

# --- the library ----------------------------------------------------------------------------------
install(TARGETS ${octet_public} EXPORT octetTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT program
    NAMELINK_COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/octet DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development FILES_MATCHING PATTERN "*.h")

# --- for CMake ------------------------------------------------------------------------------------
# A static library leaves its dependencies to whoever links it; a shared one brings them.
set(octet_find_dependencies "")
if(BUILD_SHARED_LIBS)
  set(octet_kind "a shared")
else()
  set(octet_kind "a static")
  string(APPEND octet_find_dependencies "include(CMakeFindDependencyMacro)\n"
    "list(APPEND CMAKE_MODULE_PATH \${CMAKE_CURRENT_LIST_DIR})\n")
  foreach(dependency ${octet_dependencies})
    if(dependency MATCHES "^(.+)::")
      string(REGEX REPLACE "^CUDA$" "CUDAToolkit" package ${CMAKE_MATCH_1})
      string(REGEX REPLACE "^SQLite$" "SQLite3" package ${package})
      string(APPEND octet_find_dependencies "find_dependency(${package})\n")
    endif()
  endforeach()
  string(APPEND octet_find_dependencies "list(REMOVE_AT CMAKE_MODULE_PATH -1)")
endif()
set(octet_config ${CMAKE_INSTALL_LIBDIR}/cmake/octet)
configure_package_config_file(cmake/octetConfig.cmake.in ${PROJECT_BINARY_DIR}/octetConfig.cmake
  INSTALL_DESTINATION ${octet_config} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/octetConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/octetConfig.cmake
  ${PROJECT_BINARY_DIR}/octetConfigVersion.cmake ${PROJECT_SOURCE_DIR}/cmake/Findutf8proc.cmake
  ${PROJECT_SOURCE_DIR}/cmake/FindWebP.cmake
  DESTINATION ${octet_config} COMPONENT development)
install(EXPORT octetTargets NAMESPACE octet:: DESTINATION ${octet_config} COMPONENT development)

# --- for pkg-config -------------------------------------------------------------------------------
set(module_of_fmt fmt)
set(module_of_ZLIB zlib)
set(module_of_SQLite sqlite3)
set(module_of_utf8proc libutf8proc)
set(module_of_CURL libcurl)
set(module_of_JPEG libjpeg)
set(module_of_WebP libwebp)
set(module_of_OpenSSL libcrypto)
set(modules "")
set(octet_pc_libs "")
foreach(dependency ${octet_dependencies})
  string(REGEX REPLACE "::.*" "" package ${dependency})
  if(DEFINED module_of_${package})
    list(APPEND modules ${module_of_${package}})
  elseif(dependency STREQUAL "Threads::Threads")
    list(APPEND octet_pc_libs -pthread)
  elseif(dependency STREQUAL "CUDA::cudart_static")
    get_target_property(cudart CUDA::cudart_static IMPORTED_LOCATION)
    list(APPEND octet_pc_libs ${cudart} -lrt)
  else()
    list(APPEND octet_pc_libs -l${dependency})
  endif()
endforeach()
# Named for programs in C: g++ adds them of itself.
list(APPEND octet_pc_libs -lstdc++ -lm)
list(JOIN modules " " modules)
list(JOIN octet_pc_libs " " octet_pc_libs)
# Requires, not Requires.private: those need `pkg-config --static`, which would also ask for static
# libraries of all that libcurl needs, and these are rarely there.
set(octet_pc_requires "Requires: ${modules}")
if(BUILD_SHARED_LIBS)
  set(octet_pc_requires "Requires:")
  set(octet_pc_libs "")
endif()
# From the folder of the file, since `cmake --install --prefix` may choose another prefix.
file(RELATIVE_PATH octet_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" octet_pc_prefix "${octet_pc_prefix}")
configure_file(cmake/octet.pc.in ${PROJECT_BINARY_DIR}/octet.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/octet.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT development)

# --- the demo's model -----------------------------------------------------------------------------
# apps/demo/demo.cpp looks for it there.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/demo DESTINATION ${CMAKE_INSTALL_DATADIR}/octet
  COMPONENT program)

# --- the program ----------------------------------------------------------------------------------
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
if(NOT TARGET octet)
  return()
endif()
file(RELATIVE_PATH to_libraries /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
if(BUILD_SHARED_LIBS)
  set_target_properties(octet PROPERTIES INSTALL_RPATH "$ORIGIN/${to_libraries}")
endif()
install(TARGETS octet RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
# Of packages alone: after `make install` it is copied by hand (docs/deploy.md).
if(TARGET octet_server)
  install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/octet@.service
    DESTINATION lib/systemd/system COMPONENT program EXCLUDE_FROM_ALL)
endif()
# The man page and the completions are what the program prints of itself, so a program that cannot
# run here goes without.
if(NOT CMAKE_CROSSCOMPILING)
  set(pages ${PROJECT_BINARY_DIR}/pages)
  add_custom_command(TARGET octet POST_BUILD COMMENT "Man page and shell completions" VERBATIM
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:octet> -DFOLDER=${pages}
      -P ${PROJECT_SOURCE_DIR}/cmake/pages.cmake)
  install(FILES ${pages}/octet.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
  install(FILES ${pages}/octet DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    COMPONENT program)
  install(FILES ${pages}/_octet DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
    COMPONENT program)
  # Where Debian's zsh looks for those of packages; only packages install by component.
  install(FILES ${pages}/_octet DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
    COMPONENT program EXCLUDE_FROM_ALL)
  install(FILES ${pages}/octet.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
endif()
