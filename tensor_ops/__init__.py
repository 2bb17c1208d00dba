"""Operations on tensors that learners spend their time in, each with its gradients.

Loops without a quick kernel in TensorFlow's libraries are compiled for the processor; elsewhere
TensorFlow's operations stand in for them. Nothing here knows of agents.
"""

import recurrent_replay

recurrent_replay.check()
