"""Samples of LMDB and HDF5 by their numbers, a batch at a time, as fast as py-lmdb and h5py can; and
random-resized-crop and normalization of images, by torchvision and by TensorFlow."""

import io
import os

import numpy

import loader_cases


def pil_transform():
    """torchvision's, on images of PIL: encoded bytes to float32 [3, 224, 224]."""
    from PIL import Image
    from torchvision import transforms
    steps = transforms.Compose([
        transforms.RandomResizedCrop(loader_cases.SIDE),
        transforms.ToTensor(),
        transforms.Normalize(loader_cases.MEAN, loader_cases.STD)])

    def run(value):
        return steps(Image.open(io.BytesIO(value)).convert("RGB")).numpy()
    return run


def tensorflow_transform(value):
    """The same by TensorFlow's operations: only the part that is needed is decoded."""
    import tensorflow as tf
    side = loader_cases.SIDE
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(value), tf.zeros([1, 0, 4]), aspect_ratio_range=(3 / 4, 4 / 3),
        area_range=(0.08, 1.0), max_attempts=10, use_image_if_no_bounding_boxes=True)
    window = tf.concat([begin[:2], size[:2]], axis=0)
    image = tf.image.decode_and_crop_jpeg(value, window, channels=3)
    image = tf.image.resize(image, [side, side], method="bilinear") / 255
    image = (image - loader_cases.MEAN) / loader_cases.STD
    return tf.transpose(image, [2, 0, 1])


class DatumReader:
    """Samples of Datums in LMDB by their numbers, a batch at a time: one transaction a process, no
    copy of a value but the one into the batch. All Datums have the same shape, so the label is
    found without protobuf."""

    def __init__(self, case, folder):
        self._case = case
        self._path = os.path.join(folder, "lmdb")
        self._transaction = None
        self._shape = loader_cases.DATA[case.data][0]
        self._decode = pil_transform() if case.data == "jpeg" else None

    def _begin(self):
        import lmdb
        # Without the kernel's read-ahead where that would read in vain, as py-lmdb advises.
        environment = lmdb.open(self._path, readonly=True, lock=False,
                                readahead=not self._case.shuffled)
        self._transaction = environment.begin(buffers=True)
        value = self._transaction.get(b"00000000")
        self.head = value.nbytes
        if self._shape is not None:
            size = int(numpy.prod(self._shape))
            self.head = value.nbytes - size - 2  # the first has a label of one byte
            self._size = size

    def __getitem__(self, numbers):
        if self._transaction is None:
            self._begin()
        if self._decode is not None:
            return self._files(numbers)
        get, head, size = self._transaction.get, self.head, self._size
        images = numpy.empty((len(numbers), size), numpy.uint8)
        labels = numpy.empty(len(numbers), numpy.int32)
        for place, number in enumerate(numbers):
            value = get(b"%08d" % number)
            images[place] = numpy.frombuffer(value, numpy.uint8, size, head)
            labels[place] = _varint(value[head + size + 1:])
        return labels, images.reshape(len(numbers), *self._shape)

    def _files(self, numbers):
        images = numpy.empty((len(numbers), 3, loader_cases.SIDE, loader_cases.SIDE),
                             numpy.float32)
        labels = numpy.empty(len(numbers), numpy.int32)
        for place, number in enumerate(numbers):
            value = self._transaction.get(b"%08d" % number)
            size, length = _varint_and_length(value[1:])
            images[place] = self._decode(value[1 + length:1 + length + size])
            labels[place] = _varint(value[2 + length + size:])
        return labels, images


def _varint_and_length(memory):
    number = shift = 0
    for length, byte in enumerate(memory, 1):
        number |= (byte & 127) << shift
        if byte < 128:
            return number, length
        shift += 7
    raise ValueError("the Datum is cut")


def _varint(memory):
    return _varint_and_length(memory)[0]


class Hdf5Reader:
    """A batch of rows in one go: runs as slices, else one by one, which h5py does faster than a
    list of rows."""

    def __init__(self, case, folder):
        self._path = os.path.join(folder, "data.h5")
        self._case = case
        self._file = None

    def __getitem__(self, numbers):
        if self._file is None:
            import h5py
            self._file = h5py.File(self._path, rdcc_nbytes=0)
            self._images, self._labels = self._file["image"], self._file["label"][:]
        if not self._case.shuffled:
            part = slice(numbers[0], numbers[-1] + 1)
            return self._labels[part], self._images[part]
        images = numpy.empty((len(numbers), *self._images.shape[1:]), numpy.uint8)
        for place, number in enumerate(numbers):
            self._images.read_direct(images, numpy.s_[number], numpy.s_[place])
        return self._labels[numbers], images


class EachSample:
    """One sample at a time, as a data set class usually is written."""

    def __init__(self, reader, count):
        self._reader, self._count = reader, count

    def __len__(self):
        return self._count

    def __getitem__(self, number):
        labels, images = self._reader[[number]]
        return labels[0], images[0]
