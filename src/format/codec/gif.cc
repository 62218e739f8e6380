// GIF through giflib: the first picture of a file, on its canvas.
//
// Records are read one by one up to that picture; what follows is not looked at. Around it the
// canvas has the transparent color, or else number 0.
#include <fmt/format.h>
#include <gif_lib.h>

#include <algorithm>
#include <cstring>

#include "core/non_copyable.hpp"
#include "forebay/error.hpp"
#include "format/codec/image_reader.hpp"

namespace forebay {
namespace {

class GifReader final : public PaletteReader, private NonCopyable {
 public:
  GifReader(std::span<const std::byte> file, bool indices) : PaletteReader(indices), rest_(file) {
    int code = 0;
    gif_.reset(DGifOpen(this, take, &code));
    if (gif_ == nullptr) throw_corrupt(code);
    find_picture();
    height_ = std::max(side(gif_->SHeight), box_.y + box_.height);
    width_ = std::max(side(gif_->SWidth), box_.x + box_.width);
    set_palette();
  }

 private:
  struct Close {
    void operator()(GifFileType* one) const { DGifCloseFile(one, nullptr); }
  };

  static int take(GifFileType* gif, GifByteType* out, int size) {
    auto& rest = static_cast<GifReader*>(gif->UserData)->rest_;
    const std::size_t taken = std::min(rest.size(), static_cast<std::size_t>(std::max(size, 0)));
    std::memcpy(out, rest.data(), taken);
    rest = rest.subspan(taken);
    return static_cast<int>(taken);
  }

  static std::uint32_t side(GifWord word) { return static_cast<std::uint32_t>(word & 0xffff); }

  void require(int result) const {
    if (result != GIF_OK) throw_corrupt(gif_->Error);
  }

  void find_picture() {
    for (;;) {
      GifRecordType type = UNDEFINED_RECORD_TYPE;
      require(DGifGetRecordType(gif_.get(), &type));
      if (type == EXTENSION_RECORD_TYPE) {
        read_extension();
      } else if (type == IMAGE_DESC_RECORD_TYPE) {
        break;
      } else {
        throw_corrupt(D_GIF_ERR_NO_IMAG_DSCR);
      }
    }
    require(DGifGetImageDesc(gif_.get()));
    const GifImageDesc& picture = gif_->Image;
    box_ = {side(picture.Left), side(picture.Top), side(picture.Width), side(picture.Height)};
  }

  void read_extension() {
    int code = 0;
    GifByteType* block = nullptr;
    require(DGifGetExtension(gif_.get(), &code, &block));
    while (block != nullptr) {
      GraphicsControlBlock control{};
      // A block begins with its length.
      if (code == GRAPHICS_EXT_FUNC_CODE &&
          DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
        transparent_ = control.TransparentColor;
      }
      require(DGifGetExtensionNext(gif_.get(), &block));
    }
  }

  void set_palette() {
    const ColorMapObject* map =
        gif_->Image.ColorMap != nullptr ? gif_->Image.ColorMap : gif_->SColorMap;
    palette_.size =
        map == nullptr ? 256 : static_cast<std::size_t>(std::clamp(map->ColorCount, 0, 256));
    for (std::size_t i = 0; i < palette_.size; ++i) {
      const auto gray = static_cast<GifByteType>(i);
      const GifColorType color = map == nullptr ? GifColorType{gray, gray, gray} : map->Colors[i];
      palette_.colors[i] = {std::byte{color.Red}, std::byte{color.Green}, std::byte{color.Blue},
                            std::byte{255}};
    }
    palette_.transparent = transparent_ >= 0;
    if (palette_.transparent) palette_.colors[static_cast<std::size_t>(transparent_)][3] = {};
  }

  void read_indices(std::span<std::byte> numbers) override {
    if (box_.pixels() != numbers.size()) {
      std::ranges::fill(numbers, static_cast<std::byte>(std::max(transparent_, 0)));
    }
    // Interlaced: every eighth row, those in the middle of them, and so on.
    constexpr std::uint32_t kFirst[] = {0, 4, 2, 1}, kStep[] = {8, 8, 4, 2};
    if (!gif_->Image.Interlace) return read_rows(numbers, 0, 1);
    for (std::size_t pass = 0; pass < 4; ++pass) read_rows(numbers, kFirst[pass], kStep[pass]);
  }

  void read_rows(std::span<std::byte> numbers, std::uint32_t first, std::uint32_t step) {
    for (std::uint32_t y = first; y < box_.height; y += step) {
      std::byte* row = numbers.data() + std::size_t{box_.y + y} * width_ + box_.x;
      require(DGifGetLine(gif_.get(), reinterpret_cast<GifPixelType*>(row),
                          static_cast<int>(box_.width)));
    }
  }

  [[noreturn]] static void throw_corrupt(int code) {
    const char* what = GifErrorString(code);
    throw Error(
        ErrorKind::corrupt,
        fmt::format("the GIF image does not decode: {}", what == nullptr ? "it is damaged" : what),
        "replace the image");
  }

  std::span<const std::byte> rest_;
  std::unique_ptr<GifFileType, Close> gif_;
  Box box_;
  int transparent_ = -1;
};

}  // namespace

ImageReaderPtr open_gif(std::span<const std::byte> file, bool indices) {
  return std::make_unique<GifReader>(file, indices);
}

}  // namespace forebay
