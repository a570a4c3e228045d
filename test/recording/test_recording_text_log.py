"""Text logs: delimiter and header are found, columns described, faults reported with their line."""

from __future__ import annotations

import hashlib
import math
import time
from pathlib import Path

import numpy as np
import pytest

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.bag import LogRecording
from youbot_dynamics.recording.text_columns import described_columns
from youbot_dynamics.recording.text_log import read_text_log

DESCRIPTION = "time:ms,_,command.x:rpm,measured.x:rad/s"


def write(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "log.txt"
    path.write_text(text, encoding=encoding, newline="")
    return path


def fault(path: Path, description: str) -> RecordingError:
    with pytest.raises(RecordingError) as caught:
        read_text_log(path, description)
    assert "\n" not in str(caught.value) and caught.value.remedy
    return caught.value


@pytest.mark.parametrize("delimiter", [";", ",", "\t", " ", "   ", " ; ", ", "])
@pytest.mark.parametrize("trailing", [False, True])
@pytest.mark.parametrize("header", ["", "t;a;b;c\n", "%% log of run 3\n% 1 time 2 x\n\n"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_delimiter_header_and_units_are_understood(
    tmp_path: Path, delimiter: str, trailing: bool, header: str, newline: str
) -> None:
    end = (delimiter if trailing else "") + newline
    rows = [["0", "text" if delimiter.strip() else "9", "60", "1.5"], ["500", "9", "-30", "2e0"]]
    log = read_text_log(
        write(tmp_path, header + "".join(delimiter.join(row) + end for row in rows) + newline), DESCRIPTION
    )
    np.testing.assert_allclose(log.time, [0.0, 0.5])
    np.testing.assert_allclose(log.command["x"], [2 * math.pi, -math.pi])
    np.testing.assert_allclose(log.measured["x"], [1.5, 2.0])
    assert dict(log.measured_position) == {}
    assert log.sha256 == hashlib.sha256(log.path.read_bytes()).hexdigest()


def test_columns_behind_the_last_name_are_not_read(tmp_path: Path) -> None:
    log = read_text_log(write(tmp_path, "0,1,words\n1,2,more\n"), "time,measured_position.arm_joint_1:deg")
    np.testing.assert_allclose(log.measured_position["arm_joint_1"], np.radians([1, 2]))


def test_arrays_are_read_only(tmp_path: Path) -> None:
    log = read_text_log(write(tmp_path, "0,1\n1,2\n"), "time,measured.x")
    with pytest.raises(ValueError, match="read-only"):
        log.time[0] = 3.0


def test_a_byte_order_mark_does_not_cost_the_first_line(tmp_path: Path) -> None:
    assert read_text_log(write(tmp_path, "0,1\n1,2\n", "utf-8-sig"), "time,measured.x").time.size == 2


def test_a_header_in_another_encoding_is_passed_over(tmp_path: Path) -> None:
    assert read_text_log(write(tmp_path, "t [\u00b5s],x\n0,1\n1,2\n", "latin-1"), "time:us,measured.x").time.size == 2


def test_nan_stands_for_a_value_that_was_not_measured(tmp_path: Path) -> None:
    log = read_text_log(write(tmp_path, "0,1,\n1,nan,2\n2,3,\n3,,4\n"), "time,measured.x,measured.y")
    assert np.isnan(log.measured["x"]).tolist() == [False, True, False, True]
    assert np.isnan(log.measured["y"]).tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("2;x;3", "'x' in column 2: '2;x;3'"),
        (";1;3", "'' in column 1: ';1;3'"),
        ("2", "'' in column 2: '2'"),
        ("nan;1;3", "nan as time in column 1: 'nan;1;3'"),
        ("2;inf;3", "an infinite value in column 2: '2;inf;3'"),
    ],
)
def test_a_bad_entry_is_reported_with_file_line_and_text(tmp_path: Path, row: str, says: str) -> None:
    path = write(tmp_path, f"t;a;b\n\n0;1;2\n1;2;3\n{row}\n3;4;5\n")
    error = fault(path, "time,command.x,measured.x")
    assert f"{path} line 5: got {says}" in str(error)


@pytest.mark.parametrize("time", ["1", "0.5"])
def test_time_that_does_not_increase_is_reported_with_its_line(tmp_path: Path, time: str) -> None:
    path = write(tmp_path, f"t,x\n0,1\n\n1,2\n{time},3\n")
    assert f"{path} line 5: got time {time} after 1" in str(fault(path, "time,measured.x"))


def test_rows_that_repeat_the_row_before_them_are_left_out(tmp_path: Path) -> None:
    rows = ["0,1,", "0.1,2,3", "0.1,2,3", "0.1,2,3", "0.2,nan,4", "0.2,nan,4", "0.3,5,6"]
    path = write(tmp_path, "t,x,y,note\n" + "".join(f"{row},{k}\n" for k, row in enumerate(rows)))
    log = read_text_log(path, "time,measured.x,measured.y")
    np.testing.assert_array_equal(log.time, [0.0, 0.1, 0.2, 0.3])
    np.testing.assert_array_equal(log.measured["x"], [1.0, 2.0, np.nan, 5.0])
    assert "line 4: got time 0.1 after 0.1" in str(fault(path, "time,measured.x,measured.y,command.x"))
    path = write(tmp_path, "x,y\n1,2\n1,2\n1,2\n")  # their times differ
    assert len(read_text_log(path, "measured.x,measured.y", 50.0).time) == 3


def test_milliseconds_at_1_khz_are_not_read_as_seconds(tmp_path: Path) -> None:
    rows = "".join(f"{1000 + k},0.1,{0.01 * k}\n" for k in range(20))
    path = write(tmp_path, f"t,x,m\n{rows}")
    assert "name its unit: time:ms" in str(fault(path, "time,command.x,measured.x"))
    for unit, period in (("ms", 1e-3), ("s", 1.0)):
        assert np.diff(read_text_log(path, f"time:{unit},command.x,measured.x").time) == pytest.approx(period)
    tracker = write(tmp_path, f"t,x,m\n{rows.replace(',0.1,', '.5,0.1,', 1)}")  # one a second, not on the second
    assert len(read_text_log(tracker, "time,command.x,measured.x").time) == 20


def test_columns_behind_the_described_ones_are_told(tmp_path: Path) -> None:
    path = write(tmp_path, "t,x,m,n,o\n0,1,2,3,4\n0.1,1,2,3,4\n")
    assert (
        "the 2 columns behind the first 3, which --columns describes, are not read"
        in described_columns(path, "time,command.x,measured.x").told
    )
    for whole in ("time,command.x,measured.x,_,_", "time=t,command.x=x,measured.x=m"):
        assert not described_columns(path, whole).told


def test_milliseconds_that_are_read_as_seconds_are_told_of_where_a_base_drives(tmp_path: Path) -> None:
    path = write(tmp_path, "t,x\n0,1\n10,2\n20,3\n500,4\n")
    assert "got 0 to 500 s, a line every 10 s" in str(fault(path, "time,measured.x"))
    assert "name its unit: time:ms" in str(fault(path, "time,command.wheel"))
    assert read_text_log(path, "time:ms,measured.x").time[-1] == pytest.approx(0.5)
    assert read_text_log(path, "time,temperature.motor").time[-1] == 500.0


def test_a_slow_log_of_a_base_is_read_where_its_unit_is_certain(tmp_path: Path) -> None:
    path = write(tmp_path, "t,x\n0,1\n1.01,2\n2.03,3\n")
    assert read_text_log(path, "time,measured_position.x").time[-1] == 2.03
    path = write(tmp_path, "t,x,T\n0,1,30\n10,2,31\n20,nan,32\n30,nan,32\n")
    assert read_text_log(path, "time:s,measured.x").time[-1] == 30.0
    assert read_text_log(path, "time,measured.x,temperature.motor").time[-1] == 30.0  # few lines have a speed
    path = write(tmp_path, "".join(f"2026-01-01 00:00:{second:02d},1\n" for second in range(0, 60, 5)))
    assert len(read_text_log(path, "time,measured.x").time) == 12


def test_more_names_than_columns_names_both_numbers(tmp_path: Path) -> None:
    text = str(fault(write(tmp_path, "t;x\n0;1\n1;2\n"), "time,command.x,measured.x"))
    assert "got 2 columns in line 2" in text and "at least 3 columns" in text


@pytest.mark.parametrize("text", ["", "only words\nand more\n", "t,x\n"])
def test_a_file_without_numbers_is_refused(tmp_path: Path, text: str) -> None:
    assert "no line of numbers" in str(fault(write(tmp_path, text), "time,measured.x"))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "none.csv") in str(fault(tmp_path / "none.csv", "time,measured.x"))
    fault(tmp_path, "time,measured.x")


