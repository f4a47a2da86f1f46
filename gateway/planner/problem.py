"""What ends a plan: a message that names the field, option or file, and what to do about it."""


class PlanProblem(Exception):
    """The plan cannot be made; its text is for the operator and says the mend."""
