// Archives, records and tokens that lie: an error that names the place, never another sample.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/private_memory.hpp"
#include "format/kept_members.hpp"
#include "format/registry.hpp"
#include "format/sample_reader.hpp"
#include "tests/data_sets/made_sets.hpp"
#include "tests/support/error_from.hpp"

namespace forebay {
namespace {

using test::error_from;
using test::feature;
using test::little;
using test::tf_record;
using test::wire_bytes;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Faults : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& bytes) const {
    test::write_file(folder_.file(name), bytes);
    return folder_.file(name);
  }
  static std::string text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// Part `part` of all samples.
  static std::vector<std::string> values(const DataSet& data, std::size_t part = 0) {
    SampleReader reader(data, {});
    std::vector<std::uint64_t> ids(data.facts().entries);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
    reader.read(ids);
    std::vector<std::string> all;
    for (std::size_t i = 0; i < ids.size(); ++i) all.push_back(text(reader.part(i, part)));
    return all;
  }
  static std::string error_of(const std::string& path, const FormatOptions& options = {}) {
    return error_from([&] { values(*open_data_set(path, options)); }).what();
  }

  test::TemporaryFolder folder_;
};

using Zip = Faults;

/// The central directory's record of `name` in a zip archive.
std::size_t record_of(const std::string& archive, const std::string& name) {
  return archive.rfind(name) - 46;
}

TEST_F(Zip, NamesOfTheDirectoryThatTheMembersDoNotHaveAreRefused) {
  std::string classes = test::zip_archive({{"cat/1.jpg", "a"}, {"dog/2.jpg", "b"}});
  classes[classes.rfind("dog")] = 'c';
  EXPECT_THAT(error_of(file("classes.zip", classes)),
              AllOf(HasSubstr("classes.zip"), HasSubstr("'cog/2.jpg'"), HasSubstr("the name"),
                    HasSubstr("offset 40")));
  std::string parts = test::zip_archive({{"1.jpg", "a"}, {"2.jpg", "b"}});
  parts[parts.rfind("2.jpg")] = '3';
  EXPECT_THAT(error_of(file("parts.zip", parts)), HasSubstr("'3'"));
}

TEST_F(Zip, LinksAreLeftOutWithANote) {
  std::string archive = test::zip_archive({{"1.jpg", "a"}, {"2.jpg", "1.jpg"}, {"3.jpg", "c"}});
  archive[record_of(archive, "2.jpg") + 41] = '\xA1';
  const auto data = open_data_set(file("links.zip", archive), {});
  EXPECT_THAT(values(*data), ElementsAre("a", "c"));
  EXPECT_THAT(data->facts().notes, ElementsAre(HasSubstr("1 links are left out, the first is '2")));
}

TEST_F(Zip, WhatSystemsLeaveBehindIsNoData) {
  const std::string archive = test::zip_archive({{"in/cat/1.jpg", "a"},
                                                 {"__MACOSX/in/cat/._1.jpg", "x"},
                                                 {"in/.ipynb_checkpoints/1.jpg", "x"},
                                                 {"in/cat/Thumbs.db", "x"},
                                                 {"in/cat/desktop.ini", "x"},
                                                 {"in/dog/2.gif", "b"}});
  const auto data = open_data_set(file("left.zip", archive), {});
  EXPECT_THAT(values(*data), ElementsAre("a", "b"));
  EXPECT_THAT(data->facts().labels, ElementsAre("cat", "dog"));
  EXPECT_THAT(data->facts().notes, ElementsAre(HasSubstr("4 hidden members are left out")));
}

TEST_F(Zip, ACommentMayHoldTheMarkOfItsEnd) {
  std::string archive = test::zip_archive({{"1.jpg", "a"}, {"2.jpg", "b"}});
  const std::string comment = "PK\5\6 is how archives end; this is no end of one";
  archive.replace(archive.size() - 2, 2, little(comment.size(), 2));
  archive += comment;
  EXPECT_THAT(values(*open_data_set(file("comment.zip", archive), {})), ElementsAre("a", "b"));
  EXPECT_THAT(values(*open_data_set(file("behind.zip", archive + "more"), {.format = "zip"})),
              ElementsAre("a", "b"));
}

