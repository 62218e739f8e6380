#include "format/lmdb/snapshot.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>

#include "format/lmdb/reader_slot.hpp"
#include "storage/file_error.hpp"

namespace forebay::lmdb {
namespace {

constexpr std::string_view kNotLmdb =
    "this is no LMDB file: check the path, or make one with 'forebay pack'; for records of one "
    "size say --format raw and their --schema";
constexpr std::string_view kEmpty =
    "copy it again from its source, or say what it is with --format";
constexpr std::string_view kRestore = "restore the file from a copy";
constexpr int kStableReads = 64;

/// Reads until two reads agree: a writer may be half-way through a meta page.
std::vector<std::byte> read_stable(const File& file, std::uint64_t offset, std::size_t size) {
  std::vector<std::byte> bytes(size);
  std::vector<std::byte> again(size);
  file.read(offset, bytes);
  for (int i = 0; i < kStableReads; ++i) {
    file.read(offset, again);
    if (again == bytes) return bytes;
    bytes.swap(again);
  }
  throw Error(ErrorKind::changed, "the meta pages do not come to rest",
              "wait until the writer is done", {.file = file.path(), .offset = offset});
}

bool is_magic_of_other_platform(std::span<const std::byte> page) {
  return load<std::uint32_t>(page, 16) == 0xDEC0EFBE || load<std::uint32_t>(page, 12) == kMagic;
}

/// LMDB 1.0 has a longer page header: its magic number comes 8 bytes later.
bool has_longer_header(std::span<const std::byte> page) {
  return load<std::uint32_t>(page, 24) == kMagic;
}

/// Throws when the bytes say that this is another kind of file, which no second meta page heals.
void refuse_other_formats(std::span<const std::byte> page, const std::string& path) {
  const Where where{.file = path, .offset = 0};
  if (is_magic_of_other_platform(page)) {
    throw Error(ErrorKind::unsupported,
                "the LMDB file was written on a big-endian or 32-bit system",
                "copy it with mdb_dump there and mdb_load here", where);
  }
  const bool longer_header = has_longer_header(page);
  if (!longer_header && load<std::uint32_t>(page, 16) != kMagic) return;
  const auto version = load<std::uint32_t>(page, longer_header ? 28 : 20);
  if (longer_header || version != kVersion) {
    throw Error(ErrorKind::unsupported,
                fmt::format("LMDB data version {} (version 2 is that of LMDB 1.0, which may be "
                            "encrypted or checksummed); only version 1 (LMDB 0.9) is read",
                            version),
                "copy it with the mdb_dump of its own version and the mdb_load of 0.9", where);
  }
}

/// Why `page` is not meta page `number`; empty when it is.
std::string fault_of_meta(std::span<const std::byte> page, PageNumber number) {
  const PageHeader header = decode_page_header(page);
  if (load<std::uint32_t>(page, 16) != kMagic) return "its magic number is wrong";
  if (load<std::uint32_t>(page, 20) != kVersion) return "its version is wrong";
  if ((header.flags & kPageMeta) == 0) return "it is not marked as a meta page";
  if (header.number != number) return fmt::format("it calls itself page {}", header.number);
  const Meta meta = decode_meta(page);
  const std::uint32_t size = meta.page_size();
  if (!std::has_single_bit(size) || size < kMinPageSize || size > kMaxPageSize) {
    return fmt::format("a page size of {} bytes is not among 4096 to 32768", size);
  }
  if (meta.last_page < 1 || meta.last_page >= (std::uint64_t{1} << 48)) {
    return fmt::format("its last page {} is impossible", meta.last_page);
  }
  return {};
}

/// A meta page that is whole but whose trees cannot be: the file was cut or damaged. The other
/// meta page is no help then, since it would pass an older state off as the data set.
void refuse_impossible_trees(const Meta& meta, const File& file) {
  const std::uint32_t size = meta.page_size();
  const std::uint64_t file_size = file.size();
  const std::uint64_t pages = file_size / size + (file_size % size != 0);
  for (const TreeHeader* tree : {&meta.main_tree, &meta.free_tree}) {
    const std::string fault = impossible(*tree, meta.last_page, pages, size);
    if (fault.empty()) continue;
    throw Error(
        ErrorKind::corrupt,
        fmt::format("the {} of transaction {} is damaged or the file was cut: {}",
                    tree == &meta.main_tree ? "main tree" : "free list", meta.transaction, fault),
        std::string(kRestore), {.file = file.path(), .offset = (meta.transaction & 1) * size});
  }
}

/// Page 1 lies one page size into the file, whose `begin` is known. Without a sound page 0 that
/// size has to be tried.
std::unique_ptr<const Meta> find_second_meta(const File& file, std::uint64_t file_size,
                                             std::span<const std::byte> begin,
                                             std::uint32_t page_size, std::string& fault) {
  const std::uint32_t smallest = page_size != 0 ? page_size : kMinPageSize;
  const std::uint32_t largest = page_size != 0 ? page_size : kMaxPageSize;
  for (std::uint32_t size = smallest; size <= largest; size *= 2) {
    if (file_size < size + kMetaEnd) {
      fault = "the file ends before it";
      break;
    }
    std::vector<std::byte> read;
    if (begin.size() < size + kMetaEnd) read = read_stable(file, size, kMetaEnd);
    const auto bytes = read.empty() ? begin.subspan(size) : std::span<const std::byte>(read);
    fault = fault_of_meta(bytes, 1);
    if (!fault.empty()) continue;
    if (decode_meta(bytes).page_size() == size) {
      return std::make_unique<const Meta>(decode_meta(bytes));
    }
    fault = "its page size is not that of page 0";
  }
  return nullptr;
}

[[noreturn]] void refuse_bad_metas(const File& file, std::span<const std::byte> page,
                                   const std::string& first, const std::string& second) {
  const bool ours = load<std::uint32_t>(page, 16) == kMagic;
  throw Error(
      ErrorKind::corrupt,
      ours ? fmt::format("both meta pages are damaged: page 0: {}; page 1: {}", first, second)
           : "the file does not begin with an LMDB meta page",
      std::string(ours ? kRestore : kNotLmdb), {.file = file.path(), .offset = 0});
}

const Meta& meta_of_slot(const MetaPages& pages, const ReaderSlot& slot, const File& file) {
  for (const auto& meta : pages.metas) {
    if (meta && meta->transaction == slot.transaction()) return *meta;
  }
  throw Error(ErrorKind::changed, "data set changed while open", "try again",
              {.file = file.path()});
}

}  // namespace

bool looks_like_lmdb(const File& file) {
  const std::uint64_t size = file.size();
  std::array<std::byte, 28> page{};
  for (const std::uint64_t offset : {0U, 4096U, 8192U, 16384U, 32768U}) {
    if (size < offset + page.size()) return false;
    file.read(offset, page);
    const bool ours = load<std::uint32_t>(page, 16) == kMagic;
    if (ours || has_longer_header(page) || is_magic_of_other_platform(page)) return true;
  }
  return false;
}

MetaPages read_meta_pages(const File& file) {
  const std::uint64_t file_size = file.size();
  if (file_size < kMetaEnd) {
    throw Error(ErrorKind::corrupt,
                file_size == 0 ? "the file is empty"
                               : fmt::format("{} bytes are too few for LMDB", file_size),
                std::string(file_size == 0 ? kEmpty : kNotLmdb),
                {.file = file.path(), .offset = 0});
  }
  // Both at once where pages are as small as can be: servers seek for each request.
  const std::vector<std::byte> first =
      read_stable(file, 0, std::min<std::uint64_t>(file_size, kMinPageSize + kMetaEnd));
  refuse_other_formats(first, file.path());
  MetaPages pages;
  std::string fault0 = fault_of_meta(first, 0);
  std::string fault1;
  if (fault0.empty()) pages.metas[0] = std::make_unique<const Meta>(decode_meta(first));
  const std::uint32_t page_size = pages.metas[0] ? pages.metas[0]->page_size() : 0;
  pages.metas[1] = find_second_meta(file, file_size, first, page_size, fault1);
  if (!pages.metas[0] && !pages.metas[1]) refuse_bad_metas(file, first, fault0, fault1);
  const bool second = !pages.metas[0] ||
                      (pages.metas[1] && pages.metas[1]->transaction > pages.metas[0]->transaction);
  pages.newest = *pages.metas[second ? 1 : 0];
  if (!pages.metas[0]) pages.damaged = "meta page 0: " + fault0;
  if (!pages.metas[1]) pages.damaged = "meta page 1: " + fault1;
  return pages;
}

Snapshot::Snapshot(std::shared_ptr<const File> file, std::shared_ptr<const ReaderSlot> slot)
    : file_(std::move(file)), slot_(std::move(slot)), seen_(file_->fingerprint()) {
  const MetaPages pages = read_meta_pages(*file_);
  meta_ = slot_ ? meta_of_slot(pages, *slot_, *file_) : pages.newest;
  refuse_impossible_trees(meta_, *file_);
  damaged_meta_ = pages.damaged;
  const std::uint64_t file_bytes = file_->size();
  file_pages_ = file_bytes / meta_.page_size();
  used_bytes_ = std::min(file_bytes, (meta_.last_page + 1) * meta_.page_size());
}

std::uint64_t Snapshot::hash_now(const Known& known) const {
  std::vector<std::byte> bytes(known.size);
  file_->read(known.offset, bytes);
  return XXH3_64bits(bytes.data(), bytes.size());
}

void Snapshot::remember(std::uint64_t offset, std::uint64_t size) const {
  constexpr std::uint64_t kMostBytes = 16384;
  if (remembers(offset) || offset >= used_bytes_) return;
  Known known{.offset = offset, .size = std::min({size, kMostBytes, used_bytes_ - offset})};
  known.hash = hash_now(known);
  const std::lock_guard lock(mutex_);
  known_.push_back(known);
}

bool Snapshot::remembers(std::uint64_t offset) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(known_, offset, &Known::offset) != known_.end();
}

