# Writes OUTPUT with the short commit of SOURCE ("unknown" outside of a git checkout, "+changes"
# when the tree differs from it), and leaves the file alone when nothing changed.
execute_process(COMMAND git -C ${SOURCE} describe --always --exclude=* --dirty=+changes
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR commit STREQUAL "")
  set(commit unknown)
endif()
set(text "#define OCTET_COMMIT \"${commit}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT "${before}" STREQUAL "${text}")
  file(WRITE ${OUTPUT} "${text}")
endif()
