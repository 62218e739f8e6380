// Which records are no samples: databases shaped like those that programs write, and the same
// answer for every way to ask. liblmdb says which records there are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <random>

#include "tests/format/convention/no_samples.hpp"

namespace forebay::convention::no_samples {
namespace {

using namespace std::string_literals;
TEST(NoSamples, WhatProgramsKeepBesideNumbersIsLeftOut) {
  TemporaryFolder folder;
  for (const int count : {1, 3, 10, 700}) {
    const std::string text = std::to_string(count);
    const auto of = [&](const std::string& name) { return name + text; };
    EXPECT_THAT(left_out(make(folder, of("ase"), numbers(count, 1),
                              {{"nextid", "x\x9c\x33\x34\x02"}, {"deleted_ids", "x\x9c\x8b\x8e"}})),
                UnorderedElementsAre("nextid", "deleted_ids"));
    EXPECT_THAT(left_out(make(folder, of("deepmd"), numbers(count), {{"metadata", "\x81\xa5"}})),
                ElementsAre("metadata"));
    EXPECT_THAT(left_out(make(folder, of("tape"), numbers(count),
                              {{"num_examples", "\x80\x03J" + std::string(1, char(count & 255)) +
                                                    std::string(1, char(count >> 8)) + "\0\0."s}})),
                ElementsAre("num_examples"));
    EXPECT_THAT(left_out(make(folder, of("atom3d"), numbers(count),
                              {{"num_examples", text},
                               {"serialization_format", "json"},
                               {"id_to_idx", std::string(200, 'z')}})),
                UnorderedElementsAre("num_examples", "serialization_format", "id_to_idx"));
    EXPECT_THAT(left_out(make(folder, of("clip"), numbers(count), {{"num_images", text}})),
                ElementsAre("num_images"));
    EXPECT_THAT(left_out(make(folder, of("pairs"), numbers(count), {{"num_samples", text}})),
                ElementsAre("num_samples"));
    EXPECT_THAT(left_out(make(folder, of("len"), numbers(count), {{"__len__", text}})),
                ElementsAre("__len__"));
  }
}

TEST(NoSamples, AFewBesideManyOfAnyFormAreLeftOutAndNamed) {
  TemporaryFolder folder;
  const std::vector<std::function<std::string(unsigned)>> forms = {
      [](unsigned i) { return std::to_string(i); },
      [](unsigned i) { return numbered("", i, 8); },
      [](unsigned i) { return numbered("train/img_", i, 6) + ".jpg"; },
      [](unsigned i) { return numbered("", i, 8) + "_n01/" + std::string(1, char('a' + i % 26)); },
      [](unsigned i) { return numbered("", i * 2654435761U, 10) + "abcdef0123"; },
      [](unsigned i) {
        return std::string{'\0', '\0', static_cast<char>(i >> 8), static_cast<char>(i)};
      },
  };
  for (std::size_t f = 0; f < forms.size(); ++f) {
    std::vector<OracleRecord> records;
    for (unsigned i = 0; i < 2000; ++i) records.push_back({forms[f](i), "value"});
    const std::string path = make(folder, std::to_string(f), records,
                                  {{"!schema", "x"}, {"_vocabulary", "y"}, {"zz version", "z"}});
    EXPECT_THAT(left_out(path), UnorderedElementsAre("!schema", "_vocabulary", "zz version")) << f;
    const auto set = open(path);
    ASSERT_EQ(set->facts().notes.size(), 1U);
    EXPECT_THAT(set->facts().notes[0],
                AllOf(HasSubstr("_vocabulary"), HasSubstr("--keep-records")));
    EXPECT_THAT(set->info(), AllOf(HasSubstr("_vocabulary"), HasSubstr("unlike")));
    EXPECT_LT(set->counters().pages_visited, 200U) << "at the ends and at some places between";
    EXPECT_THAT(left_out(path, {.keep = "*"}), IsEmpty());
    EXPECT_THAT(left_out(path, {.keep = "_voc*,!schema"}), ElementsAre("zz version"));
    EXPECT_THAT(left_out(path, {.convention = ConventionName::plain}), IsEmpty());
  }
}

TEST(NoSamples, ManyOrAlikeKeysAreSamples) {
  TemporaryFolder folder;
  const auto plain = [&](const std::string& name, const std::vector<OracleRecord>& others) {
    return left_out(make(folder, name, numbers(100), others));
  };
  std::vector<OracleRecord> words, siblings, tens;
  for (char c = 'a'; c < 'z'; ++c) words.push_back({std::string(3, c), "v"});
  for (int i = 0; i < 300; ++i) siblings.push_back({numbered("train-", unsigned(i), 5), "v"});
  for (int i = 0; i < 5; ++i) siblings.push_back({numbered("val-", unsigned(i), 5), "v"});
  EXPECT_THAT(plain("words", words), IsEmpty());
  EXPECT_THAT(plain("names", {{"1_a", ""}, {"1.jpg", ""}, {"zebra", ""}}), IsEmpty())
      << "keys between the numbers are none";
  EXPECT_THAT(left_out(make(folder, "siblings", siblings, {})), IsEmpty());
  std::vector<OracleRecord> files;
  for (int i = 0; i < 300; ++i) files.push_back({numbered("img_", unsigned(i), 5) + ".jpg", "v"});
  EXPECT_THAT(left_out(make(folder, "files", files, {{"cover.jpg", ""}})), IsEmpty());
  EXPECT_THAT(left_out(make(folder, "kinds", files, {{"photo_7.png", ""}})), IsEmpty());
  EXPECT_THAT(left_out(make(folder, "list", files, {{"labels.json", ""}})),
              ElementsAre("labels.json"));
  EXPECT_THAT(left_out(make(folder, "few", {{"img_1", ""}, {"img_2", ""}}, {{"cat", ""}})),
              IsEmpty());
}

TEST(NoSamples, CountersDecide) {
  TemporaryFolder folder;
  EXPECT_THAT(
      left_out(make(folder, "ten", {{"a1", ""}, {"a2", ""}}, {{"odd", ""}, {"length", "2"}})),
      UnorderedElementsAre("length", "odd"));
  EXPECT_THAT(
      left_out(make(folder, "all", {{"a1", ""}, {"a2", ""}}, {{"odd", ""}, {"length", "3"}})),
      ElementsAre("length"));
  EXPECT_THAT(left_out(make(folder, "eleven", numbers(10), {{"odd", ""}, {"length", "11"}})),
              ElementsAre("length"));
  EXPECT_THAT(left_out(make(folder, "own", {{"x", ""}, {"yy", ""}}, {{"num_records", "2"}})),
              ElementsAre("num_records"));
  EXPECT_THAT(left_out(make(folder, "no", {{"x", "1"}, {"yy", "5"}}, {{"num_records", "7"}})),
              IsEmpty())
      << "such a word may be the key of a sample";
  EXPECT_THAT(refusal(make(folder, "not", {{"x", ""}, {"yy", ""}}, {{"num_records", "7"}})),
              AllOf(HasSubstr("7"), HasSubstr("2"), HasSubstr("num_records")));
  const std::string wrong = make(folder, "wrong", numbers(20), {{"num_examples", "21"}});
  EXPECT_THAT(refusal(wrong), AllOf(HasSubstr("21"), HasSubstr("20"), HasSubstr("--leave-out")));
  EXPECT_THAT(left_out(wrong, {.leave_out = "num_examples"}), ElementsAre("num_examples"));
  const std::string both = make(folder, "both", numbers(20), {{"odd", ""}, {"length", "7"}});
  EXPECT_THAT(refusal(both), AllOf(HasSubstr("7"), HasSubstr("20")));
}

TEST(NoSamples, PrefixesThatCouldBeNoPartAreThoseOfSamples) {
  TemporaryFolder folder;
  using Keys = std::vector<std::string>;
  const auto keys = [](const std::vector<std::string>& prefixes, unsigned count, int width) {
    Keys all;
    for (const std::string& prefix : prefixes) {
      for (unsigned i = 0; i < count; ++i) all.push_back(numbered(prefix, i, width));
    }
    return all;
  };
  const std::vector<Keys> cases = {keys({"000_", "001_", "011_"}, 20, 8),
                                   keys({"0.", "1.", "9."}, 4, 2),
                                   keys({"2020-01-", "2020-02-", "2021-01-"}, 9, 2),
                                   keys({"train_", "val_"}, 10, 1),
                                   keys({"Train-", "Test-", "Dev-"}, 10, 4),
                                   keys({"COCO_train2014_", "COCO_validation2014_"}, 10, 12),
                                   keys({"train_img_", "valid_img_"}, 10, 5)};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::vector<OracleRecord> records;
    for (const std::string& key : cases[i]) records.push_back({key, "v"});
    const std::string path = make(folder, std::to_string(i), records, {});
    EXPECT_THAT(left_out(path), IsEmpty()) << i;
    const auto data = open_data_set(path, how({}));
    EXPECT_EQ(data->facts().entries, cases[i].size()) << cases[i][0];
    EXPECT_THAT(data->facts().notes, IsEmpty()) << "nothing is guessed";
    EXPECT_EQ(open(path, {.convention = ConventionName::grouped})->convention().parts().size(),
              i == 0 || i == 1 || i == 2 || i == 4 ? 3U : 2U);
  }
}

TEST(NoSamples, PrefixesThatMayBeClassesAreToldUnlessSomethingVouchesForParts) {
  TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::vector<std::string>& prefixes,
                         const std::vector<OracleRecord>& others = {}) {
    std::vector<OracleRecord> records;
    for (unsigned i = 0; i < 50; ++i) {
      for (const std::string& prefix : prefixes) records.push_back({numbered(prefix, i, 4), "v"});
    }
    return make(folder, name, records, others);
  };
  const std::vector<std::string> pets = {"cat_", "dog_", "owl_"};
  const auto told = [](const std::string& path, const Choice& choice = {}) {
    return open_data_set(path, how(choice))->facts();
  };
  const std::string unknown = write("unknown", pets);
  EXPECT_EQ(told(unknown).entries, 150U);
  EXPECT_THAT(told(unknown).notes, ElementsAre(AllOf(HasSubstr("cat_0000, dog_0000, owl_0000"),
                                                     HasSubstr("--convention grouped"),
                                                     HasSubstr("--convention plain"))));
  EXPECT_THAT(open_data_set(unknown, how({}))->info(), HasSubstr("cat_0000, dog_0000"));
  EXPECT_THAT(told(unknown, {.convention = ConventionName::plain}).notes, IsEmpty());
  EXPECT_EQ(told(unknown, {.convention = ConventionName::grouped}).entries, 50U);
  EXPECT_THAT(told(unknown, {.convention = ConventionName::grouped}).notes, IsEmpty());

