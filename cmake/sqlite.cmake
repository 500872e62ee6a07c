# zlib, which packs pictures and unpacks traces, and SQLite, which reads those of Nsight
# Systems, when it is there. Without it everything else is built all the same, and such a file is
# refused with a sentence that says so.
find_package(ZLIB REQUIRED)
target_link_libraries(octet_core PRIVATE ZLIB::ZLIB)
if(NOT OCTET_PORTABLE)
  find_package(SQLite3 QUIET)
endif()
if(TARGET SQLite::SQLite3)
  target_link_libraries(octet_core PRIVATE SQLite::SQLite3)
  # The tests write such files where they can be read.
  target_compile_definitions(octet_core PUBLIC $<BUILD_INTERFACE:OCTET_HAS_SQLITE=1>)
else()
  message(STATUS "octet: without SQLite, hence octet audit reads no SQLite files")
endif()
