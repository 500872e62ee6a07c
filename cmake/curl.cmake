# libcurl and OpenSSL's libcrypto, which `octet pull` fetches and checks files with, when both are
# there. Without them everything else is built all the same, and the command says what is missing.
if(NOT OCTET_PORTABLE)
  find_package(CURL QUIET)
  find_package(OpenSSL QUIET)
endif()
if(TARGET CURL::libcurl AND TARGET OpenSSL::Crypto)
  target_link_libraries(octet_core PRIVATE CURL::libcurl OpenSSL::Crypto)
  target_link_libraries(octet_calling PRIVATE CURL::libcurl OpenSSL::Crypto)
  target_compile_definitions(octet_calling PRIVATE OCTET_HAS_CURL=1)
else()
  message(STATUS "octet: without libcurl or OpenSSL, hence without octet pull")
endif()
