"""Image files against Pillow: what they are meant to look like, and how else they may be read."""

import io
import struct

import forebay
import numpy as np
import pytest
from conftest import write_lmdb

Image = pytest.importorskip("PIL.Image")
ImageOps = pytest.importorskip("PIL.ImageOps")

TOLERANCE = {"JPEG": 3, "WEBP": 3}  # what one decoder may differ from another; others are exact


def noise(*shape, most=255, seed=5):
    return np.random.default_rng(seed).integers(0, most, shape, dtype=np.uint8)


def smooth(height, width, channels=3):
    """What survives a lossy format."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [(3 * x + 2 * y + 40 * c) % 160 + 40 for c in range(channels)]
    return np.squeeze(np.stack(planes, axis=2).astype(np.uint8))


def written(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


class Files:
    def __init__(self, folder):
        self._folder, self._count = folder, 0

    def read(self, content, suffix="png", **options):
        """What an image decodes to that is the only one of a data set, channels last."""
        self._count += 1
        path = self._folder / str(self._count)
        if suffix == "gif":  # no image to torchvision's ImageFolder, nor to ours
            write_lmdb(path, [(b"0", content)])
        else:
            path.mkdir()
            (path / f"x.{suffix}").write_bytes(content)
        try:
            return plain(forebay.Dataset(path, **options)[0]["image"])
        except forebay.Error as error:
            if "this build does not read" in str(error):
                pytest.skip(str(error))
            raise


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


def plain(image):
    """Height, width, channels; gray without."""
    return np.asarray(image[0] if image.shape[0] == 1 else image.transpose(1, 2, 0))


def assert_alike(found, expected, kind="PNG"):
    assert found.shape == expected.shape
    apart = np.abs(found.astype(np.int64) - expected.astype(np.int64)).max()
    assert apart <= TOLERANCE.get(kind, 0)


@pytest.mark.parametrize("endian", "<>")
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_orientation_is_exif_transposes(files, kind, endian):
    photo = Image.fromarray(smooth(31, 50))
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif.endian = endian
        exif[0x0112] = orientation
        content = written(photo, kind, exif=exif.tobytes())
        stored = Image.open(io.BytesIO(content))
        upright = ImageOps.exif_transpose(stored)
        suffix = kind.lower()
        assert_alike(files.read(content, suffix), np.asarray(upright), kind)
        as_stored = files.read(content, suffix, codec="image:orientation=stored")
        assert_alike(as_stored, np.asarray(stored), kind)


@pytest.mark.parametrize("endian", "<>")
@pytest.mark.parametrize("kind", [1, 3, 4, 6, 8, 9, 13])
def test_orientation_of_any_whole_number_is_exif_transposes(files, kind, endian):
    number = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 13: "I"}[kind]
    for orientation in (6, 2, 0, -1 if number.islower() else 9):
        value = struct.pack(endian + number, orientation).ljust(4, b"\0")
        mark = b"II*\0" if endian == "<" else b"MM\0*"
        exif = mark + struct.pack(endian + "IHHHI", 8, 1, 0x0112, kind, 1) + value + bytes(4)
        content = written(Image.fromarray(smooth(31, 50)), "PNG", exif=exif)
        upright = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
        np.testing.assert_array_equal(files.read(content), np.asarray(upright))


@pytest.mark.parametrize("chunk", ["tEXt", "zTXt", "iTXt", "packed iTXt"])
def test_orientation_in_imagemagicks_text_and_in_xmp(files, chunk):
    PngImagePlugin = pytest.importorskip("PIL.PngImagePlugin")
    photo = Image.fromarray(smooth(31, 50))
    exif = Image.Exif()
    exif[0x0112] = 6
    profile = exif.tobytes()
    for name, text in [
        ("Raw profile type exif", f"\nexif\n{len(profile):8}\n{profile.hex()}\n"),
        ("XML:com.adobe.xmp", '<rdf:Description tiff:Orientation="6"/>'),
    ]:
        info = PngImagePlugin.PngInfo()
        if chunk.endswith("iTXt"):
            info.add_itxt(name, text, lang="en", tkey="what", zip=chunk.startswith("packed"))
        else:
            info.add_text(name, text, zip=chunk == "zTXt")
        content = written(photo, "PNG", pnginfo=info)
        upright = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
        assert upright.size == (31, 50)
        np.testing.assert_array_equal(files.read(content), np.asarray(upright))


def test_orientation_in_batches_and_crops(tmp_path, files):
    photos = tmp_path / "photos"
    photos.mkdir()
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        content = written(Image.fromarray(smooth(40, 60)), "JPEG", exif=exif.tobytes())
        (photos / f"{orientation}.jpg").write_bytes(content)
    options = {"batch_size": 8, "order": "sequential", "epochs": 1}
    (batch,) = forebay.Loader(photos, transform="crop=20x30", **options)
    (stored,) = forebay.Loader(photos, transform="orientation=stored,crop=20x30", **options)
    for number in range(8):
        with Image.open(photos / f"{number + 1}.jpg") as image:
            for found, expected in [
                (batch, ImageOps.exif_transpose(image)),
                (stored, image),
            ]:
                top, left = (expected.height - 20) // 2, (expected.width - 30) // 2
                part = np.asarray(expected)[top : top + 20, left : left + 30]
                assert_alike(plain(found["image"][number]), part, "JPEG")


def image_of(mode):
    pixels = {
        "1": noise(9, 13) > 100,
        "L": noise(9, 13),
        "LA": noise(9, 13, 2),
        "P": noise(9, 13, most=4),
        "RGB": noise(9, 13, 3),
        "RGBA": noise(9, 13, 4),
        "CMYK": noise(9, 13, 4),
        "I;16": np.random.default_rng(1).integers(0, 65535, (9, 13)).astype(np.uint16),
        "I": np.random.default_rng(1).integers(-70000, 70000, (9, 13)).astype(np.int32),
        "F": np.random.default_rng(1).normal(size=(9, 13)).astype(np.float32),
    }[mode]
    image = Image.fromarray(pixels, "CMYK" if mode == "CMYK" else None)
    if mode == "P":
        image.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0, 7, 8, 9])
    return image


def as_pillow(mode, kind="PNG", **options):
    """A file of that mode, and what Pillow reads."""
    if (mode, kind) == ("P", "PNG"):
        options["bits"] = 2
    content = written(image_of(mode), kind, **options)
    return content, Image.open(io.BytesIO(content))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "RGB", "RGBA", "I;16"])
def test_png_keeps_depth_and_meaning(files, mode):
    content, expected = as_pillow(mode)
    found = files.read(content)
    expected = np.asarray(expected)
    assert found.dtype == (np.uint16 if mode == "I;16" else np.uint8)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
@pytest.mark.parametrize("choice", ["rgb", "rgba"])
def test_channels_that_are_said(files, mode, choice):
    content, expected = as_pillow(mode)
    found = files.read(content, codec=f"image:{choice}")
    np.testing.assert_array_equal(found, np.asarray(expected.convert(choice.upper())))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_gray_is_pillows_but_for_rounding(files, mode):
    content, expected = as_pillow(mode)
    expected = np.asarray(expected.convert("RGB").convert("L")).astype(int)
    assert np.abs(files.read(content, codec="auto:gray") - expected).max() <= 1


def test_a_palette_is_colors_or_class_numbers(files):
    content, expected = as_pillow("P")
    np.testing.assert_array_equal(files.read(content), np.asarray(expected.convert("RGB")))
    found = files.read(content, codec="image:palette=index")
    np.testing.assert_array_equal(found, np.asarray(expected))
    found = files.read(written(expected, "PNG", transparency=1))
    clear = Image.open(io.BytesIO(written(expected, "PNG", transparency=1))).convert("RGBA")
    np.testing.assert_array_equal(found, np.asarray(clear))


def test_images_and_masks_beside_each_other(tmp_path):
    import tarfile

    mask, expected = as_pillow("P")
    photo = written(Image.fromarray(smooth(9, 13)), "PNG")
    with tarfile.open(tmp_path / "x.tar", "w") as shard:
        for name, content in [("0.seg.png", mask), ("0.image.png", photo)]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            shard.addfile(member, io.BytesIO(content))
    codec = "seg.png=image:palette=index,image.png=auto"
    sample = forebay.Dataset(tmp_path / "x.tar", codec=codec)[0]
    np.testing.assert_array_equal(plain(sample["seg.png"]), np.asarray(expected))
    np.testing.assert_array_equal(plain(sample["image.png"]), smooth(9, 13))


def test_transparency_among_opaque_images_is_refused_until_it_is_said(tmp_path):
    for name, channels in [("a", 3), ("b", 4)]:
        content = written(Image.fromarray(noise(5, 7, channels)), "PNG")
        (tmp_path / f"{name}.png").write_bytes(content)
    ds = forebay.Dataset(tmp_path)
    with pytest.raises(forebay.Error, match=r"4x5x7.*codec auto:rgb"):
        ds[1]
    said = forebay.Dataset(tmp_path, codec="auto:rgb")
    np.testing.assert_array_equal(plain(said[1]["image"]), noise(5, 7, 4)[..., :3])


def bits_and_bytes(folder):
    """One mask, of one bit and of eight; what is white in it."""
    white = np.random.default_rng(8).integers(0, 2, (6, 12)).astype(bool)
    image = Image.fromarray(white * np.uint8(255))
    (folder / "0.png").write_bytes(written(image.convert("1"), "PNG"))
    (folder / "1.png").write_bytes(written(image, "PNG"))
    return white


def to_tensor(path):
    """torchvision's ToTensor: what has mode 1 becomes 0 and 255 first; then bytes are divided."""
    with Image.open(path) as image:
        pixels = np.asarray(image)
        pixels = pixels * np.uint8(255) if image.mode == "1" else pixels
        return pixels.astype(np.float32) / np.float32(255)


