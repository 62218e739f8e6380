"""Tensors, data sets for DataLoader, and gradients."""

import numpy as np
import pytest
from conftest import SAMPLES, run_ranks

torch = pytest.importorskip("torch")

import forebay  # noqa: E402
import forebay.torch  # noqa: E402


def test_batches_are_tensors_over_the_same_memory(images):
    path, pixels, labels = images
    for batch in forebay.torch.Loader(path, batch_size=16):
        assert isinstance(batch["image"], torch.Tensor)
        ids = batch["sample"].numpy()
        np.testing.assert_array_equal(batch["image"].numpy(), pixels[ids])
        np.testing.assert_array_equal(batch["label"].numpy(), labels[ids])
    batch = next(iter(forebay.Loader(path, batch_size=16)))
    tensors = forebay.torch.as_tensors(batch)
    assert tensors["image"].data_ptr() == batch["image"].ctypes.data


def test_unsigned_integers_become_wider(data):
    import h5py

    path = data / "unsigned.h5"
    with h5py.File(path, "w") as file:
        for kind in ("u2", "u4", "u8"):
            file[kind] = np.arange(20, dtype=kind)
    batch = next(iter(forebay.torch.Loader(str(path), batch_size=20, order="sequential")))
    assert batch["u2"].dtype == torch.int32
    assert batch["u4"].dtype == torch.int64
    assert batch["u8"].tolist() == list(range(20))


