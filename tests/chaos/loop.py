"""The loop of a user in Python: writes what each rank gets as `forebay samples` does.

  loop.py DATASET OPTIONS FOLDER    OPTIONS: keyword arguments of forebay.Loader as JSON, and `epochs`

Each rank has a file of its own in FOLDER: launchers mix what ranks print.
"""

import json
import os
import sys

import archives_test
import forebay
import numpy as np


def bytes_of(value):
    return value if isinstance(value, bytes) else np.ascontiguousarray(value).tobytes()


def said_of(batch, index):
    fields = {
        name: bytes_of(values[index])
        for name, values in batch.items()
        if name not in ("sample", "padded")
    }
    if len(fields) == 1:
        (value,) = fields.values()
        return {"bytes": len(value), "xxh3": archives_test.digest(value)}
    return {
        "parts": {
            name: {"bytes": len(value), "xxh3": archives_test.digest(value)}
            for name, value in fields.items()
        }
    }


def main():
    open(os.path.join(sys.argv[3], f"started-{os.getpid()}"), "w").close()
    options = json.loads(sys.argv[2])
    epochs = options.pop("epochs")
    try:
        with (
            forebay.Loader(sys.argv[1], **options) as loader,
            open(os.path.join(sys.argv[3], f"lines-{os.getpid()}"), "w", encoding="ascii") as out,
        ):
            for epoch in range(epochs):
                for batch in loader:
                    lines = [
                        json.dumps({"epoch": epoch, "sample": int(sample), **said_of(batch, i)})
                        for i, sample in enumerate(batch["sample"])
                        if not batch["padded"][i]
                    ]
                    out.write("".join(line + "\n" for line in lines))
                    out.flush()
        # Nothing is left to do here but to end with the others.
        open(os.path.join(sys.argv[3], f"done-{os.getpid()}"), "w").close()
    except forebay.Error as error:
        sys.stderr.write(f"forebay: error: {error}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
