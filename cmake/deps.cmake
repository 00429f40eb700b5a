# Every outside library, once.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

if(DRUPE_KERNEL)
    pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
    pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
    pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
endif()

# Calls of functions whose types are known at run time only.
pkg_check_modules(FFI REQUIRED IMPORTED_TARGET libffi)

# Headers only: the loader library is opened at run time, on first use of an OpenCL device.
find_path(OPENCL_INCLUDE_DIR CL/cl.h REQUIRED)

if(DRUPE_PYTHON)
    # Module, not Embed: a wheel's build machine need not have libpython.
    find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
else()
    find_package(Python 3.11 REQUIRED COMPONENTS Interpreter)
endif()

if(DRUPE_TESTS)
    find_package(cmocka REQUIRED)
    if(NOT TARGET cmocka::cmocka)
        add_library(cmocka::cmocka INTERFACE IMPORTED)
        set_target_properties(cmocka::cmocka PROPERTIES
            INTERFACE_INCLUDE_DIRECTORIES "${CMOCKA_INCLUDE_DIR}"
            INTERFACE_LINK_LIBRARIES "${CMOCKA_LIBRARIES}")
    endif()
    if(cmocka_VERSION VERSION_LESS 2) # there the macro has its old name, which version 2 warns of
        set_property(TARGET cmocka::cmocka APPEND PROPERTY
            INTERFACE_COMPILE_DEFINITIONS assert_uint_in_range=assert_in_range)
    endif()
endif()
