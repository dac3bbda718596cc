"""A GAN, an actor and a critic: several optimizers in one loop, each a run of its own."""

import pytest
import torch
from torch import nn

from client_runs import flat_gradient, make_kept_run, terms_of, terms_of_means
from noisescale.transport.wire import FinishRecord
from noisescale_core.errors import ConfigError
from noisescale_core.estimators.flags import Flags

SIZES = (4, 4, 4, 4)


class Gan:
    """A generator and a discriminator that learn in turn, from four micro-batches each."""

    def __init__(self, seed=0):
        torch.manual_seed(seed)
        self.generator = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4)).double()
        self.discriminator = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).double()
        self.of_generator = torch.optim.SGD(self.generator.parameters(), lr=0.01)
        self.of_discriminator = torch.optim.SGD(self.discriminator.parameters(), lr=0.01)
        numbers = torch.Generator().manual_seed(seed + 1)
        self.noise = torch.randn(16, 3, generator=numbers).double().split(4)
        self.real = torch.randn(16, 4, generator=numbers).double().split(4)

    def discriminator_loss(self, real, noise):
        fake = self.generator(noise).detach()
        return (
            nn.functional.softplus(-self.discriminator(real)).mean()
            + nn.functional.softplus(self.discriminator(fake)).mean()
        )

    def generator_loss(self, noise):
        return nn.functional.softplus(-self.discriminator(self.generator(noise))).mean()

    def truth(self):
        """What both optimizers would see at these weights."""
        of_discriminator = [
            flat_gradient(self.discriminator_loss(real, noise), list(self.discriminator.parameters()))
            for real, noise in zip(self.real, self.noise, strict=True)
        ]
        of_generator = [
            flat_gradient(self.generator_loss(noise), list(self.generator.parameters())) for noise in self.noise
        ]
        return terms_of_means(of_discriminator, SIZES), terms_of_means(of_generator, SIZES)


def watched_gan(**options):
    gan = Gan()
    truth = gan.truth()
    run, kept = make_kept_run()
    run.watch(gan.discriminator, gan.of_discriminator, name="discriminator", **options)
    run.watch(gan.generator, gan.of_generator, name="generator", **options)
    return gan, truth, run, kept


def learn(gan, run, *, ignores, num_steps=1):
    for _ in range(num_steps):
        for real, noise in zip(gan.real, gan.noise, strict=True):
            (gan.discriminator_loss(real, noise) / 4).backward()
        run.log_gradients(batch_size=16, name="discriminator")
        gan.of_discriminator.step()
        gan.of_discriminator.zero_grad()
        for noise in gan.noise:
            if ignores:
                with run.ignore("discriminator"):
                    (gan.generator_loss(noise) / 4).backward()
            else:
                (gan.generator_loss(noise) / 4).backward()
        run.log_gradients(batch_size=16, name="generator")
        gan.of_generator.step()
        gan.of_generator.zero_grad()
        gan.of_discriminator.zero_grad()  # the generator's loss has reached it, too


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("ignores", [True, False])
def test_each_optimizer_has_its_own_terms(ignores):
    gan, (of_discriminator, of_generator), run, kept = watched_gan()
    for group in gan.of_discriminator.param_groups:
        group["lr"] = 0.0  # so that the generator meets the discriminator of the truth

    learn(gan, run, ignores=ignores)

    [beside] = kept.others.values()
    assert terms_of(kept.rows()[0]) == pytest.approx(of_discriminator, rel=1e-10)
    assert terms_of(beside.rows()[0]) == pytest.approx(of_generator, rel=1e-10)
    assert kept.rows()[0].flags == beside.rows()[0].flags == 0


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("ignores", [True, False])
def test_what_the_generators_backward_leaves_in_the_discriminator_does_not_count(ignores):
    """With zero_grad() after it, forgotten or ignored, the second step is the first one of the same weights."""
    gan, (of_discriminator, _), run, kept = watched_gan()
    for optimizer in (gan.of_discriminator, gan.of_generator):
        for group in optimizer.param_groups:
            group["lr"] = 0.0

    learn(gan, run, ignores=ignores, num_steps=3)

    for row in kept.rows():
        assert terms_of(row) == pytest.approx(of_discriminator, rel=1e-10)
        assert (row.flags, row.num_micro_batches) == (0, 4)


