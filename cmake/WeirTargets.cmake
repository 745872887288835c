# Every target of weir is made by one of these helpers, so that flags are written once.
#
#   weir_layer(NAME algorithm SOURCES gcra.cc … DEPS base)      a folder under src/
#   weir_library(NAME x SOURCES x.cc … [LIBS …])                parts shared by programs or tests
#   weir_executable(NAME x SOURCES x.cc … [LIBS …])             a program of ours
#   weir_c_executable(NAME x SOURCES x.c … [LIBS …])            a C99 program that links libweir.so
#   weir_bench(NAME x_bench [SOURCES …] [LIBS …])               bench/
#   weir_fuzz(NAME x_fuzz [SOURCES …])                          fuzz/
#   weir_example(NAME x [SOURCES …])                            examples/; built, and run as a test

set(WEIR_SOURCE_DIR "${PROJECT_SOURCE_DIR}")

# Warnings and language level, for weir's own files. Linked privately, never exported.
add_library(weir_flags INTERFACE)
target_compile_features(weir_flags INTERFACE cxx_std_20)
if(WEIR_WARNINGS)
  target_compile_options(weir_flags INTERFACE
    -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
    $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
    $<$<BOOL:${WEIR_WERROR}>:-Werror>
    # GCC 12 raises these wrongly inside an inlined std::string; clang and ASan are the judges.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-error=array-bounds;-Wno-error=restrict>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-error=stringop-overflow;-Wno-error=stringop-overread>)
endif()

set_property(GLOBAL PROPERTY WEIR_LAYERS "")

# A layer is an OBJECT library; src/CMakeLists.txt folds all of them into weir::weir. DEPS are the
# layers whose headers it may include; tools/layers.txt says the same as data and is checked.
function(weir_layer)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SOURCES;DEPS;OPTIONS")
  _weir_refuse_unknown("weir_layer(${ARG_NAME})" "${ARG_UNPARSED_ARGUMENTS}")
  if(NOT ARG_SOURCES)
    add_library(weir_${ARG_NAME} INTERFACE)  # headers only
    return()
  endif()
  add_library(weir_${ARG_NAME} OBJECT ${ARG_SOURCES})
  target_include_directories(weir_${ARG_NAME}
    PRIVATE "${WEIR_SOURCE_DIR}/src" "${WEIR_SOURCE_DIR}/include")
  target_link_libraries(weir_${ARG_NAME} PRIVATE weir_flags weir_xxhash Threads::Threads)
  # Nobody replaces a function of ours from outside, so the compiler may inline it.
  target_compile_options(weir_${ARG_NAME} PRIVATE -fno-semantic-interposition
    ${ARG_OPTIONS} $<$<BOOL:${WEIR_NO_EXCEPTIONS}>:-fno-exceptions>)
  set_target_properties(weir_${ARG_NAME} PROPERTIES
    CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  foreach(dep IN LISTS ARG_DEPS)
    if(NOT TARGET weir_${dep})
      message(FATAL_ERROR "layer ${ARG_NAME} depends on ${dep}, which is not below it in "
                          "src/CMakeLists.txt")
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY WEIR_LAYERS weir_${ARG_NAME})
endfunction()

# Never installed: what is installed is made of layers.
function(weir_library)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SOURCES;LIBS")
  _weir_refuse_unknown("weir_library(${ARG_NAME})" "${ARG_UNPARSED_ARGUMENTS}")
  add_library(${ARG_NAME} STATIC ${ARG_SOURCES})
  target_include_directories(${ARG_NAME} PRIVATE "${WEIR_SOURCE_DIR}/src" "${WEIR_SOURCE_DIR}")
  target_link_libraries(${ARG_NAME} PUBLIC weir::weir ${ARG_LIBS} PRIVATE weir_flags weir_xxhash)
  set_target_properties(${ARG_NAME} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()

function(weir_executable)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SOURCES;LIBS")
  _weir_refuse_unknown("weir_executable(${ARG_NAME})" "${ARG_UNPARSED_ARGUMENTS}")
  if(NOT ARG_SOURCES)
    set(ARG_SOURCES "${ARG_NAME}.cc")
  endif()
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_include_directories(${ARG_NAME} PRIVATE "${WEIR_SOURCE_DIR}/src" "${WEIR_SOURCE_DIR}")
  target_link_libraries(${ARG_NAME} PRIVATE weir::weir weir_flags weir_xxhash ${ARG_LIBS})
  set_target_properties(${ARG_NAME} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()

function(weir_c_executable)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SOURCES;LIBS")
  _weir_refuse_unknown("weir_c_executable(${ARG_NAME})" "${ARG_UNPARSED_ARGUMENTS}")
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE weir::c ${ARG_LIBS})
  target_compile_options(${ARG_NAME} PRIVATE
    -Wall -Wextra -Wpedantic -Wconversion $<$<BOOL:${WEIR_WERROR}>:-Werror>)
  set_target_properties(${ARG_NAME} PROPERTIES
    C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
endfunction()

function(weir_bench)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SOURCES;LIBS")
  weir_executable(${ARGV})
  if(NOT TARGET weir_benchmarks)
    add_custom_target(weir_benchmarks)
  endif()
  add_dependencies(weir_benchmarks ${ARG_NAME})
endfunction()

# One libFuzzer program, NAME ending in _fuzz. Its seeds are in fuzz/corpus/<NAME>/. `./dev fuzz`
# and the smoke lane of `./dev test` run every build/fuzz/fuzz/*_fuzz.
function(weir_fuzz)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SOURCES;LIBS")
  weir_executable(${ARGV})
  target_link_options(${ARG_NAME} PRIVATE -fsanitize=fuzzer)
endfunction()

function(weir_example)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SOURCES;LIBS")
  weir_executable(${ARGV})
  if(WEIR_BUILD_TESTS)
    add_test(NAME example_${ARG_NAME} COMMAND ${ARG_NAME})
    set_tests_properties(example_${ARG_NAME} PROPERTIES TIMEOUT 60)
  endif()
endfunction()

function(_weir_refuse_unknown who unparsed)
  if(unparsed)
    message(FATAL_ERROR "${who}: unknown words: ${unparsed}")
  endif()
endfunction()
