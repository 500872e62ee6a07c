# The library for others, octet::octet: the objects of octet_core behind the public headers alone.
# Tests and tools go on linking octet_core, whose insides they look at.
#
# Both kinds are made of the same objects; BUILD_SHARED_LIBS says which is octet::octet. The other
# is built only when it is asked for.

# Kernels for GPUs and some layers are objects that octet_core is given; its own list leaves them
# out.
get_target_property(octet_objects octet_core SOURCES)
list(FILTER octet_objects INCLUDE REGEX "TARGET_OBJECTS|\\.o$")
list(PREPEND octet_objects $<TARGET_OBJECTS:octet_core>)

# What these objects call: our own targets are flags, and nlohmann-json is headers alone.
get_target_property(octet_dependencies octet_core LINK_LIBRARIES)
list(FILTER octet_dependencies EXCLUDE REGEX "^(octet_|nlohmann_json::)")
list(PREPEND octet_dependencies ${octet_fmt})

add_library(octet_static STATIC ${octet_objects})
add_library(octet_shared SHARED ${octet_objects})
foreach(library octet_static octet_shared)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME octet EXPORT_NAME octet
    LINKER_LANGUAGE CXX)
  target_link_libraries(${library} PRIVATE ${octet_dependencies})
  target_compile_features(${library} PUBLIC cxx_std_20)
  target_include_directories(${library} INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
endforeach()
# Before 1.0 a minor version may change the interface.
set_target_properties(octet_shared PROPERTIES VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
# Hidden visibility does not reach the standard library's templates, which these do.
target_link_options(octet_shared PRIVATE
  LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map LINKER:--exclude-libs,ALL
  LINKER:-z,nodelete)  # threads, and what is to be called when they end, outlive dlclose()

if(BUILD_SHARED_LIBS)
  set(octet_public octet_shared)
  set_target_properties(octet_static PROPERTIES EXCLUDE_FROM_ALL ON)
else()
  set(octet_public octet_static)
  set_target_properties(octet_shared PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
add_library(octet::octet ALIAS ${octet_public})
