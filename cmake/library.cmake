# octet_core: every layer under src/. Which layers exist in a build is decided here alone.
set(op_layers ref cpu)
set(layers base tensor backend)
set(calling_layers)  # those that call ops and read files, and hold no loops over numbers
set(telling_layers)  # those that choose, compare and tell: values in, values out
if(NOT OCTET_KERNELS_ONLY)
  list(APPEND layers formats nn weights quant)
  set(calling_layers devices audit hub models engine convert api)
  set(telling_layers tune report measure)
endif()

# A sanitized build may link what a plain one compiled: the tests, which take as long to compile as
# all that they test, and layers that hardly work out an address themselves.
set(OCTET_PLAIN_OBJECTS "" CACHE PATH "A build folder that shares objects; none: compile them")
add_custom_target(octet_shared_objects)
# octet_share_objects(<target>): its objects can be had from this folder by octet_plain_objects.
function(octet_share_objects target)
  add_dependencies(octet_shared_objects ${target})
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/shared_objects/${target}
    CONTENT "$<JOIN:$<TARGET_OBJECTS:${target}>,\n>\n")
endfunction()
function(octet_plain_objects variable target)
  file(STRINGS ${OCTET_PLAIN_OBJECTS}/shared_objects/${target} objects)
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()

# octet_sources(<variable> <layer>...): the files of layers.
function(octet_sources variable)
  set(sources)
  foreach(layer ${ARGN})
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${layer}/*.cpp)
    list(APPEND sources ${found})
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()
octet_sources(sources ${layers})
octet_sources(op_sources ${op_layers})
# By itself: the one file that CUDA changes.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/devices/select.cpp PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON)

# Files named *_x86_<isa>.cpp and *_arm_<isa>.cpp hold one instruction set each and are compiled
# with exactly its flags; a file of the other architecture is left out.
set(isa_flags_x86_avx2 -mavx2 -mfma -mf16c)
# gcc 12 warns about its own AVX-512 headers (gcc bug 105593).
set(isa_flags_x86_avx512 -Wno-uninitialized -Wno-maybe-uninitialized -mavx512f -mavx512bw
  -mavx512dq -mavx512vl -mfma -mf16c)
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
foreach(source ${op_sources})
  if(source MATCHES "_(x86|arm)_([a-z0-9]+)\\.cpp$")
    if(NOT CMAKE_MATCH_1 STREQUAL this_arch)
      list(REMOVE_ITEM op_sources ${source})
      continue()
    endif()
    set_source_files_properties(${source} PROPERTIES
      COMPILE_OPTIONS "${isa_flags_${CMAKE_MATCH_1}_${CMAKE_MATCH_2}}")
  endif()
endforeach()

# The loops over a picture's bytes, beside files that only read headers.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/formats/png_rows.cpp PROPERTIES
  COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
# Looks at every pixel while a GPU waits: 5 ms at 1024 x 1024 pixels instead of 18 with -O1.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/engine/picture_look.cpp PROPERTIES
  COMPILE_OPTIONS $<$<CONFIG:Release>:-O2>)

# gcc 13 (Ubuntu 24.04) believes that what never_destroyed() returns belongs to its argument.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^13\\.")
  target_compile_options(octet_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>)
endif()

# How hard the compiler tries in a release: -O3 for the ops; -O2 for the layers around them (of
# octet_flags); -O1 for those that only call, and for the program, which halves their time.
add_library(octet_ops OBJECT ${op_sources})
target_link_libraries(octet_ops PRIVATE octet_flags octet_loops Threads::Threads)
set_target_properties(octet_ops PROPERTIES POSITION_INDEPENDENT_CODE ON)
octet_unity(octet_ops)

add_library(octet_core STATIC ${sources} $<TARGET_OBJECTS:octet_ops>)
target_link_libraries(octet_core PUBLIC octet_flags Threads::Threads)
set_target_properties(octet_core PROPERTIES POSITION_INDEPENDENT_CODE ON)  # for shared libraries
octet_unity(octet_core)

if(NOT OCTET_KERNELS_ONLY)
  find_package(nlohmann_json REQUIRED)
  target_link_libraries(octet_core PUBLIC nlohmann_json::nlohmann_json)

  # octet_calling_library(<name> <layer>...)
  function(octet_calling_library name)
    octet_sources(calling_sources ${ARGN})
    add_library(${name} OBJECT ${calling_sources})
    target_link_libraries(${name} PRIVATE octet_flags octet_calls_only Threads::Threads
      nlohmann_json::nlohmann_json)
    target_include_directories(${name} PRIVATE ${PROJECT_BINARY_DIR}/generated)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    octet_unity(${name})
    target_sources(octet_core PRIVATE $<TARGET_OBJECTS:${name}>)
  endfunction()
  octet_calling_library(octet_calling ${calling_layers})
  if(OCTET_PLAIN_OBJECTS)
    # Addresses are worked out below these layers; checks of each reference were half of their code.
    target_compile_options(octet_calling PRIVATE -fno-sanitize=alignment,pointer-overflow)
    octet_plain_objects(telling_objects octet_telling)
    target_sources(octet_core PRIVATE ${telling_objects})
  else()
    octet_calling_library(octet_telling ${telling_layers})
    octet_share_objects(octet_telling)
  endif()
  include(cmake/embedded_text.cmake)
  embed_text(src/audit/kernel_names.json kKernelNamesText)
  embed_text(src/audit/log_lines.json kLogLinesText)
  embed_text(src/tune/shipped/measured_plans.json kMeasuredPlansText)
  embed_text(src/tune/shipped/predicted_plans.json kPredictedPlansText)
  embed_text(src/measure/predict/cards.json kCardsText)
  embed_text(src/measure/predict/measured_h200.json kMeasuredH200Text)
  embed_text(src/measure/predict/public_figures.json kPublicFiguresText)
  include(cmake/sqlite.cmake)
  include(cmake/utf8proc.cmake)
  include(cmake/pictures.cmake)
  include(cmake/curl.cmake)
  include(cmake/cuda.cmake)
  # The commit is asked for at every build, so that benchmark records never name an old one.
  add_custom_target(octet_commit
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR}
      -DOUTPUT=${PROJECT_BINARY_DIR}/generated/octet_commit.h
      -P ${PROJECT_SOURCE_DIR}/cmake/commit.cmake
    BYPRODUCTS ${PROJECT_BINARY_DIR}/generated/octet_commit.h)
  add_dependencies(octet_calling octet_commit)
  # By itself: each commit compiles it anew.
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/api/version.cpp PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON)
  include(cmake/captions.cmake)
  target_compile_definitions(octet_calling PRIVATE OCTET_VERSION="${PROJECT_VERSION}")
endif()
