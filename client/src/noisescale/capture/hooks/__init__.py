"""What is seen while a step is measured: forwards, gradients and the ends of backward passes."""
