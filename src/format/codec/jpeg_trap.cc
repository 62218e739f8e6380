#include "format/codec/jpeg_trap.hpp"

// The configuration decides how the message codes are numbered; jerror.h leans on it.
#include <jerror.h>

namespace forebay {
namespace {

// A progressive file may repeat scans without end over a large image; real ones have about ten.
constexpr int kMaxScans = 200;

[[noreturn]] void trap_error(j_common_ptr info) {
  JpegTrap* trap = reinterpret_cast<JpegTrap*>(info->err);
  trap->manager.format_message(info, trap->message);
  std::longjmp(trap->jump, 1);
}

// Warnings after which pixels are made up are errors for us; the others (stray bytes between
// markers, odd headers) are common in real data sets and harm nothing.
void trap_warning(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
      trap_error(info);
    default:
      ++info->err->num_warnings;
  }
}

}  // namespace

void set_trap(JpegTrap& trap) {
  jpeg_std_error(&trap.manager);
  trap.manager.error_exit = trap_error;
  trap.manager.emit_message = trap_warning;
}

void limit_scans(j_common_ptr info) {
  const auto* decoder = reinterpret_cast<jpeg_decompress_struct*>(info);
  if (decoder->input_scan_number > kMaxScans) {
    info->err->msg_code = JERR_BAD_PROGRESSION;
    trap_error(info);
  }
}

}  // namespace forebay
