// How an interrupted packing never looks complete, and goes on where it stopped.
//
//   DEST.partial/data.mdb            a valid database of the records committed so far
//   DEST.partial/                    locked while a process packs: a second one says who does
//   DEST.partial/forebay-pack.json   what is being packed
//   DEST.partial/forebay-pack.files  of files that are records: what tells those that are packed
//                                    from others, and which were left out
//   DEST/                            appears by one rename when the last record is committed
//
// A data set of DEST's name therefore is whole, whatever happened: Ctrl-C, kill -9, a full disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/pack/packer.hpp"
#include "cli/pack/source.hpp"
#include "core/non_copyable.hpp"

namespace forebay::pack {

/// The first `records` files, and a digest of their names, sizes and times.
struct PackedState {
  std::uint64_t records = 0;
  std::uint64_t digest = 0;
  bool operator==(const PackedState&) const = default;
};

struct PackedFiles {
  std::vector<PackedState> states;  ///< before and after the commit that follows
  std::vector<BadFile> skipped;
};

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

  /// Keeps that for a later run, over what was kept before. Throws io.
  void keep(const PackedFiles& files) const;
  /// What was kept last; nothing where that cannot be read.
  PackedFiles packed_files() const;

  /// Removes what waits for a later run, as far as it can be.
  void discard() const;

  /// Gives the finished database its name. The database must be closed. Throws io.
  void complete();

 private:
  void check_destination() const;
  void lock_partial();
  void lock_alone(int fd) const;
  void prepare_partial(bool resume, bool force);
  void check_plan() const;
  void write_plan() const;

  std::string path_;
  std::string partial_;
  std::string plan_;
  bool force_;
  int lock_ = -1;
};

}  // namespace forebay::pack
