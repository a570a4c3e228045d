"""Scale of the efforts of an arm, from the weight and inertia of the links in the robot file: one for all stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from youbot_dynamics.identification.arm_friction._rows import ArmEquations, ArmFrictionModel, arm_equations
from youbot_dynamics.identification.finding import Finding
from youbot_dynamics.identification.least_squares import Kind, Reason
from youbot_dynamics.identification.signals import ArmSignals
from youbot_dynamics.robot import Robot

# Factors between the efforts and the torques of the links in the robot file: beyond the first no load or scatter of
# torque constants explains the efforts, beyond the second what follows from the efforts is refused.
_SUSPECT, _WRONG = 1.8, 3.0
# Share of a joint's torque that the links must cause, beside the acceleration of the joint, to show its factor. On ten
# simulated arms it is 0.34 to 0.93 of joints that lift weight, 0.76 in the median. Of efforts without weight, as where
# a controller compensates it, it is 0.1 in the median and 0.57 at most.
_LIFTED = 0.5
_HEAVY = 0.3  # rms torque of the links in the robot file over that of the efforts, from which efforts must show weight


@dataclass(frozen=True)
class EffortScale:
    """Scale of the efforts over those that the links in the robot file need; 1 where nothing shows it."""

    overall: float
    of_joints: Mapping[str, float]
    weightless: tuple[str, ...]  # joints that do not show the weight of their links, although they should
    lifting: bool  # whether any joint shows its factor

    @property
    def suspect(self) -> bool:
        """Whether no load or scatter of torque constants explains it."""
        return not 1.0 / _SUSPECT < self.overall < _SUSPECT

    @property
    def wrong(self) -> bool:
        """Whether the efforts are in another unit, or the robot file has other links."""
        return _wrong(self.overall)

    @property
    def gives_bodies(self) -> bool:
        """Whether the efforts can tell of the bodies that all joints share."""
        return not self.wrong and (self.lifting or not self.weightless)

    def judged(self, findings: Sequence[Finding]) -> list[Finding]:
        """The findings with those refused that efforts of a wrong scale falsify."""
        checked = []
        for finding in findings:
            scale = self.of_joints.get(finding.row.of.get("joint", ""), self.overall)
            shared = "joint" not in finding.row.of and not self.gives_bodies
            # A time is right in any unit of the efforts.
            if finding.identified and finding.row.unit != "s" and (_wrong(scale) or shared):
                text = f"the efforts are {scale:.2g} times what the links in the robot file need: {_remedy(scale)}"
                reason = Reason(Kind.WRONG_SIGNALS, text)
                finding = finding.refused(reason)
            checked.append(finding)
        return checked


def _remedy(scale: float) -> str:
    """What to check of efforts of a wrong scale."""
    remedy = "check their unit and order, the torque constant and gear ratio, the masses of the links, and the load"
    if scale > 0.0:
        return remedy
    turned = "give them the other sign, or, if the arm hangs upside down, its URDF a root_link with z up"
    return f"{turned}; {remedy}" if _wrong(-scale) else turned


def _wrong(scale: float) -> bool:
    return not 1.0 / _WRONG < scale < _WRONG


def effort_scale(equations: ArmEquations, relative: Mapping[str, float]) -> EffortScale:
    """Scale of all efforts, and of each joint's; `relative` are scales over that of one joint, where they are known.

    If all joints that lift weight are far off in one direction, all have the scale of the largest load: the fit, which
    begins at the nominal links, then says nothing of scales relative to each other. If some joints lift weight, the
    scale of one that should and does not is its own factor, near 0: it is exchanged with another.
    """
    factors = equations.link_factors()
    lifting = {name: factor for name, (factor, ratio) in factors.items() if abs(factor) * ratio > _LIFTED}
    weightless = tuple(
        name
        for name, (factor, ratio) in factors.items()
        if ratio > _HEAVY and abs(factor) < min(1.0 / _WRONG, _LIFTED / ratio)
    )
    scales = dict.fromkeys(equations.model.joint_names, 1.0)
    if not lifting:
        return EffortScale(1.0, scales, weightless, False)
    largest, scale = next(iter(lifting.items()))
    if min(lifting.values()) > _WRONG or max(lifting.values()) < 1.0 / _WRONG:
        return EffortScale(scale, dict.fromkeys(scales, scale), weightless, True)
    overall = scale / relative.get(largest, 1.0)
    scales = {name: overall * relative.get(name, 1.0) for name in scales}
    scales |= {name: factors[name][0] for name in weightless}
    return EffortScale(overall, scales, weightless, True)


def recorded_effort_scale(signals: ArmSignals, robot: Robot) -> EffortScale:
    """Scale of the efforts of one recording, for stages that do not identify friction; joints are joint_1, ..."""
    names = tuple(f"joint_{k + 1}" for k in range(len(robot.arm.joints)))
    return effort_scale(
        arm_equations([signals], ArmFrictionModel(names, robot.arm.tree() if robot.arm.urdf else None)), {}
    )
