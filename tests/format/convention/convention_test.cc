// Which records are which samples: compared with what liblmdb holds, for every convention.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "forebay/error.hpp"
#include "format/convention/convention_set.hpp"
#include "tests/support/lmdb_records.hpp"
#include "tests/support/scale.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::convention {
namespace {

using test::numbered;
using test::OracleRecord;
using test::TemporaryFolder;
using test::write_records;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

FormatOptions how(ConventionName name, KeyOrder order) {
  FormatOptions options;
  options.hold = false;
  options.convention = name;
  options.order_by = order;
  return options;
}

/// Whether opening finds nothing to map.
bool needs_no_map(const std::string& path) {
  const auto data = open_data_set(path, how(ConventionName::automatic, KeyOrder::key));
  return dynamic_cast<const lmdb::LmdbSet*>(data.get()) != nullptr;
}

/// By its convention, also where it needs no map.
std::unique_ptr<ConventionSet> open(const std::string& path,
                                    ConventionName name = ConventionName::automatic,
                                    KeyOrder order = KeyOrder::key) {
  return open_by_convention(path, how(name, order));
}

Error refusal(const std::string& path, ConventionName name = ConventionName::automatic,
              KeyOrder order = KeyOrder::key) {
  try {
    open(path, name, order);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("\n")));
    return error;
  }
  ADD_FAILURE() << path << " opens";
  return Error(ErrorKind::usage, "");
}

/// The keys that the parts of all samples come from: liblmdb's cursor says which record is which.
std::vector<std::vector<std::string>> keys_of(const ConventionSet& set) {
  std::vector<std::string> keys;
  for (const DatabaseNote& database : set.convention().databases()) {
    for (const OracleRecord& record : test::read_with_liblmdb(database.path)) {
      keys.push_back(record.key);
    }
  }
  std::vector<std::vector<std::string>> samples(set.facts().entries);
  for (const Convention::Part& part : set.convention().parts()) {
    EXPECT_EQ(part.records.samples(), samples.size());
    for (std::uint64_t i = 0; i < samples.size(); ++i) {
      samples[i].push_back(keys[part.records.record(i)]);
    }
  }
  return samples;
}

std::vector<std::string> first_parts(const ConventionSet& set) {
  std::vector<std::string> keys;
  for (const auto& sample : keys_of(set)) keys.push_back(sample[0]);
  return keys;
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Convention, APlainDatabaseNeedsNoMap) {
  TemporaryFolder folder;
  const std::string path = folder.file("d");
  write_records(path, {{"00000000_a/b 1.jpg", "x"}, {"00000001_c", ""}, {"zebra", "y"}});
  EXPECT_TRUE(needs_no_map(path));
  const auto set = open(path);
  EXPECT_TRUE(set->convention().parts()[0].records.is_plain(3));
  EXPECT_EQ(open_data_set(path, {})->facts().fingerprint,
            lmdb::Database::open(path, Engine::pread).fingerprint().text);
  EXPECT_THAT(first_parts(*set), ElementsAre("00000000_a/b 1.jpg", "00000001_c", "zebra"));
}

TEST(Convention, HashesAndClassNamesAreNoParts) {
  TemporaryFolder folder;
  write_records(folder.file("hashes"), {{"0a1", "x"}, {"0b1", "y"}, {"fe1", "z"}});
  write_records(folder.file("classes"), {{"train-001", "x"}, {"train-002", "y"}, {"val-001", "z"}});
  for (const std::string name : {"hashes", "classes"}) {
    EXPECT_TRUE(needs_no_map(folder.file(name))) << name;
  }
}

