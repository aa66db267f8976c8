"""What a person sees: each module shows one piece of state and emits intent."""
