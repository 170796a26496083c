"""`lagwise scaling`: the signal that autoscalers ask for."""
