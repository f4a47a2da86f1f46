"""What the clients' tests ask a small real model for: shapes that a grammar makes it keep to."""

from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from tests.prompts import user

# Greedy, and with room for a shape's last brace: the model is too small to choose well, not to obey.
SURE: dict[str, Any] = {"temperature": 0, "max_tokens": 120}
WEATHER = user("What is the weather in Paris?")
City = Literal["Paris", "Rome"]
CITIES = set(get_args(City))


class GetWeather(BaseModel):
    """The weather in a city."""

    model_config = ConfigDict(extra="forbid")
    city: City = Field(description="which of the two")


class Thing(BaseModel):
    """Something of a colour."""

    model_config = ConfigDict(extra="forbid")
    colour: Literal["red", "blue"]
    size: Literal["small", "large"]
