"""The newcomer's tour through the whole house."""
