# docs/errors.md and the manual pages: made in the build folder; tools/check-docs compares.
add_executable(errordoc ${CMAKE_SOURCE_DIR}/tools/errordoc.c)
target_include_directories(errordoc PRIVATE ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(errordoc PRIVATE weir_flags)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/gen/docs)
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/gen/docs/errors.md
  COMMAND errordoc > ${CMAKE_BINARY_DIR}/gen/docs/errors.md
  DEPENDS errordoc VERBATIM)
set(docs_made ${CMAKE_BINARY_DIR}/gen/docs/errors.md)

find_program(SCDOC scdoc)
if(SCDOC)
  file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*.scd)
  foreach(page IN LISTS pages)
    get_filename_component(name ${page} NAME_WLE)
    string(REGEX REPLACE ".*\\." "" section ${name})
    set(made ${CMAKE_BINARY_DIR}/man/man${section}/${name})
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/man/man${section})
    add_custom_command(OUTPUT ${made}
      COMMAND sh -c "exec '${SCDOC}' <'${page}' >'${made}'"
      DEPENDS ${page} VERBATIM)
    list(APPEND docs_made ${made})
    install(FILES ${made} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endforeach()
endif()
add_custom_target(docs ALL DEPENDS ${docs_made})
