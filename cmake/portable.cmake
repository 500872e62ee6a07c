# A wheel runs on machines other than the one that built it: with OCTET_PORTABLE the extension needs
# nothing but glibc 2.28 and what belongs to it. zlib, utf8proc, fmt and the C++ runtime are built
# in. libcurl, OpenSSL, SQLite, libjpeg and libwebp are left out: `octet pull` and `octet audit` are
# not in the Python package, which writes pictures by Pillow. What has no static library here is
# linked as it is, and a line says so.

# octet_static_library(<variable> <name>): sets the cache variable to lib<name>.a.
function(octet_static_library variable name)
  if(NOT ${variable} MATCHES "\\.a$")
    unset(${variable} CACHE)
    find_library(${variable} NAMES lib${name}.a)
  endif()
  if(NOT ${variable})
    message(STATUS "octet: lib${name}.a was not found, so the wheel needs lib${name}.so")
    unset(${variable} CACHE)
  endif()
endfunction()
octet_static_library(ZLIB_LIBRARY z)
octet_static_library(utf8proc_LIBRARY utf8proc)

# Debian has fmt as a shared library and as headers, which hold its source, too.
find_package(fmt REQUIRED)
add_library(octet_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/portable/fmt.cpp)
target_include_directories(octet_fmt PUBLIC
  $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
set_target_properties(octet_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)

# octet_make_portable(<target>): links a shared library so that it needs only glibc 2.28.
function(octet_make_portable target)
  # Every Linux has libgcc, and its own finds exceptions in the way of its own glibc.
  target_link_options(${target} PRIVATE -static-libstdc++)
  set(source ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable/old_glibc.cpp)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
    return()
  endif()
  file(STRINGS ${source} names REGEX "^(FORWARD|// WRAP)\\(")
  list(TRANSFORM names REPLACE ".*\\((.*)\\)" "LINKER:--wrap=\\1")
  add_library(octet_old_glibc OBJECT ${source})
  set_target_properties(octet_old_glibc PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:octet_old_glibc>)
  target_link_options(${target} PRIVATE ${names})
  # Before 2.34 threads, dlopen() and shm_open() were in libraries of their own, which have to be
  # named.
  target_link_options(${target} PRIVATE LINKER:--gc-sections LINKER:--no-as-needed
    -l:libpthread.so.0 -l:libdl.so.2 -l:librt.so.1 LINKER:--as-needed)
endfunction()
