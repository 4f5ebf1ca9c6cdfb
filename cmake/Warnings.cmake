# One place for the flags that every target of ours gets.
include(CheckCCompilerFlag)
include(CheckLinkerFlag)

add_library(weir_flags INTERFACE)
target_compile_features(weir_flags INTERFACE c_std_17)
target_compile_definitions(weir_flags INTERFACE _GNU_SOURCE)
target_compile_options(weir_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
  -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
  -Wwrite-strings -Wcast-qual -Wpointer-arith -Wformat=2 -Wundef -Wvla
  -Wswitch-enum -Wimplicit-fallthrough -Werror=implicit
  -Werror=incompatible-pointer-types -Werror=int-conversion
  -fvisibility=hidden -fno-strict-aliasing -fno-delete-null-pointer-checks)
# Texts for people are cut to their buffers on purpose.
check_c_compiler_flag(-Wformat-truncation=0 HAVE_FORMAT_TRUNCATION)
if(HAVE_FORMAT_TRUNCATION)
  target_compile_options(weir_flags INTERFACE -Wno-format-truncation)
endif()
option(WEIR_WERROR "warnings are errors" OFF)
if(WEIR_WERROR)
  target_compile_options(weir_flags INTERFACE -Werror)
endif()

# Hardening, where the compiler has it (clang 14 lacks some).
set(hardening -fstack-protector-strong -fstack-clash-protection
  -fcf-protection=full -ftrivial-auto-var-init=zero)
foreach(flag IN LISTS hardening)
  string(MAKE_C_IDENTIFIER "HAVE_${flag}" have)
  check_c_compiler_flag(${flag} ${have})
  if(${have})
    target_compile_options(weir_flags INTERFACE ${flag})
  endif()
endforeach()
if(NOT WEIR_SANITIZE)
  target_compile_options(weir_flags INTERFACE
    $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
    $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=3>)
endif()
target_link_options(weir_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
include(CheckPIESupported)
check_pie_supported()
