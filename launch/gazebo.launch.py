"""Start Gazebo Harmonic, put the youBot into it and open its topics: the robot, none of the nodes that drive it.

bringup.launch.py robot:=gazebo includes this and starts the nodes beside it. Alone it is a robot to drive by hand:
`ros2 topic pub /wheel_velocity_controller/commands std_msgs/msg/Float64MultiArray "{data: [2.0, 2.0, 2.0, 2.0]}"`.
A second robot of the same Gazebo: this file again with another `namespace`, another place and server:=false.
"""

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare
from launch_ros.utilities import prefix_namespace

from youbot_dynamics.bringup_plan import TRUTH_VALUES, Argument
from youbot_dynamics.gazebo_description import gazebo_urdf
from youbot_dynamics.resources import config_path

# Package and the Debian package that brings it; none of them is needed by anything else here.
NEEDED = {
    "ros_gz_sim": "ros-jazzy-ros-gz-sim",
    "ros_gz_bridge": "ros-jazzy-ros-gz-bridge",
    "gz_ros2_control": "ros-jazzy-gz-ros2-control",
    "controller_manager": "ros-jazzy-controller-manager",
    "joint_state_broadcaster": "ros-jazzy-joint-state-broadcaster",
    "velocity_controllers": "ros-jazzy-velocity-controllers",
    "joint_trajectory_controller": "ros-jazzy-joint-trajectory-controller",
    "robot_state_publisher": "ros-jazzy-robot-state-publisher",
}
ARGUMENTS = (
    Argument("namespace", "", "Namespace of the robot; empty for none."),
    Argument(
        "headless", "false", "Whether Gazebo runs without its window, as on a machine without a screen.", TRUTH_VALUES
    ),
    Argument("use_sim_time", "true", "Whether the nodes started here take their time from /clock.", TRUTH_VALUES),
    Argument(
        "world",
        str(config_path("gazebo/youbot.sdf")),
        "World file. One of your own needs the systems Physics, UserCommands, SceneBroadcaster and Imu.",
    ),
    Argument(
        "server",
        "true",
        "Whether Gazebo itself and /clock are started; false puts the robot into a running one.",
        TRUTH_VALUES,
    ),
    Argument("x", "0.0", "Place of the robot in the world [m]."),
    Argument("y", "0.0", "Place of the robot in the world [m]."),
    Argument("yaw", "0.0", "Heading of the robot in the world [rad]."),
)
# An action has five names, and each is remapped by itself.
ACTION = ("_action/send_goal", "_action/cancel_goal", "_action/get_result", "_action/feedback", "_action/status")
ARM = ("joint_trajectory", "controller_state", *(f"follow_joint_trajectory/{part}" for part in ACTION))
CONTROLLERS = ("joint_state_broadcaster", "wheel_velocity_controller", "arm_controller")
# Their topics that go by the names of the youBot's driver.
TOPICS = {"joint_states": "driver/joint_states"}
TOPICS |= {f"arm_controller/{name}": f"arm_1/arm_controller/{name}" for name in ARM}


def generate_launch_description():
    """Declare the arguments and build the rest when their values are known."""
    declared = [DeclareLaunchArgument(**argument.declaration()) for argument in ARGUMENTS]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def start(context):
    """Build the actions, inside a pushed namespace if this file is included in one."""
    check_installed()
    value = context.launch_configurations
    pushed = value.get("ros_namespace")
    name = (prefix_namespace(pushed, value["namespace"] or None) or "").strip("/")
    actions = gazebo(value) if value["server"] == "true" else []
    return [*actions, *robot(name, value)]


def check_installed():
    """Say in one line what is missing, with the command that brings it."""
    missing = []
    for package, debian in NEEDED.items():
        try:
            get_package_prefix(package)
        except PackageNotFoundError:
            missing.append(debian)
    if missing:
        raise RuntimeError(f"Gazebo needs packages that are not installed: sudo apt install {' '.join(missing)}")


def gazebo(value):
    """Gazebo with its world, running from the start, and the clock of all robots in it."""
    window = "-s " if value["headless"] == "true" else ""
    clock = {"config_file": str(config_path("gazebo/clock_bridge.yaml"))}
    return [
        IncludeLaunchDescription(
            PythonLaunchDescriptionSource([FindPackageShare("ros_gz_sim"), "/launch/gz_sim.launch.py"]),
            launch_arguments={"gz_args": f"-r {window}{value['world']}", "on_exit_shutdown": "true"}.items(),
        ),
        Node(
            package="ros_gz_bridge",
            executable="parameter_bridge",
            name="clock_bridge",
            namespace="/",
            parameters=[clock],
            output="screen",
        ),
    ]


def robot(name, value):
    """One robot: its description, its body in Gazebo, its controllers and its topics."""
    namespace = f"/{name}"
    description = gazebo_urdf(config_path("gazebo/controllers.yaml"), name)
    sim_time = {"use_sim_time": value["use_sim_time"] == "true"}
    # The controller manager reads this description too: its <ros2_control> stands in it.
    publisher = Node(
        package="robot_state_publisher",
        executable="robot_state_publisher",
        namespace=namespace,
        parameters=[{"robot_description": ParameterValue(description, value_type=str)}, sim_time],
        remappings=[("/tf", "tf"), ("/tf_static", "tf_static")] if name else [],
        output="screen",
    )
    body = Node(
        package="ros_gz_sim",
        executable="create",
        namespace=namespace,
        arguments=["-topic", "robot_description", "-name", name.replace("/", "_") or "youbot"]
        + [token for axis, at in (("-x", "x"), ("-y", "y"), ("-Y", "yaw")) for token in (axis, value[at])],
        output="screen",
    )
    bridge = Node(
        package="ros_gz_bridge",
        executable="parameter_bridge",
        name="gazebo_bridge",
        namespace=namespace,
        parameters=[
            {"config_file": str(config_path("gazebo/bridge.yaml")), "expand_gz_topic_names": True},
            sim_time,
        ],
        output="screen",
    )
    # Waits for the controller manager, which Gazebo brings up with the robot.
    rules = " ".join(f"-r {own}:={theirs}" for own, theirs in TOPICS.items())
    spawner = Node(
        package="controller_manager",
        executable="spawner",
        namespace=namespace,
        arguments=[*CONTROLLERS, "--controller-ros-args", rules],
        output="screen",
    )
    return [publisher, body, bridge, spawner]
