// An order that Forebay does not know: the data set backwards, in every epoch. It is a list and a
// row of the table of orders; loaders, states, text forms and the command then know it. What it
// needs beside the public headers are the two that it includes from src/order/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <fstream>

#include "cli/commands.hpp"
#include "forebay/communicator.hpp"
#include "forebay/error.hpp"
#include "forebay/loader.hpp"
#include "order/order_table.hpp"
#include "order/window_list.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

class Backwards final : public WindowList {
 public:
  Backwards(const OrderOptions& options, std::uint64_t epoch)
      : WindowList(options, options.entries, epoch), last_(options.entries - 1) {}

 private:
  std::uint64_t plain(std::uint64_t position) const override { return last_ - position; }

  std::uint64_t last_;
};

OrderName backwards() {
  static const OrderName order =
      add_order({.name = "backwards", .list = [](const OrderOptions& options, std::uint64_t epoch) {
                   return std::make_unique<Backwards>(options, epoch);
                 }});
  return order;
}

/// A file of `count` records, each one byte: its number.
std::string numbers(const test::TemporaryFolder& folder, int count) {
  std::ofstream file(folder.file("numbers.bin"), std::ios::binary);
  for (int i = 0; i < count; ++i) file.put(static_cast<char>(i));
  return folder.file("numbers.bin");
}

LoaderOptions options_of(std::uint64_t batch, std::uint64_t epochs) {
  backwards();
  LoaderOptions options = LoaderOptions::parse("order=backwards,format=raw,schema=x:u8[1]");
  options.batch = batch;
  options.epochs = epochs;
  return options;
}

std::vector<std::uint64_t> rest_of(Loader& loader, std::size_t batches = SIZE_MAX) {
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < batches; ++i) {
    const auto batch = loader.next();
    if (!batch) break;
    for (const Sample& sample : batch->samples()) {
      EXPECT_EQ(static_cast<std::uint64_t>(sample.value[0]), sample.id);
      ids.push_back(sample.id);
    }
  }
  return ids;
}

TEST(ToyOrder, IsAnOptionLikeOthers) {
  const LoaderOptions options = options_of(4, 1);
  EXPECT_EQ(options.order, backwards());
  EXPECT_THAT(options.to_text(), testing::HasSubstr("order=backwards"));
  EXPECT_EQ(LoaderOptions::parse(options.to_text()).order, backwards());
  EXPECT_THROW(add_order({.name = "backwards", .list = order_row(backwards()).list}), Error);
}

TEST(ToyOrder, LoadersDeliverIt) {
  const test::TemporaryFolder folder;
  Loader loader = Loader::open(self_communicator(), numbers(folder, 10), options_of(4, 2));
  EXPECT_THAT(loader.explain(), testing::HasSubstr("order=backwards"));
  EXPECT_THAT(rest_of(loader), testing::ElementsAre(9, 8, 7, 6, 5, 4, 3, 2, 1, 0,  //
                                                    9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
}

TEST(ToyOrder, ARunGoesOnFromItsStateAlsoWithAnotherBatch) {
  const test::TemporaryFolder folder;
  const std::string path = numbers(folder, 10);
  std::string state;
  {
    Loader loader = Loader::open(self_communicator(), path, options_of(4, 1));
    EXPECT_THAT(rest_of(loader, 1), testing::ElementsAre(9, 8, 7, 6));
    state = loader.state();
  }
  EXPECT_THAT(state, testing::HasSubstr("\"order\":\"backwards\""));
  for (const std::uint64_t batch : {4, 3}) {
    const LoaderOptions options = resume_options(state, options_of(batch, 1), 1);
    Loader loader = Loader::open(self_communicator(), path, options);
    EXPECT_THAT(rest_of(loader), testing::ElementsAre(5, 4, 3, 2, 1, 0));
  }
}

TEST(ToyOrder, TheCommandShowsIt) {
  backwards();
  CLI::App app;
  add_order_command(app);
  testing::internal::CaptureStdout();
  app.parse("order --order backwards --samples 6 --batch 3 --json");
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_THAT(shown, testing::HasSubstr("backwards"));
  EXPECT_THAT(shown, testing::ContainsRegex("5,[ \n]*4,[ \n]*3"));
}

}  // namespace
}  // namespace forebay
