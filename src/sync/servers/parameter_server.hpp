// What is behind ParameterServer.
//
//   training thread   push -> mail ... pull <- newest parameters
//   progress thread   poll(): failure of others; letters -> proxies, server, newest parameters
//
// Whatever fails, fails in poll(), or is found there: see failure_board.hpp.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>

#include "comm/failure_board.hpp"
#include "comm/progress_thread.hpp"
#include "comm/waiting.hpp"
#include "forebay/parameter_server.hpp"
#include "forebay/placement.hpp"
#include "sync/servers/newest_parameters.hpp"
#include "sync/servers/server.hpp"

namespace forebay {

class ParameterServer::Implementation {
 public:
  /// Collective.
  Implementation(const std::shared_ptr<Communicator>& comm, std::span<float> parameters,
                 std::span<float> told, UpdateRule rule, ParameterServerOptions options);
  ~Implementation();
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;

  void push(std::span<const float> gradients, std::span<const float> added);
  std::uint64_t pull(std::span<float> parameters, std::span<float> told);
  void flush(std::span<float> parameters, std::span<float> told);
  std::span<const ParameterShard> shards() const { return tree_->shards(); }
  std::uint64_t clock() const { return clock_; }
  void fail(const Error& error);
  void check() const { newest_->check(); }
  ParameterServerStatistics statistics() const;
  std::string explain() const;
  void close();

 private:
  ProgressThread::Rest poll();
  bool read_mail();
  void deliver(ServerLetter letter);
  void wait(std::uint64_t version, bool last);
  void require_lengths(std::size_t parameters, std::size_t told) const;
  void stir();

  const ParameterServerOptions options_;
  const std::size_t parameters_;
  const std::size_t told_;
  CorePlan cores_;
  std::shared_ptr<Communicator> comm_;
  std::optional<CommonFailure> failure_;
  std::unique_ptr<ServerTree> tree_;
  std::unique_ptr<ServerMail> mail_;
  std::unique_ptr<NewestParameters> newest_;
  std::unique_ptr<Upstream> upstream_;

  // Of the training thread.
  std::uint64_t clock_ = 0;
  bool closed_ = false;
  ParameterServerStatistics counting_;

  // Of the progress thread.
  std::map<Station, Proxy> proxies_;
  std::optional<Server> server_;
  Pace pace_;
  bool ended_ = false;

  std::atomic<bool> stirred_ = false;  ///< something is about to come
  std::atomic<std::uint64_t> updates_ = 0;
  std::shared_ptr<ProgressThread> thread_;
  ProgressThread::Registration registration_;  ///< last, so that it ends first
};

}  // namespace forebay