TEST(Convention, MetadataAreNoSamplesWhereverTheyLie) {
  TemporaryFolder folder;
  const std::vector<std::pair<std::string, std::string>> cases = {{"num-samples", "3"},
                                                                  {"length", "3"},
                                                                  {"__len__", "3"},
                                                                  {"__keys__", "\x80\x03]q\x00."},
                                                                  {"num_samples", "3\n"}};
  for (const auto& [key, value] : cases) {
    for (const std::string prefix : {"", "a", "m", "z"}) {  // before, among and behind them
      const std::string path = folder.file(key + "of" + prefix);
      std::vector<OracleRecord> records = {{key, value}};
      for (int i = 8; i < 11; ++i) records.push_back({prefix + std::to_string(i), "v"});
      write_records(path, records);
      const auto set = open(path);
      EXPECT_THAT(first_parts(*set), ElementsAre(prefix + "10", prefix + "8", prefix + "9"));
      EXPECT_FALSE(needs_no_map(path));
      EXPECT_EQ(set->convention().databases()[0].metadata.size(), 1U);
      EXPECT_NE(set->facts().fingerprint,
                lmdb::Database::open(path, Engine::pread).fingerprint().text);
      EXPECT_THAT(first_parts(*open(path, ConventionName::automatic, KeyOrder::number)),
                  ElementsAre(prefix + "8", prefix + "9", prefix + "10"));
      EXPECT_EQ(open(path, ConventionName::plain)->facts().entries, 4U) << "as asked for";
      EXPECT_TRUE(open(path, ConventionName::plain)->convention().parts()[0].records.is_plain(4));
    }
  }
}

TEST(Convention, SeveralMetadataAmongManyRecordsAreLeftOut) {
  TemporaryFolder folder;
  const std::string path = folder.file("d");
  std::vector<OracleRecord> records = {{"__keys__", "?"}, {"__len__", "900"}, {"length", "900"}};
  std::vector<std::string> keys;
  for (int i = 0; i < 900; ++i) {
    keys.push_back(numbered(i % 2 == 0 ? "big" : "pig", static_cast<unsigned>(i), 4) + "x");
    records.push_back({keys.back(), std::string(100, 'v')});
  }
  write_records(path, records);
  std::ranges::sort(keys);
  EXPECT_EQ(first_parts(*open(path)), keys);
}

TEST(Convention, ACounterInAnyFormIsCheckedAndItsErrorHasBothNumbers) {
  TemporaryFolder folder;
  using namespace std::string_literals;
  const std::vector<std::string> forms = {"300",
                                          "300\n",
                                          "\x2c\x01\x00\x00"s,
                                          "\x2c\x01\x00\x00\x00\x00\x00\x00"s,
                                          "\x00\x00\x01\x2c"s,
                                          "\x80\x02M,\x01."s,
                                          "\x80\x04\x95\x04\x00\x00\x00\x00\x00\x00\x00M,\x01."s,
                                          "I300\n."s,
                                          "L300L\n."s,
                                          "\x80\x03J,\x01\x00\x00."s,
                                          "\x80\x02\x8a\x02,\x01."s,
                                          "\xcd\x01\x2c"s,
                                          "\xce\x00\x00\x01\x2c"s};
  int number = 0;
  for (const std::string& form : forms) {
    for (const std::uint64_t count : {300, 299}) {
      const std::string path = folder.file(std::to_string(number++));
      std::vector<OracleRecord> records = {{"__len__", form}};
      for (std::uint64_t i = 0; i < count; ++i) records.push_back({numbered("k", i, 5), ""});
      write_records(path, records);
      if (count == 300) {
        EXPECT_EQ(open(path)->facts().entries, 300U) << testing::PrintToString(form);
      } else {
        const Error error = refusal(path);
        EXPECT_EQ(error.kind(), ErrorKind::corrupt);
        EXPECT_THAT(error.what(), AllOf(HasSubstr("300"), HasSubstr("299"), HasSubstr("__len__")));
      }
      EXPECT_EQ(open(path, ConventionName::plain)->facts().entries, count + 1);
    }
  }
}

