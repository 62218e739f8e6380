// Filters undone by hand: hostile parameters and bytes end in an Error, without large allocations.
#include "format/hdf5/chunked_field.hpp"

#include <gtest/gtest.h>
#include <hdf5.h>
#include <zlib.h>

#include <random>

#include "forebay/error.hpp"
#include "tests/support/sample_checks.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::hdf5 {
namespace {

using test::counting_bytes;
using test::error_from;

std::vector<std::byte> deflated(std::span<const std::byte> bytes) {
  std::vector<std::byte> out(compressBound(bytes.size()));
  uLongf size = out.size();
  compress(reinterpret_cast<Bytef*>(out.data()), &size,
           reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  out.resize(size);
  return out;
}

const std::vector<Filter> kDeflate{{FilterKind::deflate, {6}}};

TEST(Hdf5Filters, SkippedFiltersAreLeftOut) {
  const auto bytes = counting_bytes(1000);
  DecodeSpace space;
  const auto plain = undo_filters(kDeflate, 1, bytes, bytes.size(), space);
  EXPECT_EQ(plain.data(), bytes.data());
  const auto packed = deflated(bytes);
  const auto decoded = undo_filters(kDeflate, 0, packed, bytes.size(), space);
  EXPECT_TRUE(std::ranges::equal(decoded, bytes));
}

TEST(Hdf5Filters, TwoOfAKindUseBothBuffers) {
  const std::vector<Filter> twice{{FilterKind::deflate, {6}}, {FilterKind::deflate, {6}}};
  const auto bytes = counting_bytes(5000);
  DecodeSpace space;
  const auto packed = deflated(deflated(bytes));
  EXPECT_TRUE(std::ranges::equal(undo_filters(twice, 0, packed, bytes.size(), space), bytes));
}

TEST(Hdf5Filters, AWrongSizeIsDamage) {
  const auto bytes = counting_bytes(1000);
  const auto packed = deflated(bytes);
  DecodeSpace space;
  for (const std::uint64_t size : {0, 999, 1001, 100000}) {
    EXPECT_EQ(error_from([&] { undo_filters(kDeflate, 0, packed, size, space); }).kind(),
              ErrorKind::corrupt);
  }
}

TEST(Hdf5Filters, MemoryIsBoundedByWhatIsStored) {
  DecodeSpace space;
  const auto few = counting_bytes(10);
  EXPECT_EQ(error_from([&] { undo_filters(kDeflate, 0, few, UINT32_MAX, space); }).kind(),
            ErrorKind::corrupt);
  EXPECT_LT(space.first.size() + space.second.size(), 1U << 20);
}

TEST(Hdf5Filters, AnyBytesEndInAResultOrAnError) {
  std::mt19937 random(1);
  std::vector<std::vector<Filter>> pipelines{
      kDeflate,
      {{FilterKind::shuffle, {4}}},
      {{FilterKind::fletcher32, {}}},
      {{FilterKind::shuffle, {UINT32_MAX}}, {FilterKind::deflate, {1}}},
      {{FilterKind::lzf, {}}},
  };
  try {
    pipelines.push_back({make_filter(H5Z_FILTER_SZIP, "szip", {141, 8, 32, 256})});
  } catch (const Error&) {
    // Built without libaec.
  }
  DecodeSpace space;
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> bytes(random() % 200);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (bytes.size() > 4) bytes[2] = bytes[3] = std::byte{0};  // a size that szip may believe
    for (const auto& filters : pipelines) {
      try {
        const auto out = undo_filters(filters, 0, bytes, 64, space);
        EXPECT_EQ(out.size(), 64U);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::corrupt);
      }
    }
  }
}

std::vector<std::byte> bytes_of(std::initializer_list<int> numbers) {
  std::vector<std::byte> bytes;
  for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number));
  return bytes;
}

TEST(Hdf5Filters, LzfCopiesWhatItMakes) {
  const std::vector<Filter> lzf{make_filter(32000, "lzf", {4, 261, 64})};
  DecodeSpace space;
  // "ab", then 3 bytes from 2 back; then 7 + 2 + 1 bytes from 1 back.
  const auto packed = bytes_of({1, 'a', 'b', 1 << 5, 1, 7 << 5, 1, 0});
  const auto plain = undo_filters(lzf, 0, packed, 15, space);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(plain.data()), plain.size()),
            "ababaaaaaaaaaaa");
}

TEST(Hdf5Filters, LzfStaysInsideOfItsBytes) {
  for (const auto& packed :
       {bytes_of({31, 'a'}), bytes_of({1 << 5, 0}), bytes_of({0, 'a', 1 << 5, 1}),
        bytes_of({0, 'a', 1 << 5}), bytes_of({0, 'a', 7 << 5, 9}),
        bytes_of({0, 'a', 7 << 5, 255, 0}), bytes_of({0, 'a', 6 << 5, 0, 4, 1, 2, 3, 4, 5})}) {
    std::vector<std::byte> out(8);
    EXPECT_EQ(error_from([&] { decode_lzf(packed, out); }).kind(), ErrorKind::corrupt);
  }
}

TEST(Hdf5Filters, ImpossibleParametersAreRefused) {
  EXPECT_EQ(error_from([] { make_filter(H5Z_FILTER_SHUFFLE, "", {}); }).kind(), ErrorKind::corrupt);
  EXPECT_EQ(error_from([] { make_filter(32001, "blosc", {}); }).kind(), ErrorKind::unsupported);
  for (const std::vector<std::uint32_t>& values : {std::vector<std::uint32_t>{},
                                                   {141, 8, 32},
                                                   {141, 0, 32, 256},
                                                   {141, 8, 33, 256},
                                                   {141, 9, 32, 256},
                                                   {141, 8, 32, 0},
                                                   {141, 8, 32, UINT32_MAX}}) {
    EXPECT_NE(error_from([&] { make_filter(H5Z_FILTER_SZIP, "szip", values); }).kind(),
              ErrorKind::usage);
  }
}

}  // namespace
}  // namespace forebay::hdf5
