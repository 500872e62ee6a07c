# embed_text(<file> <variable>): a data file as a header, so that programs need no file beside them.
#
#   embed_text(src/audit/kernel_names.json kKernelNamesText)
#
# writes generated/kernel_names_text.h with octet::kKernelNamesText, a std::string_view; left alone
# when nothing changed. The folder `generated` has to be among the includes of who asks for it.
function(embed_text file variable)
  set(path ${PROJECT_SOURCE_DIR}/${file})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} content)
  # ASCII alone: pieces are cut at any byte, and no compiler may reinterpret one.
  if(content MATCHES "[^ -~\n]")
    message(FATAL_ERROR "octet: ${file} has characters beyond ASCII; write them as \\u escapes")
  endif()
  string(LENGTH "${content}" bytes)
  set(literal)
  # Some compilers take no literal of more than 16 KB.
  foreach(start RANGE 0 ${bytes} 8000)
    string(SUBSTRING "${content}" ${start} 8000 piece)
    string(APPEND literal "    R\"text(${piece})text\"\n")
  endforeach()
  get_filename_component(name ${file} NAME_WE)
  # With its length, which compilers would count, and not beyond 256 KB.
  string(CONCAT text "#pragma once\n#include <string_view>\nnamespace octet {\n"
    "inline constexpr std::string_view ${variable}(\n${literal}    , ${bytes});\n"
    "}  // namespace octet\n")
  set(header ${PROJECT_BINARY_DIR}/generated/${name}_text.h)
  set(before)
  if(EXISTS ${header})
    file(READ ${header} before)
  endif()
  if(NOT "${before}" STREQUAL "${text}")
    file(WRITE ${header} "${text}")
  endif()
endfunction()
