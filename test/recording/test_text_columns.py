"""Columns of a text log are proposed from the names that people give them, or refused where these are ambiguous."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.bag import LogRecording
from youbot_dynamics.recording.text_columns import propose_columns
from youbot_dynamics.recording.text_log import read_text_log

_ROWS = ("0.5,1,2,3,4", "0.75,1.5,2,3,4")


def log_of(folder: Path, header: str, *lines: str) -> Path:
    path = folder / "log.csv"
    count = header.count(",") + 1
    rows = lines or tuple(",".join(f"{0.01 * k + column:.2f}" for column in range(count)) for k in range(3))
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("header", "line", "times"),
    [
        ("sec,nanosec", "1700000000,20000000", "time,time:ns"),
        ("sec,nanosec", "12.5,20000000", "time,_"),  # no whole seconds
        ("time,time_ns", "0,20000000", "time,_"),  # another whole clock
        ("time,stamp_nanosec", "0,1700000000020000000", "time,_"),
        ("time,clock", "1.00e-03,1.00e-03", "time,_"),
        ("date,time", "2026-11-28,14:05:00.25", "time,time"),
    ],
)
def test_parts_of_a_time_are_added_and_two_clocks_are_not(tmp_path: Path, header: str, line: str, times: str) -> None:
    log = log_of(tmp_path, f"{header},q1,tau1", f"{line},0.1,2.0", f"{line},0.2,2.1")
    assert propose_columns(log).description == f"{times},position.joint_1,effort.joint_1"


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("t,pos [mm],force [N]", "time,position.joint:mm,effort.joint:N"),
        ("time,lift position (m),lift (N)", "time,position.lift:m,effort.lift:N"),
        ("t, q1, dq1, tau1", "time,position.joint_1,velocity.joint_1,effort.joint_1"),
        (
            "timestamp,joint1_pos,joint1_vel,joint1_current",
            "time,position.joint1,velocity.joint1,current.joint1:A",
        ),
        ("time_ms,cmd_vx,vx", "time:ms,command.x,measured.x"),
        (
            "Time [s],Angle [deg],Speed [rpm],Torque (N·m)",
            "time,position.joint:deg,velocity.joint:rpm,effort.joint:Nm",
        ),
        ("ms,angle_deg,current_A", "time:ms,position.joint:deg,current.joint:A"),
        ("t,q,T_winding_C,T_housing_C", "time,position.joint,temperature.joint,housing.joint"),
        ("t,motor_rpm,temp_housing,voltage_V", "time,velocity.joint:rpm,housing.joint,voltage.joint:V"),
        ("t,q_des,q", "time,command_position.joint,position.joint"),
        ("t,theta1,theta1_dot,q_err,V", "time,position.joint_1,velocity.joint_1,_,voltage.joint_1:V"),
        ("t,q1,current1 [A],supply_V", "time,position.joint_1,current.joint_1:A"),
        ("t,J1 Position (deg),J1 Motor Current (A)", "time,position.J1:deg,current.J1:A"),
        ("t,q1 [rad],tau1 [Nm],tau2 [lb·ft],position2 [ticks]", "time,position.joint_1:rad,effort.joint_1:Nm"),
        ("t,cmd_vx,vx,odom_pose_x", "time,command.x,measured.x"),
        ("t,v_cmd,v_meas", "time,command.joint,velocity.joint"),
        ("t,joint_a_pos,joint_c_pos,pos_m", "time,position.joint_a,position.joint_c,position.joint"),
        ("t,q_1 [rad],i_1 [A]", "time,position.joint_1:rad,current.joint_1:A"),
        ("t,x_cmd,u_y,theta_cmd,x_vel,theta_vel", "time,command.x,command.y,command.yaw,measured.x,measured.yaw"),
        (
            "t,index,MotorCurrent [mA],vel_deg,winding_temp",
            "time,_,current.joint:mA,velocity.joint:deg/s,temperature.joint",
        ),
        (
            "timestamp,target_q_0,target_current_0,actual_q_0,actual_current_0",
            "time,command_position.joint_0,_,position.joint_0,current.joint_0:A",
        ),
        ("__time,/joint_states/position[0],/joint_states/effort[0]", "time,position.joint_0,effort.joint_0"),
        ("stamp,cmd_vel.linear.x,odom.twist.linear.x,odom.twist.angular.z", "time,command.x,measured.x,measured.yaw"),
        ("time,position.elbow:deg,command_held.x", "time,position.elbow:deg,command_held.x"),
        # A whole pose beside a twist: the last number of the quaternion was read as the rate of the yaw.
        (
            "__time,/cmd_vel/linear/x,/cmd_vel/angular/z,/odom/pose/pose/position/x,/odom/pose/pose/position/z,"
            "/odom/pose/pose/orientation/z,/odom/pose/pose/orientation/w,/odom/twist/twist/linear/x,"
            "/odom/twist/twist/angular/z",
            "time,command.x,command.yaw,_,_,_,_,measured.x,measured.yaw",
        ),
        (
            "Time,Commanded Linear Velocity (m/s),Commanded Angular Velocity (rad/s),Measured Linear Velocity (m/s),"
            "Measured Angular Velocity (rad/s)",
            "time,command.x:m/s,command.yaw:rad/s,measured.x:m/s,measured.yaw:rad/s",
        ),
        ("time,linear_cmd,angular_cmd,linear_meas,angular_meas", "time,command.x,command.yaw,measured.x,measured.yaw"),
        ("stamp,cmd_lin_x,cmd_ang_z,odom_lin_x,odom_ang_z", "time,command.x,command.yaw,measured.x,measured.yaw"),
        (
            "Time (s),cmd_vel x (mm/s),cmd_vel yaw (deg/s),odom x (mm/s),odom yaw (deg/s)",
            "time,command.x:mm/s,command.yaw:deg/s,measured.x:mm/s,measured.yaw:deg/s",
        ),
        (
            "time_s,cmd_vel_x,cmd_yaw_rate,actual_vel_x,actual_yaw_rate",
            "time,command.x,command.yaw,measured.x,measured.yaw",
        ),
        ("datetime,current_position,T_motor,i,u", "time,position.joint"),
        # They were read as N m, A and V of joints named "motor_m" and "motor_Ncm".
        ("time,motor_angle_deg,motor_torque_mNm", "time,position.joint:deg,effort.joint:mNm"),
        ("t,q1_mrad,tau1_Ncm,tau1_N_cm_cmd", "time,position.joint_1:mrad,effort.joint_1:Ncm"),
        ("t,pos_deg,I_mA,U_mV", "time,position.joint:deg,current.joint:mA,voltage.joint:mV"),
        ("t,joint1_pos_deg,joint1_cur_mA", "time,position.joint1:deg,current.joint1:mA"),
        ("t,q_deg_1,speed_rpm_1,tau_mNm_1", "time,position.joint_1:deg,velocity.joint_1:rpm,effort.joint_1:mNm"),
        ("t,pos_mrad_1,torque_N_m_1,current_mA_1", "time,position.joint_1:mrad,effort.joint_1:Nm,current.joint_1:mA"),
        (
            "t,mA_pos,mB_pos,MV,q1_deg,tau1 [N-m]",
            "time,position.mA,position.mB,_,position.joint_1:deg,effort.joint_1:Nm",
        ),
        ("cur_time,cmd_vx,cur_vx", "time,command.x,measured.x"),
        ("t,elbow angle,elbow torque N m", "time,position.elbow,effort.elbow:Nm"),
    ],
)
def test_names_that_people_use_tell_the_columns(tmp_path: Path, header: str, columns: str) -> None:
    proposal = propose_columns(log_of(tmp_path, header))
    assert proposal.description == columns
    assert "\n" not in proposal.told and (columns == header or f"--columns '{columns}'" in proposal.told)


_DRIVEN = "time,command.x,command.yaw,measured.x,measured.yaw"


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("t,v_cmd,w_cmd,v,w", _DRIVEN),
        ("time,v_ref,omega_ref,v_meas,omega_meas", _DRIVEN),
        ("t,v_des,w_des,v_act,w_act", _DRIVEN),
        ("t,v_set,w_set,v,w", _DRIVEN),
        ("time,setpoint_v,setpoint_w,feedback_v,feedback_w", _DRIVEN),
        ("time,v_cmd,w_cmd,v_odom,w_odom", _DRIVEN),
        ("timestamp,commanded_speed,commanded_turn_rate,measured_speed,measured_turn_rate", _DRIVEN),
        ("t,ref_speed,ref_yawrate,speed,yawrate", _DRIVEN),
        ("t,linvel_cmd,angvel_cmd,linvel,angvel", _DRIVEN),
        ("t,forward_speed_cmd,turn_rate_cmd,forward_speed,turn_rate", _DRIVEN),
        ("t,u_v,u_w,y_v,y_w", _DRIVEN),
        ("Zeit;v_soll;w_soll;v_ist;w_ist", _DRIVEN),
        ("t,vcmd,wcmd,vmeas,wmeas", _DRIVEN),
        ("t,Vref,Wref,V,W", "time,command.x:m/s,command.yaw,measured.x:m/s,measured.yaw"),
        (
            "Time [s],Cmd Velocity [km/h],Cmd Yaw Rate [deg/s],Velocity [km/h],Yaw Rate [deg/s]",
            "time,command.x:km/h,command.yaw:deg/s,measured.x:km/h,measured.yaw:deg/s",
        ),
    ],
)
def test_a_base_that_drives_and_turns_is_understood_by_its_symbols(tmp_path: Path, header: str, columns: str) -> None:
    log = log_of(tmp_path, header, *(line.replace(",", ";" if ";" in header else ",") for line in _ROWS))
    proposal = propose_columns(log)
    assert proposal.description == columns
    speed = read_text_log(log, columns).command["x"]
    np.testing.assert_allclose(speed, np.array([1.0, 1.5]) / (3.6 if "km/h" in columns else 1.0))


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("t,V,I,w", "time,voltage.joint:V"),
        ("time,voltage,current,omega", "time,voltage.joint:V,current.joint:A"),
        ("t,v_cmd,v", "time,command.joint,velocity.joint"),
        ("t,u_u,u_v,u_w,omega", "time,_,velocity.u"),  # phases
        ("t,v_left_cmd,v_right_cmd,v_left,v_right", "time,command.left,command.right,velocity.left,velocity.right"),
        ("t,linvel_y_cmd,linvel_y,angvel_x,angvel_z", "time,command.y,measured.y,_,measured.yaw"),
    ],
)
def test_a_motor_and_axes_that_are_named_are_no_speed_forward(tmp_path: Path, header: str, columns: str) -> None:
    assert propose_columns(log_of(tmp_path, header)).description == columns


@pytest.mark.parametrize(
    "header",
    [
        "t,v_cmd [V],w_cmd [rad/s],w [rad/s],I",
        "t,V,omega_cmd,omega,q [deg]",
        "t,v_cmd,omega_cmd,v,i,omega",
        "t,v_cmd [m/s],w_cmd [m/s],v [m/s],w [m/s]",  # sway and heave
        "t,v_cmd [rad/s],w_cmd [rad/s],v [rad/s],w [rad/s]",
    ],
)
def test_a_voltage_and_a_rate_of_a_motor_are_no_base(tmp_path: Path, header: str) -> None:
    with pytest.raises(RecordingError, match="--columns") as caught:
        propose_columns(log_of(tmp_path, header))
    assert ".x" not in str(caught.value) and ".yaw" not in str(caught.value)


def test_columns_to_choose_have_one_entry_for_each_column_up_to_the_last(tmp_path: Path) -> None:
    header = "frame,t,foo,q1,bar,cmd,baz,position.hand_,other,words"
    with pytest.raises(RecordingError, match="more than one meaning.*choose with --columns") as caught:
        propose_columns(log_of(tmp_path, header))
    columns = str(caught.value).partition("--columns '")[2].partition("'")[0]
    assert columns == "_,time,_,position.joint_1,_,command.joint,_,position.hand_"


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("t,cmd_vx_kmh,vx_kmh", "time,command.x:km/h,measured.x:km/h"),
        ("t,vx_kph_cmd,vx_kph", "time,command.x:km/h,measured.x:km/h"),
        ("t,cmd_vx (cm/s),cmd_wz (rpm),vx (cm/s)", "time,command.x:cm/s,command.yaw:rpm,measured.x:cm/s"),
        ("t,cmd_vx,mocap_x [cm],mocap_y_cm,mocap_yaw", "time,command.x,pose.x:cm,pose.y:cm,pose.yaw"),
        (
            "t,w_dps_cmd,v_cmps_cmd,v_cmps,w_dps",
            "time,command.yaw:deg/s,command.x:cm/s,measured.x:cm/s,measured.yaw:deg/s",
        ),
        ("t,motor_speed_rps,angle [rev]", "time,velocity.joint:turn/s,position.joint:turn"),
    ],
)
def test_units_of_cars_and_revolutions_are_read(tmp_path: Path, header: str, columns: str) -> None:
    assert propose_columns(log_of(tmp_path, header)).description == columns


def test_rps_of_a_base_may_be_radians_and_is_to_be_told(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="'w_cmd_rps' .command.yaw:rad/s, or command.yaw:turn/s of rev") as caught:
        propose_columns(log_of(tmp_path, "t_s,v_cmd_mps,w_cmd_rps,v_mps,w_rps"))
    columns = "time,command.x:m/s,command.yaw:rad/s,measured.x:m/s,measured.yaw:rad/s"
    assert f"choose with --columns '{columns}'" in str(caught.value)


@pytest.mark.parametrize("header", ["t,v_cmd [furlong],w_cmd,v,w", "t,cmd_vx [furlong],cmd_wz,vx,wz"])
def test_a_column_of_a_base_with_an_unknown_unit_is_told_and_is_no_joint(tmp_path: Path, header: str) -> None:
    proposal = propose_columns(log_of(tmp_path, header))
    assert proposal.description == "time,_,command.yaw,measured.x,measured.yaw"
    assert "cmd" in proposal.told and "(unit 'furlong' is none that is known" in proposal.told


def test_what_ros2_topic_echo_writes_of_a_joint_state_needs_no_header(tmp_path: Path) -> None:
    log, row = tmp_path / "echo.csv", "1790000000,{}0000000,,shoulder,elbow,.1,-.2,1.5,.3,4,-5"
    log.write_text("\n".join(row.format(k) for k in range(1, 9)), encoding="utf-8")
    columns = propose_columns(log)
    roles = ",".join(f"{role}.{name}" for role in ("position", "velocity", "effort") for name in ("shoulder", "elbow"))
    assert columns.description == f"time,time:ns,_,_,_,{roles}" and "as `ros2 topic echo --csv` writes" in columns.told
    times = read_text_log(log, columns.description).time
    np.testing.assert_allclose(np.diff(times), 0.01, atol=1e-6)
    log.write_text(row.format(1).rpartition(",")[0], encoding="utf-8")  # two numbers of one joint, three of another
    with pytest.raises(RecordingError, match="no header"):
        propose_columns(log)


def test_units_in_a_line_of_their_own_and_words_of_another_language_are_understood(tmp_path: Path) -> None:
    log = log_of(tmp_path, "t,q,tau", "s,deg,mNm", "0,1,2", "1,2,3")
    assert propose_columns(log).description == "time,position.joint:deg,effort.joint:mNm"
    log = log_of(tmp_path, "Zeit [ms];Winkel 2 [°];Drehmoment 2 [Nm]", "0,5;1,0;2,0", "1,5;2,0;2,0")
    assert propose_columns(log).description == "time:ms,position.joint_2:deg,effort.joint_2:Nm"


def test_units_of_a_header_in_another_encoding_count(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_bytes("t [\u00b5s],q1,tau1\n0,1,2\n1000,2,2\n2000,3,2\n".encode("latin-1"))
    assert propose_columns(log).description == "time:us,position.joint_1,effort.joint_1"


_ECHOED = ",".join(f"{kind}.{axis}" for kind in ("linear", "angular") for axis in "xyz")
_ODOMETRY = ",field.header.stamp,field.pose.pose.position.x,field.pose.pose.position.y,field.pose.pose.orientation.w"
_SPEEDS = ",field.twist.twist.linear.x,field.twist.twist.angular.z"


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        (f"field.{_ECHOED.replace(',', ',field.')}", "time,command.x,command.y,_,_,_,command.yaw"),
        (f"field.twist.{_ECHOED.replace(',', ',field.twist.')}", "time,command.x,command.y,_,_,_,command.yaw"),
        (_ODOMETRY[1:] + _SPEEDS, "time,_,_,_,_,measured.x,measured.yaw"),
        (
            f"field.{_ECHOED.replace(',', ',field.')}{_ODOMETRY}{_SPEEDS}",
            "time,command.x,command.y,_,_,_,command.yaw,_,_,_,_,measured.x,measured.yaw",
        ),
        (f"odom.{_ECHOED.replace(',', ',odom.')}", "time,measured.x,measured.y,_,_,_,measured.yaw"),
        (
            f"field.{_ECHOED.replace(',', ',field.')},cmd_vx",
            "time,measured.x,measured.y,_,_,_,measured.yaw,command.x",
        ),
    ],
)
def test_a_twist_that_rostopic_echo_writes_is_a_command_and_that_of_an_odometry_is_not(
    tmp_path: Path, header: str, columns: str
) -> None:
    assert propose_columns(log_of(tmp_path, f"%time,{header}")).description == columns


def test_a_pose_that_lacks_an_axis_is_told_and_not_read(tmp_path: Path) -> None:
    proposal = propose_columns(log_of(tmp_path, "t,cmd_vx,vx,mocap_x,mocap_y"))
    assert proposal.description == "time,command.x,measured.x"
    assert "unclear: 'mocap_x' (a pose only with pose.yaw); 'mocap_y'" in proposal.told


def test_the_unit_of_a_time_since_1970_is_told(tmp_path: Path) -> None:
    log = log_of(tmp_path, "%time,cmd_vx,vx", *(f"15000000003{k}0000000,1,2" for k in range(3)))
    proposal = propose_columns(log)
    assert proposal.description == "time,command.x,measured.x" and "the time since 1970 in ns" in proposal.told
    np.testing.assert_allclose(np.diff(read_text_log(log, proposal.description).time), 0.01, atol=1e-6)
    log = log_of(tmp_path, "time,cmd_vx,vx", "1500000000.3,1,2", "1500000000.4,1,2")
    assert "1970" not in propose_columns(log).told


def test_numbered_joints_are_those_of_the_robot_file_where_there_are_as_many(tmp_path: Path) -> None:
    log = log_of(tmp_path, "t,q1,q2,tau1,tau2")
    columns = "time,position.shoulder,position.elbow,effort.shoulder,effort.elbow"
    assert propose_columns(log, ("shoulder", "elbow")).description == columns
    assert "position.joint_1" in propose_columns(log, ("shoulder", "elbow", "wrist")).description
    log = log_of(tmp_path, "t,q[0],q[1],tau_J[0],tau_J[1]")  # also from 0, and where the names are numbered from 1
    assert propose_columns(log, ("shoulder", "elbow")).description == columns
    of_numbers = "time,position.joint_1,position.joint_2,effort.joint_1,effort.joint_2"
    own = ("joint_1", "joint_2")
    assert propose_columns(log, own, known=own).description == of_numbers
    assert propose_columns(log_of(tmp_path, "t,q1,q2,tau1,tau2"), own, known=own).description == of_numbers
    log = log_of(tmp_path, "t,left_pos,right_pos,left_tau,right_tau")  # of which nobody knows the order
    assert "position.left" in propose_columns(log, ("shoulder", "elbow")).description


@pytest.mark.parametrize(
    ("header", "known", "columns"),
    [
        ("time,q[0],q[1],dq[0],dq[1],tau_J[0],tau_J[1]", (), "joint_0 joint_1 joint_0 joint_1 joint_0 joint_1"),
        ("t,J1 pos,J2 pos,motor_1_torque,motor_2_torque", (), "J1 J2 J1 J2"),
        ("t,q1,q2,tau_J1,tau_J2", ("J1", "J2"), "J1 J2 J1 J2"),
        ("t,motor1_pos,joint1_pos,motor1_tau", (), "motor1 joint1 motor1"),  # two joints with angles of their own
        ("t,joint1_pos,joint2_pos,motor1_tau", (), "joint1 joint2 motor1"),
        ("t,left1_pos,right1_tau", (), "left1 right1"),
    ],
)
def test_joints_of_the_same_numbers_are_the_same_if_no_column_says_otherwise(
    tmp_path: Path, header: str, known: tuple[str, ...], columns: str
) -> None:
    described = propose_columns(log_of(tmp_path, header), known=known).description.split(",")[1:]
    assert [name.split(".")[-1] for name in described] == columns.split()


@pytest.mark.parametrize(
    ("header", "known", "columns"),
    [
        (
            "t,cmd_vx,cmd_vy,cmd_wz,w0_pos,w1 [deg],w0_vel [rpm],w1,pose_x,pose_y,pose_yaw",
            ("w0", "w1"),
            "time,command.x,command.y,command.yaw,position.w0,position.w1:deg,velocity.w0:rpm,_,pose.x,pose.y,pose.yaw",
        ),
        (
            "t,cmd_vx,vx,yaw_pos,yaw_tau,pitch_pos",
            ("yaw", "pitch"),
            "time,command.x,measured.x,position.yaw,effort.yaw,position.pitch",
        ),
        ("t,x_pos,x_cmd_vel,y_pos,y_tau", ("x", "y"), "time,position.x,command.x,position.y,effort.y"),
        ("t,joint_speed_pos,joint_speed_vel", ("joint_speed",), "time,position.joint_speed,velocity.joint_speed"),
        # The name of a joint in that of another one is not meant.
        ("t,joint_1_pos,gripper_joint_1_pos,joint_1_tau", ("joint_1",), "time,position.joint_1,_,effort.joint_1"),
        ("t,w_1_pos,w_10_pos", ("w_1", "w_10"), "time,position.w_1,position.w_10"),
        ("t,/joint_states/w0/position,w1 Motor Current (A)", ("w0", "w1"), "time,position.w0,current.w1:A"),
    ],
)
def test_names_of_the_robot_come_before_what_their_words_mean(
    tmp_path: Path, header: str, known: tuple[str, ...], columns: str
) -> None:
    proposal = propose_columns(log_of(tmp_path, header), known=known)
    assert proposal.description == columns
    read_text_log(log_of(tmp_path, header), proposal.description)


def test_a_numbered_letter_is_a_wheel_and_no_axis(tmp_path: Path) -> None:
    log = log_of(tmp_path, "t,cmd_vx,cmd_wz,w0_pos,w1_pos,w1_vel,pose_x,pose_y,pose_yaw")
    columns = "time,command.x,command.yaw,position.w0,position.w1,velocity.w1,pose.x,pose.y,pose.yaw"
    assert propose_columns(log).description == columns


def test_other_joints_beside_those_of_the_robot_are_not_read(tmp_path: Path) -> None:
    log = log_of(tmp_path, "t,elbow_pos,elbow_tau,gripper_pos,cmd_vx,vx")
    proposal = propose_columns(log, known=("shoulder", "elbow"))
    assert proposal.description == "time,position.elbow,effort.elbow,_,command.x,measured.x"
    assert "not used: gripper_pos" in proposal.told


def test_a_column_that_is_not_a_motion_and_unclear_is_told_and_not_read(tmp_path: Path) -> None:
    proposal = propose_columns(log_of(tmp_path, "t,q,tau,temp,enc_ticks,foo"))
    assert proposal.description == "time,position.joint,effort.joint"
    for words in ("'temp' (temperature.joint of the winding, or housing.joint)", "'enc_ticks'", "not used: foo"):
        assert words in proposal.told


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (
            "t,q1,pos1,tau1",
            "'q1' and 'pos1', both position.joint_1.*--columns 'time,position.joint_1,_,effort.joint_1'",
        ),
        ("t,cmd,speed", "'cmd' .command.joint, a speed, or command_position.joint.*--columns 'time,command.joint,vel"),
        (
            "t,target_q_0,target_qd_0",
            "'target_q_0' and 'target_qd_0', both command.joint_0.*'time,command_position.joint_0'",
        ),
        ("t,cmd_x,odom_x,y", "odom_x.*--columns 'time,command.x,measured.x,measured.y'"),
        ("cmd_vx,vx", "no time among the columns cmd_vx, vx; add --rate HZ"),
        ("t,foo,bar", "whose names do not tell what they are.*--columns"),
        ("0,1,2", "no header with a name of each column.*--columns"),
        ("words,and,words", "no header|no line of numbers"),
    ],
)
def test_what_is_ambiguous_is_refused_with_what_to_give(tmp_path: Path, header: str, says: str) -> None:
    log = log_of(tmp_path, header, *(["a,b,c"] if header.startswith("words") else []))
    with pytest.raises(RecordingError, match=says) as caught:
        propose_columns(log)
    assert str(log) in str(caught.value) and "\n" not in str(caught.value)


def test_a_log_without_times_has_those_of_its_rate(tmp_path: Path) -> None:
    log = log_of(tmp_path, "cmd_vx,vx")
    columns = propose_columns(log, rate=50.0).description
    np.testing.assert_allclose(read_text_log(log, columns, 50.0).time, [0.0, 0.02, 0.04])
    with pytest.raises(RecordingError, match="got a column time, and --rate"):
        read_text_log(log, "time,measured.x", 50.0)
    with pytest.raises(RecordingError, match="--rate -1: got no rate"):
        read_text_log(log, columns, -1.0)


def test_a_date_and_a_time_of_day_in_two_columns_are_one_time(tmp_path: Path) -> None:
    rows = ("2026-11-28,23:59:59.5,1", "2026-11-29,00:00:00.25,2")
    log = log_of(tmp_path, "date,time,q", *rows)
    columns = propose_columns(log).description
    assert columns == "time,time,position.joint"
    np.testing.assert_allclose(np.diff(read_text_log(log, columns).time), [0.75])


@pytest.mark.parametrize(
    ("header", "columns", "says"),
    [
        ("t,torque [A]", "time,effort.j", r"'torque \[A\]': got effort.j with that name .current.*write current.j:A"),
        ("t,motor_current", "time=t,effort.j=motor_current", "K N m for each ampere"),
        ("t,tau [V]", "time,effort.j", "got effort.j with that name .voltage.; expected Nm or Ncm or mNm or N"),
        ("t,speed_rpm", "time,velocity.j", "got velocity.j without a unit; write velocity.j:rpm in --columns"),
        ("t,angle (deg)", "time=t,position.j=angle (deg)", r"write position.j=angle \(deg\):deg in --columns"),
        ("t_ms,q", "time,position.j", "'t_ms': got time without a unit; write time:ms in --columns"),
        ("t,q", "time,position.j:A", "got unit 'A' .current.; expected rad or mrad or deg or turn"),
    ],
)
def test_a_unit_that_the_role_cannot_have_is_refused(tmp_path: Path, header: str, columns: str, says: str) -> None:
    with pytest.raises(RecordingError, match=says):
        read_text_log(log_of(tmp_path, header), columns)


def test_a_unit_that_is_told_is_taken_whatever_the_header_says(tmp_path: Path) -> None:
    log = read_text_log(log_of(tmp_path, "t,motor_current"), "time,effort.j:5*Nm")
    np.testing.assert_allclose(log.joints["effort"]["j"], [5.0, 5.05, 5.1])


def test_commanded_positions_are_speeds_that_lead_there_half_a_row_later(tmp_path: Path) -> None:
    """A position that is held from row to row is on its path half a row after its time."""
    time = 0.1 * np.arange(40)
    position = np.sin(time)
    log = log_of(tmp_path, "t,q_des,q", *(f"{t:.3f},{q:.9f},0" for t, q in zip(time, position, strict=True)))
    speed = read_text_log(log, "time,command_position.j,position.j").command["j"]
    reached = np.cumsum(speed * 0.1)[:-1]  # at the rows from the second on
    np.testing.assert_allclose(np.diff(reached), np.diff(np.sin(time - 0.05)[1:]), atol=2e-4)


def test_a_temperature_of_the_housing_is_that_of_its_topic(tmp_path: Path) -> None:
    log = log_of(tmp_path, "t,q,temp_housing,temp_winding")
    recording = LogRecording(read_text_log(log, propose_columns(log).description))
    for topic, first in (("/arm_1/housing_temperature", 2.0), ("/arm_1/motor_temperature", 3.0)):
        assert recording.joint_states(topic, ["joint"]).effort[0] == first


def test_times_of_which_some_repeat_are_told_to_lack_digits(tmp_path: Path) -> None:
    rows = [f"{k / 150.0:.2f},{k}" for k in range(300)]
    with pytest.raises(RecordingError, match="write the times with all their digits: 100 of 300 lines repeat"):
        read_text_log(log_of(tmp_path, "t,q", *rows), "time,position.j")