TEST(Convention, WhatIsNoCountIsNotChecked) {
  TemporaryFolder folder;
  int number = 0;
  for (const std::string& value :
       {std::string("\x80\x04]\x94(K\x01K\x02"
                    "e."),
        std::string("many"), std::string(), std::string(100, '9'), std::string("-3")}) {
    const std::string path = folder.file(std::to_string(number++));
    write_records(path, {{"length", value}, {"1", ""}, {"2", ""}});
    EXPECT_EQ(open(path)->facts().entries, 2U) << testing::PrintToString(value);
  }
}

TEST(Convention, ImagesAndLabelsAreOneSample) {
  TemporaryFolder folder;
  for (const std::uint64_t first : {0U, 1U}) {
    for (const int width : {9, 1}) {
      for (const bool counted : {false, true}) {
        const std::string path =
            folder.file(std::to_string(first) + std::to_string(width) + (counted ? "counted" : ""));
        std::vector<OracleRecord> records = test::grouped_records(120, first, width);
        if (counted) records.push_back({"num-samples", "120"});
        write_records(path, records);
        const auto set = open(path);
        EXPECT_THAT(set->convention().part_names(), ElementsAre("image", "label"));
        const auto keys = keys_of(*set);
        ASSERT_EQ(keys.size(), 120U);
        for (std::uint64_t i = 0; i < 120; ++i) {
          EXPECT_THAT(keys[i], ElementsAre(numbered("image-", first + i, width),
                                           numbered("label-", first + i, width)));
        }
        EXPECT_THAT(set->convention().databases()[0].why, HasSubstr("image-"));
      }
    }
  }
}

TEST(Convention, PaddedGroupsAreFoundWithoutLookingAtAllKeys) {
  TemporaryFolder folder;
  const std::string path = folder.file("d");
  std::vector<OracleRecord> records = {{"num-samples", "9000"}};
  for (std::uint64_t i = 1; i <= 9000; ++i) {
    for (const std::string prefix : {"gt-", "image-", "wh-"}) {
      records.push_back({numbered(prefix, i), std::string(90, 'x')});
    }
  }
  write_records(path, records);
  const auto set = open(path);
  EXPECT_EQ(set->facts().entries, 9000U);
  EXPECT_LT(set->counters().pages_visited, 100U);
  EXPECT_LT(set->convention().memory_bytes(), 100U);
  EXPECT_THAT(keys_of(*set).back(), ElementsAre("gt-000009000", "image-000009000", "wh-000009000"));
}

TEST(Convention, AMissingPartnerIsNamed) {
  TemporaryFolder folder;
  for (const int width : {9, 1}) {
    for (const std::uint64_t gone : {1U, 7U, 40U}) {
      for (const std::string prefix : {"image-", "label-"}) {
        const std::string other = prefix == "image-" ? "label-" : "image-";
        const std::string path =
            folder.file(prefix + std::to_string(gone) + "of" + std::to_string(width));
        std::vector<OracleRecord> records = test::grouped_records(40, 1, width);
        std::erase_if(records, [&](const OracleRecord& record) {
          return record.key == numbered(prefix, gone, width);
        });
        write_records(path, records);
        const Error error = refusal(path);
        EXPECT_EQ(error.kind(), ErrorKind::corrupt);
        EXPECT_THAT(error.what(), AllOf(HasSubstr(numbered(prefix, gone, width)),
                                        HasSubstr(numbered(other, gone, width))));
        EXPECT_EQ(open(path, ConventionName::plain)->facts().entries, 79U);
      }
    }
  }
}

TEST(Convention, NumbersMayHaveGapsAndTwoWidthsOfOneNumberAreRefused) {
  TemporaryFolder folder;
  write_records(folder.file("gaps"), {{"image-1", "a"},
                                      {"image-12", "b"},
                                      {"image-9", "c"},
                                      {"label-1", "d"},
                                      {"label-12", "e"},
                                      {"label-9", "f"}});
  EXPECT_THAT(keys_of(*open(folder.file("gaps"))),
              ElementsAre(ElementsAre("image-1", "label-1"), ElementsAre("image-9", "label-9"),
                          ElementsAre("image-12", "label-12")));
  write_records(folder.file("twice"),
                {{"image-1", "a"}, {"image-01", "b"}, {"label-1", "c"}, {"label-01", "d"}});
  EXPECT_THAT(refusal(folder.file("twice")).what(),
              AllOf(HasSubstr("image-1"), HasSubstr("image-01")));
}

