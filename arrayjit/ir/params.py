"""What a caller passes to a program."""

from __future__ import annotations

from typing import Literal, Union

from ..frozen import frozen
from .index import Symbol
from .tensor import Tensor

__all__ = ["Access", "ArrayParam", "IndexParam", "Param"]

Access = Literal["read", "write", "update", "merge", "journal"]


@frozen
class ArrayParam:
    """An array the caller passes: `write` ones hold nothing on entry and are wholly written.

    A `merge` one is a tensor of its own: merge buffer number `slot` of the stream that the program runs on,
    which must hold the values of `source`, where that is known. A journal is given by whoever launches the
    code: see `journal`.
    """

    tensor: Tensor
    access: Access
    source: Tensor | None = None
    slot: int = 0


@frozen
class IndexParam:
    """A static symbol: an int64 chosen at each launch."""

    symbol: Symbol


Param = Union[ArrayParam, IndexParam]
