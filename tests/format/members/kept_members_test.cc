// What walks find: in a few bytes a part, kept in the user's cache, and never believed when wrong.
#include "format/kept_members.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "tests/data_sets/made_sets.hpp"
#include "tests/support/error_from.hpp"

namespace forebay {
namespace {

namespace fs = std::filesystem;
using test::error_from;
using ::testing::HasSubstr;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<MemberRow> random_rows(std::mt19937_64& random, std::size_t count) {
  std::vector<MemberRow> rows(count);
  std::uint32_t file = 0;
  for (MemberRow& row : rows) {
    row.key = fmt::format("folder/{}", random() % 3 == 0 ? random() : random() % 100);
    if (random() % 9 == 0) row.key.clear();
    for (std::uint32_t p = 0; p < random() % 4; ++p) {
      FoundPart& part = row.parts.emplace_back();
      part.part = p * 40;
      part.coded = {.bytes = random() >> random() % 64, .in_place = random() % 2 == 0};
      part.member = {.offset = random() >> random() % 64,
                     .bytes = random() >> random() % 64,
                     .file = file,
                     .checksum = static_cast<std::uint32_t>(random())};
      if (random() % 5 == 0) part.member.file = Member::kInMemory;
      if (random() % 3 == 0)
        file = static_cast<std::uint32_t>(random() % 5 == 0 ? random() % 99 : file + 1);
    }
  }
  return rows;
}

void expect_row(const MemberRow& row, const MemberRow& expected, bool coded) {
  EXPECT_EQ(row.key, expected.key);
  ASSERT_EQ(row.parts.size(), expected.parts.size());
  for (std::size_t p = 0; p < row.parts.size(); ++p) {
    const FoundPart& part = row.parts[p];
    const FoundPart& other = expected.parts[p];
    EXPECT_EQ(part.part, other.part);
    EXPECT_EQ(part.member.file, other.member.file);
    EXPECT_EQ(part.member.offset, other.member.offset);
    EXPECT_EQ(part.member.bytes, other.member.bytes);
    if (!coded || part.member.file == Member::kInMemory) continue;
    EXPECT_EQ(part.member.checksum, other.member.checksum);
    EXPECT_EQ(part.coded.bytes, other.coded.bytes);
    EXPECT_EQ(part.coded.in_place, other.coded.in_place);
  }
}

TEST(MemberTable, GivesBackWhatWasAddedInAnyOrder) {
  std::mt19937_64 random(7);
  for (const bool coded : {false, true}) {
    for (const std::size_t count : {0, 1, 7, 8, 9, 100}) {
      const auto rows = random_rows(random, count);
      MemberTable made(coded);
      for (const MemberRow& row : rows) {
        made.begin_sample(row.key);
        for (const FoundPart& part : row.parts) made.add(part);
      }
      ByteWriter out;
      made.write(out);
      ByteReader in(out.bytes());
      const MemberTable read = MemberTable::read(in);
      std::vector<const MemberTable*> tables{&made};
      if (!coded) tables.push_back(&read);
      for (const MemberTable* table : tables) {
        ASSERT_EQ(table->samples(), count);
        MemberRows looked(*table);
        for (std::size_t i = 0; i < count; ++i) expect_row(looked.at(i), rows[i], coded);
        for (std::size_t i = 0; i < 3 * count; ++i) {
          const std::size_t sample = random() % count;
          expect_row(looked.at(sample), rows[sample], coded);
        }
      }
    }
  }
}

class KeptMembers : public ::testing::Test {
 protected:
  KeptMembers() {
    ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
    set_log_hook([this](LogLevel level, std::string_view message) {
      if (level >= LogLevel::warning) warnings_.emplace_back(message);
    });
    write(sample("1") + sample("2") + sample("3"));
  }
  ~KeptMembers() override {
    set_log_hook({});
    ::unsetenv("XDG_CACHE_HOME");
  }

  static std::string sample(const std::string& key) {
    return test::tar_member(key + ".cls", key) + test::tar_member(key + ".txt", "of " + key);
  }
  /// As it was changed a while ago.
  void write(const std::string& members) {
    test::write_file(path_, members + std::string(1024, '\0'));
    fs::last_write_time(path_, fs::file_time_type::clock::now() - std::chrono::hours(++hours_));
  }

