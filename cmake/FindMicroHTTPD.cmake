# Finds libmicrohttpd: the target MicroHTTPD::MicroHTTPD.
find_path(MicroHTTPD_INCLUDE_DIR microhttpd.h)
find_library(MicroHTTPD_LIBRARY microhttpd)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MicroHTTPD DEFAULT_MSG MicroHTTPD_LIBRARY MicroHTTPD_INCLUDE_DIR)
if(MicroHTTPD_FOUND AND NOT TARGET MicroHTTPD::MicroHTTPD)
  add_library(MicroHTTPD::MicroHTTPD UNKNOWN IMPORTED)
  set_target_properties(MicroHTTPD::MicroHTTPD PROPERTIES IMPORTED_LOCATION "${MicroHTTPD_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${MicroHTTPD_INCLUDE_DIR}")
endif()
