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
  std::string format = {};    ///< where it is not called as the maker
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

/// `number` in `bytes` bytes, the low one first.
inline std::string little(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> 8 * i);
  return text;
}

/// A CRC of 32 bits with its polynomial reversed: 0xEDB88320 of zip, 0x82F63B78 of TFRecord.
inline std::uint32_t crc_of(const std::string& bytes, std::uint32_t polynomial) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? polynomial : 0);
  }
  return ~crc;
}

/// A zip archive of these members; those with an odd number are deflated, in blocks that are not
/// compressed.
inline std::string zip_archive(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string bytes;
  std::string directory;
  int number = 0;
  for (const auto& [name, content] : members) {
    const bool deflated = number++ % 2 == 1;
    const std::string length = little(content.size(), 2);
    const std::string stored =
        deflated ? '\1' + length + little(~content.size(), 2) + content : content;
    const std::string head = little(deflated ? 8 : 0, 2) + std::string(4, '\0') +
                             little(crc_of(content, 0xEDB88320), 4) + little(stored.size(), 4) +
                             little(content.size(), 4) + little(name.size(), 2);
    const std::string extra = number % 3 == 0 ? std::string("\x99\x99\0\0", 4) : "";
    directory += std::string("PK\1\2\x14\0\x14\0\0\0", 10) + head + std::string(12, '\0') +
                 little(bytes.size(), 4) + name;
    bytes +=
        std::string("PK\3\4\x14\0\0\0", 8) + head + little(extra.size(), 2) + name + extra + stored;
  }
  const std::string count = little(members.size(), 2);
  return bytes + directory + std::string("PK\5\6\0\0\0\0", 8) + count + count +
         little(directory.size(), 4) + little(bytes.size(), 4) + std::string(2, '\0');
}

/// A field of a protobuf message that is bytes, or a message.
inline std::string wire_bytes(int number, const std::string& bytes) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  std::uint64_t length = bytes.size();
  for (; length >= 128; length >>= 7) text += static_cast<char>(length | 128);
  return text + static_cast<char>(length) + bytes;
}

/// An entry of a tf.train.Example: list 1 is of bytes, 2 of floats, 3 of integers.
inline std::string feature(const std::string& name, int list, const std::string& values) {
  return wire_bytes(1, wire_bytes(1, name) + wire_bytes(2, wire_bytes(list, values)));
}

inline std::string tf_record(const std::string& data) {
  const auto masked = [](const std::string& bytes) {
    const std::uint32_t crc = crc_of(bytes, 0x82F63B78);
    return little((crc >> 15 | crc << 17) + 0xa282ead8, 4);
  };
  const std::string length = little(data.size(), 8);
  return length + masked(length) + data + masked(data);
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

/// Of its two arrays one is stored, the other one deflated.
inline MadeSet make_npz(const TemporaryFolder& folder) {
  MadeSet set{.path = folder.file("a.npz"), .format = "npy"};
  const auto header = [](const std::string& shape) {
    std::string dict = "{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + ", }";
    dict.resize(118 - 1, ' ');
    return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + dict + "\n";
  };
  std::string x = header("(41, 3, 4)");
  std::string y = header("(41, 7)");
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    x += content(i, 12);
    y += content(i + 100, 7);
    set.values.push_back(content(i, 12) + content(i + 100, 7));
  }
  write_file(set.path, zip_archive({{"x.npy", x}, {"y.npy", y}}));
  set.one_file = set.path;
  return set;
}

/// The arrays of the two above, beside each other.
inline MadeSet make_beside(const TemporaryFolder& folder) {
  const MadeSet npy = make_npy(folder);
  const MadeSet npz = make_npz(folder);
  std::filesystem::rename(npy.path, folder.file("b.npy"));
  MadeSet set{.path = "x=" + npz.path + "&y=" + folder.file("b.npy"), .format = "npy"};
  for (std::uint64_t i = 0; i < kSamples; ++i) set.values.push_back(npz.values[i] + npy.values[i]);
  set.one_file = folder.file("b.npy");
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

inline MadeSet make_zip(const TemporaryFolder& folder) {
  MadeSet set{.path = folder.file("z-{0..1}.zip")};
  for (int archive = 0; archive < 2; ++archive) {
    std::vector<std::pair<std::string, std::string>> members;
    for (std::uint64_t i = 0; i < (archive == 0 ? 20 : kSamples - 20); ++i) {
      const std::string key = "folder/" + std::to_string(archive * 100 + i);
      const std::vector<std::string> parts{content(i, i * 137 % 5000), std::to_string(i)};
      members.insert(members.end(), {{key + ".bin", parts[0]}, {key + ".txt", ""}});
      members.insert(members.end() - static_cast<long>(i % 3), {key + ".cls", parts[1]});
      set.values.push_back(packed_text({parts[0], parts[1]}));
      set.keys.push_back(key);
    }
    write_file(folder.file("z-" + std::to_string(archive) + ".zip"), zip_archive(members));
  }
  set.path += "#bin,cls";
  set.one_file = folder.file("z-1.zip");
  set.options.codec = "bytes";
  return set;
}

inline MadeSet make_tfrecord(const TemporaryFolder& folder) {
  MadeSet set{.path = folder.file("r-{0..1}.tfrecord")};
  for (int file = 0; file < 2; ++file) {
    std::string bytes;
    for (std::uint64_t i = 0; i < (file == 0 ? 20 : kSamples - 20); ++i) {
      const std::string image = content(i, i * 137 % 5000);
      const std::string floats = content(i, i % 4 * 4);
      const char label = static_cast<char>(i);
      bytes += tf_record(wire_bytes(1, feature("label", 3, wire_bytes(1, std::string(1, label))) +
                                           feature("box", 2, wire_bytes(1, floats)) +
                                           feature("image", 1, wire_bytes(1, image))));
      set.values.push_back(packed_text({floats, image, little(i, 8)}));
    }
    write_file(folder.file("r-" + std::to_string(file) + ".tfrecord"), bytes);
  }
  set.one_file = folder.file("r-1.tfrecord");
  set.options.codec = "bytes";
  return set;
}

inline MadeSet make_tokens(const TemporaryFolder& folder) {
  MadeSet set{.path = folder.file("t-{0..1}.bin")};
  for (int file = 0; file < 2; ++file) {
    const std::uint64_t windows = file == 0 ? 20 : kSamples - 20;
    const std::string bytes = content(static_cast<std::uint64_t>(file), 2 * (3 * windows + 2 + 2));
    for (std::uint64_t i = 0; i < windows; ++i) set.values.push_back(bytes.substr(6 * i, 10));
    write_file(folder.file("t-" + std::to_string(file) + ".bin"), bytes);
  }
  set.one_file = folder.file("t-1.bin");
  set.options.schema = "u16";
  set.options.length = 5;
  set.options.step = 3;
  return set;
}

using Maker = std::function<MadeSet(const TemporaryFolder&)>;

/// By name of the format. HDF5 files, which libhdf5 makes, are in tests/sample_sets.
inline const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> all{
      {"npy", make_npy},       {"npz", make_npz},           {"beside", make_beside},
      {"raw", make_raw},       {"cifar10", make_cifar10},   {"tar", make_tar},
      {"zip", make_zip},       {"tfrecord", make_tfrecord}, {"tokens", make_tokens},
      {"folder", make_folder}, {"lmdb", make_lmdb}};
  return all;
}

}  // namespace forebay::test
