# forebay_room(NAME LIBRARIES lib...): one folder under src/ becomes one object library; all rooms
# together are the library. Sources are every *.cc of the folder and its sub-folders.
function(forebay_room name)
  cmake_parse_arguments(ROOM "" "" "LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc)
  if(NOT sources)
    return()
  endif()
  add_library(forebay_${name} OBJECT ${sources})
  target_include_directories(forebay_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                                    ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(forebay_${name} PRIVATE ${FOREBAY_WARNINGS})
  target_link_libraries(forebay_${name} PUBLIC fmt::fmt Threads::Threads ${ROOM_LIBRARIES})
  target_link_libraries(forebay PRIVATE forebay_${name})
endfunction()

# forebay_test(NAME): tests/NAME/*_test.cc becomes one test program, its cases ctest cases.
# LABEL lets a preset pick what it can run (unit, threads, mpi); programs labelled `threads`
# are also built by the target thread_tests.
function(forebay_test name)
  cmake_parse_arguments(TEST "" "LABEL" "LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" target ${name}_test)
  add_executable(${target} ${sources})
  target_compile_options(${target} PRIVATE ${FOREBAY_WARNINGS})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE forebay GTest::gmock GTest::gtest_main ${TEST_LIBRARIES})
  if(NOT TEST_LABEL)
    set(TEST_LABEL unit)
  elseif(TEST_LABEL STREQUAL threads)
    add_dependencies(thread_tests ${target})
  endif()
  gtest_discover_tests(${target} TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60
                       PROPERTIES LABELS ${TEST_LABEL} TIMEOUT 120
                                  # No test finds what another one has left in the user's cache.
                                  ENVIRONMENT "XDG_CACHE_HOME=/dev/null")
endfunction()
