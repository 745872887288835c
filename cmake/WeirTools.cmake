# ccache and mold, used when they are there. Only a top-level build sets these: a host project
# chooses its own tools.
if(NOT WEIR_TOOLS)
  return()
endif()

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(WEIR_CCACHE ccache)
  mark_as_advanced(WEIR_CCACHE)
  if(WEIR_CCACHE)
    # Precompiled headers are cached only when ccache is told that their macros may vary. It is not
    # told to overlook headers that change during a compilation: whoever edits then would be served
    # the wrong object for ever after.
    set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros
        "${WEIR_CCACHE}")
  endif()
endif()

find_program(WEIR_MOLD mold)
mark_as_advanced(WEIR_MOLD)
if(WEIR_MOLD AND NOT CMAKE_CROSSCOMPILING)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=mold WEIR_MOLD_WORKS)
  if(WEIR_MOLD_WORKS)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
