# One place for warnings, hardening and sanitizers, and the three kinds of targets the project has.
#
#   drupe_objects(NAME SOURCES...)     a room's object files, linked into the library or extension that uses it
#   drupe_extension(NAME SOURCES...)   a CPython extension module, installed into the package `drupe`
#   drupe_test(NAME SOURCES...)        a cmocka program, registered with ctest under NAME

set(DRUPE_SANITIZE "" CACHE STRING "Sanitizers for every target: address,undefined or thread (empty: none)")
option(DRUPE_WERROR "Treat warnings as errors" OFF)

add_library(drupe_flags INTERFACE)
target_compile_features(drupe_flags INTERFACE c_std_11)
target_compile_definitions(drupe_flags INTERFACE _GNU_SOURCE)
target_compile_options(drupe_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith
    -fvisibility=hidden -fstack-protector-strong -fno-strict-aliasing
    $<$<BOOL:${DRUPE_WERROR}>:-Werror>)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT DRUPE_SANITIZE)
    target_compile_definitions(drupe_flags INTERFACE _FORTIFY_SOURCE=2)
endif()
if(DRUPE_SANITIZE)
    # The checks make paths that gcc warns of, though no caller takes them; it warns truly in the build without.
    target_compile_options(drupe_flags INTERFACE -fsanitize=${DRUPE_SANITIZE} -fno-omit-frame-pointer -g
        "$<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-format-overflow>")
    target_link_options(drupe_flags INTERFACE -fsanitize=${DRUPE_SANITIZE})
endif()

function(drupe_objects name)
    add_library(${name} OBJECT ${ARGN})
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON C_STANDARD 11 C_EXTENSIONS OFF)
    target_link_libraries(${name} PRIVATE drupe_flags Threads::Threads)
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
endfunction()

function(drupe_extension name)
    Python_add_library(${name} MODULE WITH_SOABI ${ARGN})
    set_target_properties(${name} PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF)
    target_link_libraries(${name} PRIVATE drupe_flags Threads::Threads)
    target_link_options(${name} PRIVATE -Wl,-Bsymbolic-functions) # calls of its own functions are direct
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/python/include)
    install(TARGETS ${name} DESTINATION ${DRUPE_PACKAGE_DIR})
endfunction()

function(drupe_test name)
    add_executable(${name} ${ARGN})
    set_target_properties(${name} PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF)
    target_link_libraries(${name} PRIVATE drupe_flags Threads::Threads cmocka::cmocka)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests/support)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 120)
endfunction()
