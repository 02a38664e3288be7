# cmake -DCOMPILER=… -DSOURCE=… -DINCLUDE=… -P run.cmake: the file must not compile, for the reason that it names
# ("expect: …"); a file without one must.
file(STRINGS "${SOURCE}" expected REGEX "// expect: ")
string(REGEX REPLACE ".*// expect: (.*)" "\\1" expected "${expected}")
execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -Werror -I${INCLUDE} ${SOURCE}
                RESULT_VARIABLE code ERROR_VARIABLE errors OUTPUT_QUIET TIMEOUT 120)
if(expected STREQUAL "")
    if(NOT code EQUAL 0)
        message(FATAL_ERROR "${SOURCE} must compile:\n${errors}")
    endif()
elseif(code EQUAL 0)
    message(FATAL_ERROR "${SOURCE} compiles, but must not: ${expected}")
elseif(NOT errors MATCHES "${expected}")
    message(FATAL_ERROR "${SOURCE} fails for another reason than \"${expected}\":\n${errors}")
endif()
