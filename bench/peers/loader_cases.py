"""The cases of bench/peers/loaders.py: what is stored, how it is delivered, and to whom."""

import dataclasses

BATCH = 256


@dataclasses.dataclass(frozen=True)
class Case:
    """One table of the results."""
    name: str
    data: str  # small, large or jpeg
    title: str
    shuffled: bool = True
    cold: bool = False
    batch: int = BATCH
    most: int = 0  # samples of a run; 0: whole epochs, as many as fit into the time
    limits: tuple = ()  # bulk_read's words, of which the best tells what the machine gives at most


#: Warm: threads that copy out of a mapping into memory of a batch's size. Cold: requests in flight
#: past the page cache and through it, at random places or one behind the other.
_SMALL_COPIES = tuple(("copy", threads, "4096", "1048576") for threads in ("1", "2"))
_LARGE_COPIES = tuple(("copy", threads, "196608", "6291456") for threads in ("1", "2", "4"))
_RANDOM = tuple(("uring", depth, "4096", "8388608", "cold", "random=8192", *more)
                for depth in ("32", "128") for more in (("direct",), ()))
_LARGE_RANDOM = (*(("uring", depth, "196608", "67108864", "cold", "random=1536", *more)
                   for depth in ("16", "64") for more in (("direct",), ())),
                 ("pread", "16", "196608", "67108864", "cold", "random=1536"))
_FORWARD = (*(("plain", threads, "1048576", "67108864", "cold") for threads in ("1", "4", "16")),
            ("uring", "16", "1048576", "67108864", "cold", "direct"))

CASES = (
    Case("small-sequential", "small", "3,072-byte images, sequential, warm", shuffled=False,
         limits=_SMALL_COPIES),
    Case("small-shuffled", "small", "3,072-byte images, shuffled, warm", limits=_SMALL_COPIES),
    Case("small-shuffled-cold", "small", "3,072-byte images, shuffled, cold", cold=True,
         most=8_192, limits=_RANDOM),
    Case("large-shuffled", "large", "192 KiB arrays, shuffled, warm", batch=32,
         limits=_LARGE_COPIES),
    Case("large-sequential-cold", "large", "192 KiB arrays, sequential, cold", shuffled=False,
         cold=True, batch=32, most=1_536, limits=_FORWARD),
    Case("large-shuffled-cold", "large", "192 KiB arrays, shuffled, cold", cold=True, batch=32,
         most=1_536, limits=_LARGE_RANDOM),
    Case("jpeg", "jpeg", "JPEG 500x375, random-resized-crop to 224, normalized float32, shuffled, "
         "warm", batch=64),
)

#: Shapes and numbers of samples; --quick divides the numbers by 16.
DATA = {"small": ((3, 32, 32), 24_576), "large": ((3, 256, 256), 1_536), "jpeg": (None, 512)}

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
SIDE = 224

RAW = ("small", "large")
#: Each peer: the virtual environment it runs in, and the data that it has code for. A name ends in
#: the number of its worker processes, where it has some.
PEERS = {
    "limit": ("forebay", RAW),
    "forebay one core": ("forebay", RAW),
    "forebay": ("forebay", ("small", "large", "jpeg")),
    "forebay-tar": ("forebay", ("small",)),
    "forebay-tfrecord": ("forebay", ("small",)),
    "py-lmdb 0": ("torch", ("small", "large", "jpeg")),
    "py-lmdb 2": ("torch", ("small", "large", "jpeg")),
    "py-lmdb 4": ("torch", ("small", "large", "jpeg")),
    "py-lmdb-each 0": ("torch", RAW),
    "py-lmdb-each 4": ("torch", RAW),
    "h5py 0": ("torch", RAW),
    "h5py 2": ("torch", RAW),
    "h5py 4": ("torch", RAW),
    "webdataset 2": ("webdataset", ("small", "large", "jpeg")),
    "tf.data": ("tensorflow", ("small", "large", "jpeg")),
    "streaming 2": ("streaming", ("small", "large", "jpeg")),
    "grain": ("grain", RAW),
    "spdl": ("spdl", RAW),
    "ffcv": ("ffcv", ("small", "large", "jpeg")),
}

#: What each environment gets from PyPI, beside Debian's torch, torchvision, h5py, lmdb and PIL.
#: Each is one of its own: what they need of NumPy and protobuf differs.
PACKAGES = {
    "forebay": (),
    "torch": (),
    "webdataset": ("webdataset",),
    "tensorflow": ("tensorflow-cpu",),
    "streaming": ("mosaicml-streaming",),
    "grain": ("grain", "array-record"),
    "spdl": ("spdl",),
    "ffcv": ("ffcv", "numpy<2", "opencv-python<4.11"),  # as Debian's torch wants NumPy
}

#: Where a part of the data has been left out: cold reading by those whose files are read forward,
#: and by more than one number of workers, says nothing more.
NOT_COLD = ("forebay one core", "webdataset 2", "h5py 2", "h5py 4", "py-lmdb 2", "py-lmdb-each 0")


def peers_of(case):
    return [peer for peer, (_, data) in PEERS.items()
            if case.data in data and not (case.cold and peer in NOT_COLD)]


def bytes_of(data):
    """Of one sample as it was stored, in whole pages."""
    channels, height, width = DATA[data][0]
    return -(-channels * height * width // 4096) * 4096


def workers_of(peer):
    last = peer.split()[-1]
    return int(last) if last.isdigit() else 0