TEST(Convention, ACounterOfGroupsThatContradictsThemIsAnError) {
  TemporaryFolder folder;
  const std::string path = folder.file("d");
  std::vector<OracleRecord> records = test::grouped_records(10);
  records.push_back({"num-samples", "18446744073709551615"});
  write_records(path, records);
  EXPECT_THAT(refusal(path).what(), AllOf(HasSubstr("18446744073709551615"), HasSubstr("10")));
}

TEST(Convention, AnotherKeyAmongGroupsIsNamedWhenGroupsWereAskedFor) {
  TemporaryFolder folder;
  std::vector<OracleRecord> records = test::grouped_records(10);
  records.push_back({"image-000000005b", "odd"});
  write_records(folder.file("among"), records);
  EXPECT_THAT(refusal(folder.file("among")).what(), HasSubstr("image-000000005b"));
  write_records(folder.file("plain"), {{"a", ""}, {"b", ""}});
  EXPECT_EQ(refusal(folder.file("plain"), ConventionName::grouped).kind(), ErrorKind::usage);
}

TEST(Convention, UnpaddedNumbersAreOrderedAsAskedFor) {
  TemporaryFolder folder;
  const std::string path = folder.file("d");
  std::vector<OracleRecord> records;
  std::vector<std::string> by_number;
  for (int i = 0; i < 1234; ++i) {
    by_number.push_back(std::to_string(i));
    records.push_back({by_number.back(), i % 3 == 0 ? "" : "v"});
  }
  write_records(path, records);
  std::vector<std::string> by_bytes = by_number;
  std::ranges::sort(by_bytes);
  EXPECT_EQ(first_parts(*open(path)), by_bytes);
  const auto set = open(path, ConventionName::automatic, KeyOrder::number);
  EXPECT_EQ(first_parts(*set), by_number);
  EXPECT_FALSE(set->convention().parts()[0].records.is_plain(set->facts().entries));
  write_records(path, {{"1name", ""}});
  EXPECT_THAT(refusal(path, ConventionName::automatic, KeyOrder::number).what(), HasSubstr("name"));
}

class List : public testing::Test {
 protected:
  List() {
    for (const int i : {3, 1, 2}) records_.push_back({"a/000" + std::to_string(i), "no image"});
    write_records(path_, records_);
  }
  void list(const std::string& text) { write_text(path_ + "/meta_info.txt", text); }

  TemporaryFolder folder_;
  std::string path_ = folder_.file("x.lmdb");
  std::vector<OracleRecord> records_;
};

TEST_F(List, SamplesComeInTheOrderOfItsLines) {
  list("a/0003.png (480,480,3) 1\na/0001.png (480, 480,3) 1\r\na/0002.png (12,13) 9\n\n");
  const auto set = open(path_);
  EXPECT_THAT(first_parts(*set), ElementsAre("a/0003", "a/0001", "a/0002"));
  EXPECT_EQ(set->convention().databases()[0].convention, ConventionName::meta_info);
  EXPECT_FALSE(needs_no_map(path_));
  EXPECT_THAT(first_parts(*open(path_, ConventionName::plain)),
              ElementsAre("a/0001", "a/0002", "a/0003"));
}

TEST_F(List, ExtensionsMayBelongToKeys) {
  write_records(folder_.file("y"), {{"1.png", ""}, {"2.png", ""}});
  write_text(folder_.file("y/meta_info.txt"), "2.png (1,1,3) 1\n1.png (1,1,3) 1\n");
  EXPECT_THAT(first_parts(*open(folder_.file("y"))), ElementsAre("2.png", "1.png"));
}

