#include "format/lmdb/free_list.hpp"

#include <fmt/format.h>

namespace forebay::lmdb {

FreePages decode_free_pages(const Entry& entry, const DamageExplainer& explainer, PageNumber leaf) {
  constexpr std::size_t kNumber = sizeof(std::uint64_t);
  if (entry.key.size() != kNumber || entry.value.size() < kNumber) {
    throw explainer.explain(
        leaf, fmt::format("a record of the free list has a key of {} and a value of {} bytes",
                          entry.key.size(), entry.value.size()));
  }
  const auto count = load<std::uint64_t>(entry.value, 0);
  if (count > entry.value.size() / kNumber - 1) {
    throw explainer.explain(
        leaf, fmt::format("a record of the free list counts {} pages in {} bytes", count,
                          entry.value.size()));
  }
  return {load<std::uint64_t>(entry.key, 0), entry.value.subspan(kNumber, count * kNumber)};
}

void visit_free_list(PageReader& pages, const std::function<void(const FreePages&)>& visit) {
  Tree tree(pages, pages.snapshot().meta().free_tree);
  Cursor cursor = tree.first();
  for (bool more = cursor.valid(); more; more = tree.next(cursor)) {
    visit(decode_free_pages(tree.entry(cursor), pages, cursor.leaf().page));
  }
}

}  // namespace forebay::lmdb