TEST_F(Zip, MembersOfOneNameAreToldWithTheirFile) {
  const std::string archive = test::zip_archive({{"1.jpg", "a"}, {"1.jpg", "b"}});
  EXPECT_THAT(error_of(file("twice.zip", archive)),
              AllOf(HasSubstr("twice.zip"), HasSubstr("'1' has 'jpg' twice")));
}

TEST_F(Zip, ClaimsOfMoreThanDeflateCanDoAreRefused) {
  std::string archive = test::zip_archive({{"1.jpg", "a"}, {"2.jpg", "b"}});
  archive.replace(record_of(archive, "2.jpg") + 24, 4, little(0x7FFFFFFF, 4));
  EXPECT_THAT(error_of(file("claims.zip", archive)),
              AllOf(HasSubstr("claims.zip"), HasSubstr("'2.jpg' claims 2147483647 bytes")));
}

TEST(PrivateMemory, ThatNobodyHasIsAnErrorWithARemedy) {
  EXPECT_EQ(error_from([] { PrivateMemory().get(std::uint64_t{1} << 60); }).kind(),
            ErrorKind::usage);
}

class Records : public Faults {
 protected:
  static std::string example(const std::string& features) {
    return tf_record(wire_bytes(1, features));
  }
  /// More than are looked at, of which one lacks a text that the others have.
  std::string with_one_missing() const {
    std::string bytes;
    for (int i = 0; i < 100; ++i) {
      const std::string label = feature("label", 3, wire_bytes(1, "\7"));
      bytes += example(i == 50 ? label : label + feature("text", 1, wire_bytes(1, "of it")));
    }
    return file("missing.tfrecord", bytes);
  }
};

TEST_F(Records, ATextThatOneRecordLacksIsRefusedUnlessAskedFor) {
  const std::string path = with_one_missing();
  for (const char* fields : {"", "#text"}) {
    EXPECT_THAT(
        error_of(path + fields),
        AllOf(HasSubstr("missing.tfrecord"), HasSubstr("sample 50"),
              HasSubstr("feature 'text' has 0 values, not 1"), HasSubstr("'FILES#text[]'")));
  }
  EXPECT_EQ(values(*open_data_set(path + "#text[]", {})).at(50), "");
  EXPECT_EQ(values(*open_data_set(path + "#text[]", {})).at(51), "of it");
}

TEST_F(Records, OneThatIsNoExampleAmongExamplesIsRefused) {
  std::string bytes;
  for (int i = 0; i < 20; ++i) {
    bytes += i == 7 ? tf_record("no example") : example(feature("t", 1, wire_bytes(1, "x")));
  }
  EXPECT_THAT(error_of(file("one.tfrecord", bytes)),
              AllOf(HasSubstr("one.tfrecord"), HasSubstr("sample 7"), HasSubstr("offset ")));
  // But messages that happen to be one among others are no Examples.
  std::string others;
  for (int i = 0; i < 20; ++i) {
    others += i != 7 ? tf_record("no example") : example(feature("t", 1, wire_bytes(1, "x")));
  }
  EXPECT_EQ(values(*open_data_set(file("others.tfrecord", others), {})).at(6), "no example");
}

TEST_F(Records, ADamagedOneIsRefusedWheneverItIsReadAndWhereMappedOnceFoundSoundNotSummedAgain) {
  std::string bytes;
  for (int i = 0; i < 10; ++i) {
    bytes += example(feature("t", 1, wire_bytes(1, "text " + std::to_string(i))));
  }
  const auto data = open_data_set(file("r.tfrecord", bytes), {});
  const auto copy = [&](const Plan&, auto reads, auto memory) {
    for (const PlacedExtent& read : reads) {
      std::memcpy(&memory[read.place], &bytes[read.extent.offset], read.extent.length);
    }
  };
  auto mapped = SampleReader::in_place(*data, {std::as_bytes(std::span(bytes))});
  auto read = SampleReader::by(*data, copy);
  const std::vector<std::uint64_t> sound{2, 4}, all{2, 4, 6};
  mapped.read(sound);
  for (const char* text : {"text 4", "text 6"}) bytes[bytes.find(text)] = 'n';
  mapped.read(sound);
  EXPECT_EQ(text(mapped.part(1, 0)), "next 4");
  const auto expect_refused = [&](SampleReader& reader, const auto& ids, const char* sample) {
    for (int time = 0; time < 2; ++time) {
      EXPECT_THAT(error_from([&] { reader.read(ids); }).what(),
                  AllOf(HasSubstr("r.tfrecord"), HasSubstr(sample), HasSubstr("their checksum")));
    }
  };
  expect_refused(mapped, all, "sample 6");
  expect_refused(read, sound, "sample 4");
}

