# lua/ -> scripts.gen.[ch] in the build folder.
file(GLOB luapack_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/luapack/*.c)
add_executable(luapack ${luapack_sources})
target_link_libraries(luapack PRIVATE weir_flags PkgConfig::CRYPTO)
set(WEIR_GEN ${CMAKE_BINARY_DIR}/gen/store)
file(GLOB_RECURSE lua_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/lua/*.lua)
file(MAKE_DIRECTORY ${WEIR_GEN})
add_custom_command(
  OUTPUT ${WEIR_GEN}/scripts.gen.c ${WEIR_GEN}/scripts.gen.h ${WEIR_GEN}/scripts.md
    ${WEIR_GEN}/explain.gen.c
  COMMAND luapack ${CMAKE_SOURCE_DIR}/lua ${WEIR_GEN}
  DEPENDS luapack ${lua_files}
  COMMENT "lua/ -> scripts.gen.[ch]")
add_custom_target(scripts DEPENDS ${WEIR_GEN}/scripts.gen.h)
if(TARGET weir_store)
  target_sources(weir_store PRIVATE ${WEIR_GEN}/scripts.gen.c)
endif()
if(TARGET weir_cli)
  target_sources(weir_cli PRIVATE ${WEIR_GEN}/explain.gen.c)
endif()
foreach(layer store audit client sched worker cli bin)
  if(TARGET weir_${layer})
    add_dependencies(weir_${layer} scripts)
  endif()
endforeach()
