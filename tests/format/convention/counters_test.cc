// Counters, true and false ones, beside keys of any kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "tests/format/convention/no_samples.hpp"

namespace forebay::convention::no_samples {
namespace {

/// 40 keys of one kind.
using KindOfKeys = std::pair<std::string, std::function<std::string(unsigned)>>;

std::string uuid(unsigned i) {
  const std::string hex =
      numbered("", i * 2654435761U % 100'000'000, 8) + "abcd4eef8a0123456789cdef";
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20);
}

std::string letters(unsigned i) {
  return {static_cast<char>('a' + i % 26), static_cast<char>('a' + i / 26 % 26), 'x'};
}

const std::vector<KindOfKeys>& kinds_with_a_form() {
  static const std::vector<KindOfKeys> kinds = {
      {"numbers", [](unsigned i) { return std::to_string(i); }},
      {"negative", [](unsigned i) { return std::to_string(static_cast<int>(i) - 20); }},
      {"uuids", uuid},
      {"hex", [](unsigned i) { return numbered("", i * 7919 % 100'000, 5) + "a3f"; }},
      {"files",
       [](unsigned i) { return numbered("dir", i % 3, 1) + numbered("/im", i, 1) + ".jpg"; }},
      {"imagenet",
       [](unsigned i) { return numbered("n0144", i % 5, 4) + numbered("/n01_", i, 1) + ".JPEG"; }},
      {"folders", [](unsigned i) { return letters(i).substr(0, 1) + "/" + letters(i); }},
      {"extensions", [](unsigned i) { return letters(i) + (i % 2 == 0 ? ".png" : ".jpg"); }},
      {"words with numbers", [](unsigned i) { return "word" + std::to_string(i); }},
      {"classes", [](unsigned i) { return (i % 2 == 0 ? "cat_" : "dog_") + std::to_string(i); }},
      {"frames", [](unsigned i) { return numbered("", i / 7, 3) + numbered("_", i % 7, 8); }},
      {"decimals",
       [](unsigned i) { return std::to_string(i / 4) + "." + std::to_string(i % 4 * 25); }},
      {"little end first",
       [](unsigned i) {
         return std::string{static_cast<char>(i), '\1', '\0', '\0'};
       }},
  };
  return kinds;
}

/// Among which nothing but their names and values tells counters.
const std::vector<KindOfKeys>& kinds_without_a_form() {
  static const std::vector<KindOfKeys> kinds = {
      {"words", letters},
      {"sentences", [](unsigned i) { return "a picture of " + letters(i); }},
  };
  return kinds;
}

std::vector<OracleRecord> forty(const KindOfKeys& kind) {
  std::vector<OracleRecord> records;
  for (unsigned i = 0; i < 40; ++i) records.push_back({kind.second(i), "value"});
  return records;
}

/// As programs write it.
std::vector<std::string> values_of_count(char count) {
  const std::string zeros(7, '\0');
  return {std::to_string(count),
          count + zeros.substr(0, 3),
          count + zeros,
          zeros + count,
          "\x80\x04K" + std::string(1, count) + ".",
          std::string(1, count)};
}

TEST(Counters, CountersThatAreRightAreLeftOutAndSaidBesideKeysOfAnyKind) {
  TemporaryFolder folder;
  int number = 0;
  const auto look = [&](const KindOfKeys& kind, const std::string& name, const std::string& value) {
    const std::string path = make(folder, std::to_string(number++), forty(kind), {{name, value}});
    EXPECT_THAT(left_out(path), ElementsAre(name)) << kind.first;
    const auto set = open(path);
    ASSERT_EQ(set->facts().notes.size(), 1U);
    EXPECT_THAT(set->facts().notes[0],
                AllOf(HasSubstr("no samples: " + name + " (40)"), HasSubstr("--keep-records")));
    EXPECT_THAT(left_out(path, {.keep = name}), IsEmpty());
  };
  std::vector<KindOfKeys> all = kinds_with_a_form();
  for (const KindOfKeys& kind : all) look(kind, "volume", "40");  // whatever it is called
  all.insert(all.end(), kinds_without_a_form().begin(), kinds_without_a_form().end());
  for (const KindOfKeys& kind : all) {
    for (const std::string name :
         {"count", "total", "n", "size", "num", "samples", "data_size", "length", "num-samples",
          "nSamples", "num_examples", "__len__"}) {
      look(kind, name, "40");
    }
    for (const std::string& value : values_of_count(40)) look(kind, "count", value);
  }
}

TEST(Counters, CountersThatContradictAreErrorsWithBothNumbersBesideKeysOfAnyKind) {
  TemporaryFolder folder;
  int number = 0;
  std::vector<KindOfKeys> all = kinds_with_a_form();
  all.insert(all.end(), kinds_without_a_form().begin(), kinds_without_a_form().end());
  for (const KindOfKeys& kind : all) {
    for (const std::string name : {"count", "length", "num_examples", "__len__"}) {
      for (const std::string& value : values_of_count(45)) {
        const std::string path =
            make(folder, std::to_string(number++), forty(kind), {{name, value}});
        EXPECT_THAT(refusal(path), AllOf(HasSubstr(name), HasSubstr("counts 45"),
                                         HasSubstr("there are 40"), HasSubstr("--leave-out")))
            << kind.first << " " << testing::PrintToString(value);
        EXPECT_EQ(open(path, {.leave_out = name})->facts().entries, 40U);
        EXPECT_EQ(open(path, {.keep = name})->facts().entries, 41U);
      }
    }
  }
}

TEST(Counters, OtherNumbersBesideAFormAreLeftOutAndCountNothing) {
  TemporaryFolder folder;
  int number = 0;
  for (const KindOfKeys& kind : kinds_with_a_form()) {
    const std::string path =
        make(folder, std::to_string(number++), forty(kind), {{"version", "45"}, {"meta", "{}"}});
    EXPECT_THAT(left_out(path), UnorderedElementsAre("version", "meta")) << kind.first;
    EXPECT_THAT(open(path)->facts().notes,
                ElementsAre(AllOf(HasSubstr("version"), HasSubstr("meta"))));
  }
  for (const KindOfKeys& kind : kinds_without_a_form()) {
    const std::string path =
        make(folder, std::to_string(number++), forty(kind), {{"version", "45"}, {"meta", "{}"}});
    EXPECT_THAT(left_out(path), IsEmpty()) << kind.first;
    write_records(path, {{"__info__", ""}, {"__version__", "45"}});
    EXPECT_THAT(left_out(path), UnorderedElementsAre("__info__", "__version__")) << kind.first;
  }
}

TEST(Counters, APlainWordMayHoldAnotherNumber) {
  TemporaryFolder folder;
  const auto with = [&](const KindOfKeys& kind, const std::string& name, const std::string& value) {
    return make(folder, kind.first + name + value, forty(kind), {{name, value}});
  };
  for (const KindOfKeys& kind : kinds_with_a_form()) {
    EXPECT_THAT(left_out(with(kind, "size", "1024")), ElementsAre("size")) << kind.first;
    EXPECT_THAT(refusal(with(kind, "length", "1024")), HasSubstr("counts 1024")) << kind.first;
    EXPECT_THAT(refusal(with(kind, "num_rows", "1024")), HasSubstr("counts 1024")) << kind.first;
  }
  for (const KindOfKeys& kind : kinds_without_a_form()) {
    EXPECT_THAT(left_out(with(kind, "size", "1024")), IsEmpty()) << kind.first;
    EXPECT_THAT(left_out(with(kind, "length", "1024")), IsEmpty()) << kind.first;
    EXPECT_THAT(refusal(with(kind, "num_rows", "1024")), HasSubstr("counts 1024")) << kind.first;
  }
}

TEST(Counters, AWordAmongWordsIsASample) {
  TemporaryFolder folder;
  const std::vector<std::string> words = {"apple", "banana", "cherry", "length", "width",
                                          "size",  "depth",  "n",      "total",  "time"};
  const float weight = 1.5F;
  int number = 0;
  const std::vector<std::function<std::string(std::size_t)>> values = {
      [&](std::size_t i) { return "vector of " + words[i]; },
      [](std::size_t i) { return std::to_string(i * 5); },
      [](std::size_t i) { return std::string{static_cast<char>(i + 7), 0, 0, 0, 0, 0, 0, 0}; },
      [&](std::size_t) {
        return std::string(reinterpret_cast<const char*>(&weight), sizeof weight);
      },
      [&](std::size_t i) {  // of which one alone has as many bytes as a number
        const std::string four(reinterpret_cast<const char*>(&weight), sizeof weight);
        return words[i] == "length" ? four : four + four + four;
      }};
  for (const auto& value : values) {
    std::vector<OracleRecord> records;
    for (std::size_t i = 0; i < words.size(); ++i) records.push_back({words[i], value(i)});
    const std::string path = make(folder, std::to_string(number++), records, {});
    EXPECT_THAT(left_out(path), IsEmpty()) << number;
    EXPECT_THAT(open(path)->facts().notes, IsEmpty());
  }
}

}  // namespace
}  // namespace forebay::convention::no_samples
