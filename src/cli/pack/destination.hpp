// How an interrupted packing never looks complete, and goes on where it stopped.
//
//   DEST.partial/data.mdb            a valid database of the records committed so far
//   DEST.partial/forebay-pack.json   what is being packed; locked while a process packs
//   DEST/                            appears by one rename when the last record is committed
//
// A data set of DEST's name therefore is whole, whatever happened: Ctrl-C, kill -9, a full disk.
#pragma once

#include <string>

#include "cli/pack/source.hpp"
#include "core/non_copyable.hpp"

namespace forebay::pack {

class Destination : private NonCopyable {
 public:
  /// Makes DEST.partial ready: empty, or as an earlier run of the same `plan` left it (--resume).
  /// Throws usage when DEST or DEST.partial are in the way, or when --resume finds another plan;
  /// changed when another process packs there; io.
  Destination(const Options& options, std::string plan);
  ~Destination();

  const std::string& path() const { return path_; }
  /// Where the database is written until complete().
  const std::string& partial() const { return partial_; }

  /// Gives the finished database its name. The database must be closed. Throws io.
  void complete();

 private:
  void check_destination() const;
  void prepare_partial(bool resume, bool force);
  void check_plan() const;
  void write_plan() const;
  void lock_plan();

  std::string path_;
  std::string partial_;
  std::string plan_;
  bool force_;
  int lock_ = -1;
};

}  // namespace forebay::pack
