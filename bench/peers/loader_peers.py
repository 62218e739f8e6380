"""The loaders: for each, a function that opens its data and gives epochs of (labels, images).

open_peer(peer, case, folder) -> epoch(number) -> iterator of (labels int32 [b], images)

Images are uint8 [b, ...] as they were stored, or for JPEG files float32 [b, 3, 224, 224]. All is
written as well as its documentation tells to: batches are put together at once, by as few Python
calls as the library allows.
"""

import os
import random

import numpy

import loader_cases
import loader_readers


def _forebay(case, folder, _, files="lmdb", image="image", label="label", **options):
    import forebay
    options |= {"order": "shuffled" if case.shuffled else "sequential", "end": "exact"}
    if case.data == "jpeg":
        mean, std = (":".join(map(str, each)) for each in (loader_cases.MEAN, loader_cases.STD))
        options["transform"] = (f"rgb,random-resized-crop={loader_cases.SIDE},to-float,"
                                f"normalize={mean}/{std}")
    loader = forebay.Loader(os.path.join(folder, files), case.batch, **options)

    def epoch(_):
        for batch in loader:
            yield batch[label].reshape(-1), batch[image]
    return epoch


def _forebay_tar(case, folder, _):
    """What webdataset reads."""
    return _forebay(case, folder, _, "webdataset/*.tar", "image.bin", "label.bin",
                    codec="image.bin=image:u8[3x32x32],label.bin=label:i32[1]")


def _forebay_tfrecord(case, folder, _):
    """What tf.data reads."""
    return _forebay(case, folder, _, "data.tfrecord", codec="image=image:u8[3x32x32]")


def _dataloader(case, reader, count, workers):
    """torch's DataLoader that fetches whole batches: a sampler of batches, no collating."""
    import torch
    from torch.utils import data
    torch.set_num_threads(1)
    everything = range(count)
    order = data.RandomSampler(everything) if case.shuffled else data.SequentialSampler(everything)
    loader = data.DataLoader(
        reader, batch_size=None, sampler=data.BatchSampler(order, case.batch, drop_last=False),
        num_workers=workers, persistent_workers=workers > 0, collate_fn=_as_tensors)
    return _epochs_of(loader)


def _epochs_of(loader):
    """A DataLoader's batches of tensors as arrays."""
    def epoch(_):
        for labels, images in loader:
            yield labels.numpy(), images.numpy()
    return epoch


def _as_tensors(batch):
    import torch
    return tuple(torch.from_numpy(each) for each in batch)  # shared memory brings them to the loop


def _joined(values, shape):
    """One array of all values, copied once; writable, as torch wants it."""
    return numpy.frombuffer(bytearray().join(values), numpy.uint8).reshape(-1, *shape)


def _lmdb(case, folder, workers):
    return _dataloader(case, loader_readers.DatumReader(case, folder), _count(folder),
                       workers)


def _lmdb_each(case, folder, workers):
    """The same reader as DataLoader's own sampling and collating uses it."""
    import torch
    from torch.utils import data
    torch.set_num_threads(1)
    samples = loader_readers.EachSample(loader_readers.DatumReader(case, folder), _count(folder))
    loader = data.DataLoader(samples, case.batch,
                             shuffle=case.shuffled, num_workers=workers,
                             persistent_workers=workers > 0)
    return _epochs_of(loader)


def _hdf5(case, folder, workers):
    return _dataloader(case, loader_readers.Hdf5Reader(case, folder), _count(folder), workers)


def _count(folder):
    with open(os.path.join(folder, "count"), encoding="ascii") as file:
        return int(file.read())


def _webdataset(case, folder, workers):
    import webdataset
    from torch.utils import data
    shards = sorted(os.path.join(folder, "webdataset", name)
                    for name in os.listdir(os.path.join(folder, "webdataset")))
    decode = loader_readers.pil_transform() if case.data == "jpeg" else None
    shape = loader_cases.DATA[case.data][0]

    def together(samples):
        values = [sample["image.bin"] for sample in samples]
        labels = numpy.array([int.from_bytes(s["label.bin"], "little") for s in samples], "i4")
        if decode is not None:
            return labels, numpy.stack([decode(value) for value in values])
        return labels, _joined(values, shape)

    dataset = webdataset.WebDataset(shards, shardshuffle=len(shards) if case.shuffled else False,
                                    nodesplitter=None, workersplitter=webdataset.split_by_worker)
    if case.shuffled:
        dataset = dataset.shuffle(1000)
    dataset = dataset.batched(case.batch, collation_fn=together)
    if workers == 0:
        return lambda _: iter(dataset)
    loader = data.DataLoader(dataset, batch_size=None, num_workers=workers,
                             persistent_workers=True, collate_fn=_as_tensors)
    return _epochs_of(loader)


