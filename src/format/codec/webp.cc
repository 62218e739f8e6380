// WebP through libwebp, and of animations the first picture. The demultiplexer finds the picture in
// the file, where it lies on the canvas, and what is said beside it.
#include <fmt/format.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>

#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "format/byte_stream.hpp"
#include "format/codec/image_reader.hpp"

namespace forebay {
namespace {

const std::uint8_t* numbers(std::span<const std::byte> bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}

class WebpReader final : public WholeReader, private NonCopyable {
 public:
  explicit WebpReader(std::span<const std::byte> file) : data_{numbers(file), file.size()} {
    demuxer_.reset(WebPDemux(&data_));
    if (demuxer_ == nullptr) throw_corrupt();
    const auto told = [this](WebPFormatFeature what) {
      return WebPDemuxGetI(demuxer_.get(), what);
    };
    const bool transparent = (told(WEBP_FF_FORMAT_FLAGS) & ALPHA_FLAG) != 0;
    shape_ = {.channels = transparent ? 4U : 3U,
              .height = told(WEBP_FF_CANVAS_HEIGHT),
              .width = told(WEBP_FF_CANVAS_WIDTH)};
  }

  ImageShape shape() const override { return shape_; }

  unsigned orientation() const override {
    const Chunk exif(*demuxer_, "EXIF"), xmp(*demuxer_, "XMP ");
    return orientation_of(exif.bytes(), chars_of(xmp.bytes()));
  }

 private:
  /// What is said beside the picture; empty where it is not.
  class Chunk : private NonCopyable {
   public:
    Chunk(const WebPDemuxer& demuxer, const char* name)
        : found_(WebPDemuxGetChunk(&demuxer, name, 1, &at_) != 0) {}
    ~Chunk() { WebPDemuxReleaseChunkIterator(&at_); }
    std::span<const std::byte> bytes() const {
      if (!found_) return {};
      return std::as_bytes(std::span(at_.chunk.bytes, at_.chunk.size));
    }

   private:
    WebPChunkIterator at_{};
    bool found_;
  };

  struct FirstFrame : private NonCopyable {
    explicit FirstFrame(const WebPDemuxer& demuxer)
        : found(WebPDemuxGetFrame(&demuxer, 1, &at) != 0) {}
    ~FirstFrame() { WebPDemuxReleaseIterator(&at); }
    WebPIterator at{};
    bool found;
  };

  void read_image(std::span<std::byte> image) override {
    const FirstFrame frame(*demuxer_);
    if (!frame.found || frame.at.complete == 0) throw_corrupt();
    const Box box{static_cast<std::uint32_t>(frame.at.x_offset),
                  static_cast<std::uint32_t>(frame.at.y_offset),
                  static_cast<std::uint32_t>(frame.at.width),
                  static_cast<std::uint32_t>(frame.at.height)};
    const bool inside = std::uint64_t{box.x} + box.width <= shape_.width &&
                        std::uint64_t{box.y} + box.height <= shape_.height;
    if (!inside) throw_corrupt();
    if (box.pixels() != std::uint64_t{shape_.width} * shape_.height) {
      std::memset(image.data(), 0, image.size());  // the canvas around it
    }
    const std::size_t stride = std::size_t{shape_.width} * shape_.channels;
    const std::size_t first = box.y * stride + std::size_t{box.x} * shape_.channels;
    auto* out = reinterpret_cast<std::uint8_t*>(image.data() + first);
    const auto decode = shape_.channels == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
    const WebPData& picture = frame.at.fragment;
    const bool decoded = decode(picture.bytes, picture.size, out, image.size() - first,
                                static_cast<int>(stride)) != nullptr;
    if (!decoded) throw_corrupt();
  }

  [[noreturn]] static void throw_corrupt() {
    throw Error(ErrorKind::corrupt, "the WebP image does not decode: it is cut or damaged",
                "replace the image");
  }

  struct Delete {
    void operator()(WebPDemuxer* one) const { WebPDemuxDelete(one); }
  };
  WebPData data_;
  std::unique_ptr<WebPDemuxer, Delete> demuxer_;
  ImageShape shape_;
};

}  // namespace

ImageReaderPtr open_webp(std::span<const std::byte> file, bool) {
  return std::make_unique<WebpReader>(file);
}

}  // namespace forebay
