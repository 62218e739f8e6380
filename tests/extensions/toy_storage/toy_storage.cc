#include "toy_storage.hpp"

#include <string>
#include <utility>

namespace toy {
namespace {

using namespace forebay;

class Inverted final : public File {
 public:
  explicit Inverted(std::shared_ptr<const File> stored)
      : stored_(std::move(stored)), path_("inverted://" + stored_->path()) {}

  const std::string& path() const override { return path_; }
  std::uint64_t size() const override { return stored_->size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    stored_->read(offset, out);
    for (std::byte& byte : out) byte = ~byte;
  }
  std::span<const std::byte> map() const override { return {}; }
  void check() const override {}
  FileFingerprint fingerprint() const override { return stored_->fingerprint(); }
  FileCounters counters() const override { return stored_->counters(); }

 private:
  std::shared_ptr<const File> stored_;
  std::string path_;
};

}  // namespace

Storage inverted_storage() {
  return {.scheme = "inverted",
          .description = "files with all bits inverted",
          .open = [](const std::string& name, Engine engine) -> std::shared_ptr<const File> {
            return std::make_shared<Inverted>(open_file(name, engine));
          }};
}

}  // namespace toy