  EXPECT_THAT(told(write("odd", pets, {{"meta", ""}})).notes,
              ElementsAre(HasSubstr("no samples: meta"), HasSubstr("cat_0000")));
  EXPECT_EQ(told(write("parts", pets, {{"num-samples", "50"}})).entries, 50U);
  EXPECT_EQ(told(write("records", pets, {{"num-samples", "150"}})).entries, 150U);
  EXPECT_THAT(told(folder.file("records")).notes, ElementsAre(HasSubstr("num-samples (150)")));
  EXPECT_THAT(refusal(write("neither", pets, {{"num-samples", "70"}})),
              AllOf(HasSubstr("70"), HasSubstr("150")));
  EXPECT_THAT(refusal(write("splits", {"train_", "val_"}, {{"num-samples", "50"}})),
              AllOf(HasSubstr("50"), HasSubstr("100")));
  for (const std::vector<std::string>& usual : {std::vector<std::string>{"rgb/", "depth/"},
                                                {"test_image-", "test_label-"},
                                                {"lq_", "gt_"},
                                                {"img1_", "img2_", "flow_"},
                                                {"image-", "label-", "charset-"}}) {
    const std::string path = write(usual[0].substr(0, 3) + "usual", usual);
    EXPECT_EQ(told(path).entries, 50U) << usual[0];
    EXPECT_THAT(told(path).notes, IsEmpty()) << usual[0];
  }
}

