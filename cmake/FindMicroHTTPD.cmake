# Finds libmicrohttpd: the target MicroHTTPD::MicroHTTPD.
find_path(MicroHTTPD_INCLUDE_DIR microhttpd.h)
find_library(MicroHTTPD_LIBRARY microhttpd)
if(MicroHTTPD_INCLUDE_DIR)  # "#define MHD_VERSION 0x00097500" is 0.9.75
  file(STRINGS ${MicroHTTPD_INCLUDE_DIR}/microhttpd.h MicroHTTPD_VERSION
    REGEX "^#define MHD_VERSION 0x")
  string(REGEX REPLACE ".*0x(..)(..)(..).*" "\\1.\\2.\\3" MicroHTTPD_VERSION
    "${MicroHTTPD_VERSION}")
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MicroHTTPD REQUIRED_VARS MicroHTTPD_LIBRARY
  MicroHTTPD_INCLUDE_DIR VERSION_VAR MicroHTTPD_VERSION)
if(MicroHTTPD_FOUND AND NOT TARGET MicroHTTPD::MicroHTTPD)
  add_library(MicroHTTPD::MicroHTTPD UNKNOWN IMPORTED)
  set_target_properties(MicroHTTPD::MicroHTTPD PROPERTIES IMPORTED_LOCATION "${MicroHTTPD_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${MicroHTTPD_INCLUDE_DIR}")
endif()
