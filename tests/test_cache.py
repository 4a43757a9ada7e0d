"""What is kept in files: found again by any process, never half of it, never too much, never in the way."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from arrayjit import cache

KEY = cache.key_for("a", 1)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "counters", cache.Counters())
    return tmp_path / "cache"


def test_what_was_remembered_is_recalled(folder):
    cache.remember("things", KEY, b"one\ntwo\0")
    assert cache.recall("things", KEY) == b"one\ntwo\0"
    assert cache.recall("others", KEY) is None
    assert list(folder.glob("*/*")) == [folder / "things" / KEY]
    assert cache.counters == cache.Counters(hits=1, misses=1, written=1)


def test_a_key_depends_on_every_part_and_on_nothing_else():
    assert cache.key_for("a", 1) == KEY
    assert len({KEY, cache.key_for("a1"), cache.key_for(1, "a"), cache.key_for("a", 1, "")}) == 4


DAMAGES = {
    "empty": lambda whole: b"",
    "cut off": lambda whole: whole[:-1],
    "longer": lambda whole: whole + b"\n",
    "a bit": lambda whole: whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:],
    "a bit of the checksum": lambda whole: whole[:20] + bytes([whole[20] ^ 1]) + whole[21:],
    "another format": lambda whole: whole.replace(b"arrayjit 2", b"arrayjit 1"),
    "foreign": lambda whole: b"\x7fELF" + whole,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_as_good_as_none_and_is_counted(folder, damage):
    cache.remember("things", KEY, b"what is kept")
    (path,) = folder.glob("things/*")
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert cache.recall("things", KEY) is None
    assert cache.counters.damaged == 1
    assert not path.exists()
    cache.remember("things", KEY, b"what is kept")
    assert cache.recall("things", KEY) == b"what is kept"


def test_whatever_bit_is_changed_and_wherever_it_ends_an_entry_is_damaged(folder):
    cache.remember("things", KEY, b"\0kept\n")
    (path,) = folder.glob("things/*")
    whole = path.read_bytes()
    flipped = [
        whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :]
        for place in range(len(whole))
        for bit in range(8)
    ]
    for damaged in [*flipped, *(whole[:length] for length in range(len(whole)))]:
        path.write_bytes(damaged)
        assert cache.recall("things", KEY) is None
    path.write_bytes(whole)
    assert cache.recall("things", KEY) == b"\0kept\n"


def test_an_entry_in_the_place_of_another_is_damaged(folder):
    other = cache.key_for("another")
    for kind, key in (("things", KEY), ("things", other), ("others", KEY)):
        cache.remember(kind, key, f"{kind} {key}".encode())
    (folder / "things" / KEY).write_bytes((folder / "things" / other).read_bytes())
    (folder / "others" / KEY).write_bytes((folder / "things" / KEY).read_bytes())
    assert [cache.recall(kind, KEY) for kind in ("things", "others")] == [None, None]
    assert cache.counters.damaged == 2
    assert cache.recall("things", other) is not None


def test_files_of_another_user_stay_and_are_in_nobodys_way(folder, monkeypatch):
    cache.remember("things", KEY, b"x")
    for name in (KEY, "partial-old"):
        (folder / "things" / name).write_bytes(b"damaged")
    os.utime(folder / "things" / "partial-old", (1, 1))

    def not_permitted(self, missing_ok=False):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "unlink", not_permitted)
    monkeypatch.setattr(cache, "_EVERY", 1)
    assert cache.recall("things", KEY) is None
    cache.remember("things", cache.key_for("another"), b"y")
    assert cache.verify() == (1, 0)
    assert cache.clear() == 0
    assert cache.contents().entries == {"things": 2}


def test_where_nothing_can_be_written_the_log_says_so_once(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("a file is no folder")
    monkeypatch.setenv("ARRAYJIT_CACHE_DIR", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            cache.remember("things", KEY, b"x")
            assert cache.recall("things", KEY) is None
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        f"nothing is kept in {tmp_path / 'file'}"
    ]
    assert cache.counters.refused == 3
    assert cache.contents() == cache.Contents(tmp_path / "file", {}, 0)


def test_a_full_disk_leaves_nothing_behind(folder, monkeypatch):
    def full(handle, mode):
        os.close(handle)
        return open("/dev/full", mode)

    monkeypatch.setattr(os, "fdopen", full)
    cache.remember("things", KEY, b"x")
    assert cache.recall("things", KEY) is None
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_nothing_waits_for_the_disk(folder, monkeypatch):
    def waits(handle):
        raise AssertionError

    monkeypatch.setattr(os, "fsync", waits)
    cache.remember("things", KEY, b"x")
    assert cache.recall("things", KEY) == b"x"


def test_with_no_room_allowed_nothing_is_written_or_read(folder, monkeypatch):
    cache.remember("things", KEY, b"x")
    monkeypatch.setenv("ARRAYJIT_CACHE_BYTES", "0")
    assert cache.recall("things", KEY) is None
    cache.remember("things", cache.key_for("another"), b"x")
    assert cache.contents().entries == {"things": 1}


def test_of_too_much_what_was_not_used_for_longest_goes(folder, monkeypatch):
    monkeypatch.setattr(cache, "_EVERY", 1)
    monkeypatch.setenv("ARRAYJIT_CACHE_BYTES", "10000")
    keys = [cache.key_for(number) for number in range(9)]
    for age, key in enumerate(keys):
        cache.remember("things", key, bytes(1000))
        os.utime(folder / "things" / key, (10_000 + age, 10_000 + age))
    assert cache.recall("things", keys[0]) is not None
    cache.remember("things", cache.key_for("one more"), bytes(1000))
    assert [cache.recall("things", key) is not None for key in keys] == [True, False, False, *[True] * 6]


def test_processes_look_at_the_folder_once_they_have_written_much_together(folder, monkeypatch):
    looks = []
    entries = cache._entries
    monkeypatch.setattr(cache, "_entries", lambda **partial: looks.append(1) or entries(**partial))
    monkeypatch.setattr(cache, "_EVERY", 1 << 20)
    writer = "from arrayjit import cache; cache.remember('things', cache.key_for({}), bytes(500_000))"
    cache.remember("things", KEY, bytes(5000))
    assert len(looks) == 1
    for number in range(2):
        subprocess.run([sys.executable, "-c", writer.format(number)], check=True)
        cache.remember("things", cache.key_for("more", number), bytes(10))
        assert len(looks) == 1
    cache.remember("things", cache.key_for("much"), bytes(50_000))
    assert len(looks) == 2


def test_what_a_killed_process_left_goes_in_time(folder, monkeypatch):
    cache.remember("things", KEY, b"x")
    left = [folder / "things" / f"partial-{name}" for name in ("old", "new")]
    for path in left:
        path.write_bytes(b"half of it")
    os.utime(left[0], (1, 1))
    monkeypatch.setattr(cache, "_EVERY", 1)
    cache.remember("things", cache.key_for("another"), b"y")
    assert [path.exists() for path in left] == [False, True]
    assert cache.contents().entries == {"things": 2}


def test_contents_verify_and_clear(folder):
    for number in range(3):
        cache.remember("things", cache.key_for(number), bytes(100))
    cache.remember("others", KEY, bytes(100))
    assert cache.contents().entries == {"things": 3, "others": 1}
    assert cache.contents().nbytes == sum(path.stat().st_size for path in folder.glob("*/*"))
    (folder / "others" / KEY).write_bytes(b"damaged")
    assert cache.verify() == (3, 1)
    assert cache.verify() == (3, 0)
    assert cache.clear() == 3
    assert cache.contents().entries == {}


WRITER = """
import sys
from arrayjit import cache
first = int(sys.argv[1])
for number in [*range(first, 50), *range(first)]:
    key = cache.key_for(number)
    content = str(number).encode() * 5000
    found = cache.recall("things", key)
    assert found in (None, content), number
    if found is None:
        cache.remember("things", key, content)
    assert cache.recall("things", key) == content
