// What it costs to sum one buffer over the ranks of a job: Forebay's algorithms beside MPI's own.
//
//   mpirun -n 4 allreduce_bench-openmpi [--largest BYTES] [--turns N] [--tcp FOLDER]
//
//   blocking    MPI_Allreduce, from memory of the caller to memory of the caller
//   mpi         MPI_Iallreduce, moved on as the progress thread does it: rests between looks
//   direct      blocks that each rank adds up in the order of ranks
//   two_level   in memory that the ranks of a node share
//
//   tcp_...     the last three over connections without MPI, with FOLDER as their rendezvous
//
// All but the first include the copies into and out of their buffers, as the engine makes them.
// Every turn measures all of them once for each size, since other load may change; reported are the
// medians of the slowest rank, and the CPU time of a rank as a share of the elapsed time. Rank 0
// prints one JSON object.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/figures.hpp"
#include "comm/mpi/check.hpp"
#include "comm/values.hpp"
#include "core/clock.hpp"
#include "forebay/connect.hpp"
#include "forebay/error.hpp"
#include "forebay/mpi.hpp"
#include "sync/summation.hpp"

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

/// Sums `in` over all ranks into `out`.
using Sum = std::function<void(std::span<const float> in, std::span<float> out)>;

void sum_blocking(std::span<const float> in, std::span<float> out) {
  check_mpi(MPI_Allreduce(in.data(), out.data(), static_cast<int>(in.size()), MPI_FLOAT, MPI_SUM,
                          MPI_COMM_WORLD),
            "MPI_Allreduce");
}

void sum_by(Summation& lane, std::span<const float> in, std::span<float> out) {
  while (!lane.free()) std::this_thread::sleep_for(std::chrono::microseconds(20));
  const auto room = lane.begin(TensorType::float32, Combination::sum, in.size_bytes());
  std::memcpy(room.data(), in.data(), room.size());
  lane.start();
  while (const auto rest = lane.step()) {
    if (rest->count() > 0) std::this_thread::sleep_for(*rest);
  }
  std::memcpy(out.data(), lane.result().data(), out.size_bytes());
  lane.release();
}

struct Method {
  std::string name;
  Sum sum;
  Series seconds = {};  ///< of one sum, by turn
  Series share = {};    ///< CPU time over elapsed time
};

void measure(Communicator& comm, Method& method, std::span<const float> in, std::span<float> out) {
  const std::size_t bytes = in.size_bytes();
  const int repeats = static_cast<int>(std::clamp<std::size_t>((16 << 20) / bytes, 2, 200));
  method.sum(in, out);
  comm.barrier();
  const double cpu = process_cpu_seconds();
  const double begin = now_seconds();
  for (int i = 0; i < repeats; ++i) method.sum(in, out);
  const double seconds = now_seconds() - begin;
  method.seconds.add(std::ranges::max(gather_all(comm, seconds)) / repeats);
  method.share.add((process_cpu_seconds() - cpu) / seconds);
  const auto expected = static_cast<float>(comm.size());
  if (out.front() != expected || out.back() != expected) {
    throw Error(ErrorKind::corrupt, "a sum by " + method.name + " is wrong", "");
  }
}

Json measure_size(Communicator& comm, std::vector<Method> methods, std::size_t bytes, int turns) {
  const std::vector<float> in(bytes / sizeof(float), 1.0F);
  std::vector<float> out(in.size());
  for (int turn = 0; turn < turns; ++turn) {
    for (Method& method : methods) measure(comm, method, in, out);
  }
  Json result{{"bytes", bytes}};
  for (const Method& method : methods) {
    result[method.name] = {{"us", method.seconds.median() * 1e6}, {"cpu", method.share.median()}};
  }
  return result;
}

int run(int argc, char** argv) {
  const std::span<char*> words(argv, static_cast<std::size_t>(argc));
  const std::size_t largest = std::stoul(option(words, "--largest", "67108864"));
  const int turns = std::stoi(option(words, "--turns", "5"));
  const MpiSession session;
  const auto comm = session.world();
  const std::string folder = option(words, "--tcp", "");
  std::vector<std::pair<std::string, std::shared_ptr<Communicator>>> worlds{{"", comm}};
  if (!folder.empty()) {
    const auto rendezvous = file_rendezvous(folder);
    worlds.emplace_back("tcp_",
                        connect_ranks(*rendezvous, {.rank = comm->rank(), .size = comm->size()}));
  }
  std::vector<std::unique_ptr<Summations>> sums;
  std::vector<Method> methods{{.name = "blocking", .sum = &sum_blocking}};
  const std::map<std::string, SyncAlgorithm> algorithms{{"mpi", SyncAlgorithm::mpi},
                                                        {"direct", SyncAlgorithm::direct},
                                                        {"two_level", SyncAlgorithm::two_level}};
  for (const auto& [prefix, world] : worlds) {
    for (const auto& [name, algorithm] : algorithms) {
      sums.push_back(std::make_unique<Summations>(
          *world, SummationOptions{.algorithm = algorithm, .largest = largest, .lanes = 1}));
      methods.push_back(
          {.name = prefix + name,
           .sum = [lane = &sums.back()->lane(0)](auto in, auto out) { sum_by(*lane, in, out); }});
    }
  }
  Json sizes = Json::array();
  for (std::size_t bytes = 4096; bytes <= largest; bytes *= 4) {
    sizes.push_back(measure_size(*comm, methods, bytes, turns));
  }
  const Json report{{"ranks", comm->size()},
                    {"nodes", sums.back()->explain()},
                    {"turns", turns},
                    {"sizes", sizes}};
  if (comm->rank() == 0) fmt::print("{}\n", report.dump(1));
  comm->barrier();
  return 0;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) { return forebay::run(argc, argv); }
