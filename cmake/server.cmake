# What `octet serve` adds to the program, where libmicrohttpd is found. Without it everything else is
# built all the same, and the command says what is missing.
if(NOT OCTET_PORTABLE)
  find_package(MicroHTTPD QUIET)
endif()
if(NOT TARGET MicroHTTPD::MicroHTTPD)
  message(STATUS "octet: without libmicrohttpd, hence without octet serve")
  return()
endif()
file(GLOB_RECURSE server_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/server/*.cpp)
add_library(octet_server STATIC ${server_sources})
target_link_libraries(octet_server PRIVATE octet_flags octet_calls_only nlohmann_json::nlohmann_json
  MicroHTTPD::MicroHTTPD Threads::Threads)
target_include_directories(octet_server PUBLIC ${PROJECT_SOURCE_DIR}/apps
  PRIVATE ${PROJECT_BINARY_DIR}/generated ${PROJECT_SOURCE_DIR}/src)  # for formats/json_value.h
octet_unity(octet_server)
embed_text(apps/server/routes/openapi.json kOpenApiText)
