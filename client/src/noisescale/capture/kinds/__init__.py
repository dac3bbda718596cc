"""Noise scales in other geometries than the Euclidean one: Adam's, the sign's, the spectral and the Hessian's."""
