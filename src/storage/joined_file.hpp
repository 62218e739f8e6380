// Several files as one, so that one BulkReader, with its threads or its ring, reads from all.
//
//   offset   0 ........... | 2 MiB * k ........ | 2 MiB * m ....
//            part 0        | part 1             | part 2            nothing lies between them
//
// Offsets are an address space and nothing else: a read must stay inside one part. Engines that
// need descriptors or mappings ask resolve() whose bytes an offset means.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "forebay/storage.hpp"

namespace forebay {

/// Safe from any thread, as its parts are.
class JoinedFile final : public File {
 public:
  /// `name` stands for all of them. Throws usage when they are too large together.
  JoinedFile(std::string name, std::vector<std::shared_ptr<const File>> parts);

  /// Where `part` begins.
  std::uint64_t begin(std::size_t part) const { return begins_[part]; }

  const std::string& path() const override { return name_; }
  std::uint64_t size() const override { return begins_.back(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override;
  std::span<const std::byte> map() const override { return {}; }
  void check() const override;
  FileFingerprint fingerprint() const override;
  FileCounters counters() const override;
  void read_ahead(bool forward) const noexcept override;
  FilePlace place(std::uint64_t offset) const override;
  bool has_descriptors() const override;
  bool is_mapped() const override;

 private:
  std::string name_;
  std::vector<std::shared_ptr<const File>> parts_;
  std::vector<std::uint64_t> begins_;  // of each part, and the end of all
};

/// What `offset` of `file` means where files are joined or pooled (file_pool.hpp); else just that.
/// The file that it names is open.
FilePlace resolve(const std::shared_ptr<const File>& file, std::uint64_t offset);

}  // namespace forebay
