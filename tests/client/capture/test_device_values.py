"""The late way of CUDA values, with an event that the test sets."""

import pytest
import torch

from noisescale.capture.sums.device_values import DeviceValues


class FakeEvent:
    made: list["FakeEvent"]

    def __init__(self):
        self.has_passed = False
        self.was_waited_for = False
        FakeEvent.made.append(self)

    def record(self):
        pass

    def query(self):
        return self.has_passed

    def synchronize(self):
        self.was_waited_for = self.has_passed = True


@pytest.fixture(autouse=True)
def _no_events():
    FakeEvent.made = []


def test_host_values_are_there_at_once():
    values = DeviceValues()

    values.send("a", torch.tensor([1.0, 2.0]))

    assert values.arrived() == [("a", [1.0, 2.0])]
    assert values.arrived() == []


def test_a_device_value_is_read_when_its_event_has_passed_and_never_waited_for():
    values = DeviceValues(FakeEvent)
    values.send(0, torch.tensor([1.0]))
    values.send(1, torch.tensor([2.0]))

    before = values.arrived()
    FakeEvent.made[0].has_passed = True
    after = values.arrived()

    assert (before, after) == ([], [(0, [1.0])])
    assert not any(event.was_waited_for for event in FakeEvent.made)


def test_order_is_kept_where_a_later_copy_is_quicker():
    values = DeviceValues(FakeEvent)
    values.send(0, torch.tensor([1.0]))
    values.send(1, torch.tensor([2.0]))

    FakeEvent.made[1].has_passed = True

    assert values.arrived() == []


def test_the_copy_is_taken_when_sent():
    values = DeviceValues(FakeEvent)
    vector = torch.tensor([1.0])
    values.send(0, vector)

    vector.fill_(9.0)

    assert values.drain() == [(0, [1.0])]


def test_drain_waits_for_everything():
    values = DeviceValues(FakeEvent)
    values.send(0, torch.tensor([1.0]))
    values.send(1, torch.empty(0))

    assert values.drain() == [(0, [1.0]), (1, [])]
    assert all(event.was_waited_for for event in FakeEvent.made)
