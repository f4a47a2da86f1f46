"""Plans of all models of the catalogue on one machine, those included of which none can be made."""

from dataclasses import replace

from gateway.planner import catalogue
from gateway.planner.hardware import Hardware
from gateway.planner.plan import Options, Plan, Refused, make
from gateway.planner.problem import PlanProblem
from gateway.planner.source import Model


def make_all(hardware: Hardware | None, options: Options) -> list[Plan | Refused]:
    """One for each model, in the catalogue's order, with no more context than the model has.

    Raises PlanProblem where there is none for any model: then the options are at fault.
    """
    found: list[Plan | Refused] = []
    for entry in catalogue.every():
        length = options.max_model_len and min(options.max_model_len, entry.shape.max_model_len)
        model = Model(entry.name, entry.repository, entry.shape, entry.weights)
        try:
            found.append(make(model, hardware, replace(options, max_model_len=length)))
        except PlanProblem as problem:
            found.append(Refused(model, str(problem)))
    reasons = [one.why for one in found if isinstance(one, Refused)]
    if len(reasons) == len(found):
        raise PlanProblem(reasons[0])
    return found
