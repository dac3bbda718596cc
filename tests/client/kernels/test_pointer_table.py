"""Tables that the host writes while the device still reads the last ones."""

from dataclasses import dataclass, field

import pytest
import torch

from noisescale.kernels.pointer_table import NUM_SLOTS, NUM_SPARES, PointerTable

CPU = torch.device("cpu")


@dataclass
class LateEvent:
    """Passed when the device says so."""

    device: "LateDevice"
    is_recorded: bool = False

    def record(self):
        self.is_recorded = True

    def query(self):
        return not self.is_recorded or self.device.is_idle


@dataclass
class LateDevice:
    """A device that is behind, records graphs, or works in several streams, as a test wants it."""

    is_idle: bool = False
    captures: bool = False
    current_stream: int = 0
    events: list[LateEvent] = field(default_factory=list)

    def new_event(self):
        self.events.append(LateEvent(self))
        return self.events[-1]

    def is_capturing(self):
        return self.captures

    def stream(self):
        return self.current_stream


@pytest.fixture
def device():
    return LateDevice()


@pytest.fixture
def table(device):
    return PointerTable(2, CPU, device)


def hold(table, *entries):
    with table.holding(entries) as held:
        assert held.tolist() == list(entries)
        return held


def test_tables_that_the_device_may_still_read_are_not_written(table):
    held = [hold(table, number, number + 1) for number in range(10)]

    assert [values.tolist() for values in held] == [[number, number + 1] for number in range(10)]
    assert table.num_slots == 10


def test_tables_that_the_device_is_done_with_are_used_again(table, device):
    device.is_idle = True
    for number in range(10):
        hold(table, number, 0)

    assert table.num_slots == NUM_SLOTS


def test_the_same_entries_are_not_sent_again(table):
    first = hold(table, 7, 8)

    again = hold(table, 7, 8)

    assert again.data_ptr() == first.data_ptr()
    assert table.num_slots == NUM_SLOTS


def test_constants_stand_before_the_entries_of_every_call(device):
    table = PointerTable(2, CPU, device, constants=(70, 5))

    held = []
    for number in range(6):
        with table.holding((number, number + 1)) as values:
            held.append(values)

    assert [values.tolist() for values in held] == [[70, 5, number, number + 1] for number in range(6)]


def test_another_stream_does_not_read_a_table_that_may_still_be_on_its_way(table, device):
    first = hold(table, 7, 8)
    device.current_stream = 5

    other = hold(table, 7, 8)

    assert other.data_ptr() != first.data_ptr()


def test_the_table_of_a_graph_is_never_written_again(table, device):
    hold(table, 0, 0)
    device.captures = True
    captured = [hold(table, 7, 8), hold(table, 7, 8)]
    device.captures, device.is_idle = False, True

    for number in range(3 * NUM_SLOTS):
        hold(table, number, number)

    assert [values.tolist() for values in captured] == [[7, 8], [7, 8]]
    assert captured[0].data_ptr() != captured[1].data_ptr()
    assert table.is_in_graph


def test_a_capture_takes_tables_that_were_made_before(table, device):
    hold(table, 0, 0)
    num_events = len(device.events)
    device.captures = True

    for number in range(NUM_SPARES):
        hold(table, number, number)

    assert len(device.events) == num_events
    assert not any(event.is_recorded for event in device.events[NUM_SLOTS:])


def test_nothing_is_in_a_graph_before_a_capture(table):
    hold(table, 1, 2)

    assert not table.is_in_graph
