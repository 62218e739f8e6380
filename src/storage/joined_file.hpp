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

#include "storage/bulk_reader.hpp"

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
  Stripes stripes(std::uint64_t offset) const override;
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

/// One of several joined files through the BulkReader of all.
/// Offsets are those of the file that begins at `begin`. `all` outlives it and reads for nobody
/// else between start() and finish().
class ShiftedReader final : public BulkReader {
 public:
  ShiftedReader(BulkReader& all, std::uint64_t begin) : all_(all), begin_(begin) {}

  void start(std::span<const ReadRequest> requests) override {
    requests_.assign(requests.begin(), requests.end());
    for (ReadRequest& request : requests_) request.offset += begin_;
    all_.start(requests_);
  }
  void finish(const Done& done) override { all_.finish(done); }
  void advance() override { all_.advance(); }
  void cancel() noexcept override { all_.cancel(); }
  BulkCounters counters() const override { return all_.counters(); }
  bool abandoned() const override { return all_.abandoned(); }
  std::string describe() const override { return all_.describe(); }

 private:
  BulkReader& all_;
  std::uint64_t begin_;
  std::vector<ReadRequest> requests_;
};

}  // namespace forebay
