"""An LMDB of text recognition as it is: image-000000001 with label-000000001, and num-samples.

    python text_recognition.py --make 200 words.lmdb     writes one by py-lmdb and PIL, as they come
    python text_recognition.py words.lmdb

Forebay makes each pair one sample of two fields; images are files of any width, labels are text.
They are decoded by a function here, and put together as a loss of connectionist temporal
classification (CTC) wants them: images padded to one width, labels behind each other with their
lengths. The network is small, and learns what a few epochs can teach it.
"""

import argparse
import io
import string

import forebay
import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import nn

ALPHABET = string.ascii_lowercase + string.digits
HEIGHT = 16
STEP = 4  # pixels of width for each output of the network


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("database")
    parser.add_argument("--make", type=int, metavar="N", help="only write N samples")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def make(path, count, seed):
    import lmdb

    rng = np.random.default_rng(seed)
    with lmdb.open(path, map_size=1 << 30) as env, env.begin(write=True) as txn:
        txn.put(b"num-samples", str(count).encode())
        for i in range(1, count + 1):
            word = "".join(rng.choice(list(ALPHABET), rng.integers(2, 9)))
            image = Image.new("L", (8 * len(word) + 8, HEIGHT), 255)
            ImageDraw.Draw(image).text((4, 2), word)
            file = io.BytesIO()
            image.save(file, "PNG")
            txn.put(f"image-{i:09d}".encode(), file.getvalue())
            txn.put(f"label-{i:09d}".encode(), word.encode())


def decode(parts):
    """One sample: its image as numbers from -1 (paper) to 1 (ink), its label as classes from 1."""
    image = Image.open(io.BytesIO(parts["image"])).convert("L")
    width = max(STEP, image.width * HEIGHT // image.height)
    pixels = np.asarray(image.resize((width, HEIGHT)), np.float32)
    text = bytes(parts["label"]).decode().lower()
    label = np.array([ALPHABET.index(c) + 1 for c in text if c in ALPHABET], np.int64)
    return {"image": 1 - pixels / 127.5, "label": label}


def collate(values):
    """Images in one array, as wide as the widest; labels and their lengths; widths of images."""
    first = values[0]
    if not isinstance(first, np.ndarray) or first.ndim == 0:
        return np.asarray(values)
    lengths = torch.tensor([value.shape[-1] for value in values])
    if first.ndim == 1:
        return torch.from_numpy(np.concatenate(values)), lengths
    padded = np.full((len(values), HEIGHT, int(lengths.max())), -1, np.float32)
    for row, value in zip(padded, values):
        row[:, : value.shape[1]] = value
    return torch.from_numpy(padded), lengths


class Reader(nn.Module):
    """Columns of pixels to classes: convolutions, then a recurrent layer over the width."""

    def __init__(self):
        super().__init__()
        self.columns = nn.Conv1d(HEIGHT, 64, kernel_size=8, stride=STEP, padding=2)
        self.recurrent = nn.GRU(64, 64, bidirectional=True, batch_first=True)
        self.classes = nn.Linear(128, len(ALPHABET) + 1)

    def forward(self, images):
        """Batches of images [b, height, width] to logarithms of probabilities [b, width, class]."""
        columns = torch.relu(self.columns(images)).transpose(1, 2)
        return self.classes(self.recurrent(columns)[0]).log_softmax(dim=2)


def main():
    options = parse_arguments()
    if options.make is not None:
        make(options.database, options.make, options.seed)
        return
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    loader = forebay.Loader(
        options.database,
        options.batch_size,
        seed=options.seed,
        end="exact",
        decode=decode,
        collate=collate,
        on_error="skip",
    )
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for epoch in range(options.epochs):
        losses = []
        for batch in loader:
            (images, widths), (labels, lengths) = batch["image"], batch["label"]
            output = model(images).transpose(0, 1)
            loss = nn.functional.ctc_loss(
                output, labels, widths // STEP, lengths, zero_infinity=True
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss))
        print(f"epoch {epoch}: loss {np.mean(losses):.3f} over {loader.samples} words")
    for sample, key, message in loader.skipped():
        print(f"left out: sample {sample}, {key}: {message}")


if __name__ == "__main__":
    main()
