# Finds NCCL with the CUDA runtime that it stands on: target NCCL::NCCL. Neither a device nor a driver
# is needed. Both may lie anywhere under CMAKE_PREFIX_PATH, as in include/ and lib/ of the Python wheels
# nvidia-nccl-cu12 and nvidia-cuda-runtime-cu12, whose libraries have version numbers only.
find_path(NCCL_INCLUDE_DIR nccl.h PATH_SUFFIXES cuda/include)
find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 PATH_SUFFIXES cuda/lib64)
find_path(NCCL_CUDA_INCLUDE_DIR cuda_runtime.h PATHS /usr/local/cuda PATH_SUFFIXES include)
find_library(NCCL_CUDA_LIBRARY NAMES cudart libcudart.so.12 libcudart.so.13 PATHS /usr/local/cuda
             PATH_SUFFIXES lib64)
if(NCCL_INCLUDE_DIR)
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h numbers REGEX "define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX REPLACE "[^;]* ([0-9]+)" "\\1" numbers "${numbers}")
  list(JOIN numbers "." NCCL_VERSION)
endif()
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY NCCL_CUDA_INCLUDE_DIR NCCL_CUDA_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL
  REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR NCCL_CUDA_LIBRARY NCCL_CUDA_INCLUDE_DIR
  VERSION_VAR NCCL_VERSION)
if(NCCL_FOUND AND NOT TARGET NCCL::NCCL)
  add_library(NCCL::NCCL INTERFACE IMPORTED)
  set_target_properties(NCCL::NCCL PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR};${NCCL_CUDA_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${NCCL_LIBRARY};${NCCL_CUDA_LIBRARY}")
endif()
