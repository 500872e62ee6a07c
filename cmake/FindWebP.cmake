# Finds libwebp: the target WebP::webp. Installed beside octetConfig.cmake, because CMake has no
# such module and Debian's package brings no configuration of its own.
find_path(WebP_INCLUDE_DIR webp/encode.h)
find_library(WebP_LIBRARY webp)
mark_as_advanced(WebP_INCLUDE_DIR WebP_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(WebP REQUIRED_VARS WebP_LIBRARY WebP_INCLUDE_DIR)
if(WebP_FOUND AND NOT TARGET WebP::webp)
  add_library(WebP::webp UNKNOWN IMPORTED)
  set_target_properties(WebP::webp PROPERTIES IMPORTED_LOCATION "${WebP_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${WebP_INCLUDE_DIR}")
endif()
