"""Signals and rows of the arm: windows, regressors, bodies, Stribeck and bristles."""