TEST(NoSamples, NamesOfPartsAtTheEndsOfKeysAreTold) {
  TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::vector<std::string>& ends,
                         unsigned count, int width, const std::vector<OracleRecord>& others = {}) {
    std::vector<OracleRecord> records;
    for (unsigned i = 0; i < count; ++i) {
      for (const std::string& end : ends) records.push_back({numbered("", i, width) + end, "v"});
    }
    return make(folder, name, records, others);
  };
  const auto told = [](const std::string& path, const Choice& choice = {}) {
    return open_data_set(path, how(choice))->facts();
  };
  const std::vector<std::vector<std::string>> all = {{"_image", "_label"},
                                                     {"-x", "-y"},
                                                     {"", "_length"},
                                                     {"/image", "/label", "/mask"},
                                                     {".jpg", ".cls"}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const unsigned count : {2U, 12U, 700U}) {
      for (const int width : {1, 6}) {
        const std::string name =
            std::to_string(i) + "of" + std::to_string(count) + "by" + std::to_string(width);
        const std::string path = write(name, all[i], count, width);
        const auto facts = told(path);
        EXPECT_EQ(facts.entries, count * all[i].size());
        ASSERT_THAT(facts.notes, ElementsAre(HasSubstr("--leave-out"))) << all[i][1];
        EXPECT_THAT(told(path, {.convention = ConventionName::plain}).notes, IsEmpty());
        // What it says works.
        const std::size_t from = facts.notes[0].find("--leave-out '") + 13;
        const std::string keys =
            facts.notes[0].substr(from, facts.notes[0].find('\'', from) - from);
        const auto rest = told(path, {.leave_out = keys});
        EXPECT_EQ(rest.entries, count) << keys;
        EXPECT_THAT(rest.notes, IsEmpty());
      }
    }
  }
  EXPECT_THAT(told(write("counted", all[0], 12, 6, {{"length", "24"}})).notes,
              ElementsAre(HasSubstr("length (24)")));
  for (const std::vector<std::string>& none :
       {std::vector<std::string>{"_train", "_val"}, {"_0", "_1"}, {"_image"}}) {
    EXPECT_THAT(told(write("none" + none[0], none, 20, 6)).notes, IsEmpty()) << none[0];
  }
  EXPECT_THAT(
      told(write("some", all[0], 20, 6, {{"000020_image", ""}, {"000021_image", ""}})).notes,
      IsEmpty())
      << "two lack a label";
}