/// A writer of LMDB may have left `now`.
void Snapshot::check_known(const FileFingerprint& now) const {
  const std::lock_guard lock(mutex_);
  const std::string sign = sign_of_writing(*file_, seen_, now);
  const auto is_another = [this](const Known& known) { return hash_now(known) != known.hash; };
  if (!sign.empty() && std::ranges::any_of(known_, is_another)) {
    throw rewritten_error(file_->path(), sign);
  }
  seen_ = now;
}

void Snapshot::check_unchanged() const {
  // A cut inside a page of a mapping is no fault: the rest of that page just reads as zeros.
  const FileFingerprint now = file_->fingerprint();
  const std::uint64_t bytes = now.size;
  if (bytes < used_bytes_) {
    throw Error(
        ErrorKind::changed,
        fmt::format("data set changed while open: the file was cut to {} bytes, {} are in use",
                    bytes, used_bytes_),
        std::string(kRestore), {.file = file_->path(), .offset = bytes});
  }
  const Meta newest = read_meta_pages(*file_).newest;
  const std::uint64_t safe = meta_.transaction + 1;
  const bool held = newest.transaction > safe && slot_ && slot_->holds();
  if (held || (newest.transaction >= meta_.transaction && newest.transaction <= safe)) {
    return check_known(now);
  }
  throw Error(ErrorKind::changed,
              fmt::format("data set changed while open: it was opened at transaction {} and is "
                          "now at {}",
                          meta_.transaction, newest.transaction),
              "stop the writer, or read a copy", {.file = file_->path()});
}

}  // namespace forebay::lmdb
