"""Words of texts of ours, spelled out in LLVM IR."""

from __future__ import annotations

import pytest

from arrayjit.runtime.words import spelled_out


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (
            "  %v = field ptr %row <SIZE>",
            ["  %at0 = getelementptr i8, ptr %row, i64 16", "  %v = load ptr, ptr %at0"],
        ),
        (
            "  %v = item i64 %list %i",
            ["  %at0 = getelementptr i64, ptr %list, i64 %i", "  %v = load i64, ptr %at0"],
        ),
        (
            "  put i64 %v in field %row <SIZE>",
            ["  %at0 = getelementptr i8, ptr %row, i64 16", "  store i64 %v, ptr %at0"],
        ),
        (
            "  put ptr @f in item %list %i",
            ["  %at0 = getelementptr ptr, ptr %list, i64 %i", "  store ptr @f, ptr %at0"],
        ),
        ("  if %none goto no", ["  br i1 %none, label %no, label %on0", "on0:"]),
        ("  unless %fits goto no", ["  br i1 %fits, label %on0, label %no", "on0:"]),
        ("  ret i64 <SIZE>", ["  ret i64 16"]),
    ],
)
def test_a_word_stands_for_instructions(text: str, meant: list[str]) -> None:
    assert spelled_out(text, {"SIZE": 16}).split("\n") == meant


def test_a_loop_goes_on_from_the_block_in_which_it_ends() -> None:
    text = """entry:
  each %i below %count over %row in %rows by <SIZE> else done
  unless %fits goto no
  again
done:"""
    meant = """entry:
  br label %each1
each1:
  %i = phi i64 [ 0, %entry ], [ %i.next, %on2 ]
  %row = phi ptr [ %rows, %entry ], [ %row.next, %on2 ]
  %i.end = icmp eq i64 %i, %count
  br i1 %i.end, label %done, label %on1
on1:
  br i1 %fits, label %on2, label %no
on2:
  %i.next = add i64 %i, 1
  %row.next = getelementptr i8, ptr %row, i64 16
  br label %each1
done:"""
    assert spelled_out(text, {"SIZE": 16}) == meant
