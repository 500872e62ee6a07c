# The CUDA backend. OCTET_CUDA: AUTO builds it where an NVIDIA driver is loaded and nvcc is found,
# NVCC where nvcc is found, CHECK likewise (as the tests do: kernels have to compile without a GPU,
# too), ON always (no nvcc is an error), OFF never. One line says what was chosen, and why.
#
# OCTET_CUDA_ARCHITECTURES: auto builds for the GPU of this machine; when there is none, for all, or
# with CHECK for the one that has kernels of every family, some of them as PTX alone. all builds
# for every class of the tile table and PTX for newer GPUs; a list such as "80;90a" for these.
include(CheckLanguage)
set(OCTET_CUDA_ARCHITECTURES "auto" CACHE STRING "auto, all, or a list of CUDA architectures")
set(octet_with_cuda OFF)
string(TOUPPER "${OCTET_CUDA}" octet_cuda)
if(NOT octet_cuda MATCHES "^(AUTO|NVCC|CHECK|ON|OFF)$")
  message(FATAL_ERROR "octet: OCTET_CUDA is \"${OCTET_CUDA}\"; it is AUTO, NVCC, CHECK, ON or OFF")
elseif(OCTET_SANITIZE AND octet_cuda STREQUAL "ON")
  message(FATAL_ERROR "octet: the sanitizers do not know CUDA's memory; use OCTET_CUDA=OFF")
endif()

# The compute capabilities of the GPUs here, "9.0\n8.9\n"; empty without a working driver.
set(octet_capabilities "")
if(octet_cuda MATCHES "AUTO|NVCC|CHECK|ON" AND NOT OCTET_SANITIZE)
  find_program(octet_nvidia_smi nvidia-smi HINTS /usr/lib/wsl/lib)
  mark_as_advanced(octet_nvidia_smi)
  if(octet_nvidia_smi)
    execute_process(COMMAND ${octet_nvidia_smi} --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE octet_capabilities ERROR_QUIET RESULT_VARIABLE failed)
    if(failed OR NOT octet_capabilities MATCHES "[0-9]\\.[0-9]")
      set(octet_capabilities "")
    endif()
  endif()
endif()

if(OCTET_SANITIZE)
  set(octet_lacking "the sanitizers do not know CUDA's memory")
elseif(octet_cuda STREQUAL "OFF")
  set(octet_lacking "OCTET_CUDA is OFF")
elseif(octet_cuda STREQUAL "AUTO" AND octet_capabilities STREQUAL ""
    AND NOT EXISTS /proc/driver/nvidia/version)
  set(octet_lacking
    "no NVIDIA driver is loaded; make build CUDA=on builds the kernels all the same")
else()
  set(CMAKE_CUDA_ARCHITECTURES 80)  # only to try the compiler: each target says its own
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 does not know it
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    endif()
    find_package(CUDAToolkit)
  endif()
  find_path(octet_cublaslt_headers cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(NOT TARGET CUDA::cudart_static)
    set(octet_lacking "nvcc and its runtime library were not found; put nvcc on PATH")
  elseif(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.6)
    set(octet_lacking "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is too old; install 12.6 or newer")
  elseif(NOT octet_cublaslt_headers)
    set(octet_lacking "cublasLt.h was not found; install the toolkit's cuBLAS headers")
  else()
    set(octet_with_cuda ON)
  endif()
endif()
if(NOT octet_with_cuda AND octet_cuda STREQUAL "ON")
  message(FATAL_ERROR "octet: OCTET_CUDA=ON, but ${octet_lacking}")
elseif(NOT octet_with_cuda)
  message(STATUS "octet: CPU only: ${octet_lacking}")
  return()
endif()
# Other versions of ptxas may need a few registers more, and their users could not help it.
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13.0)
  set(spills_fail ON)
else()
  set(spills_fail OFF)
endif()
option(OCTET_SPILLS_FAIL "A GPU kernel that spills registers fails the build" ${spills_fail})

