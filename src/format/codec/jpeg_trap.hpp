// How libjpeg reports errors to us. It calls error_exit, which must not return: ours jumps back
// into the function that called the library. Those functions are noexcept C in spirit: they hold no
// object with a destructor, and what they need lives in the caller's frame.
#pragma once

#include <cstdio>
// jpeglib.h leans on what stands before it: FILE and size_t.
#include <jpeglib.h>

#include <csetjmp>

namespace forebay {

struct JpegTrap {
  jpeg_error_mgr manager;  // first: libjpeg's pointer to it is a pointer to the trap
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

/// Makes errors, and warnings after which pixels are made up, jump to `trap.jump`.
void set_trap(JpegTrap& trap);
/// A progress monitor that ends files which repeat their scans without end.
void limit_scans(j_common_ptr info);

}  // namespace forebay
