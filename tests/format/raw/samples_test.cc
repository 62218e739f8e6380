// Records, arrays and names of data sets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/dataset_files.hpp"
#include "format/raw/open_raw.hpp"
#include "format/registry.hpp"
#include "tests/support/sample_checks.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::shared_ptr<const File> records(std::uint64_t count, const std::string& name = "r.bin") {
  return memory_file(name, counting_bytes(3 + count * 10));
}

const raw::RecordLayout kLayout{
    .schema = "a:u16[2],b:u8[5]", .header_bytes = 3, .record_bytes = 10};

TEST(RawRecords, AStretchOfRecordsIsOneExtent) {
  const auto source = raw::open_raw("r.bin", {records(100)}, {}, "raw", kLayout);
  EXPECT_EQ(source->facts().entries, 100U);
  EXPECT_THAT(source->plan(ids_from(10, 20))->extents(),
              ElementsAre(FileExtent{.file = 0, .offset = 103, .length = 199}));
  EXPECT_THAT(source->plan(std::vector<std::uint64_t>{7, 3, 3, 4})->extents(),
              ElementsAre(FileExtent{.file = 0, .offset = 33, .length = 19},
                          FileExtent{.file = 0, .offset = 73, .length = 9}));
}

TEST(RawRecords, ManyFilesAreOneDataSet) {
  const auto source =
      raw::open_raw("r.bin", {records(3), records(0), records(5)}, {}, "raw", kLayout);
  EXPECT_EQ(source->facts().entries, 8U);
  const std::vector<std::uint64_t> ids{7, 0, 3, 3, 2};
  SampleReader reader(*source, {.engine = Engine::mmap, .bulk = {}, .gap_bytes = 0});
  reader.read(ids);
  const auto bytes = counting_bytes(53);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::size_t row = ids[i] < 3 ? ids[i] : ids[i] - 3;
    const auto record = std::span(bytes).subspan(3 + row * 10, 10);
    EXPECT_TRUE(std::ranges::equal(reader.part(i, 0), record.first(4)));
    EXPECT_TRUE(std::ranges::equal(reader.part(i, 1), record.subspan(4, 5)));
  }
}

TEST(RawRecords, BadLayoutsAreRefused) {
  const auto open = [](const raw::RecordLayout& layout) {
    return error_from([&] { raw::open_raw("r.bin", {records(10)}, {}, "raw", layout); });
  };
  EXPECT_EQ(open({.schema = ""}).kind(), ErrorKind::usage);
  EXPECT_EQ(open({.schema = "a:u8[20]", .record_bytes = 10}).kind(), ErrorKind::usage);
  EXPECT_EQ(open({.schema = "a:u8[7]"}).kind(), ErrorKind::corrupt);
  EXPECT_EQ(open({.schema = "a:u8[7]", .header_bytes = 1000}).kind(), ErrorKind::corrupt);
  const Error missing = error_from([] {
    const std::vector<FieldChoice> fields{{.name = "", .stored = "c"}};
    raw::open_raw("r.bin", {records(10)}, fields, "raw", kLayout);
  });
  EXPECT_EQ(missing.kind(), ErrorKind::not_found);
  EXPECT_THAT(missing.what(), HasSubstr("a:u16[2],b:u8[5]"));
}

TEST(DatasetFiles, ListsPatternsAndFields) {
  const TemporaryFolder folder;
  for (const char* name : {"a2", "a10", "b", "with#hash", "with,comma"}) {
    write_bytes(folder.file(name), {});
  }
  const auto names = [&](const std::string& text) {
    std::vector<std::string> found = find_dataset_files(folder.path() + "/" + text).files;
    for (std::string& path : found) path.erase(0, folder.path().size() + 1);
    return found;
  };
  EXPECT_THAT(names("a2"), ElementsAre("a2"));
  EXPECT_THAT(names("a*"), ElementsAre("a10", "a2"));
  EXPECT_THAT(names("b," + folder.file("a*") + "#x"), ElementsAre("b", "a10", "a2"));
  EXPECT_THAT(names("with#hash"), ElementsAre("with#hash"));
  EXPECT_THAT(names("with#hash#x"), ElementsAre("with#hash"));
  EXPECT_THAT(names("with,comma"), ElementsAre("with,comma"));

  const auto fields = find_dataset_files(folder.file("b") + "#x=3Dmap,unit Par").fields;
  ASSERT_EQ(fields.size(), 2U);
  EXPECT_EQ(fields[0].name, "x");
  EXPECT_EQ(fields[0].stored, "3Dmap");
  EXPECT_EQ(fields[1].name, "");
  EXPECT_EQ(fields[1].stored, "unit Par");
}

