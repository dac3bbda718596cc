"""How good is the advice? Policies for batch size and learning rate, replayed from bad starts on real tasks."""
