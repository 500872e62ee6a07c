# GoogleTest programs, run through CTest with labels. A cross build without a system root compiles
# GoogleTest itself from Debian's source package; its programs run under the toolchain's emulator.
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_SYSROOT)
  add_subdirectory(/usr/src/googletest ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
else()
  find_package(GTest REQUIRED)
endif()
include(GoogleTest)

# A case that is a process of its own is isolated and can be chosen by name (ctest -R). A few shards
# of each program take less time, above all under the sanitizers or an emulator, where a process
# needs seconds before its first line.
set(OCTET_TEST_SHARDS 0 CACHE STRING "Processes for each test program; 0: one for each case")

# What CTest runs, without the program and what the Python tests call.
add_custom_target(test_programs)

# octet_test(<name> <label> <source>...): the program <name>_tests, all of its cases under <label>.
function(octet_test name label)
  if(OCTET_PLAIN_OBJECTS)
    octet_plain_objects(objects ${name}_objects)
    # The library's own first: of an inline function that both have, the linker keeps the first.
    add_executable(${name}_tests ${octet_objects} ${objects})
    set_target_properties(${name}_tests PROPERTIES LINKER_LANGUAGE CXX)
  else()
    add_library(${name}_objects OBJECT ${ARGN})
    target_include_directories(${name}_objects PRIVATE ${PROJECT_SOURCE_DIR}/tests
      ${PROJECT_SOURCE_DIR}/apps)
    target_compile_definitions(${name}_objects PRIVATE
      OCTET_GOLDEN_DIR="${PROJECT_SOURCE_DIR}/tests/golden"
      OCTET_DEMO_DIR="${PROJECT_SOURCE_DIR}/models/demo"
      OCTET_DEMO_PROMPTS="${PROJECT_SOURCE_DIR}/tests/apps/demo_prompts.txt"
      OCTET_DEMO_WORDS="${PROJECT_SOURCE_DIR}/models/demo/words.json")
    target_link_libraries(${name}_objects PRIVATE octet_core GTest::gtest)
    # Most tests compile for longer than they run. Those of the ops compare millions of numbers, on
    # every kernel, under the sanitizers and under an emulator.
    if(name STREQUAL "backend")
      target_compile_options(${name}_objects PRIVATE -O1)
    else()
      target_link_libraries(${name}_objects PRIVATE octet_unoptimized)
    endif()
    octet_unity(${name}_objects)
    octet_share_objects(${name}_objects)
    add_executable(${name}_tests $<TARGET_OBJECTS:${name}_objects>)
  endif()
  target_link_libraries(${name}_tests PRIVATE octet_core GTest::gtest GTest::gtest_main)
  add_dependencies(test_programs ${name}_tests)
  if(NOT OCTET_TEST_SHARDS)
    # Found at test time, not at build time.
    gtest_discover_tests(${name}_tests PROPERTIES LABELS ${label}
      DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
    return()
  endif()
  math(EXPR last "${OCTET_TEST_SHARDS} - 1")
  foreach(shard RANGE ${last})
    add_test(NAME ${name}_tests.${shard} COMMAND ${name}_tests --gtest_brief=1)
    set_tests_properties(${name}_tests.${shard} PROPERTIES LABELS ${label}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${OCTET_TEST_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

# octet_test_of(<name> <label> <place>...): the program with the tests of these folders of src; a
# place may also be a single file.
function(octet_test_of name label)
  set(sources)
  foreach(place ${ARGN})
    if(place MATCHES "\\.cpp$")
      set(found ${PROJECT_SOURCE_DIR}/tests/${place})
    else()
      file(GLOB_RECURSE found CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${place}/*.cpp)
    endif()
    list(APPEND sources ${found})
  endforeach()
  octet_test(${name} ${label} ${sources})
endfunction()

octet_test_of(backend cpu backend ref cpu)
octet_test_of(base cpu base tensor)
if(NOT OCTET_KERNELS_ONLY)
  octet_test_of(formats formats formats)
  find_package(PNG REQUIRED)  # reads what we write
  target_link_libraries(formats_tests PRIVATE PNG::PNG)
  foreach(library JPEG::JPEG WebP::webp)
    if(TARGET ${library})
      target_link_libraries(formats_tests PRIVATE ${library})
    endif()
  endforeach()
  set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/formats/picture_file_test.cpp PROPERTIES
    COMPILE_DEFINITIONS "${octet_picture_definitions}")
  octet_test_of(hub formats hub)
  octet_test_of(audit cpu audit)
  octet_test_of(tune cpu tune devices)
  octet_test_of(weights cpu weights quant)
  octet_test_of(models cpu models nn)
  octet_test_of(engine cpu engine convert models/sample_captions.cpp)
  octet_test_of(measure cpu measure report)
  octet_test_of(api cpu api)
  octet_test_of(apps cpu apps)
  target_link_libraries(apps_tests PRIVATE octet_demo)
  if(TARGET octet_server)
    octet_test_of(server cpu server)
    target_link_libraries(server_tests PRIVATE octet_server octet_core
      nlohmann_json::nlohmann_json)
  endif()
  if(octet_with_cuda)
    file(GLOB cuda_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cuda/*.cpp)
    octet_test(cuda cuda ${cuda_tests})
    target_include_directories(cuda_objects PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  endif()
  # The C interface, from C: what it asks of a compiler is in these flags.
  enable_language(C)
  foreach(program operations calls engine engine_errors without_engine fork exiting
      out_of_memory failing_allocations)
    add_executable(c_${program}_tests ${PROJECT_SOURCE_DIR}/tests/c/${program}.c)
    set_target_properties(c_${program}_tests PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF)
    target_compile_options(c_${program}_tests PRIVATE -pedantic -Wall -Wextra -Werror
      -ffp-contract=off)
    target_link_libraries(c_${program}_tests PRIVATE octet::octet octet_flags Threads::Threads m)
    add_dependencies(test_programs c_${program}_tests)
  endforeach()
  add_test(NAME c_operations COMMAND c_operations_tests)
  add_test(NAME c_calls COMMAND c_calls_tests)
  add_test(NAME c_without_engine COMMAND c_without_engine_tests)
  add_test(NAME c_engine COMMAND c_engine_tests ${PROJECT_SOURCE_DIR}/tests/golden/model
    ${PROJECT_BINARY_DIR})
  add_test(NAME c_engine_errors COMMAND c_engine_errors_tests
    ${PROJECT_SOURCE_DIR}/tests/golden/model)
  foreach(program fork exiting out_of_memory failing_allocations)
    add_test(NAME c_${program} COMMAND c_${program}_tests ${PROJECT_SOURCE_DIR}/tests/golden/model)
  endforeach()
  # Loads the library itself.
  add_executable(c_late_threads_tests ${PROJECT_SOURCE_DIR}/tests/c/late_threads.c)
  set_target_properties(c_late_threads_tests PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF)
  target_compile_options(c_late_threads_tests PRIVATE -Wall -Wextra -Werror)
  target_include_directories(c_late_threads_tests PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(c_late_threads_tests PRIVATE octet_flags Threads::Threads
    ${CMAKE_DL_LIBS})
  add_dependencies(c_late_threads_tests octet_shared)
  add_dependencies(test_programs c_late_threads_tests)
  add_test(NAME c_late_threads COMMAND c_late_threads_tests $<TARGET_FILE:octet_shared>)
  set_tests_properties(c_operations c_calls c_without_engine c_engine c_engine_errors c_fork
    c_exiting c_out_of_memory c_failing_allocations c_late_threads PROPERTIES
    LABELS cpu SKIP_RETURN_CODE 77)
  if(TARGET utf8proc::utf8proc)
    foreach(program engine engine_errors fork exiting out_of_memory failing_allocations)
      target_compile_definitions(c_${program}_tests PRIVATE OCTET_HAS_UTF8PROC=1)
    endforeach()
  endif()
  # Python tests load it, whichever kind octet::octet is.
  set_target_properties(octet_shared PROPERTIES EXCLUDE_FROM_ALL OFF)
  # What the Python tests call: one program, see tests/tools/tools.h.
  file(GLOB tools CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/tools/*.cpp)
  add_executable(test_tools ${tools})
  target_include_directories(test_tools PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(test_tools PRIVATE octet_core octet_unoptimized)
  octet_unity(test_tools)
  foreach(tool run_gemm run_model write_sample tokenize print_schedule record_latents ship_plans)
    add_custom_command(TARGET test_tools POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E create_symlink test_tools ${tool}
      WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
  endforeach()
endif()
