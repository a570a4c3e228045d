"""Results for others: Nav2's parameters, a URDF with friction and bodies, MuJoCo's motors."""
