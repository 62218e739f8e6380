// A CommonFile over MPI-IO (OMPIO, ROMIO).
//
// A collective read is a view of the file that shows just the pieces (MPI_Type_create_hindexed with
// 64-bit displacements), and one MPI_File_read_at_all of all that the view shows. Libraries count
// bytes of one call with 32 bits in places, so a read is done in rounds of at most `round_bytes`;
// the ranks agree on how many, and who has no more pieces takes part with none.
//
// A call that fails on one rank must not keep it from the calls that the others go on to make, so
// errors are noted and thrown at the end.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/common_file.hpp"
#include "comm/mpi/communicator.hpp"
#include "core/log.hpp"
#include "core/non_copyable.hpp"
#include "forebay/error.hpp"

namespace forebay {
namespace {

constexpr std::uint64_t kLargestCall = std::uint64_t{1} << 30;
constexpr std::size_t kMostPieces = 65536;
constexpr std::chrono::seconds kLongestFarewell{1};

/// A committed datatype; MPI_BYTE where making one failed.
class BlocksType : private NonCopyable {
 public:
  BlocksType(const std::vector<int>& lengths, const std::vector<MPI_Aint>& places) {
    code_ = MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(),
                                     places.data(), MPI_BYTE, &type_);
    if (code_ == MPI_SUCCESS) code_ = MPI_Type_commit(&type_);
  }
  ~BlocksType() {
    if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
  }

  int code() const { return code_; }
  MPI_Datatype get() const { return code_ == MPI_SUCCESS ? type_ : MPI_BYTE; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  int code_ = MPI_SUCCESS;
};

bool lie_in_a_row(const std::vector<FilePiece>& pieces) {
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    const auto& before = pieces[i - 1].into;
    if (before.data() + before.size() != pieces[i].into.data()) return false;
  }
  return true;
}

/// What a round looks like to MPI: where its pieces are in the file, from the first one on, and in
/// memory.
struct Blocks {
  std::vector<int> lengths;
  std::vector<MPI_Aint> in_file;
  std::vector<MPI_Aint> in_memory;
  std::uint64_t bytes = 0;

  explicit Blocks(const std::vector<FilePiece>& pieces) {
    for (const FilePiece& piece : pieces) {
      MPI_Aint address = 0;
      MPI_Get_address(piece.into.data(), &address);
      lengths.push_back(static_cast<int>(piece.into.size()));
      in_file.push_back(static_cast<MPI_Aint>(piece.offset - pieces.front().offset));
      in_memory.push_back(address);
      bytes += piece.into.size();
    }
  }
};

class MpiFile final : public CommonFile {
 public:
  MpiFile(std::shared_ptr<MpiCommunicator> comm, const std::string& path, std::uint64_t round_bytes)
      : comm_(std::move(comm)),
        path_(path),
        round_bytes_(std::clamp<std::uint64_t>(round_bytes, 1, kLargestCall)) {
    if (comm_->size() > 1)
      farewell_ = std::make_unique<CommonSteps>(comm_->split(0, comm_->rank()));
    check(MPI_File_open(comm_->handle(), path.c_str(), MPI_MODE_RDONLY, MPI_INFO_NULL, &file_),
          "MPI_File_open");
    check(MPI_File_set_errhandler(file_, MPI_ERRORS_RETURN), "MPI_File_set_errhandler");
  }

  ~MpiFile() override {
    if (file_ == MPI_FILE_NULL || mpi_is_over() || mpi_gave_up()) return;
    const auto deadline = std::chrono::steady_clock::now() + kLongestFarewell;
    const auto late = [deadline] { return std::chrono::steady_clock::now() > deadline; };
    try {
      if (farewell_ && !farewell_->meet(late)) {
        log(LogLevel::debug, "{} stays open in MPI: other ranks have not closed it in time", path_);
        return;
      }
    } catch (const Error& error) {
      log(LogLevel::warning, "{} stays open in MPI: {}", path_, error.what());
      return;
    }
    MPI_File_close(&file_);
  }

