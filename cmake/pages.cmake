# Writes the man page and the shell completions, as PROGRAM prints them, into FOLDER.
file(MAKE_DIRECTORY ${FOLDER})
function(write_page file)
  execute_process(COMMAND ${PROGRAM} ${ARGN} OUTPUT_FILE ${FOLDER}/${file}
    COMMAND_ERROR_IS_FATAL ANY)
endfunction()
write_page(octet.1 man)
write_page(octet completion bash)
write_page(_octet completion zsh)
write_page(octet.fish completion fish)