TEST(DatasetFiles, MeaninglessTextIsRefused) {
  const TemporaryFolder folder;
  write_bytes(folder.file("b"), {});
  for (const char* fields : {"#", "#x=", "#=x", "#x,,y", "#a b=x"}) {
    const Error error = error_from([&] { find_dataset_files(folder.file("b") + fields); });
    EXPECT_EQ(error.kind(), ErrorKind::usage) << fields;
    EXPECT_THAT(error.what(), HasSubstr("b#")) << fields;
  }
  EXPECT_EQ(error_from([&] { find_dataset_files(folder.file("c*")); }).kind(),
            ErrorKind::not_found);
  EXPECT_EQ(error_from([&] { find_dataset_files(""); }).kind(), ErrorKind::not_found);
}

TEST(OpenSamples, BadFieldsDoNotHideWhatTheFilesAre) {
  const TemporaryFolder folder;
  write_bytes(folder.file("data_batch_1.bin"), std::vector<std::byte>(3073));
  for (const char* fields : {"", "#image", "#image=", "#=label", "#image,"}) {
    EXPECT_EQ(recognise_files(folder.file("data_batch_1.bin") + fields), "cifar10") << fields;
  }
}

TEST(OpenSamples, AFileThatAListLacksIsNamed) {
  const TemporaryFolder folder;
  write_bytes(folder.file("a"), {});
  const std::string missing = folder.file("b");
  const Error error = error_from([&] { recognise_files(folder.file("a") + "," + missing); });
  EXPECT_EQ(error.kind(), ErrorKind::not_found);
  EXPECT_EQ(error.where().file, missing);
  EXPECT_EQ(recognise_files(missing + "," + missing), "lmdb") << "perhaps the name of one";
}

TEST(OpenSamples, UnknownFilesAreRefusedByWhatTheyBeginWith) {
  const TemporaryFolder folder;
  write_bytes(folder.file("b"), counting_bytes(30));
  EXPECT_EQ(recognise_files(folder.file("nothing")), "lmdb") << "which says that there is none";
  EXPECT_EQ(error_from([&] { recognise_files(folder.path()); }).kind(), ErrorKind::not_found);
  const Error error = error_from([&] { open_data_set(folder.file("b"), {}); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_THAT(error.what(), HasSubstr("--format raw"));
  EXPECT_THAT(error.what(), Not(HasSubstr("LMDB")));
}

TEST(DatasetFiles, FilesBesideEachOtherHaveNames) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b", "c&d=e"}) write_bytes(folder.file(name), {});
  const std::string a = folder.file("a");
  const std::string b = folder.file("b");
  const auto sides = files_beside("x=" + a + "#i&y.z=" + b);
  ASSERT_EQ(sides.size(), 2U);
  EXPECT_EQ(sides[0].name, "x");
  EXPECT_EQ(sides[0].text, a + "#i");
  EXPECT_EQ(sides[1].name, "y.z");
  EXPECT_THAT(find_files("x=" + a + "#i&y=" + b), ElementsAre(a, b));
  for (const std::string& text : {a, "x=" + a, folder.file("c&d=e"), "x=" + a + "&" + b}) {
    EXPECT_TRUE(files_beside(text).empty()) << text;
  }
  for (const std::string& text : {"x=" + a + "&x=" + b, "x=" + a + "&y="}) {
    EXPECT_EQ(error_from([&] { files_beside(text); }).kind(), ErrorKind::usage) << text;
  }
}

}  // namespace
}  // namespace forebay::test
