"""Why sizing does not answer a question as it was asked."""

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import LagwiseError


class BadQuestion(LagwiseError):
    """The inputs contradict each other, lack something, or one of them is out of its range.

    ``called`` is what the asker calls the input at fault, where it is one; the message then says what is allowed.
    """

    code = ErrorCode.REQUEST_REJECTED

    def __init__(self, message: str, called: str | None = None) -> None:
        super().__init__(message)
        self.called = called
