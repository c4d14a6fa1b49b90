"""Sparse Jacobians and Hessians: patterns by dataflow, colouring, compressed evaluation.

sets < rules < pattern < derivatives;  colouring stands alone
"""