def _tensorflow(case, folder, _):
    import tensorflow as tf
    shape = loader_cases.DATA[case.data][0]
    features = {"image": tf.io.FixedLenFeature([], tf.string),
                "label": tf.io.FixedLenFeature([], tf.int64)}

    def parse(records):
        fields = tf.io.parse_example(records, features)
        labels = tf.cast(fields["label"], tf.int32)
        if shape is None:
            return labels, fields["image"]
        images = tf.io.decode_raw(fields["image"], tf.uint8)
        return labels, tf.reshape(images, [-1, *shape])

    dataset = tf.data.TFRecordDataset(os.path.join(folder, "data.tfrecord"))
    if case.shuffled:
        dataset = dataset.shuffle(min(10_000, _count(folder) // 4))
    dataset = dataset.batch(case.batch).map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    if shape is None:
        dataset = dataset.unbatch().map(
            lambda label, value: (label, loader_readers.tensorflow_transform(value)),
            num_parallel_calls=tf.data.AUTOTUNE).batch(case.batch)
    dataset = dataset.prefetch(tf.data.AUTOTUNE)
    return lambda _: dataset.as_numpy_iterator()


def _streaming(case, folder, workers):
    import streaming
    from torch.utils import data
    streaming.base.util.clean_stale_shared_memory()
    decode = loader_readers.pil_transform() if case.data == "jpeg" else None
    shape = loader_cases.DATA[case.data][0]
    dataset = streaming.StreamingDataset(local=os.path.join(folder, "mds"), shuffle=case.shuffled,
                                         batch_size=case.batch, shuffle_seed=1)

    def together(samples):
        labels = numpy.array([sample["label"] for sample in samples], numpy.int32)
        if decode is not None:
            images = numpy.stack([decode(sample["image"]) for sample in samples])
        else:
            images = _joined([sample["image"] for sample in samples], shape)
        return _as_tensors((labels, images))

    loader = data.DataLoader(dataset, batch_size=case.batch, num_workers=workers,
                             persistent_workers=workers > 0, collate_fn=together)
    return _epochs_of(loader)


def _grain(case, folder, _):
    import grain
    shape = loader_cases.DATA[case.data][0]
    source = grain.sources.ArrayRecordDataSource(os.path.join(folder, "data.arrayrecord"))

    def together(records):
        whole = numpy.frombuffer(b"".join(records), numpy.uint8).reshape(len(records), -1)
        labels = numpy.ascontiguousarray(whole[:, :4]).view(numpy.int32)[:, 0]
        return labels, whole[:, 4:].reshape(-1, *shape)

    def epoch(number):
        dataset = grain.MapDataset.source(source)
        if case.shuffled:
            dataset = dataset.shuffle(seed=number)
        return iter(dataset.batch(case.batch, batch_fn=together).to_iter_dataset())
    return epoch


def _spdl(case, folder, _):
    """Its pipeline of threads over py-lmdb, each batch by one call."""
    from spdl.pipeline import PipelineBuilder
    reader = loader_readers.DatumReader(case, folder)
    reader[[0]]
    count = _count(folder)

    def epoch(number):
        ids = list(range(count))
        if case.shuffled:
            random.Random(number).shuffle(ids)
        batches = [ids[first:first + case.batch] for first in range(0, count, case.batch)]
        threads = os.cpu_count()
        pipeline = (PipelineBuilder().add_source(batches)
                    .pipe(reader.__getitem__, concurrency=threads,
                          output_order="completion" if case.shuffled else "input")
                    .add_sink(3).build(num_threads=threads))
        with pipeline.auto_stop():
            yield from pipeline
    return epoch


def _ffcv(case, folder, _):
    from ffcv.fields.decoders import (IntDecoder, NDArrayDecoder,
                                      RandomResizedCropRGBImageDecoder)
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, ToTensor, ToTorchImage
    images = [NDArrayDecoder()]
    if case.data == "jpeg":
        mean, std = (255 * numpy.array(each) for each in (loader_cases.MEAN, loader_cases.STD))
        images = [RandomResizedCropRGBImageDecoder((loader_cases.SIDE, loader_cases.SIDE)),
                  NormalizeImage(mean, std, numpy.float32), ToTensor(), ToTorchImage()]
    order = OrderOption.RANDOM if case.shuffled else OrderOption.SEQUENTIAL
    loader = Loader(os.path.join(folder, "data.beton"), batch_size=case.batch, order=order,
                    num_workers=os.cpu_count(), os_cache=True, drop_last=False, seed=1,
                    pipelines={"image": images, "label": [IntDecoder()]})

    def epoch(_):
        for batch_images, labels in loader:
            yield numpy.asarray(labels)[:, 0], numpy.asarray(batch_images)
    return epoch


_OPEN = {"forebay": _forebay, "forebay-tar": _forebay_tar, "forebay-tfrecord": _forebay_tfrecord,
         "py-lmdb": _lmdb, "py-lmdb-each": _lmdb_each, "h5py": _hdf5,
         "webdataset": _webdataset, "tf.data": _tensorflow, "streaming": _streaming,
         "grain": _grain, "spdl": _spdl, "ffcv": _ffcv}


def open_peer(peer, case, folder):
    return _OPEN[peer.split()[0]](case, folder, loader_cases.workers_of(peer))


_MODULES = {"forebay-tar": "forebay", "forebay-tfrecord": "forebay",
            "py-lmdb": "torch.utils.data", "py-lmdb-each": "torch.utils.data",
            "h5py": "torch.utils.data", "tf.data": "tensorflow", "spdl": "spdl.pipeline",
            "ffcv": "ffcv.loader"}


def import_peer(peer):
    """What is imported before the clock starts: numpy too, which some import at the first batch."""
    import numpy  # noqa: F401
    name = peer.split()[0]
    __import__(_MODULES.get(name, name))
    if name == "webdataset":
        __import__("torch.utils.data")
