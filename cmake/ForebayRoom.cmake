# forebay_unity(TARGET): under FOREBAY_UNITY the sources of the target are compiled in groups, which
# takes about half of the time. No file has to know: which ones go together is found by looking for
# names that they would define twice.
function(forebay_unity target)
  if(NOT FOREBAY_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/unity_groups.py
                          ${FOREBAY_UNITY_LINES} ${sources}
                  WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE groups
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" groups "${groups}")
  foreach(source group IN ZIP_LISTS sources groups)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A file's local name may be another one's constant.
  target_compile_options(${target} PRIVATE -Wno-shadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The compiler takes sources that are included for headers, whose classes must not have members
    # of unnamed namespaces.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# forebay_room(NAME LIBRARIES lib...): one folder under src/ becomes one object library; all rooms
# together are the library. Sources are every *.cc of the folder and its sub-folders, without those whose
# path matches EXCLUDE.
function(forebay_room name)
  cmake_parse_arguments(ROOM "" "EXCLUDE" "LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc)
  if(ROOM_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX ${ROOM_EXCLUDE})
  endif()
  if(NOT sources)
    return()
  endif()
  add_library(forebay_${name} OBJECT ${sources})
  target_include_directories(forebay_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                                    ${PROJECT_SOURCE_DIR}/src)
  set(guided OFF)
  if(FOREBAY_FUZZ AND FOREBAY_FUZZ_GUIDED)
    set(guided ON)
  endif()
  target_compile_options(forebay_${name} PRIVATE ${FOREBAY_WARNINGS}
                                                 $<$<BOOL:${guided}>:-fsanitize=fuzzer-no-link>)
  target_link_libraries(forebay_${name} PUBLIC fmt::fmt Threads::Threads ${ROOM_LIBRARIES})
  target_link_libraries(forebay PRIVATE forebay_${name})
  forebay_unity(forebay_${name})
endfunction()

# forebay_test_cases(TARGET NAME LABEL): each case of a test program is a ctest case, NAME.Suite.Case.
# LABEL lets a preset pick what it can run (unit, threads, torch, arithmetic); programs labelled `threads`
# are also built by the target thread_tests, and all by room_tests. Without FOREBAY_ROOM_TESTS only those
# that need torch, which no sanitizer sees, and `arithmetic`, which takes minutes where it is not
# optimized, are built with everything else, and run.
# Under FOREBAY_TEST_PROGRAMS the program as a whole, or a quarter of a large one, is one: NAME.program_0,
# which saves thousands of process starts where these are slow; scripts/stages.sh counts the cases in what
# it writes down.
function(forebay_test_cases target name label)
  add_dependencies(room_tests ${target})
  if(label STREQUAL threads)
    add_dependencies(thread_tests ${target})
  endif()
  if(NOT FOREBAY_ROOM_TESTS AND NOT label MATCHES "^(torch|arithmetic)$")
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  # No test finds what another one has left in the user's cache.
  set(environment "XDG_CACHE_HOME=/dev/null")
  if(NOT FOREBAY_TEST_PROGRAMS)
    math(EXPR limit "120 * ${FOREBAY_TEST_PATIENCE}")
    gtest_discover_tests(${target} TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS ${label} TIMEOUT ${limit} ENVIRONMENT "${environment}")
    return()
  endif()
  # Large programs run in parts, and the long ones first, so that no core idles at the end.
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources cost)
  set(parts 1)
  if(cost GREATER 12)
    set(parts 4)
  endif()
  math(EXPR last "${parts} - 1")
  math(EXPR limit "1200 * ${FOREBAY_TEST_PATIENCE}")
  foreach(part RANGE ${last})
    add_test(NAME ${name}.program_${part} COMMAND ${target})
    set_tests_properties(${name}.program_${part} PROPERTIES
      LABELS ${label} TIMEOUT ${limit} COST ${cost}
      ENVIRONMENT "${environment};GTEST_TOTAL_SHARDS=${parts};GTEST_SHARD_INDEX=${part};GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/test_cases/${target}_${part}.xml")
  endforeach()
endfunction()

# The library is what has to be optimized and inspected: tests compile in two thirds of the time like
# this, and under sanitizers in a third.
set(FOREBAY_TEST_OPTIONS ${FOREBAY_WARNINGS} $<$<CONFIG:RelWithDebInfo>:-O1 -g1> $<$<CONFIG:Debug>:-O0>)

# forebay_test_headers(TARGET): under FOREBAY_UNITY, what nearly every test includes is compiled once for
# all test programs. None of it may depend on definitions that some of them have and others have not.
function(forebay_test_headers target)
  if(NOT FOREBAY_UNITY)
    return()
  endif()
  if(NOT TARGET forebay_test_headers)
    set(empty ${PROJECT_BINARY_DIR}/test_headers.cc)
    file(WRITE ${empty}.new "")
    file(COPY_FILE ${empty}.new ${empty} ONLY_IF_DIFFERENT)
    add_library(forebay_test_headers OBJECT EXCLUDE_FROM_ALL ${empty})
    # As for programs, which are compiled with this instead of -fPIC.
    set_target_properties(forebay_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(forebay_test_headers PRIVATE ${FOREBAY_TEST_OPTIONS} -fPIE)
    target_link_libraries(forebay_test_headers PRIVATE forebay GTest::gmock)
    target_precompile_headers(forebay_test_headers PRIVATE <gmock/gmock.h> <algorithm> <array> <atomic>
      <chrono> <filesystem> <fstream> <map> <mutex> <numeric> <random> <set> <sstream> <thread> <vector>
      <forebay/communicator.hpp> <forebay/loader.hpp> <forebay/sync.hpp>)
  endif()
  target_precompile_headers(${target} REUSE_FROM forebay_test_headers)
endfunction()

# forebay_test(NAME): tests/NAME/*_test.cc becomes one test program, with cases as above.
function(forebay_test name)
  cmake_parse_arguments(TEST "" "LABEL" "LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" target ${name}_test)
  add_executable(${target} ${sources})
  target_compile_options(${target} PRIVATE ${FOREBAY_TEST_OPTIONS})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE forebay GTest::gmock GTest::gtest_main ${TEST_LIBRARIES})
  forebay_unity(${target})
  forebay_test_headers(${target})
  if(NOT TEST_LABEL)
    set(TEST_LABEL unit)
  endif()
  forebay_test_cases(${target} ${name} ${TEST_LABEL})
endfunction()