def test_one_line_from_a_dataloader(images):
    """The same loop over torch's DataLoader and over ours."""
    path, pixels, labels = images
    dataset = torch.utils.data.TensorDataset(torch.from_numpy(pixels), torch.from_numpy(labels))

    def total(loader):
        return sum(int(batch[0].sum()) * 1 + int(batch[1].sum()) for batch in loader)

    theirs = total(torch.utils.data.DataLoader(dataset, batch_size=7, shuffle=True))
    loader = forebay.torch.Loader(path, batch_size=7, end="exact")
    ours = total((b["image"], b["label"]) for b in loader)
    assert ours == theirs


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
def test_workers_do_not_multiply_the_data(numbers, workers):
    dataset = forebay.torch.IterableDataset(
        numbers, batch_size=16, codec="raw", schema="x:i64[]", end="exact"
    )
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=workers)
    with pytest.warns(UserWarning) if workers > 4 else _nothing():
        batches = [batch["x"].tolist() for batch in loader]
    assert len(batches) == -(-SAMPLES // 16)
    assert sorted(i for batch in batches for i in batch) == list(range(SAMPLES))


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def test_a_sampler_gives_what_a_loader_gives(numbers):
    for ranks in ((0, 1), (1, 3)):
        sampler = forebay.torch.Sampler(SAMPLES, 16, seed=2, ranks=ranks)
        if ranks[1] > 1:
            first, second = list(sampler), list(sampler)
            assert len(first) == len(second) == len(sampler)
            assert first != second
            continue
        loader = forebay.Loader(numbers, batch_size=16, seed=2, decode=False)
        for _ in range(2):
            assert list(sampler) == [i for b in loader for i in b["sample"].tolist()]
        sampler.set_epoch(0)
        loader.set_epoch(0)
        assert list(sampler) == [i for b in loader for i in b["sample"].tolist()]


def test_a_state_goes_through_torch_save(numbers, tmp_path):
    loader = forebay.torch.Loader(numbers, batch_size=16, decode=False)
    batches = iter(loader)
    seen = [next(batches)["sample"].tolist() for _ in range(5)]
    torch.save(loader.state_dict(), tmp_path / "state.pt")
    rest = [b["sample"].tolist() for b in batches]
    resumed = forebay.torch.Loader(numbers, batch_size=16, decode=False)
    resumed.load_state_dict(torch.load(tmp_path / "state.pt"))
    assert [b["sample"].tolist() for b in resumed] == rest
    assert len(seen) + len(rest) == len(loader)


TRAIN = """
import sys, torch, forebay.torch as ft
torch.manual_seed(ft.synchronizer(strategy=sys.argv[2]).ranks.rank)
model = torch.nn.Sequential(
    torch.nn.Flatten(), torch.nn.Linear(192, 16), torch.nn.Tanh(), torch.nn.Linear(16, 10))
unused = torch.nn.Linear(3, 3)
parameters = list(model.named_parameters())
parameters += [(f"unused.{n}", p) for n, p in unused.named_parameters()]
ft.broadcast_parameters(parameters)
optimizer = ft.DistributedOptimizer(
    torch.optim.SGD([p for _, p in parameters], 0.05), parameters, backward_passes_per_step=2)
loader = ft.Loader(sys.argv[1], global_batch_size=8, end="drop")
losses = []
for epoch in range(2):
    for batch in loader:
        x = batch["image"].float() / 255
        y = batch["label"].long() % 10
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        losses.append(loss.detach())
        if len(losses) % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
whole = torch.cat([p.detach().flatten() for _, p in parameters])
other = ft.allreduce(whole, "check", "max")
assert torch.equal(whole, other), "ranks have come apart"
mean = ft.allreduce(torch.stack(losses).mean(), "loss")
if loader.ranks.rank == 0:
    print("loss", float(mean), float(whole.sum()))
"""


@pytest.mark.parametrize("strategy", ["topo", "negotiate"])
def test_ranks_train_as_one(images, script, strategy):
    path, _, _ = images
    script = script(TRAIN)

    def loss(ranks):
        lines = run_ranks(ranks, script, path, strategy).stdout.splitlines()
        return [float(x) for x in next(x for x in lines if x.startswith("loss")).split()[1:]]

    np.testing.assert_allclose(loss(2), loss(1), rtol=1e-4)


def test_mistakes_of_the_optimizer_are_told(script, images):
    text = """
import torch, forebay.torch as ft
model = torch.nn.Linear(2, 2)
optimizer = ft.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1))
model(torch.ones(1, 2)).sum().backward()
try:
    optimizer.zero_grad()
except ValueError as error:
    print(error)
try:
    model(torch.ones(1, 2)).sum().backward()
except ValueError as error:
    print(error)
optimizer.step()
print("param_groups", len(optimizer.param_groups))
"""
    out = run_ranks(1, script(text)).stdout
    assert "being summed" in out
    assert "more than 1 times" in out
    assert "param_groups 1" in out


def test_summing_needs_connected_ranks(script):
    text = """
import forebay, forebay.torch
try:
    forebay.torch.synchronizer("env")
except forebay.UsageError as error:
    print(error)
"""
    out = run_ranks(2, script(text), launcher="torchrun").stdout
    assert out.count("not connected") == 2


def test_epochs_differ_also_with_new_workers(numbers):
    dataset = forebay.torch.IterableDataset(
        numbers, batch_size=16, codec="raw", schema="x:i64[]", end="exact"
    )
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1)
    assert len(loader) == len(dataset)  # opens a loader, which the worker must not use
    epochs = [[batch["x"].tolist() for batch in loader] for _ in range(3)]
    assert epochs[0] != epochs[1]
    assert epochs[1] != epochs[2]
    dataset.set_epoch(1)
    assert [batch["x"].tolist() for batch in loader] == epochs[1]


def test_what_is_on_the_way_to_a_device_was_not_yielded(numbers, monkeypatch):
    """The generator for CUDA, with its streams replaced by nothing."""
    from contextlib import nullcontext

    from forebay.torch import _tensors

    class Stream:
        def __init__(self, *_):
            pass

        def wait_stream(self, _):
            pass

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())
    monkeypatch.setattr(_tensors, "_sent", lambda batch, *_: batch)
    options = {"batch_size": 16, "decode": False}
    whole = [b["sample"].tolist() for b in forebay.Loader(numbers, **options)]
    for stop in (0, 4, len(whole) - 1):
        loader = forebay.torch.Loader(numbers, device="cuda", **options)
        seen = []
        for batch in loader:
            seen.append(batch["sample"].tolist())
            if len(seen) > stop:
                state = loader.state_dict()
                break
        assert loader.state_dict() == state
        resumed = forebay.Loader(numbers, **options)
        resumed.load_state_dict(state)
        if stop < len(whole) - 1:
            assert seen + [b["sample"].tolist() for b in resumed] == whole