TEST_F(List, ContradictionsAreNamed) {
  const std::string three = "a/0001.png (1,1,3) 1\na/0002.png (1,1,3) 1\na/0003.png (1,1,3) 1\n";
  list(three + "a/0004.png (1,1,3) 1\n");
  EXPECT_THAT(refusal(path_).what(),
              AllOf(HasSubstr("a/0004"), HasSubstr("4 lines"), HasSubstr("3 records")));
  list(three.substr(three.find('\n') + 1));
  EXPECT_THAT(refusal(path_).what(), AllOf(HasSubstr("a/0001"), HasSubstr("2 lines")));
  list(three + "a/0002.jpg (1,1,3) 1\n");
  EXPECT_THAT(refusal(path_).what(), AllOf(HasSubstr("line 4"), HasSubstr("line 2")));
  list("");
  EXPECT_EQ(refusal(path_).kind(), ErrorKind::corrupt);
}

TEST_F(List, GarbageIsRefusedWithItsLine) {
  for (const std::string& garbage :
       {std::string("a/0002.png (1,1,3\n"), std::string("a/0002.png (x,1,3) 1\n"),
        std::string("a/0002.png (1,2,3,4,5) 1\n"), std::string("a/0002.png () 1\n"),
        std::string("a/0002.png (1,1,99999999999999999999) 1\n"), std::string("\x80\x02}q\n"),
        std::string("\n\nx\n"), std::string(3000, 'x') + "\n", std::string(" (1,1) 1\n"),
        std::string(".png (1,1) 1\n"), std::string("a/.png (1,1) 1\n")}) {
    list("a/0001.png (1,1,3) 1\n" + garbage);
    const Error error = refusal(path_);
    EXPECT_EQ(error.kind(), ErrorKind::corrupt) << garbage;
    EXPECT_THAT(error.what(), AllOf(HasSubstr("meta_info.txt"), HasSubstr("plain")));
    EXPECT_EQ(open(path_, ConventionName::plain)->facts().entries, 3U);
  }
}

TEST(Databases, OneBehindTheOtherKeepTheirOrder) {
  TemporaryFolder folder;
  for (const std::string part : {"part-2", "part-10", "part-1"}) {
    write_records(folder.file(part), {{"a", part}, {"b", part}, {"length", "2"}});
  }
  const std::string dir = folder.path() + "/";
  const auto names = [&](const std::string& text) {
    std::vector<std::string> found;
    for (const std::string& path : all_databases(text)) found.push_back(path.substr(dir.size()));
    return found;
  };
  EXPECT_THAT(names(dir + "part-*"), ElementsAre("part-1", "part-10", "part-2"));
  EXPECT_THAT(names(dir + "part-2," + dir + "part-1*"), ElementsAre("part-2", "part-1", "part-10"));
  write_text(dir + "part-1-lock", "");
  write_text(dir + "part-1.forebay", "");
  EXPECT_THAT(names(dir + "part-*"), ElementsAre("part-1", "part-10", "part-2"));
  const auto set = open(dir + "part-2," + dir + "part-1");
  EXPECT_THAT(first_parts(*set), ElementsAre("a", "b", "a", "b"));
  EXPECT_THAT(set->convention().bounds(), ElementsAre(0, 2, 4));
  EXPECT_EQ(refusal(dir + "nothing*").kind(), ErrorKind::not_found);
  EXPECT_EQ(refusal(dir + "part-1," + dir + "missing").kind(), ErrorKind::not_found);
}

TEST(Databases, NamesAndCommasOfExistingFilesWin) {
  TemporaryFolder folder;
  const std::string odd = folder.file("x=a&y=b,c");
  write_records(odd, {{"k", "v"}});
  EXPECT_THAT(all_databases(odd), ElementsAre(odd));
  write_records(folder.file("n"), {{"k", "v"}}, "one,two");
  write_records(folder.file("n"), {{"k", "v"}}, "other");
  EXPECT_THAT(all_databases(folder.file("n#one,two")), ElementsAre(folder.file("n#one,two")));
  EXPECT_EQ(open(folder.file("n*#other"))->facts().entries, 1U);
}

