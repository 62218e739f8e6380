// Writes valid inputs of transform_fuzz into the directory given.
#include <fstream>
#include <string>
#include <vector>

#include "format/codec/image.hpp"

int main(int argc, char** argv) {
  using namespace forebay;
  if (argc != 2) return 2;
  const ImageShape shape{3, 40, 50};
  std::vector<std::byte> pixels(shape.bytes());
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::byte>(i * 7 % 251);
  int number = 0;
  for (const auto& file : {encode_jpeg(shape, pixels, 80), encode_png(shape, pixels)}) {
    for (const char* text :
         {"rgb,random-resized-crop=22:0.08-1:0.75-1.3,flip,to-float,normalize=0.5:0.4:0.3/0.2",
          "resize=9,crop=8x7:random,layout=hwc", "from=hwc,full-decode,vflip=1,cast=f16",
          "image:pad=4,gray,cast=f32,resize=5x6,cast=u8,swap", "crop=30:center,swap,cast=i64"}) {
      std::ofstream out(std::string(argv[1]) + "/" + std::to_string(number++), std::ios::binary);
      out << text << '\n';
      out.write(reinterpret_cast<const char*>(file.data()),
                static_cast<std::streamsize>(file.size()));
    }
  }
  return 0;
}
