// Whether roots read for the ranks of a node, or each rank for itself, and how what one reads lies
// in the file: by order, options and file system.
#pragma once

#include "loader/opened.hpp"

namespace forebay {

/// Whether ranks that draw from buffers of their own may have roots that read for them, and if they
/// are not asked, have them: where ranks of several nodes or processes burden the same servers.
ReadAlone who_reads(const Ranks& ranks, const LoaderOptions& options, bool local);

/// Whether a root's windows, or what it reads of one, do not follow each other in the file. On a
/// shared file system what is read ahead behind them is read for nothing by its servers.
bool lie_apart(const Team& team, const LoaderOptions& options);

}  // namespace forebay
