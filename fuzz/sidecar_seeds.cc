// sidecar_seeds DIR: writes sidecars of small databases as seeds for sidecar_fuzz.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "fuzz/sidecar_databases.hpp"

namespace {

using namespace forebay;
using namespace forebay::lmdb;

/// What follows header and fingerprint.
std::span<const std::byte> body_of(std::span<const std::byte> sidecar) {
  ByteReader in(sidecar.subspan(24));
  in.block();
  return in.rest();
}

void write_seed(const std::filesystem::path& path, std::size_t database, SidecarInput kind,
                std::span<const std::byte> bytes) {
  std::vector<std::byte> seed{static_cast<std::byte>(database), static_cast<std::byte>(kind)};
  seed.insert(seed.end(), bytes.begin(), bytes.end());
  test::write_bytes(path.string(), seed);
}

void write_seeds(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  auto databases = build_databases();
  for (std::size_t i = 0; i < databases.size(); ++i) {
    Database& database = *databases[i].database;
    const std::string name = std::to_string(i);
    const MadeSidecar table = make_sidecar(database, WantedForm::table);
    write_seed(directory / (name + "_whole"), i, SidecarInput::whole, table.bytes);
    write_seed(directory / (name + "_table"), i, SidecarInput::table, body_of(table.bytes));
    const MadeSidecar best = make_sidecar(database, WantedForm::automatic);
    if (best.form == SidecarForm::recipe) {
      write_seed(directory / (name + "_recipe"), i, SidecarInput::recipe, body_of(best.bytes));
    }
    for (std::uint8_t what = 0; what < 8; ++what) {
      const std::byte lie[] = {std::byte{3}, std::byte{what}, std::byte{1}, std::byte{0}};
      write_seed(directory / (name + "_lie" + std::to_string(what)), i, SidecarInput::lies, lie);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: sidecar_seeds DIR\n");
    return 2;
  }
  try {
    write_seeds(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sidecar_seeds: %s\n", error.what());
    return 1;
  }
  return 0;
}
