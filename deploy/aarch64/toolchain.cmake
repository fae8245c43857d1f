# Compiles for aarch64 with Debian's cross compiler, against the root that make_root.sh unpacks. Tools that
# run while compiling, such as protoc, are the host's. Tests run under QEMU.
#
# The variable SYSTOLE_AARCH64_ROOT of the environment names the root (default: build/aarch64-root).
# CMake reads this file several times, but keeps the root that it found the first time.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

if(NOT SYSTOLE_AARCH64_ROOT)
  set(SYSTOLE_AARCH64_ROOT $ENV{SYSTOLE_AARCH64_ROOT})
endif()
if(NOT SYSTOLE_AARCH64_ROOT)
  get_filename_component(SYSTOLE_AARCH64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../../build/aarch64-root ABSOLUTE)
endif()
set(SYSTOLE_AARCH64_ROOT ${SYSTOLE_AARCH64_ROOT} CACHE PATH "What deploy/aarch64/make_root.sh unpacked")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SYSTOLE_AARCH64_ROOT)
if(NOT EXISTS ${SYSTOLE_AARCH64_ROOT}/usr/include/absl)
  message(FATAL_ERROR "There are no libraries for aarch64 in ${SYSTOLE_AARCH64_ROOT}; run deploy/aarch64/make_root.sh.")
endif()

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT ${SYSTOLE_AARCH64_ROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# pkg-config must not look at the host's libraries.
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${CMAKE_SYSROOT})