  void read_all(std::span<const FilePiece> pieces) override {
    const auto rounds = rounds_of(pieces);
    std::uint64_t count = rounds.size();
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, &count, 1, MPI_UINT64_T, MPI_MAX, comm_->handle()),
              "MPI_Allreduce");
    int failed = MPI_SUCCESS;
    for (std::uint64_t i = 0; i < count; ++i) {
      const int code = read_round(i < rounds.size() ? rounds[i] : Round());
      if (failed == MPI_SUCCESS) failed = code;
    }
    check(failed, "MPI_File_read_at_all");
  }

  std::uint64_t read(std::uint64_t offset, std::span<std::byte> into) override {
    std::uint64_t filled = 0;
    while (filled < into.size()) {
      const auto rest = into.subspan(filled, std::min(into.size() - filled, kLargestCall));
      MPI_Status status;
      check(MPI_File_read_at(file_, static_cast<MPI_Offset>(offset + filled), rest.data(),
                             static_cast<int>(rest.size()), MPI_BYTE, &status),
            "MPI_File_read_at");
      int count = 0;
      check(MPI_Get_count(&status, MPI_BYTE, &count), "MPI_Get_count");
      if (count <= 0) break;
      filled += std::min<std::uint64_t>(static_cast<std::uint64_t>(count), rest.size());
    }
    return filled;
  }

  std::string describe() const override { return "MPI-IO"; }

 private:
  using Round = std::vector<FilePiece>;

  std::vector<Round> rounds_of(std::span<const FilePiece> pieces) const {
    std::vector<FilePiece> sorted(pieces.begin(), pieces.end());
    std::ranges::sort(sorted, {}, &FilePiece::offset);
    std::vector<Round> rounds;
    std::uint64_t room = 0;
    for (FilePiece piece : sorted) {
      while (!piece.into.empty()) {
        if (room == 0 || rounds.back().size() == kMostPieces) {
          rounds.emplace_back();
          room = round_bytes_;
        }
        const std::uint64_t part = std::min<std::uint64_t>(room, piece.into.size());
        rounds.back().push_back({.offset = piece.offset, .into = piece.into.first(part)});
        piece = {.offset = piece.offset + part, .into = piece.into.subspan(part)};
        room -= part;
      }
    }
    return rounds;
  }

  /// Makes both collective calls in any case; the first code that is no success.
  int read_round(const Round& round) {
    const Blocks blocks(round);
    const BlocksType in_file(blocks.lengths, blocks.in_file);
    const MPI_Offset begin = round.empty() ? 0 : static_cast<MPI_Offset>(round.front().offset);
    const MPI_Datatype view = round.empty() ? MPI_BYTE : in_file.get();
    const int viewed = MPI_File_set_view(file_, begin, MPI_BYTE, view, "native", MPI_INFO_NULL);
    int read = MPI_SUCCESS;
    if (round.empty() || lie_in_a_row(round)) {
      void* const into = round.empty() ? nullptr : round.front().into.data();
      read = MPI_File_read_at_all(file_, 0, into, static_cast<int>(blocks.bytes), MPI_BYTE,
                                  MPI_STATUS_IGNORE);
    } else {
      const BlocksType in_memory(blocks.lengths, blocks.in_memory);
      read = MPI_File_read_at_all(file_, 0, MPI_BOTTOM, in_memory.code() == MPI_SUCCESS ? 1 : 0,
                                  in_memory.get(), MPI_STATUS_IGNORE);
      if (read == MPI_SUCCESS) read = in_memory.code();
    }
    if (in_file.code() != MPI_SUCCESS) return in_file.code();
    return viewed != MPI_SUCCESS ? viewed : read;
  }

  void check(int code, const char* call) const {
    if (code == MPI_SUCCESS) return;
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    throw Error(ErrorKind::io, fmt::format("{} failed: {}", call, text.data()),
                "check the file system, or read with another --engine", {.file = path_});
  }

  std::shared_ptr<MpiCommunicator> comm_;
  std::unique_ptr<CommonSteps> farewell_;  ///< closing is collective: only if all come to it
  std::string path_;
  std::uint64_t round_bytes_;
  MPI_File file_ = MPI_FILE_NULL;
};

}  // namespace

std::unique_ptr<CommonFile> open_mpi_file(std::shared_ptr<MpiCommunicator> comm,
                                          const std::string& path, std::uint64_t round_bytes) {
  return std::make_unique<MpiFile>(std::move(comm), path, round_bytes);
}

}  // namespace forebay