@pytest.mark.parametrize(
    ("description", "says"),
    [
        ("time,measured.x:furlong", "one of rad, mrad, deg, turn"),
        ("time:rpm,measured.x", "one of s, ms, us, ns"),
        ("time,measured.x:ms", "got unit 'ms'"),
        ("time,measured.x:turn/0", "got unit 'turn/0'"),
        ("time,measured.x:two*rad", "got unit 'two*rad'"),
        ("time=t,measured.x", "NAME=HEADER for each column or for none"),
        ("time=,measured.x=x", "NAME=HEADER for each column or for none"),
        ("time,speed.x", "got 'speed.x'"),
        ("time,measured", "got 'measured'"),
        ("time.x,measured.x", "got 'time.x'"),
        ("time,measured.x,measured.x", "measured.x a second time"),
        ("command.x,measured.x", "no column time"),
        ("time,_", "only the time"),
        ("", "got ''"),
    ],
)
def test_a_wrong_description_names_what_is_possible(tmp_path: Path, description: str, says: str) -> None:
    assert says in str(fault(write(tmp_path, "0,1,2\n1,2,3\n"), description))


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        ("turn/4096", 2.0 * math.pi / 4096),
        ("rad/min", 1.0 / 60.0),
        ("rad/min/5", 1.0 / 300.0),
        ("-1*rad/s", -1.0),
        ("0.5*deg/2", math.pi / 720.0),
        ("1e-3*V", 1e-3),
        ("rpm", math.pi / 30.0),
        ("deg/s", math.pi / 180.0),
        ("turn/s", 2.0 * math.pi),
        ("km/h", 1.0 / 3.6),
        *[(unit, 1e-2) for unit in ("cm", "cm/s")],
        *[(unit, 1e-3) for unit in ("mm", "mm/s", "mV", "mNm")],
        *[(unit, 1.0) for unit in ("rad", "rad/s", "m", "m/s", "A", "V", "Nm", "degC", "1")],
    ],
)
def test_units_may_be_scaled(tmp_path: Path, unit: str, factor: float) -> None:
    log = read_text_log(write(tmp_path, "0,1\n1,2\n"), f"time,measured_position.motor:{unit}")
    np.testing.assert_allclose(log.measured_position["motor"], [factor, 2.0 * factor], rtol=1e-15)


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("delimiter", [",", ";", " "])
@pytest.mark.parametrize("before", ["", "# a drive of the robot\n"])
def test_columns_are_found_by_the_names_in_the_header(tmp_path: Path, quote: str, delimiter: str, before: str) -> None:
    rows = [["words", "u_x", "enc", "t"], ["9", "0.1", "4096", "0"], ["9", "0.2", "-2048", "20"]]
    text = before + "".join(delimiter.join(f"{quote}{field}{quote}" for field in row) + "\n" for row in rows)
    log = read_text_log(write(tmp_path, text), "time=t:ms,position.wheel_joint_fl=enc:turn/4096,command.x=u_x")
    np.testing.assert_allclose(log.time, [0.0, 0.02])
    np.testing.assert_allclose(log.joints["position"]["wheel_joint_fl"], [2.0 * math.pi, -math.pi])
    np.testing.assert_allclose(log.command["x"], [0.1, 0.2])


