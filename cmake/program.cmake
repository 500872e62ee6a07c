# The program `octet`.
find_package(CLI11 REQUIRED)
file(GLOB cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/cli/*.cpp)
add_executable(octet ${cli_sources})
target_link_libraries(octet PRIVATE octet::octet octet_flags octet_calls_only
  nlohmann_json::nlohmann_json CLI11::CLI11)
octet_unity(octet)
embed_text(apps/cli/record_sitecustomize.py kRecordSitecustomize)
target_include_directories(octet PRIVATE ${PROJECT_BINARY_DIR}/generated)

# Measures loading; see the top of its source.
add_executable(load_bench EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/load_bench.cpp
  ${PROJECT_SOURCE_DIR}/bench/full_size_files.cpp)
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
