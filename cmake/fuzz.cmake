# libFuzzer targets; clang alone has libFuzzer. Each target compiles the sources it reaches itself,
# because octet_core is built without coverage counters.
#
#   cmake -S . -B build-fuzz -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DOCTET_FUZZ=ON -DOCTET_TESTS=OFF
#   cmake --build build-fuzz --target fuzzers && build-fuzz/write_seeds build-fuzz/seeds
#   build-fuzz/safetensors_fuzzer -max_total_time=60 -dict=tests/fuzz/json.dict \
#     build-fuzz/seeds/safetensors
if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "octet: OCTET_FUZZ needs clang; configure with -DCMAKE_CXX_COMPILER=clang++")
endif()

file(GLOB fuzzed_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/formats/*.cpp
  ${PROJECT_SOURCE_DIR}/src/tensor/*.cpp ${PROJECT_SOURCE_DIR}/src/audit/*.cpp)
file(GLOB caption_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/models/ideogram4/caption*.cpp)
file(GLOB base_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/base/*.cpp)
list(APPEND fuzzed_sources ${caption_sources} ${base_sources}
  ${PROJECT_SOURCE_DIR}/src/models/trained_for.cpp ${PROJECT_SOURCE_DIR}/src/report/text.cpp)
foreach(name bpe byte_alphabet pre_tokenizer tokenizer tokenizer_file unicode)
  list(APPEND fuzzed_sources ${PROJECT_SOURCE_DIR}/src/models/tokenizer/${name}.cpp)
endforeach()
foreach(name dialects/recipe_json dialects/comfy_quant dialects/nf4_state)
  list(APPEND fuzzed_sources ${PROJECT_SOURCE_DIR}/src/weights/${name}.cpp)
endforeach()

set(fuzz_options -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
  -fno-omit-frame-pointer)
add_library(octet_fuzzed OBJECT ${fuzzed_sources})
target_link_libraries(octet_fuzzed PUBLIC octet_flags nlohmann_json::nlohmann_json ZLIB::ZLIB)
# The names of kernels and the lines of logs, which cmake/library.cmake embeds.
target_include_directories(octet_fuzzed PRIVATE ${PROJECT_BINARY_DIR}/generated)
target_compile_options(octet_fuzzed PUBLIC ${fuzz_options} -fsanitize=fuzzer-no-link)
# Its table is a literal longer than any that C++ asks compilers to take.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/audit/patterns.cpp PROPERTIES
  COMPILE_OPTIONS -Wno-overlength-strings)
if(TARGET SQLite::SQLite3)
  target_link_libraries(octet_fuzzed PUBLIC SQLite::SQLite3)
  target_compile_definitions(octet_fuzzed PRIVATE OCTET_HAS_SQLITE=1)
endif()
foreach(library JPEG::JPEG WebP::webp)
  if(TARGET ${library})
    target_link_libraries(octet_fuzzed PUBLIC ${library})
  endif()
endforeach()
if(TARGET utf8proc::utf8proc)
  target_link_libraries(octet_fuzzed PUBLIC utf8proc::utf8proc)
  target_compile_definitions(octet_fuzzed PRIVATE OCTET_HAS_UTF8PROC=1)
endif()

add_executable(write_seeds ${PROJECT_SOURCE_DIR}/tests/fuzz/write_seeds.cpp
  ${PROJECT_SOURCE_DIR}/tests/models/sample_captions.cpp
  ${PROJECT_SOURCE_DIR}/tests/formats/broken_files.cpp ${PROJECT_SOURCE_DIR}/src/base/error.cpp
  ${PROJECT_SOURCE_DIR}/src/base/escaped_text.cpp ${PROJECT_SOURCE_DIR}/src/base/per_thread.cpp
  ${PROJECT_SOURCE_DIR}/src/formats/text.cpp
  ${PROJECT_SOURCE_DIR}/src/models/tokenizer/unicode.cpp
  ${PROJECT_SOURCE_DIR}/src/models/tokenizer/byte_alphabet.cpp)
target_include_directories(write_seeds PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(write_seeds PRIVATE octet_flags nlohmann_json::nlohmann_json)

add_custom_target(fuzzers DEPENDS write_seeds)
foreach(name safetensors index caption tokenizer gguf dialect recipe trace)
  add_executable(${name}_fuzzer ${PROJECT_SOURCE_DIR}/tests/fuzz/${name}_fuzzer.cpp)
  target_include_directories(${name}_fuzzer PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name}_fuzzer PRIVATE octet_fuzzed)
  target_link_options(${name}_fuzzer PRIVATE -fsanitize=fuzzer,address,undefined)
  add_dependencies(fuzzers ${name}_fuzzer)
endforeach()

# A whole server, where its library is.
if(TARGET MicroHTTPD::MicroHTTPD)
  file(GLOB http_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/server/http/*.cpp)
  add_executable(http_fuzzer ${PROJECT_SOURCE_DIR}/tests/fuzz/http_fuzzer.cpp ${http_sources})
  target_include_directories(http_fuzzer PRIVATE ${PROJECT_SOURCE_DIR}/apps)
  target_link_libraries(http_fuzzer PRIVATE octet_fuzzed MicroHTTPD::MicroHTTPD Threads::Threads)
  target_link_options(http_fuzzer PRIVATE -fsanitize=fuzzer,address,undefined)
  add_dependencies(fuzzers http_fuzzer)
endif()

# How routes read heads and bodies, without a server.
set(request_sources ${PROJECT_SOURCE_DIR}/src/models/image_size.cpp)
foreach(name http/exchange http/head routes/access routes/base64 routes/error_objects routes/fields
    routes/job_fields routes/json routes/openai_fields routes/sdapi_fields routes/sse service/keys)
  list(APPEND request_sources ${PROJECT_SOURCE_DIR}/apps/server/${name}.cpp)
endforeach()
add_executable(request_fuzzer ${PROJECT_SOURCE_DIR}/tests/fuzz/request_fuzzer.cpp
  ${request_sources})
target_include_directories(request_fuzzer PRIVATE ${PROJECT_SOURCE_DIR}/apps)
target_link_libraries(request_fuzzer PRIVATE octet_fuzzed Threads::Threads)
target_link_options(request_fuzzer PRIVATE -fsanitize=fuzzer,address,undefined)
add_dependencies(fuzzers request_fuzzer)
