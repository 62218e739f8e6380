# MPI: which kinds of it are here, and the backends that are made of each. libforebay itself needs none.
#
#   FOREBAY_MPI_BACKENDS       AUTO: all that are found; a list of openmpi, mpich, abi (the standard ABI of
#                              MPI 5); OFF: none
#   FOREBAY_MPICXX_<FLAVOUR>   the compiler wrapper of one; found by its name otherwise
#
# The result is FOREBAY_MPI_FLAVOURS, a target ForebayMpi::<flavour> for what calls MPI itself, and
# FOREBAY_MPI_LAUNCHED, those whose mpirun is here as well. CMake's own FindMPI knows one MPI a project.
set(FOREBAY_MPI_BACKENDS "AUTO" CACHE STRING "MPI backends to build: AUTO, OFF, or of openmpi;mpich;abi")

# forebay_ask_mpicxx(VARIABLE WRAPPER QUESTION...): the words of the first question that it understands.
function(forebay_ask_mpicxx variable wrapper)
  foreach(question IN LISTS ARGN)
    execute_process(COMMAND ${wrapper} ${question} OUTPUT_VARIABLE words RESULT_VARIABLE status
                    ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(status EQUAL 0)
      separate_arguments(words UNIX_COMMAND "${words}")
      set(${variable} "${words}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${variable} "" PARENT_SCOPE)
endfunction()

# forebay_flavour_of(VARIABLE WRAPPER): the flavour by the wrapper's mpi.h, told as forebay/mpi.hpp does.
function(forebay_flavour_of variable wrapper)
  set(probe ${PROJECT_BINARY_DIR}/mpi_flavour.cc)
  file(WRITE ${probe} "#include <mpi.h>
#if defined(OMPI_MAJOR_VERSION)
forebay_flavour openmpi
#elif defined(MPI_ABI_VERSION)
forebay_flavour abi
#elif defined(MPICH_VERSION) || defined(MPICH_NUMVERSION)
forebay_flavour mpich
#endif
")
  execute_process(COMMAND ${wrapper} -E ${probe} OUTPUT_VARIABLE text ERROR_QUIET)
  if(text MATCHES "forebay_flavour ([a-z]+)")
    set(${variable} ${CMAKE_MATCH_1} PARENT_SCOPE)
  else()
    set(${variable} "" PARENT_SCOPE)
  endif()
endfunction()

# forebay_mpi_target(FLAVOUR WRAPPER): ForebayMpi::<flavour>, from what the wrapper would add. Libraries
# that begin with mpi are named by their files, without those of the C++ bindings that MPI has dropped.
function(forebay_mpi_target flavour wrapper)
  forebay_ask_mpicxx(words ${wrapper} --showme:compile -compile_info)
  forebay_ask_mpicxx(link_words ${wrapper} --showme:link -link_info)
  set(folders ${words} ${link_words})
  list(FILTER folders INCLUDE REGEX "^-L")
  list(TRANSFORM folders REPLACE "^-L" "")
  set(libraries)
  foreach(word IN LISTS link_words)
    if(word MATCHES "^-l(mpi_abi|mpi|mpich)$")
      find_library(file NAMES ${CMAKE_MATCH_1} PATHS ${folders} NO_DEFAULT_PATH NO_CACHE)
      if(NOT file)
        find_library(file NAMES ${CMAKE_MATCH_1} REQUIRED NO_CACHE)
      endif()
      # Where the library itself lies, not the link for compilers: that is the folder to be found at run time.
      file(REAL_PATH ${file} file)
      list(APPEND libraries ${file})
      unset(file)
    elseif(word MATCHES "^-l" AND NOT word MATCHES "^-l(mpi_cxx|mpichcxx|mpicxx)$")
      list(APPEND libraries ${word})
    endif()
  endforeach()
  set(includes ${words})
  list(FILTER includes INCLUDE REGEX "^-I")
  list(TRANSFORM includes REPLACE "^-I" "")
  set(definitions ${words})
  list(FILTER definitions INCLUDE REGEX "^-D")
  list(TRANSFORM definitions REPLACE "^-D" "")
  add_library(ForebayMpi::${flavour} INTERFACE IMPORTED GLOBAL)
  set_target_properties(ForebayMpi::${flavour} PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${includes}" INTERFACE_COMPILE_DEFINITIONS "${definitions}"
    INTERFACE_LINK_LIBRARIES "${libraries}")
endfunction()

# forebay_find_mpi(FLAVOUR NAME...): looks for a wrapper by these names, and for the launcher beside it.
function(forebay_find_mpi flavour)
  string(TOUPPER ${flavour} upper)
  find_program(FOREBAY_MPICXX_${upper} NAMES ${ARGN})
  mark_as_advanced(FOREBAY_MPICXX_${upper})
  set(wrapper ${FOREBAY_MPICXX_${upper}})
  set(found "")
  if(wrapper)
    forebay_flavour_of(found ${wrapper})
  endif()
  if(NOT found STREQUAL flavour)
    if(flavour IN_LIST FOREBAY_MPI_BACKENDS)
      message(FATAL_ERROR "FOREBAY_MPI_BACKENDS wants ${flavour}, which is not found: set "
                          "FOREBAY_MPICXX_${upper} to its mpicxx ('${wrapper}' is: '${found}')")
    endif()
    return()
  endif()
  forebay_mpi_target(${flavour} ${wrapper})
  list(APPEND FOREBAY_MPI_FLAVOURS ${flavour})
  set(FOREBAY_MPI_FLAVOURS ${FOREBAY_MPI_FLAVOURS} PARENT_SCOPE)
  cmake_path(GET wrapper PARENT_PATH folder)
  find_program(FOREBAY_MPIRUN_${upper} NAMES mpirun.${flavour} mpirun HINTS ${folder})
  mark_as_advanced(FOREBAY_MPIRUN_${upper})
  if(FOREBAY_MPIRUN_${upper})
    list(APPEND FOREBAY_MPI_LAUNCHED ${flavour})
    set(FOREBAY_MPI_LAUNCHED ${FOREBAY_MPI_LAUNCHED} PARENT_SCOPE)
  endif()
endfunction()

set(FOREBAY_MPI_FLAVOURS)
set(FOREBAY_MPI_LAUNCHED)
foreach(word IN LISTS FOREBAY_MPI_BACKENDS)
  if(NOT word MATCHES "^(AUTO|OFF|openmpi|mpich|abi)$")
    message(FATAL_ERROR "FOREBAY_MPI_BACKENDS is AUTO, OFF, or of openmpi;mpich;abi, not '${word}'")
  endif()
endforeach()
set(FOREBAY_MPICXX_NAMES_openmpi mpicxx.openmpi mpicxx)
set(FOREBAY_MPICXX_NAMES_mpich mpicxx.mpich mpicxx)
set(FOREBAY_MPICXX_NAMES_abi mpicxx_abi mpicxx)
if(NOT BUILD_SHARED_LIBS)
  # A backend would bring a second copy of a static library into the process.
  message(STATUS "Static build: no MPI backends; set BUILD_SHARED_LIBS=ON for them")
else()
  foreach(flavour IN ITEMS openmpi mpich abi)
    if(FOREBAY_MPI_BACKENDS STREQUAL "AUTO" OR flavour IN_LIST FOREBAY_MPI_BACKENDS)
      forebay_find_mpi(${flavour} ${FOREBAY_MPICXX_NAMES_${flavour}})
    endif()
  endforeach()
  message(STATUS "MPI backends: ${FOREBAY_MPI_FLAVOURS} (launchers: ${FOREBAY_MPI_LAUNCHED})")
endif()

# All backends: what has to be built beside libforebay for programs that are started on ranks.
add_custom_target(mpi_backends)

# forebay_mpi_backend(FLAVOUR): the room comm/mpi, compiled for one MPI into libforebay-mpi-<flavour>.so
# beside libforebay, which loads it (src/comm/mpi_backend.cc).
function(forebay_mpi_backend flavour)
  set(objects forebay_mpi_objects_${flavour})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/comm/mpi/*.cc)
  add_library(${objects} OBJECT ${sources})
  # Two copies of these names, of a test's and of the backend's, do not meet.
  set_target_properties(${objects} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${objects} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(${objects} PRIVATE ${FOREBAY_WARNINGS})
  target_link_libraries(${objects} PUBLIC forebay fmt::fmt Threads::Threads ForebayMpi::${flavour})
  forebay_unity(${objects})
  add_library(forebay-mpi-${flavour} MODULE $<TARGET_OBJECTS:${objects}>)
  target_link_libraries(forebay-mpi-${flavour} PRIVATE forebay fmt::fmt ForebayMpi::${flavour})
  # An MPI outside of the loader's folders is found where it was; not by a wheel, which goes elsewhere.
  set_target_properties(forebay-mpi-${flavour} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY $<TARGET_FILE_DIR:forebay> INSTALL_RPATH "$ORIGIN")
  if(NOT SKBUILD)
    set_target_properties(forebay-mpi-${flavour} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  endif()
  add_dependencies(mpi_backends forebay-mpi-${flavour})
endfunction()