def test_a_delimiter_in_quotes_does_not_count(tmp_path: Path) -> None:
    log = read_text_log(write(tmp_path, 't,"speed, m/s",x\n0,"1.5",2\n1,2.5,"3"\n'), "time,measured.x,command.x")
    np.testing.assert_allclose(log.measured["x"], [1.5, 2.5])
    np.testing.assert_allclose(log.command["x"], [2.0, 3.0])


def test_a_header_without_a_name_is_reported(tmp_path: Path) -> None:
    text = str(fault(write(tmp_path, "t,enc\n0,1\n1,2\n"), "time=t,position.wheel_joint_fl=encoder"))
    assert "header 't,enc' without encoder" in text and "the names t, encoder" in text


def test_a_header_with_one_name_twice_is_not_guessed(tmp_path: Path) -> None:
    text = str(fault(write(tmp_path, "t,enc,enc\n0,1,5\n1,2,6\n"), "time=t,position.wheel_joint_fl=enc"))
    assert "header 't,enc,enc': got 'enc' twice; expected once; rename one of them" in text


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("columns", ["time,command.x,measured.x", "time=t,measured.x=x,command.x=u"])
def test_decimal_commas_are_read(tmp_path: Path, delimiter: str, columns: str) -> None:
    text = "t;u;x\n0;7,5;-1,5\n0,02;8;2e-1\n0,5;-9,25;nan\n"
    log = read_text_log(write(tmp_path, text.replace(";", delimiter)), columns)
    np.testing.assert_allclose(log.time, [0.0, 0.02, 0.5])
    np.testing.assert_allclose(log.command["x"], [7.5, 8.0, -9.25])
    np.testing.assert_allclose(log.measured["x"], [-1.5, 0.2, np.nan])