TEST_F(Records, ListsInSeveralPiecesAreOne) {
  const std::string two_lists = wire_bytes(
      1, wire_bytes(1, "ids") +
             wire_bytes(2, wire_bytes(3, wire_bytes(1, "\1\2")) + wire_bytes(3, "\x08\x03")));
  const std::string two_features =
      wire_bytes(1, wire_bytes(1, "ids") + wire_bytes(2, wire_bytes(3, wire_bytes(1, "\1"))) +
                        wire_bytes(2, wire_bytes(3, wire_bytes(1, "\2") + wire_bytes(1, "\3"))));
  const auto data =
      open_data_set(file("pieces.tfrecord", example(two_lists) + example(two_features)), {});
  const std::string numbers = little(1, 8) + little(2, 8) + little(3, 8);
  EXPECT_THAT(values(*data), ElementsAre(numbers, numbers));
}

class Tokens : public Faults {
 protected:
  /// The index of two sequences of 3 and 4 tokens of two bytes.
  static std::string index(std::uint64_t second_begins, const std::vector<std::uint64_t>& bounds) {
    std::string bytes = std::string("MMIDIDX\0\0", 9) + little(1, 8) + little(8, 1) + little(2, 8) +
                        little(bounds.size(), 8) + little(3, 4) + little(4, 4) + little(0, 8) +
                        little(second_begins, 8);
    for (const std::uint64_t bound : bounds) bytes += little(bound, 8);
    return bytes;
  }
  std::string error_with(const std::string& index) const {
    file("m.idx", index);
    return error_of(file("m.bin", test::content(1, 14)), {.window_length = 2});
  }
};

TEST_F(Tokens, AnIndexThatContradictsItselfIsRefused) {
  file("m.idx", index(6, {0, 1, 2}));
  EXPECT_EQ(
      open_data_set(file("m.bin", test::content(1, 14)), {.window_length = 2})->facts().entries,
      3U);
  EXPECT_THAT(error_with(index(8, {0, 1, 2})),
              AllOf(HasSubstr("m.idx"), HasSubstr("sequence 1 does not begin where"),
                    HasSubstr("offset 50")));
  EXPECT_THAT(error_with(index(6, {0, 2, 1})), HasSubstr("document 2 of 2 sequences begins"));
  EXPECT_THAT(error_with(index(6, {0, 1})), HasSubstr("document 1 of 2 sequences begins"));
  EXPECT_THAT(error_with(index(6, {0, 1, 2}).substr(0, 70)), HasSubstr("do not fit the index"));
}

TEST_F(Tokens, TooLargeAWindowIsNotTakenForNone) {
  const std::string path = file("t.bin", test::content(1, 14));
  EXPECT_THAT(error_of(path, {.schema = "u16", .window_length = std::uint64_t{1} << 32}),
              AllOf(HasSubstr("4294967296 tokens"), HasSubstr("4294967295 at most")));
  EXPECT_THAT(error_of(path, {.schema = "u16"}), HasSubstr("how many tokens make a sample"));
}

/// Other content of the same size, with the time of change of the old: only ctime tells.
TEST_F(Faults, AKeptIndexIsNotOfAFileThatWasChangedAndSetBack) {
  const std::string path = file("a.tar", test::tar_member("1.cls", "1") + std::string(1024, '\0'));
  const auto hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(path, hour_ago);
  const auto identity = [&] { return identity_of("tar", {open_file(path, Engine::pread)}); };
  const std::string before = identity();
  struct stat old {};
  ASSERT_EQ(::stat(path.c_str(), &old), 0);
  for (struct stat now = old;
       now.st_ctim.tv_sec == old.st_ctim.tv_sec && now.st_ctim.tv_nsec == old.st_ctim.tv_nsec;) {
    std::filesystem::last_write_time(path, hour_ago);
    ASSERT_EQ(::stat(path.c_str(), &now), 0);
  }
  EXPECT_NE(before, "");
  EXPECT_NE(identity(), before);
}

}  // namespace
}  // namespace forebay