TEST(Databases, BesideEachOtherTheyAreOneSampleAKey) {
  TemporaryFolder folder;
  std::vector<OracleRecord> lq, gt;
  for (int i = 0; i < 300; ++i) {
    lq.push_back({numbered("im", static_cast<unsigned>(i), 4), "l" + std::to_string(i)});
    gt.push_back({lq.back().key, std::string(static_cast<std::size_t>(i) * 50, 'g')});
  }
  write_records(folder.file("lq"), lq);
  write_records(folder.file("gt"), gt);
  const std::string text = "lq=" + folder.file("lq") + "&gt=" + folder.file("gt");
  const auto set = open(text);
  EXPECT_THAT(set->convention().part_names(), ElementsAre("lq", "gt"));
  for (const auto& sample : keys_of(*set)) EXPECT_EQ(sample[0], sample[1]);
  EXPECT_LT(set->counters().pages_visited, 40U) << "of two databases: ends and counts say it";

  write_records(folder.file("gt"), {{"only1", ""}});
  EXPECT_THAT(refusal(text).what(), AllOf(HasSubstr("only"), HasSubstr("'lq'")));
  write_records(folder.file("lq"), {{"im0007b", ""}});
  EXPECT_THAT(refusal(text).what(), AllOf(HasSubstr("im0007b"), HasSubstr("'gt'")));
}

TEST(Databases, AlignedListsMayBeOrderedDifferently) {
  TemporaryFolder folder;
  write_records(folder.file("a"), {{"1", ""}, {"2", ""}, {"3", ""}});
  write_records(folder.file("b"), {{"1", ""}, {"2", ""}, {"3", ""}});
  write_text(folder.file("a/meta_info.txt"), "3.png (1,1) 1\n1.png (1,1) 1\n2.png (1,1) 1\n");
  EXPECT_THAT(keys_of(*open("x=" + folder.file("a") + "&y=" + folder.file("b"))),
              ElementsAre(ElementsAre("3", "3"), ElementsAre("1", "1"), ElementsAre("2", "2")));
  EXPECT_EQ(refusal("x=" + folder.file("a") + "&x=" + folder.file("b")).kind(), ErrorKind::usage);
  EXPECT_EQ(refusal("x=" + folder.file("a") + "&y=").kind(), ErrorKind::usage);
}

TEST(Convention, AnyNumbersInAnyOrderMakeTheSamplesThatTheyShouldMake) {
  std::mt19937_64 random(3);
  const auto rounds = static_cast<std::uint64_t>(test::long_cases(60));
  for (std::uint64_t round = 0; round < rounds; ++round) {
    TemporaryFolder folder;
    const std::vector<std::string> prefixes = {"gt_", "img/", "lq-", "text."};
    const std::size_t parts = 2 + random() % 3;
    const std::uint64_t count = 1 + random() % 200;
    const std::uint64_t first = random() % 2;
    const int width = random() % 2 == 0 ? 1 : 6;
    const bool gaps = random() % 2 == 0;
    std::vector<OracleRecord> records;
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < count; ++i) numbers.push_back(first + i * (gaps ? 3 : 1));
    for (const std::uint64_t number : numbers) {
      for (std::size_t p = 0; p < parts; ++p) {
        records.push_back({numbered(prefixes[p], number, width), std::string(random() % 300, 'v')});
      }
    }
    if (random() % 2 == 0) records.push_back({"num-samples", std::to_string(count)});
    std::ranges::shuffle(records, random);
    write_records(folder.file("d"), records);
    const auto keys = keys_of(*open(folder.file("d"), ConventionName::grouped));
    ASSERT_EQ(keys.size(), count);
    for (std::uint64_t i = 0; i < count; ++i) {
      for (std::size_t p = 0; p < parts; ++p) {
        ASSERT_EQ(keys[i][p], numbered(prefixes[p], numbers[i], width)) << "round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace forebay::convention
