"""Messages that the tests send."""

from openai.types.chat import ChatCompletionMessageParam, ChatCompletionUserMessageParam

Messages = list[ChatCompletionMessageParam]


def user(text: str) -> Messages:
    """One message of the user's."""
    return [ChatCompletionUserMessageParam(role="user", content=text)]


CAPITAL = user("What is the capital of France? Answer in one sentence.")
COUNT = user("Count as far as you can.")
HELLO = user("hello")
