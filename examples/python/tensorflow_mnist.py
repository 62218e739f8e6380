"""Fashion-MNIST with Keras, whose batches come from a Forebay loader as a tf.data.Dataset.

forebay pack --from idx --split train /usr/share/datasets/fashion-mnist train.lmdb
forebay pack --from idx --split test /usr/share/datasets/fashion-mnist test.lmdb
python tensorflow_mnist.py train.lmdb test.lmdb
"""

import argparse

import forebay
import forebay.tf
import tensorflow as tf


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--steps", type=int, help="batches of an epoch (default: all)")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def batches(path, **options):
    """Images from 0 to 1, and labels: what fit() and evaluate() take."""
    return (
        forebay.tf.dataset(forebay.Loader(path, **options))
        .map(lambda batch: (tf.cast(batch["image"], tf.float32) / 255, batch["label"]))
        .prefetch(1)
    )


def main():
    options = parse_arguments()
    tf.keras.utils.set_random_seed(options.seed)
    train = batches(options.train, batch_size=options.batch_size, seed=options.seed)
    test = batches(options.test, batch_size=500, order="sequential", end="exact")
    if options.steps is not None:
        train = train.take(options.steps)
    model = tf.keras.Sequential(
        [
            tf.keras.Input((1, 28, 28)),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(128, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )
    model.compile(
        optimizer="adam",
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    # Each epoch is an iteration of the data set, hence a new order.
    model.fit(train, epochs=options.epochs, verbose=0)
    _, accuracy = model.evaluate(test, verbose=0)
    print(f"test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
