"""What all messages are made of."""

from runtime.protocol.values import Value


class Command(Value, tag_field="type", tag=True):
    """Base of what the window asks for."""

    request_id: int


class Event(Value, tag_field="type", tag=True):
    """Base of what the runtime tells."""


class Reply(Event):
    """Base of events that belong to a command."""

    request_id: int
