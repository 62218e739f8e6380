// Storage by URL: plug-ins, sound and broken, and bytes in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "forebay/error.hpp"
#include "forebay/log.hpp"
#include "forebay/storage.hpp"
#include "storage/bulk_reader.hpp"
#include "storage/plugin.hpp"
#include "storage/storages.hpp"
#include "storage/url.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using test::error_from;
using test::TemporaryFolder;
using ::testing::HasSubstr;

std::string plugin(const std::string& name) {
  return std::string(FOREBAY_TEST_PLUGINS) + "/plugin_" + name + ".so";
}

class Plugin : public ::testing::Test {
 protected:
  Plugin() {
    load_storage_plugin(plugin("none"));
    test::write_bytes(path_, bytes_);
  }
  std::string url(const std::string& mode) const { return "test://" + mode + ":" + path_; }
  std::shared_ptr<const File> open(const std::string& mode) const {
    return open_file(url(mode), Engine::pread);
  }
  void expect_io_error_on_read(const std::string& mode, const std::string& text) const {
    std::vector<std::byte> out(40000);
    const Error error = error_from([&] { open(mode)->read(20000, out); });
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_THAT(error.what(), HasSubstr(text));
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    EXPECT_EQ(error.where().file, url(mode));
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.file("data");
  std::vector<std::byte> bytes_ = test::counting_bytes(100000);
};

TEST(Url, IsASchemeAndTheRestAsItStands) {
  EXPECT_FALSE(parse_url("/a/path"));
  EXPECT_FALSE(parse_url("a:b"));
  EXPECT_FALSE(parse_url("Big://x"));
  EXPECT_FALSE(parse_url("./s3://x"));
  EXPECT_FALSE(parse_url("://x"));
  EXPECT_FALSE(parse_url(std::string(40, 'a') + "://x"));
  ASSERT_TRUE(parse_url("s3+a.b-c://x%20y#z"));
  EXPECT_EQ(parse_url("s3+a.b-c://x%20y#z")->rest, "x%20y#z");
  EXPECT_EQ(parse_url("a://b://c")->rest, "b://c");
  EXPECT_EQ(without_file_scheme("file:///x"), "/x");
  EXPECT_EQ(without_file_scheme("mem:///x"), "mem:///x");
}

TEST_F(Plugin, AFileUrlIsThePlainFile) {
  for (const Engine engine : {Engine::mmap, Engine::pread}) {
    const auto file = open_file("file://" + path_, engine);
    EXPECT_EQ(file->path(), path_);
    EXPECT_EQ(file->size(), bytes_.size());
  }
}

TEST_F(Plugin, GivesTheBytesAlsoWhereReadsAreShort) {
  for (const char* mode : {"fine", "halves"}) {
    const auto file = open(mode);
    EXPECT_EQ(file->size(), bytes_.size());
    EXPECT_EQ(file->path(), url(mode));
    std::vector<std::byte> out(bytes_.size() - 17);
    file->read(17, out);
    EXPECT_TRUE(std::equal(out.begin(), out.end(), bytes_.begin() + 17));
    EXPECT_EQ(file->counters().bytes, out.size());
    EXPECT_EQ(file->fingerprint(), file->fingerprint());
  }
}

TEST_F(Plugin, IsReadByManyThreadsAtOnce) {
  const auto file = open("halves");
  const auto bulk = make_bulk_reader(file, Engine::pread, {.depth = 8, .request_bytes = 1000});
  std::vector<std::byte> out(bytes_.size());
  const ReadRequest request{.offset = 0, .into = out};
  bulk->read({&request, 1}, [](std::size_t) {});
  EXPECT_EQ(out, bytes_);
}

TEST_F(Plugin, IsNotReadByEnginesThatNeedTheOperatingSystem) {
  const Error mapped = error_from([&] { open_file(url("fine"), Engine::mmap); });
  EXPECT_EQ(mapped.kind(), ErrorKind::unsupported);
  EXPECT_THAT(mapped.what(), HasSubstr("--engine pread"));
  for (const Engine engine : {Engine::mmap, Engine::uring}) {
    const Error error = error_from([&] { make_bulk_reader(open("fine"), engine, {}); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("--engine pread"));
  }
  EXPECT_EQ(choose_engine(*open("fine")).engine, Engine::pread);
  EXPECT_FALSE(open("fine")->is_local());
}

TEST_F(Plugin, SaysWhereTheFileEnds) {
  std::vector<std::byte> out(200);
  const Error error = error_from([&] { open("short")->read(bytes_.size() - 200, out); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_THAT(error.what(), HasSubstr("the file ends at 99900"));
  EXPECT_THROW(open("fine")->read(UINT64_MAX - 10, out), Error);
}

TEST_F(Plugin, FaultsOfItsReadsBecomeErrorsThatNameIt) {
  expect_io_error_on_read("throws", "threw an exception when it was to read: lost my way");
  expect_io_error_on_read("fails", "failed to read: line onexxx");
  expect_io_error_on_read("lies", "says that it read");
  for (const char* mode : {"throws", "fails", "lies"})
    expect_io_error_on_read(mode, plugin("none"));
}

TEST_F(Plugin, FaultsOfItsOtherFunctionsBecomeErrors) {
  const Error nothing = error_from([&] { open("nothing"); });
  EXPECT_EQ(nothing.kind(), ErrorKind::io);
  EXPECT_THAT(nothing.what(), HasSubstr("gave no file"));
  const Error sizeless = error_from([&] { return open("sizeless")->size(); });
  EXPECT_EQ(sizeless.kind(), ErrorKind::io);
  EXPECT_THAT(sizeless.what(), HasSubstr("it gives no reason (code 42)"));
  const Error usage = error_from([&] { open_file("test://x", Engine::pread); });
  EXPECT_EQ(usage.kind(), ErrorKind::usage);
  const Error missing = error_from([&] { open_file("test://fine:/no/such", Engine::pread); });
  EXPECT_EQ(missing.kind(), ErrorKind::not_found);
  std::string logged;
  set_log_hook([&](LogLevel, std::string_view message) { logged = message; });
  open("badclose");
  set_log_hook({});
  EXPECT_THAT(logged, HasSubstr("closed badly"));
}

TEST_F(Plugin, AReadThatHangsIsGivenUpAfterTheTimeout) {
  const auto bulk = make_bulk_reader(open("slow"), Engine::pread,
                                     {.depth = 1, .timeout = std::chrono::milliseconds(200)});
  static std::vector<std::byte> out(1000);  // the thread that is left behind may still write there
  const ReadRequest request{.offset = 20000, .into = out};
  const Error error = error_from([&] { bulk->read({&request, 1}, [](std::size_t) {}); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_TRUE(bulk->abandoned());
}

TEST_F(Plugin, ExistsOrNot) {
  EXPECT_TRUE(storage_has(url("fine")));
  EXPECT_FALSE(storage_has("test://fine:/no/such"));
  EXPECT_FALSE(storage_has("test://fine:" + folder_.path()));
  EXPECT_THROW(storage_has("nobody://x"), Error);
}

TEST(PluginLoading, TwiceIsOnce) {
  EXPECT_EQ(load_storage_plugin(plugin("none")), "test");
  EXPECT_EQ(load_storage_plugin(plugin("none")), "test");
}

struct BrokenPlugin {
  const char* name;
  ErrorKind kind;
  const char* text;
};

class BrokenPlugins : public ::testing::TestWithParam<BrokenPlugin> {};

INSTANTIATE_TEST_SUITE_P(
    Faults, BrokenPlugins,
    ::testing::Values(
        BrokenPlugin{"no_table", ErrorKind::unsupported, "does not export"},
        BrokenPlugin{"version", ErrorKind::unsupported,
                     "interface version 2, this Forebay knows 1"},
        BrokenPlugin{"table_size", ErrorKind::unsupported, "has 32 bytes"},
        BrokenPlugin{"scheme", ErrorKind::usage, "'Not A Scheme'"},
        BrokenPlugin{"scheme_taken", ErrorKind::usage, "'file://', which Forebay itself serves"},
        BrokenPlugin{"no_read", ErrorKind::unsupported, "leaves out functions"},
        BrokenPlugin{"init_fails", ErrorKind::io, "failed to start: the server is not there"},
        BrokenPlugin{"init_throws", ErrorKind::io, "threw an exception when it was to start"}),
    [](const auto& one) { return std::string(one.param.name); });

TEST_P(BrokenPlugins, AreRefusedWithTheReason) {
  const std::string path = plugin(GetParam().name);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Error error = error_from([&] { load_storage_plugin(path); });
    EXPECT_EQ(error.kind(), GetParam().kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(GetParam().text));
    EXPECT_THAT(error.what(), HasSubstr(path));
  }
}

TEST(PluginLoading, TakesAbsolutePathsOfSharedObjectsOnly) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_from([] { load_storage_plugin("plugin_none.so"); }).kind(), ErrorKind::usage);
  EXPECT_EQ(error_from([] { load_storage_plugin(""); }).kind(), ErrorKind::usage);
  EXPECT_EQ(error_from([] { load_storage_plugin("/no/such.so"); }).kind(), ErrorKind::not_found);
  EXPECT_EQ(error_from([] { load_storage_plugin("/tmp"); }).kind(), ErrorKind::not_found);
  std::ofstream(folder.file("text.so")) << "not a shared object";
  const Error error = error_from([&] { load_storage_plugin(folder.file("text.so")); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
}

TEST(PluginLoading, AnUnknownSchemeNamesTheKnownOnesAndTheRemedy) {
  load_storage_plugin(plugin("none"));
  const Error error = error_from([] { open_file("nobody://x/y", Engine::pread); });
  EXPECT_EQ(error.kind(), ErrorKind::not_found);
  EXPECT_THAT(error.what(), HasSubstr("nobody://x/y"));
  EXPECT_THAT(error.what(), HasSubstr("file://, mem://"));
  EXPECT_THAT(error.what(), HasSubstr("test://"));
  EXPECT_THAT(error.what(), HasSubstr("FOREBAY_STORAGE_PLUGINS"));
}

TEST(PluginLoading, TheEnvironmentIsReadWhenAUrlNeedsIt) {
  const TemporaryFolder folder;
  const auto bytes = test::counting_bytes(5000);
  test::write_bytes(folder.file("data.000"), std::span(bytes).first(3000));
  test::write_bytes(folder.file("data.001"), std::span(bytes).subspan(3000));
  ::setenv("FOREBAY_STORAGE_PLUGINS", "relative.so", 1);
  EXPECT_EQ(error_from([] { open_file("pieces://x", Engine::pread); }).kind(), ErrorKind::usage);
  const std::string both = plugin("none") + "::" + plugin("pieces");
  ::setenv("FOREBAY_STORAGE_PLUGINS", both.c_str(), 1);
  const auto file = open_file("pieces://" + folder.file("data"), Engine::pread);
  ::unsetenv("FOREBAY_STORAGE_PLUGINS");
  std::vector<std::byte> out(5000);
  file->read(0, out);
  EXPECT_EQ(out, bytes);
  const auto before = file->fingerprint();
  test::write_bytes(folder.file("data.001"), std::span(bytes).first(10));
  EXPECT_EQ(file->size(), 3010U);
  EXPECT_NE(file->fingerprint(), before);
  EXPECT_THROW(file->read(0, out), Error);
}

TEST_F(Plugin, IsLoadedOnceByManyThreads) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      EXPECT_EQ(load_storage_plugin(plugin("none")), "test");
      EXPECT_EQ(open("fine")->size(), bytes_.size());
    });
  }
}

TEST_F(Plugin, AFileInMemoryIsReadOnceWhileItStaysTheSame) {
  const std::string url = "mem://" + path_;
  auto file = open_file(url, Engine::mmap);
  EXPECT_TRUE(std::ranges::equal(file->map(), bytes_));
  EXPECT_EQ(open_file(url, Engine::pread)->map().data(), file->map().data());
  EXPECT_FALSE(storage_has("mem://" + folder_.path()));
  EXPECT_THROW(open_file("mem:///no/such", Engine::pread), Error);
  test::write_bytes(path_, std::span(bytes_).first(10));
  EXPECT_EQ(open_file(url, Engine::pread)->size(), 10U);
  EXPECT_EQ(file->size(), bytes_.size());
}

TEST(MemoryUrl, NamesBytesThatTheProcessWasGiven) {
  const auto bytes = test::counting_bytes(100);
  EXPECT_EQ(error_from([] { open_file("mem://x", Engine::pread); }).kind(), ErrorKind::not_found);
  keep_in_memory("x", bytes);
  const auto file = open_file("mem://x", Engine::mmap);
  forget_memory("x");
  EXPECT_TRUE(std::ranges::equal(file->map(), bytes));
  EXPECT_FALSE(storage_has("mem://x"));
  EXPECT_THROW(keep_in_memory("/x", bytes), Error);
  EXPECT_THROW(keep_in_memory("", bytes), Error);
}

}  // namespace
}  // namespace forebay
