"""What is known of the processor without LLVM is what LLVM knows."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from arrayjit import processor
from arrayjit.targets.host import CPUS


@pytest.fixture(autouse=True)
def anew():
    yield
    for told in (processor.features, processor.identity, processor._told):
        told.cache_clear()


def test_it_has_the_features_that_LLVM_says_it_has():
    known = llvm.get_host_cpu_features()
    for cpu in CPUS:
        for feature in cpu.features:
            assert (feature in processor.features()) == known.get(feature, False), feature


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_elsewhere_LLVM_is_asked(monkeypatch, platform):
    monkeypatch.setattr(processor.sys, "platform", platform)
    for told in (processor.features, processor.identity, processor._told):
        told.cache_clear()
    known = llvm.get_host_cpu_features()
    assert processor.features() == {name for name, there in known.items() if there}
    assert processor.identity().startswith(llvm.get_host_cpu_name())


ARM = """processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm aes
CPU implementer\t: 0x41
CPU part\t: 0xd0c

processor\t: 1
Features\t: other
"""


def test_of_an_ARM_processor_linux_tells_other_things(monkeypatch, tmp_path):
    (tmp_path / "cpuinfo").write_text(ARM)
    monkeypatch.setattr(processor, "_CPUINFO", str(tmp_path / "cpuinfo"))
    for told in (processor.features, processor.identity, processor._told):
        told.cache_clear()
    assert processor.features() == {"fp", "neon", "evtstrm", "aes"}
    assert processor.identity() == "0x41 0xd0c aes evtstrm fp neon"
