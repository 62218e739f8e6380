"""The same samples in the form that each loader wants. Made once, by `loader_worker.py make`.

Sample i is an image of random bytes, or a JPEG file, with the label i: so what is delivered tells
which sample it is, and can be checked.
"""

import functools
import io
import os
import struct

import loader_cases


def image(data, number):
    """The bytes of one image; the same everywhere."""
    import numpy
    shape = loader_cases.DATA[data][0]
    if shape is not None:
        return numpy.random.default_rng([7, number]).integers(0, 256, shape, numpy.uint8).tobytes()
    return _jpeg_file(number % 64)


@functools.lru_cache(maxsize=64)
def _jpeg_file(number):
    import numpy
    from PIL import Image
    rng = numpy.random.default_rng([8, number])
    small = Image.fromarray(rng.integers(0, 256, (24, 32, 3), numpy.uint8))
    picture = numpy.asarray(small.resize((500, 375), Image.BICUBIC)).astype(numpy.int16)
    picture = numpy.clip(picture + rng.integers(-9, 10, picture.shape), 0, 255).astype(numpy.uint8)
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "JPEG", quality=90)
    return out.getvalue()


def _varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def datum(data, value, label):
    """Caffe's: shape, bytes, label; for files the flag that they are encoded."""
    shape = loader_cases.DATA[data][0]
    head = b""
    for tag, extent in zip((b"\x08", b"\x10", b"\x18"), shape or ()):
        head += tag + _varint(extent)
    tail = b"" if shape else b"\x38\x01"
    return head + b"\x22" + _varint(len(value)) + value + b"\x28" + _varint(label) + tail


def make_lmdb(folder, data, count):
    import lmdb
    with lmdb.open(os.path.join(folder, "lmdb"), map_size=1 << 36) as environment:
        for first in range(0, count, 1000):
            with environment.begin(write=True) as transaction:
                for i in range(first, min(first + 1000, count)):
                    value = datum(data, image(data, i), i)
                    transaction.put(f"{i:08d}".encode(), value, append=True)


def make_hdf5(folder, data, count):
    import h5py
    import numpy
    shape = loader_cases.DATA[data][0]
    with h5py.File(os.path.join(folder, "data.h5"), "w") as file:
        images = file.create_dataset("image", (count, *shape), "u1")
        for i in range(count):
            images[i] = numpy.frombuffer(image(data, i), numpy.uint8).reshape(shape)
        file["label"] = numpy.arange(count, dtype=numpy.int32)


def make_webdataset(folder, data, count):
    import webdataset
    shards = os.path.join(folder, "webdataset")
    os.makedirs(shards, exist_ok=True)
    pattern = os.path.join(shards, "%04d.tar")
    with webdataset.ShardWriter(pattern, maxcount=max(count // 16, 1), verbose=0) as writer:
        for i in range(count):
            writer.write({"__key__": f"{i:08d}", "image.bin": image(data, i),
                          "label.bin": struct.pack("<i", i)})


def make_tfrecord(folder, data, count):
    import tensorflow as tf

    def bytes_feature(value):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))

    with tf.io.TFRecordWriter(os.path.join(folder, "data.tfrecord")) as writer:
        for i in range(count):
            label = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
            features = {"image": bytes_feature(image(data, i)), "label": label}
            writer.write(tf.train.Example(
                features=tf.train.Features(feature=features)).SerializeToString())


def make_streaming(folder, data, count):
    import streaming
    with streaming.MDSWriter(out=os.path.join(folder, "mds"),
                             columns={"image": "bytes", "label": "int"}) as writer:
        for i in range(count):
            writer.write({"image": image(data, i), "label": i})


def make_arrayrecord(folder, data, count):
    from array_record.python import array_record_module
    # One record a chunk: what its documentation advises for reading in random order.
    writer = array_record_module.ArrayRecordWriter(os.path.join(folder, "data.arrayrecord"),
                                                   "group_size:1,uncompressed")
    for i in range(count):
        writer.write(struct.pack("<i", i) + image(data, i))
    writer.close()


class _Numbered:
    """Samples by number, as FFCV's writer asks for them."""

    def __init__(self, data, count):
        self._data, self._count = data, count

    def __len__(self):
        return self._count

    def __getitem__(self, number):
        import numpy
        value, shape = image(self._data, number), loader_cases.DATA[self._data][0]
        if shape is not None:
            return numpy.frombuffer(value, numpy.uint8).reshape(shape), number
        from PIL import Image
        return numpy.asarray(Image.open(io.BytesIO(value))), number


def make_ffcv(folder, data, count):
    """Its JPEG files are encoded by FFCV itself, from the decoded images."""
    import numpy
    from ffcv.fields import IntField, NDArrayField, RGBImageField
    from ffcv.writer import DatasetWriter
    shape = loader_cases.DATA[data][0]
    images = (NDArrayField(numpy.dtype("uint8"), shape) if shape is not None else
              RGBImageField(write_mode="jpg", jpeg_quality=90))
    writer = DatasetWriter(os.path.join(folder, "data.beton"),
                           {"image": images, "label": IntField()}, num_workers=1)
    writer.from_indexed_dataset(_Numbered(data, count))


#: What an environment's peers read. Those without one of their own read the LMDB.
MAKERS = {"webdataset": make_webdataset, "tensorflow": make_tfrecord, "streaming": make_streaming,
          "grain": make_arrayrecord, "ffcv": make_ffcv}
FORMATS = {"webdataset": "webdataset", "tensorflow": "data.tfrecord", "streaming": "mds",
           "grain": "data.arrayrecord", "ffcv": "data.beton"}


def files_of(folder, peer):
    """The files that a peer reads."""
    environment = loader_cases.PEERS[peer][0]
    name = "data.h5" if peer.startswith("h5py") else FORMATS.get(environment, "lmdb")
    name = {"forebay-tar": "webdataset", "forebay-tfrecord": "data.tfrecord"}.get(peer, name)
    path = os.path.join(folder, name)
    if os.path.isfile(path):
        return [path]
    return [os.path.join(path, each) for each in sorted(os.listdir(path)) if each != "lock.mdb"]