def test_a_bad_entry_below_named_headers_names_line_and_column(tmp_path: Path) -> None:
    path = write(tmp_path, "x,t\n1,0\n2,1\nbad,2\n")
    assert f"{path} line 4: got 'bad' in column 1" in str(fault(path, "time=t,measured.x=x"))


@pytest.mark.parametrize("times", [(1.7e11, 1.7e11 + 20), (-1e10, 1.0), (-5e9, 5e9)])
def test_a_time_that_does_not_fit_into_nanoseconds_asks_for_its_unit(
    tmp_path: Path, times: tuple[float, float]
) -> None:
    path = write(tmp_path, "".join(f"{time},1\n" for time in times))
    with pytest.raises(RecordingError, match="a time beyond 9e9 s.*time:ms"):
        read_text_log(path, "time,measured.x")


def test_a_time_in_milliseconds_since_1970_is_read(tmp_path: Path) -> None:
    log = LogRecording(read_text_log(write(tmp_path, "1700000000000,1\n1700000000020,1\n"), "time:ms,measured.x"))
    np.testing.assert_allclose(np.diff(log.twists("/odom").stamp), 0.02, atol=1e-6)


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
@pytest.mark.parametrize("columns", ["time,command.x,measured.x", "time=time,command.x=u,measured.x=x"])
def test_a_time_since_1970_tells_its_unit(tmp_path: Path, unit: str, factor: int, columns: str) -> None:
    times = [1_690_000_000 + 0.02 * k for k in range(30)]
    rows = [f"{round(time * factor) if factor > 1 else time},1,2\n" for time in times]
    path = write(tmp_path, "%time,u,x\n" + "".join(rows))
    np.testing.assert_allclose(np.diff(read_text_log(path, columns).time), 0.02, atol=1e-6)


@pytest.mark.parametrize("period", [20_000, 1000])  # [us]
def test_microseconds_since_a_boot_are_no_milliseconds_since_1970(tmp_path: Path, period: int) -> None:
    path = write(tmp_path, "t,u,x\n" + "".join(f"{1_200_000_000_000 + period * k},1,2\n" for k in range(30)))
    assert "name its unit: time:ms" in str(fault(path, "time,command.x,measured.x"))
    times = read_text_log(path, "time:us,command.x,measured.x").time
    np.testing.assert_allclose(np.diff(times), 1e-6 * period, atol=1e-9)


def test_nanoseconds_since_a_boot_at_two_kilohertz_are_no_microseconds_since_1970(tmp_path: Path) -> None:
    """A delay of .75 ms was ticked as .75 s."""
    path = write(tmp_path, "t,u,x\n" + "".join(f"{1_500_000_000_000_000 + 500_000 * k},1,2\n" for k in range(30)))
    assert "name its unit: time:ms" in str(fault(path, "time,command.x,measured.x"))


def test_a_log_in_utf16_and_one_with_bars_are_read(tmp_path: Path) -> None:
    for encoding, delimiter in (("utf-16", "\t"), ("utf-8", "|")):
        path = write(tmp_path, f"t{delimiter}x\n0{delimiter}1.5\n1{delimiter}2\n", encoding)
        np.testing.assert_allclose(read_text_log(path, "time=t,measured.x=x").measured["x"], [1.5, 2.0])


