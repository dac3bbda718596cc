import pytest

from noisescale.capture.parameter_groups import MAX_GROUPS, OTHER, group_parameters, layer_of
from noisescale_core.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("blocks.0.attn.qkv.weight", "blocks.0"),
        ("embed.weight", "embed"),
        ("0.weight", "0"),
        ("encoder.layer.11.output.dense.bias", "encoder.layer.11"),
        ("head.proj.weight", "head.proj"),
        ("weight", "weight"),
    ],
)
def test_a_parameter_belongs_to_the_module_up_to_its_first_number(name, layer):
    assert layer_of(name) == layer


def test_groups_come_in_network_order():
    names = ["embed.weight", "blocks.0.a.weight", "blocks.0.b.weight", "blocks.1.a.weight", "blocks.0.c.bias"]

    assert group_parameters(names) == (["embed", "blocks.0", "blocks.1"], [0, 1, 1, 2, 1])


def test_too_many_layers_are_grouped_more_coarsely():
    names = [f"stage{stage}.block.{block}.weight" for stage in range(10) for block in range(50)]

    groups, indices = group_parameters(names)

    assert groups == [f"stage{stage}.block" for stage in range(10)]
    assert indices[:51] == [0] * 50 + [1]


def test_what_cannot_be_coarser_goes_to_other():
    names = [f"layer{i}.weight" for i in range(400)]

    groups, indices = group_parameters(names)

    assert len(groups) == MAX_GROUPS
    assert groups[-1] == OTHER
    assert indices[300:] == [MAX_GROUPS - 1] * 100


def test_a_function_names_the_groups():
    groups, indices = group_parameters(["a.weight", "a.bias"], lambda name: name.split(".")[-1])

    assert (groups, indices) == (["weight", "bias"], [0, 1])


@pytest.mark.parametrize("grouping", ["modules", 7, lambda name: ""])
def test_another_grouping_is_refused(grouping):
    with pytest.raises(ConfigError, match="groups"):
        group_parameters(["a.weight"], grouping)
