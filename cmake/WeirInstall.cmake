# find_package(weir), and weir.pc for everybody else.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/weir")
install(TARGETS weir EXPORT weirTargets FILE_SET HEADERS)
install(EXPORT weirTargets NAMESPACE weir:: DESTINATION "${package_dir}")
configure_package_config_file(cmake/weirConfig.cmake.in "${PROJECT_BINARY_DIR}/weirConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
# Until 1.0 a minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/weirConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/weirConfig.cmake" "${PROJECT_BINARY_DIR}/weirConfigVersion.cmake"
  DESTINATION "${package_dir}")

# Paths in weir.pc are relative to the file, so that an installed tree can be moved.
file(RELATIVE_PATH WEIR_PC_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
configure_file(cmake/weir.pc.in "${PROJECT_BINARY_DIR}/weir.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/weir.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

if(WEIR_BUILD_APPS)
  install(TARGETS weir_app)
endif()
