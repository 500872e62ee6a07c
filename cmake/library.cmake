# octet_core: every layer under src/. Which layers exist in a build is decided here alone.
set(layers base tensor backend ref cpu)
if(NOT OCTET_KERNELS_ONLY)
  list(APPEND layers formats hub tune devices nn quant models pipeline measure api)
endif()

set(sources)
foreach(layer ${layers})
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${layer}/*.cpp)
  list(APPEND sources ${found})
endforeach()

# Files named *_x86_<isa>.cpp and *_arm_<isa>.cpp hold one instruction set each and are compiled
# with exactly its flags; a file of the other architecture is left out.
set(isa_flags_x86_avx2 -mavx2 -mfma -mf16c)
# gcc 12 warns about its own AVX-512 headers (gcc bug 105593).
set(isa_flags_x86_avx512 -Wno-maybe-uninitialized -mavx512f -mavx512bw -mavx512dq -mavx512vl
  -mfma -mf16c)
set(isa_flags_x86_vnni ${isa_flags_x86_avx512} -mavx512vnni)
set(isa_flags_x86_amx ${isa_flags_x86_avx512} -mamx-tile -mamx-int8 -mamx-bf16)
set(isa_flags_arm_neon -march=armv8-a)
set(isa_flags_arm_dotprod -march=armv8.2-a+dotprod)
set(isa_flags_arm_i8mm -march=armv8.2-a+dotprod+i8mm)
set(isa_flags_arm_bf16 -march=armv8.2-a+bf16)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set(this_arch x86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(this_arch arm)
else()
  message(FATAL_ERROR "octet: ${CMAKE_SYSTEM_PROCESSOR} is not supported; x86-64 and aarch64 are")
endif()
foreach(source ${sources})
  if(source MATCHES "_(x86|arm)_([a-z0-9]+)\\.cpp$")
    if(NOT CMAKE_MATCH_1 STREQUAL this_arch)
      list(REMOVE_ITEM sources ${source})
      continue()
    endif()
    set_source_files_properties(${source} PROPERTIES
      COMPILE_OPTIONS "${isa_flags_${CMAKE_MATCH_1}_${CMAKE_MATCH_2}}")
  endif()
endforeach()

add_library(octet_core STATIC ${sources})
target_link_libraries(octet_core PUBLIC octet_flags Threads::Threads)
set_target_properties(octet_core PROPERTIES POSITION_INDEPENDENT_CODE ON)  # for shared libraries

if(NOT OCTET_KERNELS_ONLY)
  find_package(PNG REQUIRED)
  find_package(nlohmann_json REQUIRED)
  target_link_libraries(octet_core PUBLIC nlohmann_json::nlohmann_json PRIVATE PNG::PNG)
  include(cmake/utf8proc.cmake)
  include(cmake/curl.cmake)
  include(cmake/cuda.cmake)
  # The commit is asked for at every build, so that benchmark records never name an old one.
  add_custom_target(octet_commit
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR}
      -DOUTPUT=${PROJECT_BINARY_DIR}/generated/octet_commit.h
      -P ${PROJECT_SOURCE_DIR}/cmake/commit.cmake
    BYPRODUCTS ${PROJECT_BINARY_DIR}/generated/octet_commit.h)
  add_dependencies(octet_core octet_commit)
  target_include_directories(octet_core PRIVATE ${PROJECT_BINARY_DIR}/generated)
  target_compile_definitions(octet_core PRIVATE OCTET_VERSION="${PROJECT_VERSION}")
endif()
