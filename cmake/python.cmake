# The Python package: octet._octet (target octet_python) and a folder to import it from.
#
# <build>/python/octet is python/octet by links, with the extension beside it: a change of a .py
# file is there at once. Needs nanobind, a package of the Python that CMake finds; name another
# with -DPython_EXECUTABLE=.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module
  OPTIONAL_COMPONENTS Development.SABIModule)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "octet: OCTET_PYTHON=ON, but ${Python_EXECUTABLE} has no nanobind; run"
    " ${Python_EXECUTABLE} -m pip install nanobind, or name another with -DPython_EXECUTABLE=")
endif()
find_package(nanobind CONFIG REQUIRED)

file(GLOB python_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/python/*.cpp)
# One file for all Pythons from 3.12 on, else one for this Python. NOMINSIZE: its calls are short
# enough for the optimizer to matter.
nanobind_add_module(octet_python STABLE_ABI FREE_THREADED NB_STATIC NOMINSIZE NB_SUPPRESS_WARNINGS
  ${python_sources})
set_target_properties(octet_python PROPERTIES OUTPUT_NAME _octet
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/python_exports.map)
target_link_libraries(octet_python PRIVATE octet_static octet_flags)
octet_unity(octet_python)
get_target_property(nanobind_library octet_python LINK_LIBRARIES)
list(FILTER nanobind_library INCLUDE REGEX "^nanobind-")
octet_unity(${nanobind_library})
# Its struct in a header has members that no other file knows, which gcc minds in a shared reading.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/python/calls.cpp PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON)
# Other copies of Octet, fmt or CUDA's runtime may be in the process: nothing of ours is seen.
target_link_options(octet_python PRIVATE
  LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/python_exports.map LINKER:--exclude-libs,ALL)
if(OCTET_PORTABLE)
  octet_make_portable(octet_python)
endif()

set(package ${PROJECT_BINARY_DIR}/python/octet)
set_target_properties(octet_python PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${package})
file(GLOB python_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/octet/*)
list(FILTER python_files EXCLUDE REGEX "__pycache__")
file(MAKE_DIRECTORY ${package})
file(GLOB links ${package}/*)
foreach(link ${links})  # to files that were removed since
  if(IS_SYMLINK ${link} AND NOT EXISTS ${link})
    file(REMOVE ${link})
  endif()
endforeach()
foreach(file ${python_files})
  get_filename_component(name ${file} NAME)
  file(CREATE_LINK ${file} ${package}/${name} SYMBOLIC)
endforeach()

# What goes into a wheel; scikit-build-core adds the Python files itself.
install(TARGETS octet_python LIBRARY DESTINATION octet COMPONENT python EXCLUDE_FROM_ALL)
