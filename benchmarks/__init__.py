"""Measurements of speed, of parts, whole runs and rivals; and the studies that docs/ prints."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow, which a rival may not have
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")  # a rival shares the GPU
