// The parts behind decoding ahead, one by one: memory that is used again, chunks of a batch, and
// the line between the stage and the consumer.
#include "loader/decode_line.hpp"

#include <gtest/gtest.h>

#include <new>
#include <thread>

namespace forebay {
namespace {

using std::chrono::milliseconds;

std::shared_ptr<const Codec> codec_of(const std::string& schema) {
  return make_codec({.codec = "raw", .schema = schema}, {});
}

TEST(ArrayPool, GivesTheSameMemoryAgain) {
  const auto pool = std::make_shared<ArrayPool>(1);
  const std::byte* first = pool->take(1000).get();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0U);
  EXPECT_EQ(pool->take(1000).get(), first);
  EXPECT_EQ(pool->take(10).get(), first) << "short batches fit as well";
  const auto held = pool->take(1000);
  EXPECT_NE(pool->take(1000).get(), held.get());
}

TEST(ArrayPool, MayEndBeforeItsPieces) {
  auto pool = std::make_shared<ArrayPool>(4);
  const auto piece = pool->take(100);
  pool.reset();
  piece.get()[99] = std::byte{1};
}

TEST(DecodedArrays, CloseAnyGaps) {
  const auto schema = std::make_shared<Schema>(parse_schema("a:u8[3],b:u16[]"));
  const auto pool = std::make_shared<ArrayPool>(1);
  for (unsigned gaps = 0; gaps < 256; ++gaps) {
    DecodedArrays arrays(schema, 8, *pool);
    std::vector<std::size_t> removed;
    std::vector<std::byte> a, b;
    for (std::size_t i = 0; i < 8; ++i) {
      std::ranges::fill(arrays.of_sample(0, i), std::byte(i));
      std::ranges::fill(arrays.of_sample(1, i), std::byte(100 + i));
      if ((gaps >> i & 1U) != 0) {
        removed.push_back(i);
      } else {
        a.insert(a.end(), 3, std::byte(i));
        b.insert(b.end(), 2, std::byte(100 + i));
      }
    }
    arrays.remove(removed);
    ASSERT_TRUE(std::ranges::equal(arrays.field("a"), a)) << gaps;
    ASSERT_TRUE(std::ranges::equal(arrays.field("b"), b)) << gaps;
  }
}

/// Batches of one-byte samples.
class Values {
 public:
  Values() {
    for (std::size_t i = 0; i < std::size(bytes_); ++i) bytes_[i] = std::byte(i);
  }

  Delivery batch(std::uint64_t iteration, std::size_t samples) const {
    Delivery delivery;
    delivery.iteration = iteration;
    for (std::size_t i = 0; i < samples; ++i) {
      delivery.samples.push_back({.id = i, .key = {}, .value = {&bytes_[i], 1}});
    }
    return delivery;
  }

