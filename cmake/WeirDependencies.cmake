# Where headers from outside come from. The library itself needs one at build time only: xxHash,
# inlined, so nothing of it reaches an installed header or a linker line.

# weir_header(TARGET name HEADER file PACKAGE debian-package [LINKS file-or-folder...])
# Makes INTERFACE target `name` with the folder that holds HEADER, or fails naming the package.
# When cross-compiling, that folder is usually the build machine's /usr/include, which must not be
# searched as a whole; LINKS (HEADER, if not given) are then linked into a folder of their own.
function(weir_header)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "TARGET;HEADER;PACKAGE" "LINKS")
  if(TARGET ${ARG_TARGET})
    return()
  endif()
  string(TOUPPER "${ARG_TARGET}_INCLUDE_DIR" variable)
  find_path(${variable} "${ARG_HEADER}")
  mark_as_advanced(${variable})
  if(NOT ${variable})
    message(FATAL_ERROR "weir needs ${ARG_HEADER}, which was not found. On Debian: "
                        "apt-get install ${ARG_PACKAGE}. Elsewhere: pass -D${variable}=<folder>.")
  endif()
  set(folder "${${variable}}")
  if(CMAKE_CROSSCOMPILING)
    set(folder "${PROJECT_BINARY_DIR}/headers/${ARG_TARGET}")
    if(NOT ARG_LINKS)
      set(ARG_LINKS "${ARG_HEADER}")
    endif()
    file(MAKE_DIRECTORY "${folder}")
    foreach(entry IN LISTS ARG_LINKS)
      file(CREATE_LINK "${${variable}}/${entry}" "${folder}/${entry}" SYMBOLIC)
    endforeach()
  endif()
  add_library(${ARG_TARGET} INTERFACE)
  target_include_directories(${ARG_TARGET} SYSTEM INTERFACE "${folder}")
endfunction()

weir_header(TARGET weir_xxhash HEADER xxhash.h PACKAGE libxxhash-dev
            LINKS xxhash.h xxh3.h)

# The C++ runtime brings threads on every current system; older ones want a flag.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
