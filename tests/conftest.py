"""What every test needs before TensorFlow is imported."""

import os

# TensorFlow reports CPU features and absent GPUs on stderr, which buries a failure's own output.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
