// A small data set of every format of the registry, and what its samples are.
#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "forebay/options.hpp"
#include "forebay/packed_parts.hpp"
#include "format/lmdb/writer.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::test {

inline constexpr std::uint64_t kSamples = 41;

/// What to open, how, and the bytes and the key of every sample.
struct MadeSet {
  std::string path;
  std::vector<std::string> values = {};
  std::vector<std::string> keys = {};  ///< empty: samples have none
  LoaderOptions options = {};
  std::string one_file = {};  ///< that may be cut or replaced
};

inline std::string content(std::uint64_t seed, std::uint64_t bytes) {
  std::string text;
  for (std::uint64_t i = 0; i < bytes; ++i) {
    text += static_cast<char>((seed * 2654435761U + i * 40503U) >> 7);
  }
  return text;
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<long>(bytes.size()));
}

inline std::string packed_text(const std::vector<std::string>& parts) {
  std::vector<std::span<const std::byte>> spans;
  for (const std::string& part : parts) spans.push_back(std::as_bytes(std::span(part)));
  std::string value(packed_parts_bytes(spans), '\0');
  pack_parts(spans, std::as_writable_bytes(std::span(value)));
  return value;
}

/// A member of a tar archive: its header, and its content in whole blocks.
inline std::string tar_member(const std::string& name, const std::string& bytes, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 7, "0000644");
  char size[13] = {};
  std::snprintf(size, sizeof size, "%011llo", static_cast<unsigned long long>(bytes.size()));
  header.replace(124, 11, size, 11);
  header.replace(148, 8, "        ");
  header[156] = type;
  header.replace(257, 5, "ustar");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char checksum[8] = {};
  std::snprintf(checksum, sizeof checksum, "%06o", sum);
  header.replace(148, 6, checksum, 6);
  header[154] = '\0';
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

inline MadeSet make_npy(const TemporaryFolder& folder) {
  MadeSet set{.path = folder.file("a.npy")};
  std::string dict = "{'descr': '|u1', 'fortran_order': False, 'shape': (41, 30), }";
  dict.resize(118 - 1, ' ');
  std::string bytes = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + dict + "\n";
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    set.values.push_back(content(i, 30));
    bytes += set.values.back();
  }
  write_file(set.path, bytes);
  set.one_file = set.path;
  return set;
}

inline MadeSet make_raw(const TemporaryFolder& folder) {
  MadeSet set{.path = folder.file("r.bin")};
  std::string bytes = "head";
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    set.values.push_back(content(i, 12));
    bytes += set.values.back();
  }
  write_file(set.path, bytes);
  set.options.format = "raw";
  set.options.schema = "x:u8[4],y:u8[8]";
  set.options.header_bytes = 4;
  set.one_file = set.path;
  return set;
}

inline MadeSet make_cifar10(const TemporaryFolder& folder) {
  MadeSet set{.path = folder.file("data_batch_1.bin")};
  std::string bytes;
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    set.values.push_back(std::string(1, static_cast<char>(i % 10)) + content(i, 3072));
    bytes += set.values.back();
  }
  write_file(set.path, bytes);
  set.one_file = set.path;
  return set;
}

inline MadeSet make_tar(const TemporaryFolder& folder) {
  MadeSet set{.path = folder.file("s-{0..1}.tar")};
  for (int shard = 0; shard < 2; ++shard) {
    std::string bytes = tar_member("folder/", "", '5');
    for (std::uint64_t i = 0; i < (shard == 0 ? 20 : kSamples - 20); ++i) {
      const std::string key = "folder/" + std::to_string(shard * 100 + i);
      const std::vector<std::string> parts{content(i, i * 137 % 5000), std::to_string(i)};
      bytes += tar_member(key + ".jpg", parts[0]) + tar_member(key + ".cls", parts[1]);
      set.values.push_back(packed_text(parts));
      set.keys.push_back(key);
    }
    write_file(folder.file("s-" + std::to_string(shard) + ".tar"), bytes + std::string(1024, '\0'));
  }
  set.one_file = folder.file("s-1.tar");
  set.options.codec = "bytes";
  return set;
}

inline MadeSet make_folder(const TemporaryFolder& folder) {
  MadeSet set{.path = folder.file("images")};
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const std::string label = i < 17 ? "a" : "b";
    const std::string key = label + "/" + std::to_string(100 + i) + ".jpg";
    std::filesystem::create_directories(set.path + "/" + label);
    const std::string bytes = content(i, i * 211 % 3000);
    write_file(set.path + "/" + key, bytes);
    set.values.push_back(packed_text({bytes, i < 17 ? "0" : "1"}));
    set.keys.push_back(key);
    set.one_file = set.path + "/" + key;
  }
  set.options.codec = "bytes";
  return set;
}

inline MadeSet make_lmdb(const TemporaryFolder& folder) {
  MadeSet set{.path = folder.file("l")};
  lmdb::Writer writer(set.path, {});
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    set.keys.push_back("key-" + std::to_string(1000 + i));
    set.values.push_back(content(i, i * 137 % 5000));
    writer.put(std::as_bytes(std::span(set.keys.back())),
               std::as_bytes(std::span(set.values.back())));
  }
  writer.commit();
  set.options.codec = "bytes";
  set.one_file = folder.file("l/data.mdb");
  return set;
}

using Maker = std::function<MadeSet(const TemporaryFolder&)>;

/// By name of the format. HDF5 files, which libhdf5 makes, are in tests/sample_sets.
inline const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> all{{"npy", make_npy},
                                                {"raw", make_raw},
                                                {"cifar10", make_cifar10},
                                                {"tar", make_tar},
                                                {"folder", make_folder},
                                                {"lmdb", make_lmdb}};
  return all;
}

}  // namespace forebay::test
