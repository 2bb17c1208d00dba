"""Operations on tensors that learners spend their time in, each with its gradients.

What TensorFlow's libraries have no quick kernel for is compiled for the processor that is there;
elsewhere their operations stand in for it. Nothing here knows of agents.
"""

import recurrent_replay

recurrent_replay.check()