@pytest.mark.parametrize("between", ["T", " "])
@pytest.mark.parametrize("zone", ["", "Z", "+02:00"])
def test_a_date_with_a_time_of_day_is_a_time(tmp_path: Path, between: str, zone: str) -> None:
    times = ["23:59:59.900", "23:59:59.925000", "23:59:59.950000001"]
    text = "t,x\n" + "".join(f"2026-12-31{between}{time}{zone},1\n" for time in times)
    log = read_text_log(write(tmp_path, f"{text}2027-01-01{between}00:00:00{zone},1\n"), "time=t,measured.x=x")
    np.testing.assert_allclose(np.diff(log.time), [0.025, 0.025, 0.05], atol=1e-6)
    path = write(tmp_path, f"{text}soon,1\n")
    assert f"{path} line 5: got 'soon' in column 1" in str(fault(path, "time=t,measured.x=x"))


@pytest.mark.parametrize("columns", ["time,measured.x", "time=t,measured.x=x"])
def test_a_time_that_is_none_is_named(tmp_path: Path, columns: str) -> None:
    text = str(fault(write(tmp_path, "t,x\n10h00:01,1\n10h00:02,2\n"), columns))
    assert "'10h00:01' in column 1 of line 2" in text


def test_a_header_is_searched_in_one_pass(tmp_path: Path) -> None:
    """Once every line was compared with all lines before it, which took half a minute."""
    path = write(tmp_path, "t;x\n" + "".join(f"{k} s;words\n" for k in range(2000)))
    begin = time.process_time()
    assert "'0 s' in column 1 of line 2" in str(fault(path, "time=t,measured.x=x"))
    assert time.process_time() - begin < 2.0


@pytest.mark.parametrize(("first", "origin"), [(0.0, 1), (7.2, 1), (-0.5, 2), (-2.0, 3), (-2.5, 4)])
def test_stamps_are_above_zero_and_exact_to_the_nanosecond(tmp_path: Path, first: float, origin: int) -> None:
    """A stamp of 0 would mean that there is none."""
    log = LogRecording(read_text_log(write(tmp_path, f"{first},1\n{first + 0.123456789:.9f},2\n"), "time,measured.x"))
    assert log.origin == origin * 10**9
    stamps = log._stamps.tolist()
    assert stamps == [log.origin + round(first * 1e9), log.origin + round(first * 1e9) + 123456789] and stamps[0] > 0


def test_a_row_is_a_joint_state_if_any_of_its_values_is_there(tmp_path: Path) -> None:
    text = "0,1,nan,nan\n1,nan,nan,nan\n2,nan,nan,5\n3,nan,2,nan\n"
    log = LogRecording(read_text_log(write(tmp_path, text), "time,position.a,position.b,effort.b"))
    assert log.topics["/driver/joint_states"].count == 3
    series = log.joint_states("/driver/joint_states", ["a", "b"])
    np.testing.assert_array_equal(series.position, [[1.0, np.nan], [np.nan, np.nan], [np.nan, 2.0]])
    np.testing.assert_array_equal(series.effort, [[np.nan, np.nan], [np.nan, 5.0], [np.nan, np.nan]])


@pytest.mark.parametrize(("role", "small", "unit"), [("current", 40.0, "mA"), ("voltage", 400.0, "mV")])
def test_a_current_or_voltage_that_no_joint_has_asks_for_its_unit(tmp_path: Path, role, small, unit) -> None:
    """A motor whose milliamperes were read as amperes had a thousandth of its resistance."""
    rows = "".join(f"{k / 100},{small * 30 * (-1) ** k}\n" for k in range(40))
    found = fault(write(tmp_path, rows), f"time,{role}.j")
    assert f"{role}.j:{unit}" in str(found.remedy)
    thousandths = read_text_log(write(tmp_path, rows), f"time,{role}.j:{unit}").joints[role]["j"]
    assert np.max(thousandths) == pytest.approx(0.03 * small)
    named = read_text_log(write(tmp_path, rows), f"time,{role}.j:{unit[1]}").joints[role]["j"]
    assert np.max(named) == pytest.approx(30 * small)
    assert "j" in read_text_log(write(tmp_path, f"0,{small}\n1,{-small}\n"), f"time,{role}.j").joints[role]
