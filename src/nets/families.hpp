// Who makes which networks: see net.hpp.
#pragma once

#include <string_view>

#include "nets/net.hpp"

namespace forebay::nets {

/// 18, 34, 50, 101 or 152 layers.
Net make_resnet(int layers);
Net make_alexnet();
Net make_vgg16();
Net make_googlenet();
Net make_inception3();

}  // namespace forebay::nets
