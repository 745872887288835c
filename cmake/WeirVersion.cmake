# Sets WEIR_VERSION from include/weir/version.h and WEIR_ABI_VERSION from include/weir/weir.h, the
# one place where each is written.
set(_weir_version_h "${CMAKE_CURRENT_LIST_DIR}/../include/weir/version.h")
file(READ "${_weir_version_h}" _weir_version_text)
set(_weir_parts)
foreach(_part IN ITEMS MAJOR MINOR PATCH)
  if(NOT _weir_version_text MATCHES "#define WEIR_VERSION_${_part} ([0-9]+)")
    message(FATAL_ERROR "include/weir/version.h does not define WEIR_VERSION_${_part}")
  endif()
  list(APPEND _weir_parts "${CMAKE_MATCH_1}")
endforeach()
list(JOIN _weir_parts "." WEIR_VERSION)
if(NOT _weir_version_text MATCHES "kVersion = \"${WEIR_VERSION}\"")
  message(FATAL_ERROR "include/weir/version.h: kVersion is not ${WEIR_VERSION}")
endif()

file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../include/weir/weir.h" _weir_abi_line
     REGEX "^#define WEIR_ABI_VERSION [0-9]+$")
if(NOT _weir_abi_line MATCHES "([0-9]+)$")
  message(FATAL_ERROR "include/weir/weir.h does not define WEIR_ABI_VERSION")
endif()
set(WEIR_ABI_VERSION "${CMAKE_MATCH_1}")
