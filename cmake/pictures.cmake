# libjpeg and libwebp, which write JPEG and WebP pictures, each when it is there. Without them
# everything else is built all the same, and such a picture is refused with a sentence that says so.
# OCTET_PICTURE_FORMATS=OFF leaves them out though they are there.
option(OCTET_PICTURE_FORMATS "Write JPEG and WebP where libjpeg and libwebp are found" ON)
if(OCTET_PICTURE_FORMATS AND NOT OCTET_PORTABLE)
  find_package(JPEG QUIET)
  find_package(WebP QUIET)
endif()
set(octet_picture_definitions)
foreach(format jpeg webp)
  string(TOUPPER ${format} name)
  if(TARGET JPEG::JPEG AND format STREQUAL jpeg)
    set(library JPEG::JPEG)
  elseif(TARGET WebP::webp AND format STREQUAL webp)
    set(library WebP::webp)
  else()
    message(STATUS "octet: without lib${format}, hence no ${name} pictures")
    continue()
  endif()
  target_link_libraries(octet_core PRIVATE ${library})
  list(APPEND octet_picture_definitions OCTET_HAS_${name}=1)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/formats/${format}.cpp PROPERTIES
    COMPILE_DEFINITIONS OCTET_HAS_${name}=1)
endforeach()