@pytest.mark.parametrize("steps", ["to-float", "crop=4x4,to-float", "gray,to-float"])
def test_to_float_is_torchvisions_for_single_bits_too(tmp_path, steps):
    white = bits_and_bytes(tmp_path)
    options = {"batch_size": 2, "order": "sequential", "epochs": 1}
    (batch,) = forebay.Loader(tmp_path, transform=steps, **options)
    for number in range(2):
        expected = to_tensor(tmp_path / f"{number}.png")
        expected = expected[1:5, 4:8] if "crop" in steps else expected
        np.testing.assert_array_equal(plain(batch["image"][number]), expected)
    assert set(np.unique(white)) == {False, True}


@pytest.mark.parametrize("steps", [None, "flip=0", "cast=f32"])
def test_single_bits_among_bytes_are_refused_until_it_is_said(tmp_path, steps):
    white = bits_and_bytes(tmp_path)
    options = {"batch_size": 2, "order": "sequential", "epochs": 1, "transform": steps}
    with pytest.raises(forebay.Error, match=r"1x6x12 but.*1-bit 1x6x12.*auto:gray.*palette=index"):
        list(forebay.Loader(tmp_path, **options))
    (batch,) = forebay.Loader(tmp_path, codec="auto:gray", **options)
    np.testing.assert_array_equal(batch["image"][:, 0], [white * np.uint8(255)] * 2)
    (batch,) = forebay.Loader(tmp_path, codec="auto:palette=index", **options)
    np.testing.assert_array_equal(batch["image"][:, 0], [white, white * np.uint8(255)])


