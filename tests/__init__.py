"""Tests of Verso; the folders mirror the packages of ``desktop``."""
