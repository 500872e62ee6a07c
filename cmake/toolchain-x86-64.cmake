# Cross-compiles for x86-64 Linux with Debian's cross compiler.
set(CMAKE_SYSTEM_PROCESSOR x86_64)
include(${CMAKE_CURRENT_LIST_DIR}/toolchain-debian-cross.cmake)
