// CommonFile without MPI, for ranks as threads and a process alone: plain reads, between which the
// ranks wait for each other as MPI's might.
#pragma once

#include <memory>
#include <string>

#include "comm/common_file.hpp"
#include "forebay/communicator.hpp"
#include "forebay/storage.hpp"

namespace forebay {

class ThreadFile final : public CommonFile {
 public:
  /// `comm` belongs to this object alone.
  ThreadFile(std::shared_ptr<Communicator> comm, const std::string& path)
      : comm_(std::move(comm)), file_(open_file(path, Engine::pread)) {}

  void read_all(std::span<const FilePiece> pieces) override;
  /// What is behind the end of the file is left as it is.
  std::uint64_t read(std::uint64_t offset, std::span<std::byte> into) override;
  std::string describe() const override { return "plain reads in the place of MPI-IO"; }

 private:
  std::shared_ptr<Communicator> comm_;
  std::shared_ptr<const File> file_;
};

}  // namespace forebay
