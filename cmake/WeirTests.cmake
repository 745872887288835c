# weir_test(NAME gcra_test [SOURCES gcra_test.cc …] [LABELS concurrent slow …] [PROPERTY] [JSON]
#           [LIBS …] [TIMEOUT seconds])
# makes one test program and one ctest entry. Without SOURCES it is <NAME>.cc, so a new test file
# is one line in its folder's CMakeLists.txt.
#
#   LABELS concurrent   also runs under ThreadSanitizer
#   LABELS slow         left out of `./dev test --quick`
#   PROPERTY            uses RapidCheck; left out where there is none for the target (aarch64)
#   JSON                uses nlohmann/json
#
# Tests run in the root of the source tree. Data from outside is looked for in $WEIR_SHARED, or in
# ../shared; a suite that does not find its part prints a line `no outside data: <suite>`.
function(weir_test)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "PROPERTY;JSON" "NAME;TIMEOUT" "SOURCES;LABELS;LIBS")
  _weir_refuse_unknown("weir_test(${ARG_NAME})" "${ARG_UNPARSED_ARGUMENTS}")
  if(NOT WEIR_BUILD_TESTS OR (ARG_PROPERTY AND NOT WEIR_RAPIDCHECK))
    return()
  endif()
  if(NOT ARG_SOURCES)
    set(ARG_SOURCES "${ARG_NAME}.cc")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  set(libs ${ARG_LIBS} weir_testing weir_gtest)
  set(precompiled weir_test_pch)
  if(ARG_PROPERTY)
    list(APPEND libs weir_rapidcheck)
    set(precompiled weir_property_test_pch)
  endif()
  if(ARG_JSON)
    list(APPEND libs weir_json)
  endif()
  weir_executable(NAME ${ARG_NAME} SOURCES ${ARG_SOURCES} LIBS ${libs})
  target_precompile_headers(${ARG_NAME} REUSE_FROM ${precompiled})
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME} WORKING_DIRECTORY "${WEIR_SOURCE_DIR}")
  set_tests_properties(${ARG_NAME} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
  if("concurrent" IN_LIST ARG_LABELS)
    # Two processors each, so that its threads meet one another and not the next test.
    set_tests_properties(${ARG_NAME} PROPERTIES PROCESSORS 2)
    add_dependencies(weir_concurrent_tests ${ARG_NAME})
  endif()
endfunction()

# weir_check(NAME x COMMAND … [LABELS …] [TIMEOUT seconds]): a ctest entry that is a script. With
# LABELS static it looks at sources only, so one lane of `./dev test` runs it, not each of them.
function(weir_check)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME;TIMEOUT" "COMMAND;LABELS")
  _weir_refuse_unknown("weir_check(${ARG_NAME})" "${ARG_UNPARSED_ARGUMENTS}")
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY "${WEIR_SOURCE_DIR}")
  set_tests_properties(${ARG_NAME} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()

# Finds the test libraries and compiles their headers once for all tests. A macro, because what
# find_package finds must be seen by the folders below.
macro(weir_prepare_tests)
  add_custom_target(weir_concurrent_tests)
  find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
  # Python and Node load libweir.so into programs that know no sanitizer, and of this machine.
  if(NOT WEIR_BUILD_C_LIBRARY OR CMAKE_CROSSCOMPILING OR CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    set(WEIR_RUN_BINDINGS FALSE)
  else()
    set(WEIR_RUN_BINDINGS TRUE)
  endif()
  weir_header(TARGET weir_boost_asio HEADER boost/asio.hpp PACKAGE libboost1.81-dev LINKS boost)
  add_library(weir_gtest INTERFACE)
  if(CMAKE_CROSSCOMPILING)
    # The installed GoogleTest is for this machine, so it is built from Debian's source package.
    if(NOT EXISTS /usr/src/googletest/CMakeLists.txt)
      message(FATAL_ERROR "Cross-compiled tests need GoogleTest's source: "
                          "apt-get install googletest")
    endif()
    set(INSTALL_GTEST OFF)
    add_subdirectory(/usr/src/googletest "${PROJECT_BINARY_DIR}/googletest" EXCLUDE_FROM_ALL SYSTEM)
    set(WEIR_RAPIDCHECK FALSE)
    weir_header(TARGET weir_json HEADER nlohmann/json.hpp PACKAGE nlohmann-json3-dev
                LINKS nlohmann)
    target_link_libraries(weir_gtest INTERFACE gmock gtest gtest_main)
  else()
    find_package(GTest REQUIRED)
    find_package(rapidcheck REQUIRED)
    set(WEIR_RAPIDCHECK TRUE)
    weir_header(TARGET weir_json HEADER nlohmann/json.hpp PACKAGE nlohmann-json3-dev)
    target_link_libraries(weir_gtest INTERFACE GTest::gmock GTest::gtest GTest::gtest_main)
    add_library(weir_rapidcheck INTERFACE)
    target_link_libraries(weir_rapidcheck INTERFACE rapidcheck)
    _weir_precompile(weir_property_test_pch "<gtest/gtest.h>;<rapidcheck.h>;<rapidcheck/gtest.h>"
                     weir_gtest weir_rapidcheck)
  endif()
  _weir_precompile(weir_test_pch "<gtest/gtest.h>" weir_gtest)
endmacro()

# Flags and include folders must be those of weir_executable: a precompiled header fits no others.
function(_weir_precompile name headers)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/${name}.cc" CONTENT "")
  add_library(${name} OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/${name}.cc")
  target_link_libraries(${name} PRIVATE weir_flags ${ARGN})
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
  target_precompile_headers(${name} PRIVATE ${headers})
endfunction()