def test_what_is_said_of_images_leaves_labels_alone(tmp_path):
    for name in ["cat", "dog"]:
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.png").write_bytes(written(Image.fromarray(noise(5, 7)), "PNG"))
    for codec, channels in [("image", 1), ("image:rgb", 3), ("auto:rgb", 3)]:
        ds = forebay.Dataset(tmp_path, codec=codec)
        assert [int(ds[i]["label"]) for i in range(2)] == [0, 1]
        assert ds[0]["image"].shape == (channels, 5, 7)


def test_inks_become_colors(files):
    inks = smooth(40, 56, channels=4)
    content = written(Image.fromarray(inks, "CMYK"), "JPEG", quality=95)
    expected = Image.open(io.BytesIO(content))
    assert expected.mode == "CMYK"
    assert_alike(files.read(content, "jpg"), np.asarray(expected.convert("RGB")), "JPEG")


TIFF_MODES = ["1", "L", "LA", "RGB", "RGBA", "I;16", "I", "F"]
TIFFS = [(mode, how) for mode in TIFF_MODES for how in ["raw", "tiff_lzw", "tiff_adobe_deflate"]]


@pytest.mark.parametrize(("mode", "compression"), [*TIFFS, ("1", "group4"), ("L", "packbits")])
def test_tiff_is_pillows(files, mode, compression):
    content, expected = as_pillow(mode, "TIFF", compression=compression)
    found = files.read(content, "tif")
    expected = np.asarray(expected)
    assert found.dtype == (np.uint8 if mode == "1" else expected.dtype)
    np.testing.assert_array_equal(found, expected)


def test_tiff_with_inks_palettes_and_orientation(files):
    content, expected = as_pillow("CMYK", "TIFF")
    np.testing.assert_array_equal(files.read(content, "tif"), np.asarray(expected.convert("RGB")))
    content, expected = as_pillow("P", "TIFF")
    np.testing.assert_array_equal(files.read(content, "tif"), np.asarray(expected.convert("RGB")))
    found = files.read(content, "tif", codec="image:palette=index")
    np.testing.assert_array_equal(found, np.asarray(expected))
    content = written(image_of("RGB"), "TIFF", tiffinfo={274: 6})
    turned = image_of("RGB").transpose(Image.Transpose.ROTATE_270)
    np.testing.assert_array_equal(files.read(content, "tif"), np.asarray(turned))
    content = written(Image.fromarray(smooth(40, 50)), "TIFF", compression="jpeg", quality=95)
    expected = np.asarray(Image.open(io.BytesIO(content)))
    assert_alike(files.read(content, "tif"), expected, "JPEG")


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("lossless", [True, False])
def test_webp_is_pillows(files, mode, lossless):
    image = Image.fromarray(smooth(30, 41, 4)).convert(mode)
    content = written(image, "WEBP", lossless=lossless)
    expected = np.asarray(Image.open(io.BytesIO(content)))
    assert_alike(files.read(content, "webp"), expected, "PNG" if lossless else "WEBP")
    for orientation in (3, 6):
        exif = Image.Exif()
        exif[0x0112] = orientation
        content = written(image, "WEBP", lossless=lossless, exif=exif.tobytes())
        expected = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(content))))
        assert_alike(files.read(content, "webp"), expected, "PNG" if lossless else "WEBP")