 private:
  std::byte bytes_[256];
};

TEST(DecodePool, AnyNumberOfThreadsMakesTheSameOfABatch) {
  const Values values;
  for (const unsigned threads : {1U, 2U, 5U}) {
    DecodePool pool(codec_of("v:u8[]"), Undecodable::fail, threads, 1);
    for (const std::size_t samples : {0, 1, 200}) {
      Delivery delivery = values.batch(0, samples);
      pool.decode(delivery);
      ASSERT_EQ(delivery.arrays->field(0).size(), samples);
      for (std::size_t i = 0; i < samples; ++i) {
        ASSERT_EQ(delivery.arrays->field(0)[i], std::byte(i));
      }
    }
  }
}

TEST(DecodePool, NamesTheFirstOfSeveralThatDoNotDecode) {
  const std::vector<std::byte> large(40'000), small(3);
  DecodePool pool(codec_of("v:u8[40000]"), Undecodable::fail, 4, 1);
  for (int round = 0; round < 50; ++round) {
    Delivery delivery;
    for (std::uint64_t id = 0; id < 40; ++id) {
      const bool bad = id == 11 || id == 12 || id == 30;
      delivery.samples.push_back({.id = id, .key = {}, .value = bad ? small : large});
    }
    try {
      pool.decode(delivery);
      FAIL() << "it decodes";
    } catch (const Error& error) {
      ASSERT_EQ(error.where().sample, 11U);
    }
  }
}

/// A run of some batches; what is in the stage, and what can be there, is for the test to say.
class FakeSource final : public BatchSource {
 public:
  std::optional<std::uint64_t> next_needs() override {
    if (fails_at == taken) throw Error(ErrorKind::communication, "no buffer");
    if (taken >= reachable) return std::nullopt;
    return taken + 1;
  }
  Delivery take_next() override {
    if (lacks_memory_at == taken) throw std::bad_alloc();
    return values_.batch(taken++, 5);
  }
  RunState state() const override { return {.iterations = taken}; }
  bool published(std::uint64_t end) const override { return end <= in_stage; }
  void wait_published(std::uint64_t end, milliseconds limit) override {
    if (!published(end)) std::this_thread::sleep_for(std::min(limit, milliseconds(1)));
    if (closed) throw Error(ErrorKind::cancelled, "closed");
  }

  std::atomic<std::uint64_t> taken = 0;
  std::atomic<std::uint64_t> reachable = 0;
  std::atomic<std::uint64_t> in_stage = 0;
  std::atomic<std::uint64_t> fails_at = ~std::uint64_t{0};
  std::atomic<std::uint64_t> lacks_memory_at = ~std::uint64_t{0};
  std::atomic<bool> closed = false;

 private:
  Values values_;
};

class DecodeLineTest : public testing::Test {
 protected:
  void start(unsigned ahead) {
    auto pool = std::make_unique<DecodePool>(codec_of("v:u8[]"), Undecodable::fail, 2, ahead + 1);
    line_ = std::make_unique<DecodeLine>(std::move(pool), source_, ahead, nullptr);
    line_->start();
  }

  void allow(std::uint64_t reachable, std::uint64_t in_stage) {
    const auto lock = line_->lock();
    source_.reachable = reachable;
    source_.in_stage = in_stage;
    line_->look_again();
  }

  /// Whether the line's thread takes up to `count` batches, and no more.
  bool takes(std::uint64_t count) {
    for (int i = 0; i < 5000 && source_.taken < count; ++i) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    std::this_thread::sleep_for(milliseconds(5));
    return source_.taken == count;
  }

  /// The line's thread may not have taken the next batch yet, and only what is there may be waited
  /// for: the consumer of an empty line takes for itself.
  std::uint64_t pop() {
    auto lock = line_->lock();
    while (line_->empty()) {
      lock.unlock();
      std::this_thread::sleep_for(milliseconds(1));
      lock.lock();
    }
    while (!line_->wait_decoded(lock, milliseconds(100))) {
    }
    return line_->pop().iteration;
  }

  /// The batches before where a run would go on.
  std::uint64_t state() {
    const auto lock = line_->lock();
    return line_->state().iterations;
  }

  bool fails() {
    for (int i = 0; i < 5000; ++i) {
      std::this_thread::sleep_for(milliseconds(1));
      const auto lock = line_->lock();
      if (line_->failure()) return true;
    }
    return false;
  }

  FakeSource source_;
  std::unique_ptr<DecodeLine> line_;
};

TEST_F(DecodeLineTest, RunsAheadAsFarAsToldAndHandsOnInOrder) {
  start(3);
  allow(10, 10);
  EXPECT_TRUE(takes(3));
  EXPECT_EQ(state(), 0U) << "nothing was given out";
  EXPECT_EQ(pop(), 0U);
  EXPECT_TRUE(takes(4));
  EXPECT_EQ(state(), 1U);
  for (std::uint64_t i = 1; i < 10; ++i) EXPECT_EQ(pop(), i);
  EXPECT_EQ(state(), 10U);
}

TEST_F(DecodeLineTest, TakesWhatIsInTheStageAndNothingElse) {
  start(4);
  allow(10, 1);
  EXPECT_TRUE(takes(1));
  allow(2, 10);
  EXPECT_TRUE(takes(2)) << "the third has to wait for a release";
  allow(3, 10);
  EXPECT_TRUE(takes(3));
}

TEST_F(DecodeLineTest, WithNothingAheadOnlyTheConsumerTakes) {
  start(0);
  allow(10, 10);
  EXPECT_TRUE(takes(0));
  {
    const auto lock = line_->lock();
    line_->add(source_.take_next());
  }
  EXPECT_EQ(pop(), 0U);
}

TEST_F(DecodeLineTest, AFailureWaitsUntilWhatCameBeforeIsGivenOut) {
  source_.fails_at = 2;
  start(4);
  allow(10, 10);
  EXPECT_TRUE(takes(2));
  EXPECT_EQ(pop(), 0U);
  EXPECT_EQ(pop(), 1U);
  EXPECT_TRUE(fails());
  const auto lock = line_->lock();
  EXPECT_TRUE(line_->empty());
}

TEST_F(DecodeLineTest, WantOfMemoryIsAFailureToo) {
  source_.lacks_memory_at = 1;
  start(4);
  allow(10, 10);
  EXPECT_TRUE(takes(1));
  EXPECT_EQ(pop(), 0U);
  EXPECT_TRUE(fails());
  EXPECT_EQ(state(), 1U);
}

TEST_F(DecodeLineTest, EndsWhileItWaitsForData) {
  start(4);
  allow(10, 0);
  std::this_thread::sleep_for(milliseconds(3));
  line_->stop();
  line_->stop();
  EXPECT_EQ(source_.taken, 0U);
}

TEST_F(DecodeLineTest, AReaderThatHasLeftIsTheConsumersToMeet) {
  source_.closed = true;
  start(4);
  allow(10, 0);
  std::this_thread::sleep_for(milliseconds(3));
  const auto lock = line_->lock();
  EXPECT_FALSE(line_->failure());
}

}  // namespace
}  // namespace forebay
