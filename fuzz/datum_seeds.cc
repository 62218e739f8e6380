// datum_seeds DIR: writes stored values of every kind as seeds for datum_fuzz.
#include <datum.pb.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>

#include "format/codec/datum.hpp"
#include "format/codec/image.hpp"
#include "tests/format/codec/image_files.hpp"

namespace {

using namespace forebay;

std::vector<std::byte> pixels(const ImageShape& shape) {
  std::vector<std::byte> result(shape.bytes());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<std::byte>(i * 5);
  return result;
}

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string float_datum() {
  Datum datum;
  datum.set_channels(1);
  datum.set_height(2);
  datum.set_width(3);
  for (int i = 0; i < 6; ++i) datum.add_float_data(static_cast<float>(i) / 4);
  return datum.SerializeAsString();
}

void write(const std::filesystem::path& path, const std::string& value) {
  std::ofstream stream(path, std::ios::binary);
  stream << value;
  if (!stream.flush()) throw std::runtime_error("cannot write " + path.string());
}

void write_seeds(const std::filesystem::path& directory) {
  constexpr ImageShape kColor{3, 5, 4};
  constexpr ImageShape kGray{1, 9, 8};
  const auto jpeg = encode_jpeg(kColor, pixels(kColor), 80);
  const auto gray_jpeg = encode_jpeg(kGray, pixels(kGray), 80);
  const auto png = encode_png(kGray, pixels(kGray));
  write(directory / "raw", make_datum(kColor, pixels(kColor), 7));
  write(directory / "raw_without_label", make_datum(kGray, pixels(kGray), {}));
  write(directory / "negative_label", make_datum(kGray, pixels(kGray), -1));
  write(directory / "floats", float_datum());
  write(directory / "encoded_jpeg", make_encoded_datum(kColor, jpeg, 3));
  write(directory / "encoded_png", make_encoded_datum(kGray, png, 1000));
  write(directory / "jpeg", text(jpeg));
  write(directory / "gray_jpeg", text(gray_jpeg));
  write(directory / "png", text(png));
  write(directory / "color_png", text(encode_png(kColor, pixels(kColor))));
  for (const bool big_endian : {false, true}) {
    const std::string exif = test::exif_text(big_endian ? 6 : 7, big_endian);
    const std::string suffix = big_endian ? "_big" : "_little";
    write(directory / ("turned_jpeg" + suffix), text(test::with_exif(jpeg, exif)));
    write(directory / ("turned_png" + suffix), text(test::with_chunk(png, "eXIf", exif)));
  }
  write(directory / "palette_png", text(test::png_of({.width = 4,
                                                      .height = 1,
                                                      .bits = 2,
                                                      .color = 3,
                                                      .chunks = test::chunk_text("PLTE", "abcdef"),
                                                      .rows = "\x11"})));
  constexpr ImageShape kDeep{4, 3, 2, ElementType::u16};
  write(directory / "deep_png", text(encode_png(kDeep, pixels(kDeep))));
  write(directory / "gif", text(test::from_hex(test::kGif)));
  write(directory / "webp", text(test::from_hex(test::kWebp)));
  write(directory / "tiff", text(test::from_hex(test::kTiff)));
  write(directory / "deep_tiff", text(test::from_hex(test::kDeepTiff)));
  write(directory / "bmp", text(test::from_hex(test::kBmp)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: datum_seeds DIR\n");
    return 2;
  }
  try {
    write_seeds(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "datum_seeds: %s\n", error.what());
    return 1;
  }
  return 0;
}