@pytest.mark.parametrize("kind", ["WEBP", "GIF"])
def test_of_animations_the_first_picture_is_read(files, kind):
    frames = [Image.fromarray(smooth(20, 30) // step) for step in (1, 2, 3)]
    content = written(frames[0], kind, save_all=True, append_images=frames[1:])
    expected = Image.open(io.BytesIO(content)).convert("RGB")
    assert_alike(files.read(content, kind.lower()), np.asarray(expected), kind)


@pytest.mark.parametrize("interlace", [0, 1])
def test_gif_is_pillows(files, interlace):
    content, expected = as_pillow("P", "GIF", interlace=interlace)
    assert expected.mode == "P"
    np.testing.assert_array_equal(files.read(content, "gif"), np.asarray(expected.convert("RGB")))
    found = files.read(content, "gif", codec="image:palette=index")
    np.testing.assert_array_equal(found, np.asarray(expected))
    content, expected = as_pillow("P", "GIF", interlace=interlace, transparency=2)
    np.testing.assert_array_equal(files.read(content, "gif"), np.asarray(expected.convert("RGBA")))
    grays = Image.fromarray(np.arange(256, dtype=np.uint8).reshape(8, 32))
    content = written(grays, "GIF", interlace=interlace)
    np.testing.assert_array_equal(files.read(content, "gif"), np.asarray(grays))


@pytest.mark.parametrize("mode", ["1", "L", "RGB", "RGBA"])
def test_bmp_is_pillows(files, mode):
    content, expected = as_pillow(mode, "BMP")
    np.testing.assert_array_equal(files.read(content, "bmp"), np.asarray(expected))


def test_bmp_with_palettes_and_runs(files):
    content, expected = as_pillow("P", "BMP")
    np.testing.assert_array_equal(files.read(content, "bmp"), np.asarray(expected.convert("RGB")))
    found = files.read(content, "bmp", codec="image:palette=index")
    np.testing.assert_array_equal(found, np.asarray(expected))
    # A run, a row's end, numbers as they are, a leap, the end; rows from below.
    runs8 = bytes([3, 1, 0, 0, 0, 3, 2, 3, 1, 0, 0, 0, 0, 2, 1, 0, 1, 2, 0, 0, 0, 1])
    runs4 = bytes([3, 0x12, 0, 0, 0, 4, 0x23, 0x10, 0, 0, 0, 2, 1, 0, 1, 0x20, 0, 0, 0, 1])
    above = [[0, 2, 0, 0, 0], [2, 3, 1, 0, 0]]
    for bits, runs, below in [(8, runs8, [1, 1, 1, 0, 0]), (4, runs4, [1, 2, 1, 0, 0])]:
        palette = b"".join(bytes([i * 9 % 256, i * 5 % 256, i, 0]) for i in range(1 << bits))
        begin = 54 + len(palette)
        header = struct.pack(
            "<IiiHHIIiiII", 40, 5, 3, 1, bits, 3 - bits // 4, len(runs), 0, 0, 0, 0
        )
        head = struct.pack("<2sIHHI", b"BM", begin + len(runs), 0, 0, begin)
        content = head + header + palette + runs
        found = files.read(content, "bmp", codec="image:palette=index")
        np.testing.assert_array_equal(found, [*above, below])


@pytest.mark.parametrize("masks", [(0xF800, 0x7E0, 0x1F), (0x7C00, 0x3E0, 0x1F)])
def test_bmp_with_masks(files, masks):
    rows = np.random.default_rng(3).integers(0, 65536, (4, 6)).astype("<u2").tobytes()
    header = struct.pack("<IiiHHIIiiII", 40, 6, 4, 1, 16, 3, len(rows), 0, 0, 0, 0)
    head = struct.pack("<2sIHHI", b"BM", 66 + len(rows), 0, 0, 66)
    content = head + header + struct.pack("<III", *masks) + rows
    expected = np.asarray(Image.open(io.BytesIO(content)))
    np.testing.assert_array_equal(files.read(content, "bmp"), expected)


def test_kinds_that_are_not_read_are_named(files):
    for name, content in [("AVIF", b"\0\0\0\x20ftypavif\0\0"), ("JPEG XL", b"\xff\x0a\0\0")]:
        with pytest.raises(forebay.Error, match=f"{name} images are not read.*decode=False"):
            files.read(content, codec="image")
