# The program `octet`.
find_package(CLI11 REQUIRED)
file(GLOB cli_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/apps/cli/*.cpp)
add_executable(octet ${cli_sources})
target_link_libraries(octet PRIVATE octet_core CLI11::CLI11)