"""


def test_eight_processes_that_race_for_fifty_entries_read_whole_ones():
    racers = [subprocess.Popen([sys.executable, "-c", WRITER, str(6 * k)]) for k in range(8)]
    assert [racer.wait(timeout=300) for racer in racers] == [0] * 8
    assert cache.verify() == (50, 0)


KILLED = """
import itertools
from arrayjit import cache
for number in itertools.count():
    cache.remember("things", cache.key_for(number % 20), bytes([number % 256]) * 200_000)
    if number == 0:
        print("writing", flush=True)
"""


def test_a_process_that_is_killed_while_it_writes_leaves_whole_entries(folder):
    for attempt in range(5):
        with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(0.01 + 0.013 * attempt)
            writer.send_signal(signal.SIGKILL)
        good, bad = cache.verify()
        assert good > 0
        assert bad == 0


def test_the_command_line_shows_checks_and_clears(folder):
    cache.remember("things", KEY, b"x")

    def told(action):
        command = [sys.executable, "-m", "arrayjit", "cache", action]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert f"folder  {folder}" in told("stats")
    assert "things  1" in told("stats")
    assert told("verify") == "1 entries are good, 0 were damaged and are removed\n"
    assert told("clear") == "1 entries removed\n"
    assert cache.contents().entries == {}