def test_training_is_the_same_with_and_without():
    results = []
    for is_watched in (False, True):
        gan = Gan()
        run, _ = make_kept_run()
        if is_watched:
            run.watch(gan.discriminator, gan.of_discriminator, name="discriminator")
            run.watch(gan.generator, gan.of_generator, name="generator")
            learn(gan, run, ignores=True, num_steps=5)
        else:
            run.watch(nn.Linear(1, 1), name="discriminator")
            run.watch(nn.Linear(1, 1), name="generator")
            learn(gan, run, ignores=False, num_steps=5)
        results.append([p.detach().clone() for p in [*gan.generator.parameters(), *gan.discriminator.parameters()]])

    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_each_has_a_run_record_of_its_own():
    gan, _, run, kept = watched_gan()

    learn(gan, run, ignores=True)

    main = run._recorders.main._run_record("simple").run
    [(run_id, _)] = kept.others
    [beside] = kept.others.values()
    record = beside.describe()
    assert main["task"] == "default"
    assert record.run["task"] == "default/generator"
    assert record.run["name"] == f"{run.id[:8]} · generator"
    assert record.run["config"] == {"optimizer_of_run": run.id}
    assert run_id != run.id
    assert record.stream["optimizer"] == "SGD"


def test_the_noise_scale_is_asked_for_by_name():
    gan, _, run, _ = watched_gan()

    learn(gan, run, ignores=True, num_steps=3)

    assert run.noise_scale(name="generator").num_updates == 3
    assert run.noise_scale(name="discriminator").num_updates == run.noise_scale().num_updates == 3
    assert run.noise_scale(name="generator").estimate != run.noise_scale().estimate


def test_finish_ends_all_of_them():
    gan, _, run, kept = watched_gan()
    learn(gan, run, ignores=True)

    run.finish()

    [beside] = kept.others.values()
    assert beside.is_closed
    assert kept.is_closed
    assert isinstance(beside.records[-1], FinishRecord)
    assert isinstance(kept.records[-1], FinishRecord)
    assert not gan.generator._forward_pre_hooks


def test_a_fault_at_the_end_of_one_does_not_keep_the_other_open():
    gan, _, run, kept = watched_gan()
    run.faults._is_strict = False
    learn(gan, run, ignores=True)
    run._recorders.main._log.flush = None

    run.finish()

    [beside] = kept.others.values()
    assert beside.is_closed
    assert kept.is_closed
    assert run.faults.count == 1


def test_a_name_that_nobody_gave_is_reported_and_not_raised(caplog):
    gan, _, run, kept = watched_gan()
    run.faults._is_strict = False
    learn(gan, run, ignores=True)

    run.log_gradients(name="critic")
    with run.ignore("critic"):
        pass
    unknown = run.noise_scale(name="critic")

    assert run.faults.count == 4
    assert "(discriminator, generator), got 'critic'" in caplog.text
    assert (unknown.num_updates, unknown.value) == (0, None)
    assert len(kept.rows()) == 1


def test_a_second_optimizer_needs_a_name():
    gan = Gan()
    run, kept = make_kept_run()
    run.watch(gan.discriminator, gan.of_discriminator)

    with pytest.raises(ConfigError, match='as in watch\\(model, optimizer, name="generator"\\)'):
        run.watch(gan.generator, gan.of_generator)
    run.watch(gan.generator, gan.of_generator, name="generator")
    with pytest.raises(ConfigError, match="watches an optimizer already"):
        run.watch(gan.discriminator, gan.of_discriminator, name="generator")
    run.watch(gan.generator, gan.of_generator, name="generator")  # the same once more

    assert len(kept.others) == 1


def test_a_refused_watch_leaves_no_run_behind():
    gan = Gan()
    run, kept = make_kept_run()
    run.watch(gan.discriminator, gan.of_discriminator)

    with pytest.raises(ConfigError):
        run.watch(nn.ReLU(), name="generator")
    run.finish()

    assert all(not beside.records for beside in kept.others.values())


def test_one_may_be_watched_again_after_unwatch():
    gan, _, run, kept = watched_gan()
    learn(gan, run, ignores=True)
    run.unwatch()

    run.watch(gan.generator, gan.of_generator, name="generator")
    run.watch(gan.discriminator, gan.of_discriminator, name="discriminator")
    learn(gan, run, ignores=True)

    [beside] = kept.others.values()
    assert [row.step for row in kept.rows()] == [0, 1]
    assert [row.step for row in beside.rows()] == [0, 1]


def test_a_marked_micro_batch_holds_for_all_of_them():
    gan, _, run, kept = watched_gan()

    for real, noise in zip(gan.real, gan.noise, strict=True):
        with run.micro_batch(4):
            (gan.discriminator_loss(real, noise) / 4).backward()
            with run.ignore("discriminator"):
                (gan.generator_loss(noise) / 4).backward()
    for name in ("discriminator", "generator"):
        run.log_gradients(name=name)

    [beside] = kept.others.values()
    for row in (kept.rows()[0], beside.rows()[0]):
        assert (row.num_micro_batches, row.global_batch, row.flags) == (4, 16, Flags(0))
