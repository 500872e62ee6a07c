# utf8proc, whose Unicode tables the tokenizer reads, when it is there. Without it everything else
# is built all the same, and loading a tokenizer says what is missing.
find_path(octet_utf8proc_headers utf8proc.h)
find_library(octet_utf8proc_library utf8proc)
if(octet_utf8proc_headers AND octet_utf8proc_library)
  target_include_directories(octet_core PRIVATE ${octet_utf8proc_headers})
  target_link_libraries(octet_core PRIVATE ${octet_utf8proc_library})
  target_compile_definitions(octet_core PRIVATE OCTET_HAS_UTF8PROC=1)
else()
  message(STATUS "octet: without utf8proc, hence without a tokenizer")
endif()
