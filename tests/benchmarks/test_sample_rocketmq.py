"""The frames that fill a broker are whole, and what is measured is as large as is said."""

from benchmarks.sample_rocketmq.__main__ import FULL, requests_of_sample, requests_of_tool
from benchmarks.sample_rocketmq.filling import with_body
from lagwise_collectors.rocketmq.remoting.frames import Request, decode, encode, length_of


def test_a_frame_with_a_body_is_as_long_as_it_says() -> None:
    frame = with_body(encode(Request(200, "making a group"), 7, {"name": "x"}), b'{"groupName":"x"}')
    assert length_of(frame[:4]) == len(frame) - 4
    read = decode(frame[4:])
    assert (read.code, read.opaque, read.fields, read.body) == (200, 7, {"name": "x"}, b'{"groupName":"x"}')


def test_the_size_is_that_of_the_goal() -> None:
    assert FULL.group_partitions == 500 * 16 * 20
    assert len(requests_of_sample(FULL)) == 500 + 20 + 4
    assert len(requests_of_tool(FULL)) == 2 * 500