def test_optimizers_are_optimizers(script):
    text = """
import copy, torch, forebay.torch as ft
model = torch.nn.Linear(2, 1, bias=False)
torch.nn.init.zeros_(model.weight)
rank = ft.synchronizer().ranks.rank
optimizer = ft.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), 1.0), dict(model.named_parameters()), reduction="sum")
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
extra = torch.nn.Parameter(torch.zeros(1))
optimizer.add_param_group({"params": [extra], "lr": 1.0})
(model(torch.full((1, 2), rank + 1.0)).sum() + extra.sum()).backward()
optimizer.synchronize()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9)
optimizer.step()
schedule.step()
assert model.weight.tolist() == [[-3.0, -3.0]], model.weight  # once, 1 + 2
assert extra.tolist() == [-2.0], extra
saved = optimizer.state_dict()
optimizer.load_state_dict(saved)
copy.copy(optimizer)
try:
    ft.broadcast_parameters(optimizer.state_dict())
except ValueError:
    print("fine", flush=True)
"""
    assert run_ranks(2, script(text)).stdout.count("fine") == 2


def test_models_optimizers_and_objects_are_told_to_all(script):
    text = """
import torch, forebay.torch as ft
rank = ft.synchronizer().ranks.rank
torch.manual_seed(rank)
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
model.register_buffer("mask", torch.tensor([rank == 1, True, False]))  # 3 bytes: no whole word
model.register_buffer("empty", torch.empty(0))
model.register_buffer("strided", torch.full((2, 3), float(rank)).t())
model.register_buffer("complex", torch.full((), 1j * rank))
ft.broadcast_parameters(model.state_dict(), root_rank=1)
assert model.mask.tolist() == [True, True, False] and model.strided.sum() == 6, model.mask
assert model.complex == 1j
inner = torch.optim.Adam(model.parameters(), lr=0.1 * (rank + 1), amsgrad=True)
if rank == 1:  # as after loading a file: others have no state yet
    for _ in range(3):
        model(torch.rand(5, 3)).sum().backward()
        inner.step()
        inner.zero_grad()
for optimizer in (inner, ft.DistributedOptimizer(inner, model.named_parameters())):
    ft.broadcast_optimizer_state(optimizer, root_rank=1)
ft.broadcast_parameters(model.state_dict(), root_rank=1)
assert inner.param_groups[0]["lr"] == 0.2
state = inner.state_dict()["state"]
assert len(state) == 6 and all(float(each["step"]) == 3 for each in state.values()), state
sums = torch.stack([each["exp_avg_sq"].sum() + each["max_exp_avg_sq"].sum()
                    for each in state.values()])
assert torch.equal(ft.allreduce(sums, "check", "max"), sums) and sums[0] > 0
inner.step()

for value in ({"rank": rank, "list": [1, "two", None]}, b"", None, "x" * 100_001, (), 1 << 70):
    told = ft.broadcast_object(value, 1)
    if isinstance(value, dict):
        assert told.pop("rank") == 1
        value.pop("rank", None)
    assert told == value and type(told) is type(value)
for wrong, root in ((lambda: 0, 1), (0, 2), (0, -1)):
    try:
        ft.broadcast_object(wrong, root)
    except ValueError as error:
        print("told:", error, flush=True)
try:
    ft.broadcast_parameters([*model[0].named_parameters(), *model[2].named_parameters()])
except ValueError as error:
    print("told:", error, flush=True)
# One write: the ranks share a pipe.
print(f"after {ft.broadcast_object(rank, 0)}\\n", end="", flush=True)
"""
    out = run_ranks(2, script(text)).stdout
    assert out.count("two of the parameters are called weight") == 2
    assert out.count("object of rank 1 cannot be pickled") == 2
    assert out.count("root_rank is ") == 4
    assert out.count("after 0") == 2