  std::unique_ptr<DataSet> open(bool keeps = true, const std::string& fields = "") const {
    return open_data_set(path_ + fields, {.keeps = keeps});
  }
  std::vector<std::string> keys(const DataSet& data) const {
    std::vector<std::string> keys;
    data.keys([&](std::uint64_t, std::span<const std::byte> key) { keys.push_back(text_of(key)); });
    return keys;
  }
  std::vector<std::string> kept() const {
    std::vector<std::string> files;
    if (!fs::exists(cache_.file("forebay"))) return files;
    for (const auto& file : fs::directory_iterator(cache_.file("forebay"))) {
      files.push_back(file.path().string());
    }
    return files;
  }
  std::string only_kept() const {
    EXPECT_EQ(kept().size(), 1U);
    return kept().at(0);
  }
  static std::string content_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  test::TemporaryFolder cache_;
  test::TemporaryFolder folder_;
  std::string path_ = folder_.file("a.tar");
  std::vector<std::string> warnings_;
  int hours_ = 0;
};

TEST_F(KeptMembers, AreTakenInsteadOfAWalk) {
  std::string members;
  for (int i = 0; i < 100; ++i) members += sample(std::to_string(i));
  write(members);
  const auto walked = open();
  only_kept();
  const auto taken = open();
  EXPECT_EQ(keys(*taken), keys(*walked));
  EXPECT_EQ(taken->facts().fingerprint, walked->facts().fingerprint);
  EXPECT_EQ(taken->facts().value_bytes, walked->facts().value_bytes);
  EXPECT_EQ(taken->facts().of_files, walked->facts().of_files);
  // One part alone, by the same index.
  EXPECT_EQ(open(true, "#txt")->facts().value_bytes, 490U);
  only_kept();
  EXPECT_EQ(taken->files()[0]->counters().bytes, 8192U) << "the ends only";
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(KeptMembers, AreOffWhereTheUserSaysSo) {
  open(false);
  EXPECT_TRUE(kept().empty());
}

TEST_F(KeptMembers, AreNotKeptOfWhatWasJustChangedOrHasNoFile) {
  test::write_file(path_, sample("1") + std::string(1024, '\0'));
  open();
  open_data_set("mem://" + path_, {});
  EXPECT_TRUE(kept().empty());
}

TEST_F(KeptMembers, OfAChangedFileAreNotUsed) {
  open();
  write(sample("4") + sample("5") + sample("3"));
  EXPECT_EQ(keys(*open()), (std::vector<std::string>{"4", "5", "3"}));
  EXPECT_EQ(kept().size(), 2U);
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(KeptMembers, OfOtherFilesAreRefusedWhateverTheyAreCalled) {
  open();
  const std::string of_first = only_kept();
  write(sample("4") + sample("5"));
  open();
  const auto names = kept();
  const std::string of_second = names[0] == of_first ? names[1] : names[0];
  fs::copy_file(of_first, of_second, fs::copy_options::overwrite_existing);
  EXPECT_EQ(keys(*open()), (std::vector<std::string>{"4", "5"}));
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_THAT(warnings_[0], HasSubstr("it is of other files"));
}

TEST_F(KeptMembers, ThatAreDamagedAreWalkedAnewWithOneWarning) {
  open();
  const std::string file = only_kept();
  const std::string sound = content_of(file);
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    std::string bytes = sound;
    if (i % 2 == 0) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    } else {
      bytes.resize(random() % bytes.size());
    }
    test::write_file(file, bytes);
    warnings_.clear();
    EXPECT_EQ(keys(*open()), (std::vector<std::string>{"1", "2", "3"}));
    ASSERT_EQ(warnings_.size(), 1U);
    EXPECT_THAT(warnings_[0], HasSubstr(file + " is not used"));
    EXPECT_EQ(content_of(file), sound) << "written anew";
  }
}

/// With a digest that fits: no byte of it may lead out of files or memory.
TEST_F(KeptMembers, ThatLieAreErrorsOrSamplesInTheFile) {
  open();
  const std::string sound = content_of(only_kept());
  const DataFiles files{open_file(path_, Engine::pread)};
  const std::string identity = identity_of("tar", files);
  const std::size_t begin = 8 + 8 + 1 + identity.size();
  std::mt19937_64 random(5);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = sound.substr(begin);
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
      bytes[random() % bytes.size()] =
          static_cast<char>(random() % 3 == 0 ? random() : random() % 4);
    }
    try {
      ByteReader in(std::as_bytes(std::span(bytes)));
      FoundMembers found = FoundMembers::read(in, 1);
      const MemberSet data("x", "tar", files, std::move(found).choose({}, "x"));
      for (std::uint64_t id = 0; id < std::min<std::uint64_t>(20, data.facts().entries); ++id) {
        const auto plan = data.plan({&id, 1});
        for (const FileExtent& extent : plan->extents()) {
          EXPECT_LE(extent.offset + extent.length, files[0]->size());
        }
      }
    } catch (const Error&) {
      continue;
    }
  }
}

TEST_F(KeptMembers, AreWrittenByManyAtOnce) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10; ++n) EXPECT_EQ(keys(*open()).size(), 3U);
    });
  }
  threads.clear();
  only_kept();
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(KeptMembers, AreDoneWithoutWhereNothingCanBeWritten) {
  ::setenv("XDG_CACHE_HOME", "/dev/null", 1);
  EXPECT_EQ(keys(*open()).size(), 3U);
  EXPECT_TRUE(warnings_.empty());
}

}  // namespace
}  // namespace forebay
