# The program `octet`.
find_package(CLI11 REQUIRED)
file(GLOB cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/cli/*.cpp)
add_executable(octet ${cli_sources})
target_link_libraries(octet PRIVATE octet::octet octet_flags octet_calls_only
  nlohmann_json::nlohmann_json CLI11::CLI11)
octet_unity(octet)

# What bench/peers.py loads: Octet's GEMM behind a C interface.
add_library(octet_bench_library SHARED ${PROJECT_SOURCE_DIR}/bench/gemm_library.cpp)
set_target_properties(octet_bench_library PROPERTIES OUTPUT_NAME octet_bench
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} CXX_VISIBILITY_PRESET hidden)
target_link_libraries(octet_bench_library PRIVATE octet_core)
# Only the functions of that file are visible: the process has another CUDA runtime, torch's.
target_link_options(octet_bench_library PRIVATE LINKER:--exclude-libs,ALL)
