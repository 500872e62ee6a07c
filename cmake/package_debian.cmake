# Read by cpack once per kind of package. Debian's zsh looks for the completions of packages here,
# and in site-functions only for those below /usr/local.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_INSTALLED_DIRECTORIES "${CPACK_OCTET_PAGES}" /usr/share/zsh/vendor-completions)
endif()
