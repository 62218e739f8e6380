#include "format/raw/npy_header.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "forebay/error.hpp"
#include "tests/support/sample_checks.hpp"

namespace forebay::raw {
namespace {

using test::error_from;

std::vector<std::byte> header(const std::string& dictionary, int version = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  for (std::size_t i = 0; i < (version == 1 ? 2U : 4U); ++i) {
    text += static_cast<char>(dictionary.size() >> (8 * i));
  }
  text += dictionary;
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

NpyHeader parse(const std::string& dictionary) { return parse_npy_header(header(dictionary)); }

TEST(NpyHeader, ReadsWhatNumpyWrites) {
  for (const int version : {1, 2, 3}) {
    const NpyHeader parsed = parse_npy_header(header(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }       \n", version));
    EXPECT_EQ(parsed.type, ElementType::f32);
    EXPECT_EQ(parsed.shape, (std::vector<std::uint64_t>{60000, 28, 28}));
    EXPECT_EQ(parsed.swap, 0U);
    EXPECT_EQ(parsed.data_offset, header(std::string(76, ' '), version).size());
  }
}

TEST(NpyHeader, ReadsOtherSpellings) {
  EXPECT_EQ(parse("{\"shape\":(3,),\"fortran_order\":False,\"descr\":\">i2\"}").swap, 2U);
  EXPECT_EQ(parse("{'descr':'|b1','fortran_order':False,'shape':(3L,4L)}").shape.size(), 2U);
  EXPECT_EQ(parse("{'descr':'|S12','fortran_order':False,'shape':(3,)}").inside,
            std::vector<std::uint64_t>{12});
  EXPECT_EQ(parse("{'descr':'<f8','fortran_order':False,'shape':(0, 5)}").shape[0], 0U);
}

TEST(NpyHeader, RefusesWhatItCannotRead) {
  for (const char* text : {"{'descr':'|O','fortran_order':False,'shape':(3,)}",
                           "{'descr':'<c8','fortran_order':False,'shape':(3,)}",
                           "{'descr':'<M8[ns]','fortran_order':False,'shape':(3,)}",
                           "{'descr':'<U4','fortran_order':False,'shape':(3,)}",
                           "{'descr':[('a','<i4')],'fortran_order':False,'shape':(3,)}"}) {
    EXPECT_EQ(error_from([&] { parse(text); }).kind(), ErrorKind::unsupported) << text;
  }
  for (const char* text : {"{'descr':'<f4','fortran_order':True,'shape':(3, 4)}",
                           "{'descr':'<f4','fortran_order':False,'shape':()}"}) {
    const auto file = memory_file("a b.npy", header(text));
    const Error error = error_from([&] { read_npy_header(*file); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << text;
  }
}

TEST(NpyHeader, AnOrderThatMakesNoDifferenceIsTaken) {
  const auto fortran = [](const std::string& shape) {
    return parse("{'descr':'<f4','fortran_order':True,'shape':" + shape + "}").fortran;
  };
  for (const char* shape : {"()", "(3,)", "(3,1)", "(1,1,5)", "(0,5,6)"}) {
    EXPECT_FALSE(fortran(shape)) << shape;
  }
  for (const char* shape : {"(3,2)", "(1,2,3)"}) EXPECT_TRUE(fortran(shape)) << shape;
  const auto file =
      memory_file("it's a.npy", header("{'descr':'<f4','fortran_order':True,'shape':(3, 4)}"));
  EXPECT_THAT(error_from([&] { read_npy_header(*file); }).remedy(),
              testing::HasSubstr(R"( 'it'\''s a.npy' 'it'\''s a-c.npy')"));
}

TEST(NpyHeader, RefusesDamage) {
  for (const char* text :
       {"", "{", "{}", "()", "{'descr':'<f4'}", "{'descr':'<f4','fortran_order':False}",
        "{'descr':'<f4','fortran_order':0,'shape':(3,)}",
        "{'descr':'<f4','fortran_order':False,'shape':(-3,)}",
        "{'descr':'<f4','fortran_order':False,'shape':(3 4)}",
        "{'descr':'<f4','fortran_order':False,'shape':(99999999999999999999,)}",
        "{'descr':'<f4','fortran_order':False,'shape':(9999999999999999999,)}",
        "{'descr':'<f4','fortran_order':False,'shape':(3,)} and more",
        "{'descr':'<f4','fortran_order':False,'shape':(3,),'other':1}",
        "{'descr':'<f4','descr':'<f4','shape':(3,)}", "{'descr':'','fortran_order':False}",
        "{'descr':'<f4"}) {
    EXPECT_EQ(error_from([&] { parse(text); }).kind(), ErrorKind::corrupt) << text;
  }
  std::string many = "{'descr':'<f4','fortran_order':False,'shape':(";
  for (int i = 0; i < 100; ++i) many += "1,";
  EXPECT_EQ(error_from([&] { parse(many + ")}"); }).kind(), ErrorKind::corrupt);
}

TEST(NpyHeader, EveryDamagedByteEndsInAResultOrAnError) {
  const auto sound = header("{'descr': '<f4', 'fortran_order': False, 'shape': (10, 3), }\n");
  std::mt19937 random(3);
  for (std::size_t i = 0; i < sound.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      auto bytes = sound;
      bytes[i] = static_cast<std::byte>(value);
      try {
        parse_npy_header(bytes);
      } catch (const Error& error) {
        EXPECT_NE(error.kind(), ErrorKind::usage);
      }
    }
    const Error cut = error_from([&] { parse_npy_header(std::span(sound).first(i)); });
    EXPECT_EQ(cut.kind(), ErrorKind::corrupt) << i;
  }
}

}  // namespace
}  // namespace forebay::raw