# --- architectures --------------------------------------------------------------------------------
set(octet_all_archs 80 86 89 90a)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
  list(APPEND octet_all_archs 120)
endif()
set(archs ${OCTET_CUDA_ARCHITECTURES})
set(octet_archs_reason "as OCTET_CUDA_ARCHITECTURES says")
# Nobody runs these kernels: of the GEMMs of one fusion, which has most in common with the others,
# every fourth tile becomes machine code, and of the rest one tile of each class becomes PTX.
set(octet_checks_alone OFF)
if(archs STREQUAL "auto")
  set(archs all)
  set(octet_archs_reason "all that Octet has kernels for, since there is no GPU here")
  if(octet_cuda STREQUAL "CHECK")
    set(archs 90a)
    set(octet_archs_reason "it has kernels of every family, and there is no GPU here")
    set(octet_checks_alone ON)
  endif()
  if(octet_capabilities)
    set(octet_checks_alone OFF)
    set(octet_archs_reason "the GPU of this machine")
    string(REGEX MATCHALL "[0-9]+\\.[0-9]+" octet_capabilities "${octet_capabilities}")
    list(REMOVE_DUPLICATES octet_capabilities)
    string(REPLACE "." "" archs "${octet_capabilities}")
    # GPUs between Hopper and sm_120, and those that this nvcc does not know, compile PTX when the
    # program starts; sm_120 serves its successors. GPUs before Ampere are refused then.
    list(TRANSFORM archs REPLACE "^(10|11)[0-9]$" "90-virtual")
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
      list(TRANSFORM archs REPLACE "^12[0-9]$" "90-virtual")
    else()
      list(TRANSFORM archs REPLACE "^12[0-9]$" "120")
    endif()
    list(FILTER archs EXCLUDE REGEX "^[1-7][0-9]$")
    list(REMOVE_DUPLICATES archs)
    if(archs STREQUAL "")
      set(archs all)
    endif()
  endif()
endif()
# Hopper's own instructions need the a.
list(TRANSFORM archs REPLACE "^90(-real)?$" "90a")
list(REMOVE_DUPLICATES archs)
list(SORT archs COMPARE NATURAL)  # the oldest of a generation first
set(ptx)
if(archs STREQUAL "all")
  set(archs ${octet_all_archs})
  # What the driver compiles for GPUs that are newer than all of these.
  set(ptx 90-virtual)
endif()
# Kernels without Hopper's own instructions share the way to PTX with it.
set(plain_archs ${archs} ${ptx})
if("90-virtual" IN_LIST plain_archs)
  list(TRANSFORM plain_archs REPLACE "^90a$" "90")
endif()
# Which of them have the shared memory that a class of tiles asks for, see gemm/tiles.h.
set(octet_archs_small ${plain_archs})
set(octet_archs_medium ${plain_archs})
list(FILTER octet_archs_medium INCLUDE REGEX "^(80|87|90a?)(-real|-virtual)?$")
set(octet_archs_hopper ${archs})  # for no other GPU, so no PTX either
list(FILTER octet_archs_hopper INCLUDE REGEX "^90a(-real)?$")

# octet_generate_code(<variable> <architecture>...): nvcc's options for them. The way from C++ to
# PTX is the slow one, so the GPUs of a generation share it: sm_80, 86 and 89 that of compute_80.
function(octet_generate_code variable)
  set(options)
  foreach(arch ${ARGN})
    if(NOT arch MATCHES "^([0-9]+)([0-9]a?)(-real|-virtual)?$")
      message(FATAL_ERROR "octet: OCTET_CUDA_ARCHITECTURES has \"${arch}\"; it takes auto, all, or"
        " a list of numbers such as 86, 90a, 120-virtual")
    endif()
    set(generation ${CMAKE_MATCH_1})
    set(number ${CMAKE_MATCH_1}${CMAKE_MATCH_2})
    if(CMAKE_MATCH_3 STREQUAL "-virtual")
      list(APPEND options --generate-code=arch=compute_${number},code=compute_${number})
      continue()
    elseif(number MATCHES "a$")
      set(source ${number})  # its PTX is for no other
    else()
      if(NOT oldest_${generation})
        set(oldest_${generation} ${number})
      endif()
      set(source ${oldest_${generation}})
    endif()
    list(APPEND options --generate-code=arch=compute_${source},code=sm_${number})
  endforeach()
  set(${variable} ${options} PARENT_SCOPE)
