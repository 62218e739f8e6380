// What is said of files that no format recognises: what their first bytes are.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/dataset_files.hpp"
#include "format/registry.hpp"

namespace forebay {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kLooksAt = 512;
constexpr std::size_t kShownBytes = 8;

struct Mark {
  std::string_view bytes;  // at the begin
  std::string_view what;
  std::string_view remedy;
};

constexpr std::string_view kUnpack = "uncompress it, and name what comes out";
constexpr std::string_view kTable =
    "save its columns as arrays, with numpy.save or numpy.savez, or its rows as records of "
    "TFRecord";
constexpr std::string_view kImage =
    "name the folder that it lies in: a folder of images, or of folders of them, is a data set";
constexpr std::string_view kPickle =
    "nothing is ever unpickled: save its arrays with numpy.save or numpy.savez";

constexpr std::array kMarks{
    Mark{"\x1f\x8b", "compressed by gzip", kUnpack},
    Mark{"BZh", "compressed by bzip2", kUnpack},
    Mark{"\xfd"
         "7zXZ\0"sv,
         "compressed by xz", kUnpack},
    Mark{"\x28\xb5\x2f\xfd", "compressed by zstd", kUnpack},
    Mark{"\x04\x22\x4d\x18", "compressed by lz4", kUnpack},
    Mark{"7z\xbc\xaf\x27\x1c", "a 7z archive", "pack its files into a tar or zip archive"},
    Mark{"Rar!\x1a\x07", "a RAR archive", "pack its files into a tar or zip archive"},
    Mark{"PAR1", "a table of Apache Parquet", kTable},
    Mark{"ARROW1", "a table of Apache Arrow", kTable},
    Mark{"FEA1", "a table of Feather", kTable},
    Mark{"ORC", "a table of Apache ORC", kTable},
    Mark{"Obj\x01", "a file of Apache Avro", kTable},
    Mark{"SQLite format 3\0"sv, "a database of SQLite", kTable},
    Mark{"MATLAB 5.0 MAT-file", "a MATLAB file", "save it with '-v7.3' (HDF5), or as .npy"},
    Mark{"CDF\x01", "a NetCDF-3 file", "convert it to NetCDF-4, which is HDF5: nccopy -k 4"},
    Mark{"CDF\x02", "a NetCDF-3 file", "convert it to NetCDF-4, which is HDF5: nccopy -k 4"},
    Mark{"\x0a\x23\xd7\xce", "a file of MXNet's RecordIO",
         "unpack its records, and pack them into a tar archive"},
    Mark{"\0\0\x08\x01"sv, "an IDX file, as MNIST's are", "'forebay pack' takes its folder"},
    Mark{"\0\0\x08\x03"sv, "an IDX file, as MNIST's are", "'forebay pack' takes its folder"},
    Mark{"\xff\xd8\xff", "a JPEG image", kImage},
    Mark{"\x89PNG", "a PNG image", kImage},
    Mark{"GIF8", "a GIF image", kImage},
    Mark{"II*\0"sv, "a TIFF image", kImage},
    Mark{"MM\0*"sv, "a TIFF image", kImage},
    Mark{"version https://git-lfs.github.com/spec/", "a pointer of Git LFS, not the file itself",
         "fetch the file: 'git lfs pull' in its repository"},
    Mark{"RIFF", "a RIFF file (WebP, WAVE, AVI)", "name the folder that it lies in"},
};

/// Python's protocols 2 to 5 begin with their number.
bool is_pickle(std::string_view start) {
  return start.size() > 2 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5;
}

/// Whether all of it may be text in UTF-8, or in a charset that is like it.
bool is_text(std::string_view start) {
  return std::ranges::all_of(start, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7f : c == '\n' || c == '\r' || c == '\t' || c == '\f';
  });
}

[[noreturn]] void refuse_bytes(const std::string& path, std::string_view start) {
  const auto not_read = [&](std::string_view what, std::string_view remedy) {
    throw Error(ErrorKind::unsupported,
                fmt::format("this is {}, which Forebay does not read", what), std::string(remedy),
                {.file = path});
  };
  for (const Mark& mark : kMarks) {
    if (start.starts_with(mark.bytes)) not_read(mark.what, mark.remedy);
  }
  if (is_pickle(start)) not_read("a pickle of Python", kPickle);
  if (is_text(start)) {
    not_read("text", "save its numbers with numpy.save, or pack what it lists");
  }
  const std::string remedy = fmt::format(
      "check the path, or say what it is with --format ({}); records of one size are --format raw "
      "with their --schema",
      format_names());
  const auto shown = std::as_bytes(std::span(start.substr(0, kShownBytes)));
  std::vector<unsigned> numbers;
  for (const std::byte byte : shown) numbers.push_back(std::to_integer<unsigned>(byte));
  const bool zeros = start.find_first_not_of('\0') == std::string_view::npos;
  throw Error(ErrorKind::corrupt,
              zeros ? "no format is recognised: it begins with zeros, as files do that were never "
                      "written to their end"
                    : fmt::format("no format is recognised: it begins with the bytes {:02x}",
                                  fmt::join(numbers, " ")),
              remedy, {.file = path});
}

[[noreturn]] void refuse_folder(const std::string& path) {
  std::uint64_t count = 0;
  std::string first;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (count++ == 0 || name < first) first = name;
  }
  if (count == 0) {
    throw Error(ErrorKind::not_found, "the folder is empty", "check the path", {.file = path});
  }
  throw Error(ErrorKind::not_found,
              fmt::format("no format is recognised: the folder and those in it have no images and "
                          "no data.mdb, but {} entries, the first is '{}'",
                          count, shown_name(first)),
              "name the files in it, as FOLDER/*.tar, or say --format folder: then each file is a "
              "sample, or, where images lie deeper, each image",
              {.file = path});
}

}  // namespace

void refuse_unknown(const FirstFile& first) {
  if (!first.file) refuse_folder(first.path);
  std::array<std::byte, kLooksAt> bytes{};
  const auto start = std::span(bytes).first(std::min<std::uint64_t>(kLooksAt, first.file->size()));
  if (start.empty()) {
    throw Error(ErrorKind::corrupt, "the file is empty",
                "copy it again from its source, or say what it is with --format",
                {.file = first.path});
  }
  first.file->read(0, start);
  refuse_bytes(first.path, chars_of(start));
}

}  // namespace forebay