TEST(NoSamples, OddKeysBesidePartsDoNotUndoThese) {
  TemporaryFolder folder;
  const std::vector<std::vector<OracleRecord>> others = {
      {{"version", "1"}},
      {{"v2", ""}},
      {{"!", ""}, {"charset", "abc"}, {"zzz", ""}},
      {{"num-samples", "40"}, {"language", "en"}},
      {{"num_images", "40"}}};
  for (std::size_t i = 0; i < others.size(); ++i) {
    for (const int width : {9, 1}) {
      const std::string path = make(folder, std::to_string(i) + "of" + std::to_string(width),
                                    test::grouped_records(40, 1, width), others[i]);
      const auto set = open(path);
      EXPECT_EQ(set->facts().entries, 40U);
      EXPECT_THAT(set->convention().part_names(), ElementsAre("image", "label"));
      EXPECT_EQ(left_out(path).size(), others[i].size());
      EXPECT_EQ(open(path, {.convention = ConventionName::grouped})->facts().entries, 40U);
    }
  }
  const std::string path = folder.file("0of9");
  EXPECT_EQ(open(path, {.keep = "version"})->facts().entries, 81U) << "it is no part of a sample";
  const std::string counted =
      make(folder, "counted", test::grouped_records(40), {{"num_images", "41"}});
  EXPECT_THAT(refusal(counted), AllOf(HasSubstr("41"), HasSubstr("40")));
}

TEST(NoSamples, WhatIsAskedForIsDone) {
  TemporaryFolder folder;
  const std::string path =
      make(folder, "d", numbers(30), {{"a b", ""}, {"a,c", ""}, {"b\0c"s, ""}});
  EXPECT_THAT(left_out(path, {.leave_out = "7,a b", .keep = "a?c,0x620063"}),
              UnorderedElementsAre("7", "a b"));
  EXPECT_THAT(left_out(path, {.leave_out = "2*,0x620063", .keep = "a*"}).size(), 12U);
  EXPECT_THAT(left_out(path, {.leave_out = "1?", .convention = ConventionName::plain}).size(), 10U);
  EXPECT_THAT(refusal(path, {.leave_out = "7,nothing"}), HasSubstr("nothing"));
  EXPECT_THAT(left_out(path, {.leave_out = "*"}).size(), 33U);
  const auto fingerprint = [&](const Choice& choice) {
    return open(path, choice)->facts().fingerprint;
  };
  EXPECT_NE(fingerprint({.leave_out = "7"}), fingerprint({.leave_out = "8"}));

  write_records(folder.file("e"), numbers(5));
  EXPECT_EQ(open(path + "," + folder.file("e"), {.leave_out = "a b"})->facts().entries, 35U - 0U)
      << "it is in one of them";
}

