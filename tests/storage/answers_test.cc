// Storage that does not answer: told in time, by whatever call it is waited for. A named pipe
// stands in for it: nobody can open or read it until somebody writes.
#include "storage/answers.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "forebay/error.hpp"
#include "tests/support/error_from.hpp"
#include "tests/support/temporary_folder.hpp"

namespace forebay {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Answers : public testing::Test {
 protected:
  Answers() {
    EXPECT_EQ(::mkfifo(silent_.c_str(), 0600), 0);
    // Read-write, so that opening it does not wait; what it has to say it says at the end.
    writer_ = ::open(silent_.c_str(), O_RDWR);
  }
  ~Answers() override {
    for (int i = 0; i < 100 && running_ > 0; ++i) {
      EXPECT_EQ(::write(writer_, "answer", 6), 6);
      std::this_thread::sleep_for(10ms);
    }
    ::close(writer_);
  }

  /// A step that reads what never comes.
  std::function<void()> reads() {
    return [path = silent_, running = &running_] {
      ++*running;
      std::ifstream in(path, std::ios::binary);
      in.get();
      --*running;
    };
  }
  double seconds_since_start() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  test::TemporaryFolder folder_;
  std::string silent_ = folder_.file("silent");
  int writer_ = -1;
  std::atomic<int> running_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

TEST_F(Answers, AReadThatNeverReturnsIsAnErrorWithFileAndOffset) {
  const Error error =
      test::error_from([&] { with_answers({.each_read = 300ms}, "test", {}, reads()); });
  EXPECT_EQ(error.kind(), ErrorKind::io);
  EXPECT_THAT(error.what(),
              HasSubstr(silent_ + ": offset 0: no answer from the file system for 0.3 s"));
  EXPECT_GT(seconds_since_start(), 0.29);
  EXPECT_LT(seconds_since_start(), 2.3);
  EXPECT_TRUE(left_threads_behind());
}

TEST_F(Answers, AFileThatCannotBeOpenedIsNamed) {
  const std::string path = folder_.file("nobody writes");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Error error = test::error_from([&] {
    with_answers({.each_read = 200ms}, "test", {},
                 [path] { ::close(::open(path.c_str(), O_RDONLY)); });
  });
  EXPECT_THAT(error.what(), HasSubstr(path + ": no answer"));
  ::close(::open(path.c_str(), O_RDWR));  // lets the thread go
}

TEST_F(Answers, ThreadsThatTheStepHasMadeAreWatchedToo) {
  const Error error = test::error_from([&] {
    with_answers({.each_read = 200ms}, "test", {}, [read = reads()] {
      HelperThread inner("inner", {}, [read](const std::stop_token&) { read(); });
    });
  });
  EXPECT_THAT(error.what(), HasSubstr(silent_));
}

TEST_F(Answers, WaitingForAnythingElseIsNotReading) {
  std::mutex mutex;
  std::condition_variable never;
  int pipes[2] = {};
  ASSERT_EQ(::pipe(pipes), 0);
  std::thread late([&] {
    std::this_thread::sleep_for(700ms);
    EXPECT_EQ(::write(pipes[1], "x", 1), 1);
  });
  EXPECT_TRUE(with_answers({.each_read = 100ms}, "test", {}, [&] {
    std::unique_lock lock(mutex);
    never.wait_for(lock, 500ms);
    char byte = 0;
    EXPECT_EQ(::read(pipes[0], &byte, 1), 1);
  }));
  late.join();
  ::close(pipes[0]);
  ::close(pipes[1]);
}

TEST_F(Answers, EachReadHasTheWholeLimit) {
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 8; ++i) {
      std::this_thread::sleep_for(100ms);
      EXPECT_EQ(::write(writer_, "x", 1), 1);
    }
    done = true;
  });
  EXPECT_TRUE(with_answers({.each_read = 400ms}, "test", {}, [path = silent_] {
    const int fd = ::open(path.c_str(), O_RDONLY);
    char byte = 0;
    for (int i = 0; i < 8; ++i) EXPECT_EQ(::read(fd, &byte, 1), 1);
    ::close(fd);
  }));
  writer.join();
}

TEST_F(Answers, OnceStoppedAReadIsLeftBehindLongBeforeItsLimit) {
  std::stop_source stop;
  std::thread stopper([&] {
    std::this_thread::sleep_for(200ms);
    stop.request_stop();
  });
  EXPECT_FALSE(with_answers({.each_read = 60s, .stop = stop.get_token()}, "test", {}, reads()));
  EXPECT_LT(seconds_since_start(), 3);
  stopper.join();
}

TEST_F(Answers, WhatTheStepThrowsIsThrown) {
  const Error error = test::error_from([&] {
    with_answers({.each_read = 1s}, "test", {},
                 [] { throw Error(ErrorKind::corrupt, "as it is", ""); });
  });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
}

}  // namespace
}  // namespace forebay
