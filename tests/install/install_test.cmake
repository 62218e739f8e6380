# cmake -DBUILD_DIR=... -DSOURCE_DIR=... -DWORK_DIR=... -DMPI_FLAVOURS=... -P install_test.cmake
#
# Installs the build, and builds and runs projects outside of the tree that use it: one without MPI, and
# one for each MPI that has backends, which it brings itself.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "failed (${result}): ${ARGN}\n${output}")
  endif()
endfunction()

# build_project(FOLDER OPTION...): configures and builds SOURCE_DIR/FOLDER in WORK_DIR/FOLDER.
function(build_project name folder)
  run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/${folder} -B ${WORK_DIR}/${name}
      -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
      -DCMAKE_CXX_FLAGS=${CXX_FLAGS} ${ARGN})
  run(${CMAKE_COMMAND} --build ${WORK_DIR}/${name})
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
build_project(program program)
run(${WORK_DIR}/program/program ${WORK_DIR}/program/program)

foreach(flavour IN LISTS MPI_FLAVOURS)
  find_program(mpicxx mpicxx.${flavour} NO_CACHE)
  if(mpicxx)
    build_project(ranks-${flavour} ranks -DMPI_CXX_COMPILER=${mpicxx})
    run(${MPIRUN} ${flavour} 2 ${WORK_DIR}/ranks-${flavour}/ranks)
  endif()
  unset(mpicxx)
endforeach()

# The installed command finds the installed library without help.
if(EXISTS ${WORK_DIR}/prefix/bin/forebay)
  run(${WORK_DIR}/prefix/bin/forebay --version)
endif()
