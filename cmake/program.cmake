# The program `octet`.
find_package(CLI11 REQUIRED)
file(GLOB cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/cli/*.cpp)
add_executable(octet ${cli_sources})
target_link_libraries(octet PRIVATE octet::octet octet_flags octet_calls_only
  nlohmann_json::nlohmann_json CLI11::CLI11)
octet_unity(octet)

# Measures loading; see the top of its source.
add_executable(load_bench EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/bench/load_bench.cpp
  ${PROJECT_SOURCE_DIR}/bench/full_size_files.cpp)
target_link_libraries(load_bench PRIVATE octet_core)
