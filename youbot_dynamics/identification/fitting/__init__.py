"""Least squares in blocks: sums that merge, robust weights, intervals, whiteness and the verdict."""
