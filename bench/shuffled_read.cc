// How fast samples come in random order from storage, beside what the device gives.
//
//   shuffled_read DATASET HOW ENGINE DEPTH BATCH SAMPLES [cold]
//
// HOW: loader   order shuffled, through Loader, into nobody's hands
//      raw      reads of the pages that the same samples lie on, in the same order and numbers,
//               by the same engine: no leaves, no checks, nothing unpacked
//      liblmdb  its own look-up of the same samples by key, one byte of each page touched
//
// `cold` drops the file (only) from the page cache first. Prints one JSON line; `seconds` runs from
// the first request for a batch, opening aside.
#include <fmt/core.h>
#include <lmdb.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cold_file.hpp"
#include "core/clock.hpp"
#include "forebay/epoch_order.hpp"
#include "forebay/loader.hpp"
#include "format/lmdb/database.hpp"
#include "format/registry.hpp"
#include "storage/bulk_reader.hpp"

namespace {

using forebay::EpochOrder;

struct Run {
  std::string dataset;
  std::string how;
  std::string engine;
  unsigned depth = 0;
  std::uint64_t batch = 0;
  std::uint64_t samples = 0;
  bool cold = false;
};

constexpr std::uint64_t kWindow = 8;  // batches

struct Result {
  double seconds = 0;
  std::uint64_t samples = 0;
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;      ///< asked from the file system
  std::uint64_t delivered = 0;  ///< of values
  double read_seconds = 0;
  double exposed_seconds = 0;
  double first_seconds = 0;  ///< of these, for the first batch
};

std::string data_file(const Run& run) { return run.dataset + "/data.mdb"; }

EpochOrder order_of(const Run& run, std::uint64_t entries) {
  forebay::OrderOptions options;
  options.order = forebay::OrderName::shuffled;
  options.entries = entries;
  options.batch = run.batch;
  options.window = kWindow;
  return {options, 0};
}

Result run_loader(const Run& run) {
  forebay::LoaderOptions options;
  options.batch = run.batch;
  options.order = forebay::OrderName::shuffled;
  options.window = kWindow;
  options.iterations = run.samples / run.batch;
  options.depth = run.depth;
  options.set("engine", run.engine);
  options.codec = "bytes";
  if (run.cold) drop_from_cache(data_file(run));
  auto loader = forebay::Loader::open(forebay::self_communicator(), run.dataset, options);
  const double begin = forebay::now_seconds();
  double first = 0;
  while (const auto batch = loader.next()) {
    if (first == 0) first = loader.statistics().exposed_seconds;
  }
  const double seconds = forebay::now_seconds() - begin;
  const auto figures = loader.statistics();
  return {.seconds = seconds,
          .samples = figures.samples,
          .requests = figures.requests,
          .bytes = figures.bytes_requested,
          .delivered = figures.bytes_delivered,
          .read_seconds = figures.seek_seconds + figures.read_seconds,
          .exposed_seconds = figures.exposed_seconds,
          .first_seconds = first};
}

/// The pages of the samples themselves, in the order of delivery.
std::vector<forebay::FileExtent> extents_of(const Run& run) {
  using namespace forebay;
  const auto data = open_data_set(run.dataset, {});
  const EpochOrder order = order_of(run, data->facts().entries);
  std::vector<FileExtent> extents;
  for (std::uint64_t draw = 0; draw < run.samples; ++draw) {
    const IdRun one{order.draw(0, draw).sample, 1};
    const auto plan = data->plan_runs({&one, 1});
    extents.insert(extents.end(), plan->extents().begin(), plan->extents().end());
  }
  if (extents.size() > run.samples) std::erase_if(extents, &FileExtent::common);
  return extents;
}

Result run_raw(const Run& run) {
  using namespace forebay;
  const auto extents = extents_of(run);
  const auto file = open_file(data_file(run), Engine::pread);
  const auto reader = make_bulk_reader(file, run.engine == "uring" ? Engine::uring : Engine::pread,
                                       {.depth = run.depth, .scattered = true});
  const std::size_t together = run.batch * kWindow;
  std::vector<std::byte> memory(together * extents.front().length);
  if (run.cold) drop_from_cache(data_file(run));
  const double begin = now_seconds();
  for (std::size_t first = 0; first < extents.size(); first += together) {
    std::vector<ReadRequest> requests;
    std::span<std::byte> room(memory);
    for (std::size_t i = first; i < std::min(first + together, extents.size()); ++i) {
      requests.push_back({extents[i].offset, room.first(extents[i].length)});
      room = room.subspan(extents[i].length);
    }
    reader->read(requests, [](std::size_t) {});
  }
  const BulkCounters counters = reader->counters();
  return {.seconds = now_seconds() - begin,
          .samples = run.samples,
          .requests = counters.requests,
          .bytes = counters.bytes,
          .delivered = counters.bytes};
}

void check(int code) {
  if (code != 0) throw std::runtime_error(mdb_strerror(code));
}

/// The keys of the samples in the order of delivery.
std::vector<std::string> keys_of(const Run& run) {
  using namespace forebay;
  auto database = lmdb::Database::open(run.dataset, Engine::pread);
  const EpochOrder order = order_of(run, database.entries());
  std::vector<std::string> all;
  lmdb::Cursor cursor = database.tree().first();
  for (std::uint64_t sample = 0; sample < database.entries(); ++sample) {
    const auto key = database.tree().node(cursor).key;
    all.emplace_back(reinterpret_cast<const char*>(key.data()), key.size());
    if (sample + 1 < database.entries()) database.tree().next(cursor);
  }
  std::vector<std::string> keys;
  for (std::uint64_t draw = 0; draw < run.samples; ++draw) {
    keys.push_back(all[order.draw(0, draw).sample]);
  }
  return keys;
}

Result run_liblmdb(const Run& run) {
  const auto keys = keys_of(run);
  if (run.cold) drop_from_cache(data_file(run));
  MDB_env* environment = nullptr;
  MDB_txn* transaction = nullptr;
  MDB_dbi database = 0;
  check(mdb_env_create(&environment));
  check(mdb_env_open(environment, run.dataset.c_str(), MDB_RDONLY | MDB_NOLOCK, 0));
  check(mdb_txn_begin(environment, nullptr, MDB_RDONLY, &transaction));
  check(mdb_dbi_open(transaction, nullptr, 0, &database));
  Result result{.samples = run.samples};
  const double begin = forebay::now_seconds();
  unsigned sum = 0;
  for (const std::string& key : keys) {
    MDB_val wanted{key.size(), const_cast<char*>(key.data())}, value{};
    check(mdb_get(transaction, database, &wanted, &value));
    for (std::size_t at = 0; at < value.mv_size; at += 4096) {
      sum += static_cast<const unsigned char*>(value.mv_data)[at];
    }
    result.delivered += value.mv_size;
  }
  result.seconds = forebay::now_seconds() - begin;
  result.bytes = sum == 0 ? 1 : 0;  // that the touching is not left out
  mdb_txn_abort(transaction);
  mdb_env_close(environment);
  return result;
}

Run parse(int argc, char** argv) {
  Run run{.dataset = argv[1], .how = argv[2], .engine = argv[3]};
  run.depth = static_cast<unsigned>(std::stoul(argv[4]));
  run.batch = std::stoull(argv[5]);
  run.samples = std::stoull(argv[6]) / run.batch * run.batch;
  run.cold = argc > 7 && std::string_view(argv[7]) == "cold";
  return run;
}

Result measure(const Run& run) {
  if (run.how == "loader") return run_loader(run);
  if (run.how == "raw") return run_raw(run);
  if (run.how == "liblmdb") return run_liblmdb(run);
  throw std::invalid_argument("HOW is loader, raw or liblmdb");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) {
    std::fputs("usage: shuffled_read DATASET HOW ENGINE DEPTH BATCH SAMPLES [cold]\n", stderr);
    return 2;
  }
  try {
    const Run run = parse(argc, argv);
    const Result result = measure(run);
    fmt::print(R"({{"how":"{}","engine":"{}","depth":{},"window":{},"cold":{},"samples":{},)"
               R"("seconds":{:.4f},"samples_per_second":{:.0f},"requests":{},"bytes":{},)"
               R"("delivered":{},"read_seconds":{:.4f},"exposed_seconds":{:.4f},)"
               R"("first_seconds":{:.4f}}})"
               "\n",
               run.how, run.engine, run.depth, kWindow, run.cold, result.samples, result.seconds,
               static_cast<double>(result.samples) / result.seconds, result.requests, result.bytes,
               result.delivered, result.read_seconds, result.exposed_seconds, result.first_seconds);
  } catch (const std::exception& error) {
    fmt::print(stderr, "shuffled_read: {}\n", error.what());
    return 1;
  }
}
