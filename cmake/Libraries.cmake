# What is built from the layers, and what is installed.
#
#   libweir         producers and operators: hiredis, libcrypto
#   libweir-worker  running handlers: adds libuv, jansson
#   weir            the tool and the daemons
set(client_layers base cron model net redis store audit client)
set(worker_layers loop json command sched worker)
set(tool_layers embed cli bin)

function(weir_objects out)
  set(objects)
  foreach(layer IN LISTS ARGN)
    if(TARGET weir_${layer})
      list(APPEND objects $<TARGET_OBJECTS:weir_${layer}>)
    endif()
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

function(weir_library name)
  add_library(${name} SHARED ${ARGN})
  add_library(${name}-static STATIC ${ARGN})
  set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0
    LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/weir.map)
  set_target_properties(${name}-static PROPERTIES OUTPUT_NAME ${name})
  target_link_options(${name} PRIVATE
    -Wl,--version-script=${CMAKE_SOURCE_DIR}/cmake/weir.map)
  foreach(target ${name} ${name}-static)
    target_include_directories(${target} PUBLIC
      $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
  endforeach()
  target_link_libraries(${name} PRIVATE weir_flags)
endfunction()

weir_objects(client_objects ${client_layers})
weir_library(weir ${client_objects})
target_link_libraries(weir PRIVATE PkgConfig::HIREDIS PkgConfig::CRYPTO Threads::Threads)

# The worker library carries the lower layers itself: only weir_* leaves a library, and it
# needs more of them than the public API.
weir_objects(worker_objects ${client_layers} ${worker_layers})
weir_library(weir-worker ${worker_objects})
target_link_libraries(weir-worker PRIVATE PkgConfig::HIREDIS PkgConfig::CRYPTO PkgConfig::UV
  PkgConfig::JANSSON Threads::Threads ${CMAKE_DL_LIBS})

if(TARGET weir_bin)
  weir_objects(tool_objects ${client_layers} ${worker_layers} ${tool_layers})
  add_executable(weir-tool ${tool_objects})
  set_target_properties(weir-tool PROPERTIES OUTPUT_NAME weir LINKER_LANGUAGE C)
  target_link_libraries(weir-tool PRIVATE weir_flags PkgConfig::HIREDIS PkgConfig::CRYPTO
    PkgConfig::UV PkgConfig::JANSSON Threads::Threads m ${CMAKE_DL_LIBS})
  # Plugins get the weir_* calls from the tool (docs/decisions/0006).
  target_link_options(weir-tool PRIVATE -Wl,--dynamic-list=${CMAKE_SOURCE_DIR}/cmake/tool.list)
  set_target_properties(weir-tool PROPERTIES
    LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/tool.list)
  install(TARGETS weir-tool DESTINATION ${CMAKE_INSTALL_BINDIR})
  configure_file(${CMAKE_SOURCE_DIR}/dist/systemd/weir-work@.service.in
    ${CMAKE_BINARY_DIR}/weir-work@.service @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/weir-work@.service DESTINATION lib/systemd/system)
  install(FILES ${CMAKE_SOURCE_DIR}/dist/sysusers.d/weir.conf DESTINATION lib/sysusers.d)
endif()

install(TARGETS weir weir-static weir-worker weir-worker-static EXPORT weirTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/weir DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# Relative to the file itself, so that `cmake --install --prefix` needs no new configuration.
file(RELATIVE_PATH WEIR_PC_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
foreach(pc libweir libweir-worker)
  configure_file(${CMAKE_SOURCE_DIR}/dist/pkgconfig/${pc}.pc.in ${CMAKE_BINARY_DIR}/${pc}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${pc}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# find_package(weir): the names of the libraries alone, no folder of this machine.
include(CMakePackageConfigHelpers)
set(WEIR_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
configure_package_config_file(${CMAKE_SOURCE_DIR}/dist/cmake/weirConfig.cmake.in
  ${CMAKE_BINARY_DIR}/weirConfig.cmake INSTALL_DESTINATION ${WEIR_CMAKE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/weirConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/weirConfig.cmake ${CMAKE_BINARY_DIR}/weirConfigVersion.cmake
  DESTINATION ${WEIR_CMAKE_DIR})
install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${WEIR_CMAKE_DIR})
