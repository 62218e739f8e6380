// Pieces tile their requests, are cut at multiples in the file, and are direct only where allowed.
#include "storage/request_splitter.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "storage/joined_file.hpp"
#include "tests/support/unmapped_file.hpp"

namespace forebay {
namespace {

std::vector<ReadPiece> pieces_of(std::span<const ReadRequest> requests, std::uint64_t piece_bytes,
                                 DirectRules rules = {}) {
  std::vector<ReadPiece> pieces;
  RequestSplitter splitter(requests, piece_bytes, rules);
  while (!splitter.empty()) pieces.push_back(splitter.next());
  return pieces;
}

/// In order, without gaps or overlaps, each piece non-empty and inside its request.
void expect_tiles(std::span<const ReadRequest> requests, const std::vector<ReadPiece>& pieces) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    std::uint64_t taken = 0;
    while (taken < requests[i].into.size()) {
      ASSERT_LT(next, pieces.size());
      const ReadPiece& piece = pieces[next++];
      ASSERT_EQ(piece.request, i);
      ASSERT_EQ(piece.offset, requests[i].offset + taken);
      ASSERT_EQ(piece.into.data(), requests[i].into.data() + taken);
      ASSERT_GT(piece.into.size(), 0U);
      taken += piece.into.size();
    }
    ASSERT_EQ(taken, requests[i].into.size());
  }
  EXPECT_EQ(next, pieces.size());
}

class RequestSplitterTest : public ::testing::Test {
 protected:
  std::vector<ReadRequest> random_requests(std::mt19937& random) {
    std::vector<ReadRequest> requests(random() % 6);
    for (ReadRequest& request : requests) {
      const std::size_t begin = random() % 5000;
      request.offset = random() % 20'000;
      request.into = std::span(memory_).subspan(begin, random() % 3 == 0 ? 0 : random() % 20'000);
    }
    return requests;
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(25'000);
};

TEST_F(RequestSplitterTest, PiecesTileAnyRequests) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const auto requests = random_requests(random);
    const std::uint64_t size = 1 + random() % 9000;
    const auto pieces = pieces_of(requests, size);
    expect_tiles(requests, pieces);
    for (const ReadPiece& piece : pieces) {
      EXPECT_EQ(piece.offset / size, (piece.offset + piece.into.size() - 1) / size)
          << "crosses a multiple of the piece size";
      EXPECT_FALSE(piece.direct);
    }
  }
}

/// A file of 10,000 bytes.
class Striped final : public test::UnmappedFile {
 public:
  explicit Striped(std::uint64_t stripe)
      : UnmappedFile(memory_file("striped", std::vector<std::byte>(10'000))), stripe_(stripe) {}
  Stripes stripes(std::uint64_t) const override { return {.bytes = stripe_, .servers = 3}; }

 private:
  std::uint64_t stripe_;
};

TEST_F(RequestSplitterTest, PiecesCrossNoStripesAlsoOfJoinedFiles) {
  std::vector<std::shared_ptr<const File>> files;
  for (const std::uint64_t stripe : {700, 1700, 2700}) {
    files.push_back(std::make_shared<Striped>(stripe));
  }
  const JoinedFile joined("joined", files);
  const std::vector<ReadRequest> requests = {
      {.offset = 100, .into = std::span(memory_).first(9900)},
      {.offset = 12'345, .into = std::span(memory_).first(7000)},
      {.offset = 29'999, .into = std::span(memory_).first(1)}};
  for (const std::uint64_t size : {400, 1000, 5000}) {
    std::vector<ReadPiece> pieces;
    for (RequestSplitter splitter(requests, size, {}, &joined); !splitter.empty();) {
      pieces.push_back(splitter.next());
    }
    expect_tiles(requests, pieces);
    for (const ReadPiece& piece : pieces) {
      const std::uint64_t stripe = joined.stripes(piece.offset).bytes;
      const std::uint64_t first = joined.place(piece.offset).offset;
      EXPECT_EQ(first / stripe, (first + piece.into.size() - 1) / stripe);
      EXPECT_EQ(first / size, (first + piece.into.size() - 1) / size);
    }
  }
}

TEST_F(RequestSplitterTest, DirectPiecesKeepTheRulesAndLeaveOnlyTheEndsOut) {
  std::mt19937 random(4);
  constexpr std::uint64_t kBlock = 512;
  for (int i = 0; i < 300; ++i) {
    const auto requests = random_requests(random);
    const std::uint64_t memory_alignment = 1U << (random() % 10);
    const auto pieces =
        pieces_of(requests, kBlock * (1 + random() % 9), {kBlock, memory_alignment});
    expect_tiles(requests, pieces);
    for (const ReadPiece& piece : pieces) {
      const bool aligned =
          piece.offset % kBlock == 0 &&
          reinterpret_cast<std::uintptr_t>(piece.into.data()) % memory_alignment == 0;
      EXPECT_EQ(piece.direct, aligned && piece.into.size() >= kBlock);
      EXPECT_TRUE(!piece.direct || piece.into.size() % kBlock == 0);
    }
  }
}

TEST_F(RequestSplitterTest, ExtremeSizesAndOffsetsNeitherWrapNorStall) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const ReadRequest request{kLargest - 1000, std::span(memory_).first(1000)};
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 62,
                                   std::numeric_limits<std::uint64_t>::max()}) {
    expect_tiles({&request, 1}, pieces_of({&request, 1}, size));
    expect_tiles({&request, 1}, pieces_of({&request, 1}, size, {4096, 4096}));
  }
}

TEST_F(RequestSplitterTest, SizesAreWrittenAsPeopleSayThem) {
  EXPECT_EQ(size_text(std::uint64_t{1} << 20), "1 MiB");
  EXPECT_EQ(size_text(4096), "4 KiB");
  EXPECT_EQ(size_text(1000), "1000 bytes");
}

}  // namespace
}  // namespace forebay
