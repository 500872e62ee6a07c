# utf8proc, whose Unicode tables the tokenizer reads, when it is there. Without it everything else
# is built all the same, and loading a tokenizer says what is missing.
list(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/cmake)
find_package(utf8proc QUIET)
if(TARGET utf8proc::utf8proc)
  target_link_libraries(octet_core PRIVATE utf8proc::utf8proc)
  target_link_libraries(octet_calling PRIVATE utf8proc::utf8proc)
  target_compile_definitions(octet_calling PRIVATE OCTET_HAS_UTF8PROC=1)
else()
  message(STATUS "octet: without utf8proc, hence without a tokenizer")
endif()
