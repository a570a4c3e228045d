"""What the numerical core takes for numbers, and how it refuses the rest."""

from __future__ import annotations

import datetime
from array import array as packed
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from youbot_dynamics.arrays import LARGEST, array, finite_vector, number, positive_time, real, scalar
from youbot_dynamics.errors import InputError, ModelError

GOOD = [1.0, -2.0, 3.0]
NUMBERS: dict[str, Any] = {
    "list": GOOD,
    "tuple": tuple(GOOD),
    "integers": np.array([1, -2, 3], dtype=np.int8),
    "single precision": np.array(GOOD, dtype=np.float32),
    "other byte order": np.array(GOOD, dtype=">f8"),
    "long double": np.array(GOOD, dtype=np.longdouble),
    "objects": np.array([1, Decimal(-2), Fraction(3)], dtype=object),
    "packed": packed("d", GOOD),
    "every second": np.repeat(GOOD, 2)[::2],
    "masked nowhere": np.ma.array(GOOD, mask=[False] * 3),
}
NONE: dict[str, Any] = {
    "masked": np.ma.array(GOOD, mask=[True, False, False]),
    "complex": np.array(GOOD) + 1j,
    "list of complex": [1.0, 2.0, 3j],
    "object complex": np.array([1.0, 2.0, 3j], dtype=object),
    "times": np.zeros(3, "m8[s]"),
    "dates": np.zeros(3, "M8[s]"),
    "date objects": [datetime.timedelta(1)] * 3,
    "texts": ["1", "2", "3"],
    "some text": [1.0, 2.0, "3"],
    "object text": np.array([1.0, 2.0, "3"], dtype=object),
    "bytes": [b"1", b"2", b"3"],
    "huge": [10**400] * 3,
    "unprintable": [10**5000] * 3,
    "ragged": [[1.0], [1.0, 2.0], [3.0]],
    "dictionary": {"x": 1.0},
    "record": np.zeros(3, dtype=[("x", float)]),
}


@pytest.mark.parametrize("check", [lambda x: array("q", x, (3,)), lambda x: finite_vector("q", x, 3)])
@pytest.mark.parametrize("value", NUMBERS.values(), ids=NUMBERS.keys())
def test_numbers_of_any_kind_are_read_as_they_are(value: Any, check: Any) -> None:
    found = check(value)
    assert type(found) is np.ndarray
    assert found.dtype == np.float64
    assert found.tolist() == GOOD


@pytest.mark.parametrize("check", [lambda x: array("q", x, (3,)), lambda x: finite_vector("q", x, 3)])
@pytest.mark.parametrize("value", NONE.values(), ids=NONE.keys())
@pytest.mark.filterwarnings("error")
def test_what_is_no_array_of_real_numbers_is_refused_by_name(value: Any, check: Any) -> None:
    with pytest.raises(InputError, match=r"^q: got .*; expected numbers of shape \(3,\)$") as caught:
        check(value)
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize("check", [lambda x: array("q", x, (3,)), lambda x: finite_vector("q", x, 3)])
@pytest.mark.parametrize("place", [0, 2])
@pytest.mark.parametrize("huge", [1e160, -1e300, np.inf, -np.inf, np.nan])
def test_a_number_that_gives_infinity_or_none_is_refused_by_its_place(check: Any, place: int, huge: float) -> None:
    wrong = np.array(GOOD)
    wrong[place] = huge
    for given in (wrong, wrong.tolist()):
        with pytest.raises(InputError, match=rf"^q\[{place}\]: got .*; expected a (finite number|number of at most)"):
            check(given)
    with pytest.raises(InputError, match="^x: got"):
        scalar("x", huge)


def test_the_largest_number_is_taken() -> None:
    assert array("q", [LARGEST, -LARGEST], (2,)).tolist() == [LARGEST, -LARGEST]
    assert scalar("x", -LARGEST) == -LARGEST


@pytest.mark.parametrize("value", [v for k, v in NONE.items() if k != "masked"], ids=[k for k in NONE if k != "masked"])
def test_an_array_with_gaps_holds_real_numbers_too(value: Any) -> None:
    with pytest.raises(InputError, match="^q: got"):
        real("q", value)
    assert np.isnan(real("q", [1.0, np.nan])[1])


@pytest.mark.parametrize(
    "value", [2, 2.0, np.float32(2.0), np.int64(2), np.array(2.0), Fraction(2), Decimal(2)], ids=repr
)
def test_a_constant_may_be_any_real_number(value: Any) -> None:
    found = number("mass", value, "kg", above=0.0)
    assert type(found) is float
    assert found == 2.0


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ("2", "'2'"),
        (b"2", "b'2'"),
        (bytearray(b"2"), "bytearray"),
        (True, "True"),
        (np.True_, "np.True_"),
        (2j, "2j"),
        (np.complex128(2.0), r"np.complex128\(2\+0j\)"),
        (np.complex64(2.0), r"np.complex64\(2\+0j\)"),
        (np.timedelta64(2, "s"), "np.timedelta64"),
        (10**400, "1000"),
        (10**5000, "a very long int"),
        (None, "None"),
        ([2.0, 3.0], r"\[2.0, 3.0\]"),
        (np.nan, "nan"),
        (np.inf, "inf"),
        (0.0, "0"),
    ],
    ids=lambda value: str(type(value).__name__),
)
@pytest.mark.filterwarnings("error")
def test_a_constant_that_is_no_real_number_is_refused_by_name(value: Any, got: str) -> None:
    with pytest.raises(ModelError, match=rf"^mass: got {got}.*; expected a finite number above 0 \[kg\]$"):
        number("mass", value, "kg", above=0.0)


def test_a_time_is_above_0_however_short() -> None:
    assert positive_time("step", 1e-9) == 1e-9
    for wrong in (0.0, -1.0):
        with pytest.raises(InputError, match=f"^step: got {wrong:g} s; expected a time above 0$"):
            positive_time("step", wrong)
