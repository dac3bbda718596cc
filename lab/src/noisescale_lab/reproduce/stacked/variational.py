"""Stacked variational autoencoders: two networks with a random code between them, backward by hand.

R replicas, B examples, I pixels, L numbers of the code, P parameters of one replica.

The inputs carry the noise of the code behind the pixels, [R, B, I + L], so that a key means an example and its noise.
The outputs carry the code's mean and log variance behind the logits of the pixels, [R, B, I + 2 L], so that the loss
sees both of its parts.

Source: Kingma & Welling 2014, arXiv:1312.6114, sections 2.4 and 3.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from noisescale_lab.reproduce.stacked.losses import Loss
from noisescale_lab.reproduce.stacked.network import Gradient, Network

SEED_OF_DECODER = 10_007
"""Added to a replica's seed, so that encoder and decoder do not start from the same numbers."""


@dataclass(frozen=True, slots=True)
class VariationalAutoencoder:
    """A code z = mean + noise × exp(log variance / 2), and what it is decoded to.

    Attributes:
        encoder: From pixels to L means and L log variances.
        decoder: From L numbers to the logits of the pixels.
    """

    encoder: Network
    decoder: Network

    @property
    def num_parameters(self) -> int:
        """P."""
        return self.encoder.num_parameters + self.decoder.num_parameters

    @property
    def code_size(self) -> int:
        """L."""
        return self.decoder.layers[0].num_inputs

    def initial(self, seeds: list[int]) -> Tensor:
        """Initial parameters, one row a seed, [R, P]."""
        decoder = self.decoder.initial([seed + SEED_OF_DECODER for seed in seeds])
        return torch.cat([self.encoder.initial(seeds), decoder], 1)

    def forward(self, parameters: Tensor, inputs: Tensor) -> list[Tensor]:
        """Values of the encoder, of the decoder, and the outputs."""
        weights_of_encoder, weights_of_decoder = self._parts(parameters)
        pixels, noise = inputs[..., : -self.code_size], inputs[..., -self.code_size :]
        encoded = self.encoder.forward(weights_of_encoder, pixels)
        mean, log_variance = encoded[-1].chunk(2, -1)
        decoded = self.decoder.forward(weights_of_decoder, mean + noise * (log_variance / 2).exp())
        return [*encoded, *decoded, torch.cat([decoded[-1], encoded[-1]], -1)]

    def backward(
        self,
        parameters: Tensor,
        symbols: Tensor,
        values: list[Tensor],
        derivatives: Tensor,
        *,
        wants_norms: bool = True,
    ) -> Gradient:
        """Mean gradient and per-example squared norms.

        Args:
            parameters: [R, P].
            symbols: The inputs that `forward` was given.
            values: What `forward` returned.
            derivatives: Of each example's loss with respect to the outputs, [R, B, I + 2 L].
            wants_norms: Whether to go to the cost of squared norms.
        """
        weights_of_encoder, weights_of_decoder = self._parts(parameters)
        middle = len(self.encoder.layers) + 1
        encoded, decoded = values[:middle], values[middle:-1]
        of_logits, of_code = derivatives[..., : -2 * self.code_size], derivatives[..., -2 * self.code_size :]
        decoder = self.decoder.backward(
            weights_of_decoder, symbols, decoded, of_logits, wants_norms=wants_norms, wants_inputs=True
        )
        assert decoder.inputs is not None
        mean, _ = encoded[-1].chunk(2, -1)
        # z - mean is the noise times the deviation, whose derivative by the log variance is half of itself
        through_code = torch.cat([decoder.inputs, decoder.inputs * (decoded[0] - mean) / 2], -1)
        encoder = self.encoder.backward(
            weights_of_encoder, symbols, encoded, of_code + through_code, wants_norms=wants_norms
        )
        return Gradient(
            mean=torch.cat([encoder.mean, decoder.mean], 1),
            example_sq_norm=encoder.example_sq_norm + decoder.example_sq_norm,
        )

    def _parts(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        middle = self.encoder.num_parameters
        return parameters[:, :middle], parameters[:, middle:]


def negative_evidence_bound(code_size: int) -> Loss:
    """Bernoulli likelihood summed over pixels in [0, 1], plus the divergence of the code from a standard normal.

    Args:
        code_size: L.
    """

    def loss(outputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        logits, code = outputs[..., : -2 * code_size], outputs[..., -2 * code_size :]
        mean, log_variance = code.chunk(2, -1)
        likelihood = (torch.nn.functional.softplus(logits) - targets * logits).sum(-1)
        variance = log_variance.exp()
        divergence = (mean.square() + variance - 1 - log_variance).sum(-1) / 2
        derivatives = torch.cat([torch.sigmoid(logits) - targets, mean, (variance - 1) / 2], -1)
        return likelihood + divergence, derivatives

    return loss
