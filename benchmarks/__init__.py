"""How fast the parts are, alone and together, and against a named peer. Nothing imports this."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow, which a peer may not have
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")  # a peer shares the GPU