endfunction()

# octet_cuda_target(<target> <architecture>...): flags and architectures of one target.
function(octet_cuda_target target)
  octet_generate_code(generate_code ${ARGN})
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:${generate_code}>)
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES OFF CUDA_STANDARD 20
    CUDA_STANDARD_REQUIRED ON POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src
    ${PROJECT_SOURCE_DIR}/include)
  if(OCTET_RACECHECK)
    target_compile_definitions(${target} PRIVATE OCTET_RACECHECK=1)
  endif()
  # fmad=false: the numeric contract forbids fusing a multiplication and an addition. 554: a
  # conversion of tensor.h that is never called implicitly.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false
    --expt-relaxed-constexpr -diag-suppress=554
    -Xptxas=--warn-on-spills$<$<BOOL:${OCTET_SPILLS_FAIL}>:,--warning-as-error>>)
endfunction()

# --- the GEMM kernels: one OBJECT library per class of tiles, one file per fusion and layout ------
set(fusion_list ${PROJECT_SOURCE_DIR}/src/backend/fusion.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${fusion_list})
file(READ ${fusion_list} octet_fusions)
string(REGEX MATCHALL "\n +FUSION\\([a-z0-9_]+" octet_fusions "${octet_fusions}")
list(TRANSFORM octet_fusions REPLACE "^.*\\(" "")
if(NOT "none" IN_LIST octet_fusions)
  message(FATAL_ERROR "octet: ${fusion_list} has no row FUSION(none, ...) that cmake/cuda.cmake"
    " can read; its rows stand one per line")
endif()
# octet_gemm_library(<name> <tile stride> <architectures> <source>...): kernels for these, of every
# <tile stride>th tile.
function(octet_gemm_library name tile_stride archs)
  add_library(${name} OBJECT ${ARGN})
  octet_cuda_target(${name} ${archs})
  target_compile_definitions(${name} PRIVATE OCTET_TILE_STRIDE=${tile_stride})
  target_sources(octet_core PRIVATE $<TARGET_OBJECTS:${name}>)
endfunction()
# octet_cuda_batches(<variable> <name> <source>...): files of which each includes up to eight of
# these. Half of a short file's time goes to the headers of CUDA. (CMake does this from 3.31 on.)
function(octet_cuda_batches variable name)
  set(batches)
  while(ARGN)
    list(LENGTH batches number)
    list(SUBLIST ARGN 0 8 batch)
    list(REMOVE_ITEM ARGN ${batch})
    list(TRANSFORM batch REPLACE "(.+)" "#include \"\\1\"")
    list(JOIN batch "\n" text)
    set(file ${PROJECT_BINARY_DIR}/generated/${name}_${number}.cu)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text}\n" @ONLY)
    list(APPEND batches ${file})
  endwhile()
  set(${variable} ${batches} PARENT_SCOPE)
endfunction()

