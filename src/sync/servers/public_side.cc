// The public side of ParameterServer.
#include <utility>

#include "core/names.hpp"
#include "forebay/parameter_server.hpp"
#include "sync/servers/parameter_server.hpp"

namespace forebay {
namespace {

constexpr Name<ProxyLevel> kLevels[] = {
    {"none", ProxyLevel::none}, {"node", ProxyLevel::node}, {"numa", ProxyLevel::numa}};

}  // namespace

std::string_view to_string(ProxyLevel level) { return name_of(level, kLevels); }

ProxyLevel parse_proxy_level(std::string_view text) { return parse_name("proxies", text, kLevels); }

ParameterServer::ParameterServer(const std::shared_ptr<Communicator>& comm,
                                 std::span<float> parameters, std::span<float> told,
                                 UpdateRule rule, ParameterServerOptions options)
    : implementation_(std::make_unique<Implementation>(comm, parameters, told, std::move(rule),
                                                       std::move(options))) {}

ParameterServer::~ParameterServer() = default;

void ParameterServer::push(std::span<const float> gradients, std::span<const float> added) {
  implementation_->push(gradients, added);
}

std::uint64_t ParameterServer::pull(std::span<float> parameters, std::span<float> told) {
  return implementation_->pull(parameters, told);
}

void ParameterServer::flush(std::span<float> parameters, std::span<float> told) {
  implementation_->flush(parameters, told);
}

std::span<const ParameterShard> ParameterServer::shards() const {
  return implementation_->shards();
}

std::uint64_t ParameterServer::clock() const { return implementation_->clock(); }
void ParameterServer::fail(const Error& error) { implementation_->fail(error); }
void ParameterServer::check() const { implementation_->check(); }

ParameterServerStatistics ParameterServer::statistics() const {
  return implementation_->statistics();
}

std::string ParameterServer::explain() const { return implementation_->explain(); }
void ParameterServer::close() { implementation_->close(); }

}  // namespace forebay
