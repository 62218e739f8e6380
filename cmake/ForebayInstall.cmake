# `cmake --install`: headers, the library, and a CMake package, so that another project can say
#
#   find_package(Forebay)
#   target_link_libraries(program PRIVATE Forebay::forebay)
#
# The MPI backends lie beside the library, which looks for them there; nobody links to them.
include(CMakePackageConfigHelpers)

# A static library would drag its object libraries and all their dependencies into the package.
if(NOT BUILD_SHARED_LIBS)
  message(STATUS "Static build: no install rules; set BUILD_SHARED_LIBS=ON to install")
  return()
endif()

set(FOREBAY_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Forebay)
install(DIRECTORY include/forebay DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING
        PATTERN *.hpp PATTERN *.h)
install(TARGETS forebay EXPORT ForebayTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT ForebayTargets NAMESPACE Forebay:: DESTINATION ${FOREBAY_PACKAGE_DIR}
        FILE ForebayTargets.cmake)
foreach(flavour IN LISTS FOREBAY_MPI_FLAVOURS)
  install(TARGETS forebay-mpi-${flavour} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
configure_package_config_file(cmake/ForebayConfig.cmake.in ForebayConfig.cmake
                              INSTALL_DESTINATION ${FOREBAY_PACKAGE_DIR})
write_basic_package_version_file(ForebayConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ForebayConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/ForebayConfigVersion.cmake
        DESTINATION ${FOREBAY_PACKAGE_DIR})
