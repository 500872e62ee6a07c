# Common to toolchain-<architecture>.cmake, which sets CMAKE_SYSTEM_PROCESSOR before.
#
# fmt comes from the host's /usr/include. Debian's cross compilers look there of themselves, after
# the headers of the target's own libc; naming the folder with -I would put it before them.
#
# With CMAKE_SYSROOT, a folder with the other architecture's packages, everything comes from there.
set(CMAKE_SYSTEM_NAME Linux)
set(target ${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)

# The versioned names first: beside an old default (Ubuntu 22.04) a newer one may be installed.
find_program(octet_cross_cxx NAMES
  ${target}-g++-15 ${target}-g++-14 ${target}-g++-13 ${target}-g++-12 ${target}-g++ REQUIRED)
string(REPLACE g++ gcc octet_cross_c ${octet_cross_cxx})
set(CMAKE_CXX_COMPILER ${octet_cross_cxx})
set(CMAKE_C_COMPILER ${octet_cross_c})  # GoogleTest's own project asks for C as well

# -cpu max: every instruction set that the emulator knows, or the kernels would not be tested.
find_program(octet_emulator NAMES
  qemu-${CMAKE_SYSTEM_PROCESSOR} qemu-${CMAKE_SYSTEM_PROCESSOR}-static)
if(octet_emulator)
  set(octet_emulated_root /usr/${target})
  if(CMAKE_SYSROOT)
    set(octet_emulated_root ${CMAKE_SYSROOT})
  endif()
  set(CMAKE_CROSSCOMPILING_EMULATOR ${octet_emulator} -L ${octet_emulated_root} -cpu max)
endif()

if(CMAKE_SYSROOT)
  set(CMAKE_LIBRARY_ARCHITECTURE ${target})
  set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
  foreach(kind LIBRARY INCLUDE PACKAGE)
    set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
  endforeach()
endif()
