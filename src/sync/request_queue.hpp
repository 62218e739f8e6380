// Requests on their way from any thread to the progress thread: nobody ever waits.
//
//   push: head -> new -> older -> oldest       one exchange of the head
//   take: the whole chain at once, turned round
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "sync/request.hpp"

namespace forebay {

/// push() from any thread, take() from one.
class RequestQueue {
 public:
  RequestQueue() = default;
  RequestQueue(const RequestQueue&) = delete;
  RequestQueue& operator=(const RequestQueue&) = delete;
  ~RequestQueue() { take(); }

  void push(std::shared_ptr<Request> request) {
    auto* link = new Link{std::move(request), head_.load(std::memory_order_relaxed)};
    while (!head_.compare_exchange_weak(link->older, link, std::memory_order_release,
                                        std::memory_order_relaxed)) {
    }
  }

  bool empty() const { return head_.load(std::memory_order_acquire) == nullptr; }

  /// All that were pushed so far, oldest first.
  std::vector<std::shared_ptr<Request>> take() {
    std::vector<std::shared_ptr<Request>> taken;
    for (Link* link = head_.exchange(nullptr, std::memory_order_acquire); link != nullptr;) {
      const std::unique_ptr<Link> owner(link);
      taken.push_back(std::move(link->request));
      link = link->older;
    }
    std::reverse(taken.begin(), taken.end());
    return taken;
  }

 private:
  struct Link {
    std::shared_ptr<Request> request;
    Link* older;
  };

  std::atomic<Link*> head_ = nullptr;
};

}  // namespace forebay
