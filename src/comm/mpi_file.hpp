// A CommonFile over MPI-IO (OMPIO, ROMIO).
//
// A collective read is a view of the file that shows just the pieces (MPI_Type_create_hindexed with
// 64-bit displacements), and one MPI_File_read_at_all of all that the view shows. Libraries count
// bytes of one call with 32 bits in places, so a read is done in rounds of at most `round_bytes`;
// the ranks agree on how many, and who has no more pieces takes part with none.
//
// A call that fails on one rank must not keep it from the calls that the others go on to make, so
// errors are noted and thrown at the end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/common_file.hpp"
#include "comm/mpi_communicator.hpp"

namespace forebay {

class MpiFile final : public CommonFile {
 public:
  static constexpr std::uint64_t kRoundBytes = std::uint64_t{512} << 20;

  /// Collective over `comm`, which belongs to this object alone. Opens read-only.
  MpiFile(std::shared_ptr<MpiCommunicator> comm, const std::string& path,
          std::uint64_t round_bytes = kRoundBytes);
  ~MpiFile() override;

  void read_all(std::span<const FilePiece> pieces) override;
  std::uint64_t read(std::uint64_t offset, std::span<std::byte> into) override;
  std::string describe() const override;

 private:
  using Round = std::vector<FilePiece>;

  std::vector<Round> rounds_of(std::span<const FilePiece> pieces) const;
  int read_round(const Round& round);
  void check(int code, const char* call) const;

  std::shared_ptr<MpiCommunicator> comm_;
  std::unique_ptr<CommonSteps> farewell_;  ///< closing is collective: only if all come to it
  std::string path_;
  std::uint64_t round_bytes_;
  MPI_File file_ = MPI_FILE_NULL;
};

}  // namespace forebay