TEST(NoSamples, ReservedKeysAreNoSamplesUnlessAllKeysAreSo) {
  TemporaryFolder folder;
  EXPECT_THAT(left_out(make(folder, "some", {{"tree", ""}, {"house", ""}},
                            {{"__keys__", ""}, {"__classes__", ""}, {"__x", ""}, {"_y_", ""}})),
              UnorderedElementsAre("__keys__", "__classes__"));
  std::vector<OracleRecord> dunder;
  for (int i = 0; i < 9; ++i) dunder.push_back({"__f" + std::to_string(i) + "__", ""});
  EXPECT_THAT(left_out(make(folder, "many", dunder, {{"tree", ""}})), IsEmpty());
  EXPECT_THAT(left_out(make(folder, "all", {{"__init__", ""}, {"__main__", ""}}, {})), IsEmpty());
}

TEST(NoSamples, ListsLeaveOutWhatTheyDoNotName) {
  TemporaryFolder folder;
  const std::string path = make(folder, "x", {{"a", ""}, {"b", ""}}, {{"length", "2"}});
  std::ofstream(path + "/meta_info.txt") << "b.png (1,1) 1\na.png (1,1) 1\n";
  EXPECT_EQ(open(path)->facts().entries, 2U);
  std::ofstream(path + "/meta_info.txt") << "b.png (1,1) 1\nlength.png (1,1) 1\n";
  EXPECT_THAT(refusal(path), HasSubstr("no line names"));
  EXPECT_EQ(open(path, {.leave_out = "a"})->facts().entries, 2U);
}

TEST(NoSamples, NamedDatabasesAreNeverSamples) {
  TemporaryFolder folder;
  for (const bool empty : {false, true}) {
    for (const int count : {5, 4000}) {
      const std::string path = folder.file((empty ? "empty" : "full") + std::to_string(count));
      std::vector<OracleRecord> words;
      std::mt19937_64 random(7);
      for (int i = 0; i < count; ++i) {
        std::string word;
        for (int c = 0; c < 12; ++c) word += static_cast<char>('a' + random() % 26);
        words.push_back({word, std::string(random() % 90, 'v')});
      }
      write_records(path, words);
      const std::vector<OracleRecord> inner = {{"k", "v"}};
      for (const std::string name : {"0first", "mid", "zzlast"}) {
        write_records(path, empty ? std::vector<OracleRecord>() : inner, name);
      }
      if (empty && count > 100) continue;  // such are found among few records, or when read
      for (const auto convention : {ConventionName::automatic, ConventionName::plain}) {
        const auto set = open(path, {.keep = "*", .convention = convention});
        EXPECT_EQ(set->facts().entries, static_cast<std::uint64_t>(count));
        EXPECT_EQ(set->convention().databases()[0].metadata.size(), 3U);
        ASSERT_EQ(set->facts().notes.size(), 1U);
        EXPECT_THAT(set->facts().notes[0], AllOf(HasSubstr("mid"), HasSubstr("PATH#NAME")));
      }
      EXPECT_EQ(open(path + "#mid")->facts().entries, empty ? 0U : 1U);
    }
  }
}

TEST(NoSamples, AnyDatabaseGivesTheSameRecordsInEveryWay) {
  std::mt19937_64 random(11);
  const std::vector<std::string> words = {"nextid", "length", "meta", "__x__",
                                          "~",      "!",      "Info", "num_examples"};
  for (int round = 0; round < 60; ++round) {
    TemporaryFolder folder;
    const unsigned count = 1 + static_cast<unsigned>(random() % 300);
    const std::string prefix = random() % 2 == 0 ? "" : "k_";
    std::vector<OracleRecord> records;
    for (unsigned i = 0; i < count; ++i) records.push_back({prefix + std::to_string(i), "v"});
    for (const std::string& word : words) {
      if (random() % 3 == 0) records.push_back({word, "not a count"});
    }
    std::ranges::shuffle(records, random);
    const std::string path = make(folder, "d", records, {});
    for (const std::string keep : {"", "nextid,~", "*"}) {
      for (const std::string& key : left_out(path, {.keep = keep})) {
        EXPECT_THAT(words, testing::Contains(key)) << "a numbered record is always a sample";
        EXPECT_FALSE(KeyPatterns(keep).match(key));
      }
    }
    if (count > 100) {
      EXPECT_EQ(open(path)->facts().entries, count);
    }
  }
}

}  // namespace
}  // namespace forebay::convention::no_samples
