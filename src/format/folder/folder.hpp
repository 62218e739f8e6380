// A folder of files read where they lie, as torchvision's ImageFolder does:
//
//   root/cat/001.jpg  root/cat/more/002.jpg  root/dog/003.jpg     parts: image, label
//   root/001.jpg      root/002.jpg                                part: image
//
// Folders in the root are classes, numbered in the order of their names, by bytes. Samples go by
// class, then by folder, then by file name. Hidden files and folders are no data. Where there are
// images, other files are left out; else every file is a sample, and its part is called "file".
#pragma once

#include "format/registry.hpp"

namespace forebay::folder {

Format folder_format();

}  // namespace forebay::folder
