# What reads plain text for the small model, and finds that model: not a part of the library.
file(GLOB demo_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/demo/*.cpp)
add_library(octet_demo STATIC ${demo_sources})
target_link_libraries(octet_demo PRIVATE octet_flags octet_calls_only nlohmann_json::nlohmann_json)
target_include_directories(octet_demo PUBLIC ${PROJECT_SOURCE_DIR}/apps
  PRIVATE ${PROJECT_SOURCE_DIR}/src)
octet_unity(octet_demo)
# The one file that knows folders. Installed data is reached from a program in the same way in any
# prefix; the other two are for a program that is not installed.
include(GNUInstallDirs)
file(RELATIVE_PATH data_from_programs ${CMAKE_INSTALL_FULL_BINDIR}
  ${CMAKE_INSTALL_FULL_DATADIR}/octet)
set(folders OCTET_DATA_FROM_PROGRAMS="${data_from_programs}"
  OCTET_BUILD_FOLDER="${CMAKE_BINARY_DIR}" OCTET_SOURCE_FOLDER="${PROJECT_SOURCE_DIR}")
set_source_files_properties(${PROJECT_SOURCE_DIR}/apps/demo/demo.cpp PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON COMPILE_DEFINITIONS "${folders}")

include(cmake/server.cmake)

# The program `octet`.
find_package(CLI11 REQUIRED)
file(GLOB cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/cli/*.cpp)
add_executable(octet ${cli_sources})
target_link_libraries(octet PRIVATE octet_demo octet::octet octet_flags octet_calls_only
  nlohmann_json::nlohmann_json CLI11::CLI11)
octet_unity(octet)
embed_text(apps/cli/record_sitecustomize.py kRecordSitecustomize)
target_include_directories(octet PRIVATE ${PROJECT_BINARY_DIR}/generated
  ${PROJECT_SOURCE_DIR}/src)  # for formats/json_value.h
if(BUILD_SHARED_LIBS)  # there the library keeps it to itself
  target_sources(octet PRIVATE ${PROJECT_SOURCE_DIR}/src/formats/json_value.cpp)
endif()
if(TARGET octet_server)
  # The library again: it has what the server calls, and is searched in this order.
  target_link_libraries(octet PRIVATE octet_server octet::octet)
  target_compile_definitions(octet PRIVATE OCTET_HAS_SERVER=1)
endif()

# Measures loading; see the top of its source.
add_executable(load_bench EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/load_bench.cpp
  ${PROJECT_SOURCE_DIR}/bench/full_size_files.cpp)
target_include_directories(load_bench PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(load_bench PRIVATE octet_core)

# Records what attention gets, for lab/attention/int8_error.py.
add_executable(record_heads EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/lab/attention/record_heads.cpp)
target_include_directories(record_heads PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(record_heads PRIVATE octet_core)

# Compares plan files in the step; see the top of its source.
add_executable(plans_in_turns EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/lab/step/plans_in_turns.cpp)
target_link_libraries(plans_in_turns PRIVATE octet_core)

# Weights in plain rows beside packed ones; see the top of its source.
add_executable(plain_rows EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/plain_rows.cpp)
target_link_libraries(plain_rows PRIVATE octet_core)
