"""Forebay for TensorFlow: a ``tf.data.Dataset`` of a loader's batches, and DeepIO's front end.

>>> import forebay.tf
>>> batches = forebay.tf.dataset(forebay.Loader("train.lmdb", batch_size=256))

The second is that of the paper on DeepIO (Zhu et al. 2018, III-D): mini-batches of elements of one
fixed size, read by a TensorFlow operation in C++.

>>> forebay.tf.generate_seed(90, "seeds.json", samples=50_000, workers=4)
>>> index_array = forebay.tf.shuffle_rand(epoch, worker, "seeds.json")
>>> batch = forebay.tf.deepio_batch(index_array, 256, 3072, 1, ["images.bin"])
"""

from ._dataset import dataset
from ._deepio import deepio_batch
from ._seeds import generate_seed, shuffle_rand

__all__ = ["dataset", "deepio_batch", "generate_seed", "shuffle_rand"]
