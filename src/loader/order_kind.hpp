// From the name of an order in options to its kind.
#pragma once

#include "forebay/options.hpp"

namespace forebay {

/// The kind of an order that has epochs. Throws usage for `strided`, which has none.
OrderKind kind_of(OrderName name);

/// Whether what is loaded together lies all over the data set, sample by sample.
constexpr bool is_scattered(OrderKind kind) {
  return kind == OrderKind::shuffled || kind == OrderKind::listed;
}

}  // namespace forebay
