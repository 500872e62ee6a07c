# What `octet serve` adds to the program, where libmicrohttpd is found. Without it everything else
# is built all the same, and the command says what is missing.
if(NOT OCTET_PORTABLE)
  find_package(MicroHTTPD 0.9.75 QUIET)
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

# Every file of the page, and a list of them.
set(page_folder apps/server/page)
file(GLOB page_names RELATIVE ${PROJECT_SOURCE_DIR}/${page_folder} CONFIGURE_DEPENDS
  ${page_folder}/*.html ${page_folder}/*.css ${page_folder}/*.js ${page_folder}/*.svg)
set(page_list "#pragma once\n")
set(page_entries)
foreach(name ${page_names})
  string(MAKE_C_IDENTIFIER "kPage_${name}" variable)
  embed_text(${page_folder}/${name} ${variable})
  get_filename_component(stem ${name} NAME_WE)  # each file has its own
  string(APPEND page_list "#include \"${stem}_text.h\"\n")
  string(APPEND page_entries " \\\n  {\"${name}\", ::octet::${variable}},")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/page_list.h
  CONTENT "${page_list}#define OCTET_PAGE_FILES${page_entries}\n" @ONLY)

# The two libraries that there are for it in Debian 12, side by side; see lab/server/README.md.
add_executable(microhttpd_server EXCLUDE_FROM_ALL
  ${PROJECT_SOURCE_DIR}/lab/server/microhttpd_server.cpp)
target_link_libraries(microhttpd_server PRIVATE octet_flags octet_server octet_core)
find_path(octet_httplib_folder httplib.h)
find_library(octet_httplib cpp-httplib)
mark_as_advanced(octet_httplib_folder octet_httplib)
if(octet_httplib_folder AND octet_httplib)
  add_executable(httplib_server EXCLUDE_FROM_ALL
    ${PROJECT_SOURCE_DIR}/lab/server/httplib_server.cpp)
  # As Debian compiles the library: they change what its classes hold.
  target_compile_definitions(httplib_server PRIVATE CPPHTTPLIB_OPENSSL_SUPPORT
    CPPHTTPLIB_ZLIB_SUPPORT CPPHTTPLIB_BROTLI_SUPPORT)
  target_link_libraries(httplib_server PRIVATE ${octet_httplib} Threads::Threads)
endif()
