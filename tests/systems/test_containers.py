"""Limits of containers count as the machine's: in trees made up, and in real control groups."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from real_control_groups import limited_groups

from operating_system import machine
from operating_system.machine import cores, free_bytes, memory_limits, processor_quotas, total_bytes

GIGABYTE = 1 << 30


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where groups are found instead; ``own`` beside it says which are ours."""
    monkeypatch.setattr(machine, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(machine, "OWN_GROUPS", tmp_path / "own")
    return tmp_path / "groups"


def write_group(folder: Path, files: dict[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(f"{content}\n")


def memory_files(version: int, limit: object, used: int = 3000) -> dict[str, object]:
    if version == 2:
        statistics = "anon 5\ninactive_file 700"
        return {"memory.max": limit, "memory.current": used, "memory.stat": statistics}
    return {
        "memory.limit_in_bytes": limit,
        "memory.usage_in_bytes": used,
        "memory.stat": "rss 5\ninactive_file 1\ntotal_inactive_file 700",
    }


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("inner", [True, False])
def test_the_narrowest_limit_of_memory_counts(groups: Path, version: int, inner: bool) -> None:
    """Cached files that nobody uses are counted as free."""
    root = groups if version == 2 else groups / "memory"
    own = "0::/a/b\n" if version == 2 else "3:cpu:/x\n9:memory,other:/a/b\n"
    groups.with_name("own").write_text(own)
    limits = {"a": 5000 if inner else 4000, "a/b": 4000 if inner else 9000}
    for name, limit in limits.items():
        write_group(root / name, memory_files(version, limit))
    assert min(limit.left for limit in memory_limits()) == 4000 - 3000 + 700
    assert total_bytes() == 4000
    assert free_bytes() == 1700


def test_memory_above_which_a_group_is_slowed_down_counts_as_its_limit(groups: Path) -> None:
    groups.with_name("own").write_text("0::/a\n")
    write_group(groups / "a", {**memory_files(2, "max"), "memory.high": 3500})
    assert [(limit.most, limit.left) for limit in memory_limits()] == [(3500, 1200)]


@pytest.mark.parametrize("version", [1, 2])
def test_a_container_that_sees_its_group_as_the_root_is_limited(groups: Path, version: int) -> None:
    """Docker mounts the container's own group there, while the kernel names it from outside."""
    root = groups if version == 2 else groups / "memory"
    write_group(root, memory_files(version, 5000))
    groups.with_name("own").write_text(
        "0::/\n" if version == 2 else "7:memory:/docker/0123456789abcdef\n"
    )
    assert [limit.left for limit in memory_limits()] == [2700]


def test_without_limits_or_groups_the_machine_counts(
    groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = groups.with_name("own")
    for content in (None, "nonsense", "0::/../../x\n", "0::/a\n"):
        if content is not None:
            own.write_text(content)
        assert list(memory_limits()) == []
        assert list(processor_quotas()) == []
    write_group(groups / "a", {**memory_files(2, "max"), "cpu.max": "max 100000"})
    assert list(memory_limits()) == []
    assert list(processor_quotas()) == []
    # Version 1 writes the largest number that there is, and -1.
    write_group(groups / "memory" / "a", memory_files(1, (1 << 63) - 4096))
    write_group(groups / "cpu" / "a", {"cpu.cfs_quota_us": -1, "cpu.cfs_period_us": 100_000})
    own.write_text("4:memory:/a\n1:cpu,cpuacct:/a\n")
    assert list(processor_quotas()) == []
    assert total_bytes() == psutil.virtual_memory().total
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert cores() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("layout", ["2", "1", "1 with cpuacct", "2 beside 1"])
@pytest.mark.parametrize(
    ("quotas", "expected"), [((250_000,), 2), ((50_000,), 1), ((400_000, 150_000), 1)]
)
def test_the_quota_of_processors_counts(
    groups: Path,
    layout: str,
    quotas: tuple[int, ...],
    expected: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whole processors: the system stops a thread that the quota does not pay for."""
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda _: list(range(64)))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    controllers = "cpu,cpuacct" if "cpuacct" in layout else "cpu"
    root = groups if layout == "2" else groups / controllers
    folder = root
    for number, quota in enumerate(quotas):
        folder = folder / f"g{number}"
        if layout == "2":
            write_group(folder, {"cpu.max": f"{quota} 100000"})
        else:
            write_group(folder, {"cpu.cfs_quota_us": quota, "cpu.cfs_period_us": 100_000})
    name = "/" + folder.relative_to(root).as_posix()
    own = f"0::{name}\n" if layout == "2" else f"1:{controllers}:{name}\n"
    groups.with_name("own").write_text(own + ("0::/\n" if "beside" in layout else ""))
    assert cores() == expected
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert cores() == 1


def in_a_process(code: str, *before: str) -> list[int]:
    """The numbers that code prints in a process of its own."""
    environment = {name: value for name, value in os.environ.items() if "OMP" not in name}
    whole = "\n".join(("import os", *before, code))
    ran = subprocess.run(
        [sys.executable, "-c", whole], env=environment, check=True, capture_output=True, text=True
    )
    return [int(word) for word in ran.stdout.split()]


CORES = "from operating_system.machine import cores; print(cores())"
MEMORY = """
from operating_system.machine import free_bytes, total_bytes
block = bytearray(200 << 20)
print(total_bytes(), free_bytes())
"""


def test_a_process_on_one_processor_uses_one() -> None:
    one = min(os.sched_getaffinity(0))
    assert in_a_process(CORES, f"os.sched_setaffinity(0, [{one}])") == [1]


def join(files: list[Path]) -> list[str]:
    """Lines of Python that put a process into groups."""
    return [f"open({str(file)!r}, 'w').write(str(os.getpid()))" for file in files]


def test_a_real_limit_of_memory_counts() -> None:
    with limited_groups(memory_bytes=GIGABYTE) as files:
        most, free = in_a_process(MEMORY, *join(files))
    assert most == GIGABYTE
    # It holds a block of 200 MiB, which was touched.
    assert 600 << 20 < free < GIGABYTE - (200 << 20)


def test_a_real_quota_of_processors_counts() -> None:
    with limited_groups(processors=1.5) as files:
        assert in_a_process(CORES, *join(files)) == [1]
    assert in_a_process(CORES) == [len(os.sched_getaffinity(0))]
