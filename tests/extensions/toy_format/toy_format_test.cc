// A format that Forebay does not know: a text file whose lines are samples. It is a DataSet and a
// row of the registry; loaders, look-ups and options then know it. What it needs beside the public
// headers are the two that it includes from src/; CONTRIBUTING.md begins here.
#include <gtest/gtest.h>

#include <fstream>

#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "forebay/samples.hpp"
#include "format/data_set.hpp"
#include "format/registry.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

class Lines final : public DataSet {
 public:
  Lines(const std::string& path, DataFiles files) : DataSet(path, "lines", std::move(files)) {
    for (std::uint32_t f = 0; f < this->files().size(); ++f) find_lines(f);
    facts_.entries = lines_.size();
    facts_.stored = {{.how = "a line", .in_place = true}};
    facts_.sample_bytes = facts_.value_bytes / std::max<std::size_t>(1, lines_.size());
    facts_.fingerprint = "lines:ends=" + ends_digest({});
  }

  std::unique_ptr<const Plan> plan_runs(std::span<const IdRun> runs) const override;

 private:
  friend class LinePlan;

  void find_lines(std::uint32_t number) {
    std::string text(files()[number]->size(), '\0');
    files()[number]->read(0, std::as_writable_bytes(std::span(text)));
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      lines_.push_back({.file = number, .offset = begin, .length = end - begin});
      facts_.value_bytes += end - begin;
      begin = end + 1;
    }
  }

  std::vector<FileExtent> lines_;
};

class LinePlan final : public Plan {
 public:
  LinePlan(const Lines& data, std::span<const std::uint64_t> ids) : Plan(ids.size()) {
    for (const std::uint64_t id : ids) lines_.push_back(data.lines_[id]);
    for (const FileExtent& line : lines_) {
      if (line.length > 0) extents_.push_back(line);
    }
    join(extents_);
  }
  std::span<const std::byte> part(std::size_t position, std::size_t, const FileBytes& bytes,
                                  std::span<const std::byte>) const override {
    const FileExtent& line = lines_[position];
    if (line.length == 0) return {};
    return bytes.at(line.file, line.offset, line.length);
  }

 private:
  std::vector<FileExtent> lines_;
};

std::unique_ptr<const Plan> Lines::plan_runs(std::span<const IdRun> runs) const {
  return std::make_unique<LinePlan>(*this, ids_of(runs));
}

Format lines_format() {
  return {.name = "lines",
          .description = "text files, a line a sample",
          .recognise = [](const FirstFile& first) { return first.path.ends_with(".lines"); },
          .open = [](const FormatRequest& request) -> std::unique_ptr<DataSet> {
            return std::make_unique<Lines>(request.text, request.open_files());
          }};
}

class ToyFormat : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { add_format(lines_format()); }
  ToyFormat() : path_(folder_.file("toy.lines")) {
    std::ofstream file(path_);
    for (int i = 0; i < 50; ++i) {
      lines_.push_back(std::string(static_cast<std::size_t>(i * 7 % 13), 'x') + std::to_string(i));
      file << lines_.back() << '\n';
    }
  }

  std::string text_of(std::span<const std::byte> bytes) const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  test::TemporaryFolder folder_;
  std::string path_;
  std::vector<std::string> lines_;
};

TEST_F(ToyFormat, IsAValueOfTheOptionAndRecognised) {
  EXPECT_EQ(recognise_files(path_), "lines");
  EXPECT_EQ(LoaderOptions::parse("format=lines").format, "lines");
  EXPECT_THROW(add_format(lines_format()), Error) << "its name is taken";
}

TEST_F(ToyFormat, IsLookedUp) {
  const Samples samples = Samples::open(path_);
  EXPECT_EQ(samples.entries(), lines_.size());
  const std::vector<std::uint64_t> ids{49, 0, 7, 7};
  samples.read(ids, [&](const SampleView& sample) {
    EXPECT_EQ(text_of(sample.value), lines_[ids[sample.position]]);
  });
}

TEST_F(ToyFormat, IsLoadedInEveryOrder) {
  for (const char* text :
       {"batch=8,coalesce=3,epochs=1", "batch=8,order=shuffled,epochs=1",
        "batch=8,order=grouped,group=4,epochs=1", "batch=8,order=shuffled,hold=memory,epochs=1"}) {
    std::vector<int> times(lines_.size());
    run_ranks(1, 0, [&](const auto& comm) {
      Loader loader = Loader::open(comm, path_, LoaderOptions::parse(text));
      while (const auto batch = loader.next()) {
        for (const Sample& sample : batch->samples()) {
          EXPECT_EQ(text_of(sample.value), lines_[sample.id]) << text;
          ++times[sample.id];
        }
      }
    });
    EXPECT_EQ(times, std::vector<int>(lines_.size(), 1)) << text;
  }
}

}  // namespace
}  // namespace forebay
