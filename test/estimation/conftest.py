"""What several tests of the arm's filter read: a recording of a real arm, and the model of that arm."""

from __future__ import annotations

import keiser_arm
import pytest

from youbot_dynamics.dynamics.arm import ArmModel


@pytest.fixture(scope="session")
def keiser() -> keiser_arm.Recording:
    return keiser_arm.keiser_recording()


@pytest.fixture(scope="session")
def arm(keiser: keiser_arm.Recording) -> ArmModel:
    return keiser_arm.keiser_arm(keiser)
