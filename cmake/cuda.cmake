# The CUDA backend, when nvcc is there. OCTET_CUDA=ON makes its absence an error.
#
# OCTET_CUDA_ARCHITECTURES: auto builds for the GPU of this machine, or for all when there is none;
# all builds for every class of the tile table and PTX for newer GPUs; a list such as "80;90a"
# builds for these.
include(CheckLanguage)
set(OCTET_CUDA_ARCHITECTURES "auto" CACHE STRING "auto, all, or a list of CUDA architectures")
set(octet_with_cuda OFF)
if(OCTET_SANITIZE AND OCTET_CUDA STREQUAL "ON")
  message(FATAL_ERROR "octet: the sanitizers do not know CUDA's memory; use OCTET_CUDA=OFF")
endif()
if((OCTET_CUDA STREQUAL "AUTO" OR OCTET_CUDA) AND NOT OCTET_SANITIZE)
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
  set(octet_lacking "")
  if(NOT TARGET CUDA::cudart_static)
    set(octet_lacking "nvcc and its runtime library were not found; put nvcc on PATH")
  elseif(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.6)
    set(octet_lacking "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is too old; install 12.6 or newer")
  elseif(NOT octet_cublaslt_headers)
    set(octet_lacking "cublasLt.h was not found; install the toolkit's cuBLAS headers")
  endif()
  if(octet_lacking STREQUAL "")
    set(octet_with_cuda ON)
  elseif(NOT OCTET_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "octet: OCTET_CUDA=${OCTET_CUDA}, but ${octet_lacking}")
  endif()
endif()
if(NOT octet_with_cuda)
  message(STATUS "octet: without CUDA ${octet_lacking}")
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
if(archs STREQUAL "auto")
  set(archs all)
  find_program(octet_nvidia_smi nvidia-smi)
  if(octet_nvidia_smi)
    execute_process(COMMAND ${octet_nvidia_smi} --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE capabilities ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND capabilities MATCHES "[0-9]\\.[0-9]")
      string(REGEX MATCHALL "[0-9]+\\.[0-9]+" capabilities "${capabilities}")
      list(REMOVE_DUPLICATES capabilities)
      string(REPLACE "." "" archs "${capabilities}")
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
endif()
# Hopper's own instructions need the a.
list(TRANSFORM archs REPLACE "^90(-real)?$" "90a")
list(REMOVE_DUPLICATES archs)
set(ptx)
if(archs STREQUAL "all")
  set(archs ${octet_all_archs})
  # What the driver compiles for GPUs that are newer than all of these.
  set(ptx 90-virtual)
endif()
# Which of them have the shared memory that a class of tiles asks for, see gemm/tiles.h.
set(octet_archs_small ${archs})
set(octet_archs_medium ${archs})
list(FILTER octet_archs_medium INCLUDE REGEX "^(80|87|90a?)(-real|-virtual)?$")
set(octet_archs_hopper ${archs})  # for no other GPU, so no PTX either
list(FILTER octet_archs_hopper INCLUDE REGEX "^90a(-real)?$")

# octet_cuda_target(<target> <architecture>...): flags and architectures of one target.
function(octet_cuda_target target)
  list(TRANSFORM ARGN APPEND "-real" OUTPUT_VARIABLE real REGEX "^[0-9]+a?$")
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${real}" CUDA_STANDARD 20
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

# --- the GEMM kernels: one OBJECT library per class of tiles, one file per fusion -----------------
foreach(tile_class small medium hopper)
  if(octet_archs_${tile_class} STREQUAL "")
    continue()
  endif()
  set(instances)
  foreach(fusion none bias swiglu)
    set(instance ${PROJECT_BINARY_DIR}/generated/gemm_${tile_class}_${fusion}.cu)
    configure_file(${PROJECT_SOURCE_DIR}/src/cuda/gemm/instance.cu.in ${instance} @ONLY)
    list(APPEND instances ${instance})
  endforeach()
  add_library(octet_gemm_${tile_class} OBJECT ${instances})
  if(tile_class STREQUAL "hopper")
    octet_cuda_target(octet_gemm_hopper ${octet_archs_hopper})
  else()
    octet_cuda_target(octet_gemm_${tile_class} ${octet_archs_${tile_class}} ${ptx})
  endif()
  target_sources(octet_core PRIVATE $<TARGET_OBJECTS:octet_gemm_${tile_class}>)
  string(TOUPPER ${tile_class} upper)
  target_compile_definitions(octet_core PRIVATE OCTET_TILES_${upper}=1)
endforeach()

# --- the rest of src/cuda -------------------------------------------------------------------------
file(GLOB_RECURSE cuda_kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cuda/*.cu)
add_library(octet_cuda_kernels OBJECT ${cuda_kernels})
octet_cuda_target(octet_cuda_kernels ${archs} ${ptx})
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cuda/*.cpp)
target_sources(octet_core PRIVATE ${cuda_sources} $<TARGET_OBJECTS:octet_cuda_kernels>)
# cuBLASLt is only included here: its library, half a gigabyte, is opened when a matmul needs it.
target_include_directories(octet_core PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(octet_core PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS})
target_compile_definitions(octet_core PRIVATE OCTET_HAS_CUDA=1
  OCTET_CUDA_LIBRARY_DIR="${CUDAToolkit_LIBRARY_DIR}")
list(JOIN archs " " archs_text)
message(STATUS "octet: with CUDA ${CMAKE_CUDA_COMPILER_VERSION} for sm ${archs_text}")