set(octet_tile_classes)
foreach(tile_class small medium hopper)
  if(octet_archs_${tile_class} STREQUAL "")
    continue()
  endif()
  set(instances)
  set(ptx_alone)
  set(layouts packed plain)
  if(tile_class STREQUAL "hopper")
    set(layouts packed)  # TMA takes both kinds of rows in one kernel
  endif()
  foreach(fusion ${octet_fusions})
    foreach(weight_rows ${layouts})
      set(instance ${PROJECT_BINARY_DIR}/generated/gemm_${tile_class}_${fusion}_${weight_rows}.cu)
      configure_file(${PROJECT_SOURCE_DIR}/src/cuda/gemm/instance.cu.in ${instance} @ONLY)
      if(octet_checks_alone AND NOT fusion STREQUAL "swiglu")
        list(APPEND ptx_alone ${instance})
      else()
        list(APPEND instances ${instance})
      endif()
    endforeach()
  endforeach()
  set(tile_stride 1)
  if(octet_checks_alone)
    octet_cuda_batches(instances gemm_${tile_class}_checked ${instances})
    octet_cuda_batches(ptx_alone gemm_${tile_class}_ptx ${ptx_alone})
    octet_gemm_library(octet_gemm_${tile_class}_ptx 1000 "90a-virtual" ${ptx_alone})
    set(tile_stride 4)
  endif()
  octet_gemm_library(octet_gemm_${tile_class} ${tile_stride} "${octet_archs_${tile_class}}"
    ${instances})
  string(TOUPPER ${tile_class} upper)
  list(APPEND octet_tile_classes OCTET_TILES_${upper}=1)
endforeach()

# --- the rest of src/cuda -------------------------------------------------------------------------
file(GLOB_RECURSE cuda_kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cuda/*.cu)
set(ceiling ${PROJECT_SOURCE_DIR}/src/cuda/gemm/ceiling.cu)  # measures Hopper's own, too
set(attention_hopper ${PROJECT_SOURCE_DIR}/src/cuda/attention/flash_sm90.cu)  # Hopper alone
list(REMOVE_ITEM cuda_kernels ${ceiling} ${attention_hopper})
if(NOT octet_archs_hopper STREQUAL "")
  add_library(octet_attention_hopper OBJECT ${attention_hopper})
  octet_cuda_target(octet_attention_hopper ${octet_archs_hopper})
  target_sources(octet_core PRIVATE $<TARGET_OBJECTS:octet_attention_hopper>)
endif()
add_library(octet_cuda_ceiling OBJECT ${ceiling})
octet_cuda_target(octet_cuda_ceiling ${archs} ${ptx})
if(OCTET_UNITY)
  octet_cuda_batches(cuda_kernels kernels ${cuda_kernels})
endif()
add_library(octet_cuda_kernels OBJECT ${cuda_kernels})
octet_cuda_target(octet_cuda_kernels ${plain_archs})
# The host's side is a library of its own, so that a build with and one without CUDA compile the
# rest of octet_core alike: turning CUDA on in a folder adds to it, and compiles nothing anew.
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cuda/*.cpp)
add_library(octet_cuda_host OBJECT ${cuda_sources})
target_link_libraries(octet_cuda_host PRIVATE octet_flags)
set_target_properties(octet_cuda_host PROPERTIES POSITION_INDEPENDENT_CODE ON)
octet_unity(octet_cuda_host)
# cuBLASLt is only included here: its library, half a gigabyte, is opened when a matmul needs it.
target_include_directories(octet_cuda_host PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_compile_definitions(octet_cuda_host PRIVATE OCTET_VERSION="${PROJECT_VERSION}"
  ${octet_tile_classes}
  OCTET_CUDA_LIBRARY_DIR="${CUDAToolkit_LIBRARY_DIR}")
target_sources(octet_core PRIVATE $<TARGET_OBJECTS:octet_cuda_host>
  $<TARGET_OBJECTS:octet_cuda_kernels> $<TARGET_OBJECTS:octet_cuda_ceiling>)
target_link_libraries(octet_core PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS})
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/devices/select.cpp PROPERTIES
  COMPILE_DEFINITIONS OCTET_HAS_CUDA=1)
list(JOIN archs ", " archs_text)
message(STATUS
  "octet: CPU and CUDA ${CMAKE_CUDA_COMPILER_VERSION} for sm_${archs_text}: ${octet_archs_reason}")
