# find_package(weir), and weir.pc for everybody else.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/weir")
install(TARGETS weir EXPORT weirTargets FILE_SET HEADERS FILE_SET asio)
if(WEIR_BUILD_C_LIBRARY)
  install(TARGETS weir_c EXPORT weirTargets)
endif()
install(EXPORT weirTargets NAMESPACE weir:: DESTINATION "${package_dir}")
# An export of its own: only who asks for the component needs what it stands on.
if(WEIR_BUILD_RULES)
  install(TARGETS weir_rules EXPORT weirRulesTargets FILE_SET HEADERS)
  install(EXPORT weirRulesTargets NAMESPACE weir:: DESTINATION "${package_dir}")
endif()
if(TARGET weir_redis_store)
  install(TARGETS weir_redis_store EXPORT weirRedisTargets FILE_SET HEADERS)
  install(EXPORT weirRedisTargets NAMESPACE weir:: DESTINATION "${package_dir}")
endif()
configure_package_config_file(cmake/weirConfig.cmake.in "${PROJECT_BINARY_DIR}/weirConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
# Until 1.0 a minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/weirConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/weirConfig.cmake" "${PROJECT_BINARY_DIR}/weirConfigVersion.cmake"
  DESTINATION "${package_dir}")

# Paths in the .pc files are relative to the file, so that an installed tree can be moved. weir is
# for C++, and names its library as a file: -lweir would find the C library beside it. weir-c is
# for C.
file(RELATIVE_PATH WEIR_PC_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
if(BUILD_SHARED_LIBS)
  set(WEIR_PC_LIBRARY "-L\${libdir} -lweirxx")
else()
  set(WEIR_PC_LIBRARY "\${libdir}/libweir.a")
endif()
configure_file(cmake/weir.pc.in "${PROJECT_BINARY_DIR}/weir.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/weir.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(WEIR_BUILD_C_LIBRARY)
  configure_file(cmake/weir-c.pc.in "${PROJECT_BINARY_DIR}/weir-c.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/weir-c.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  install(FILES docs/man/weir.3 docs/man/weir-node.3 docs/man/weir-python.3
    DESTINATION "${CMAKE_INSTALL_MANDIR}/man3")
endif()

if(WEIR_BUILD_RULES)
  if(BUILD_SHARED_LIBS)
    set(WEIR_PC_RULES_LIBRARY "-L\${libdir} -lweir_rules")
  else()
    set(WEIR_PC_RULES_LIBRARY "\${libdir}/libweir_rules.a")
  endif()
  configure_file(cmake/weir-rules.pc.in "${PROJECT_BINARY_DIR}/weir-rules.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/weir-rules.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()

if(TARGET weir_redis_store)
  configure_file(cmake/weir-redis.pc.in "${PROJECT_BINARY_DIR}/weir-redis.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/weir-redis.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()

if(WEIR_BUILD_APPS)
  install(TARGETS weir_app)
  install(FILES docs/man/weir.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
endif()
