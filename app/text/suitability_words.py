"""Words of how well a model bears to have most of its experts elsewhere."""

from app.text.phrases import DOT
from app.text.translate import tr
from app.text.units import percent, tokens
from app.text.words import Word
from runtime.protocol.model import Suitability, SuitabilityRating
from runtime.protocol.values import HitsBasis


class SuitabilityWords:
    """The three ratings."""

    WELL = Word("Suits offloading well")
    FAIRLY = Word("Suits offloading fairly")
    BADLY = Word("Suits offloading badly")
    EXPLAINED = Word(
        "The more tokens in a row choose the same experts, the more a small memory of experts is "
        "worth."
    )
    OF_FAMILY = Word("recorded of its family")


def suitability_line(known: Suitability | None) -> str:
    """For example ``Suits offloading well · recorded of its family``; empty if nothing is known."""
    if known is None:
        return ""
    ratings = {
        SuitabilityRating.WELL: SuitabilityWords.WELL,
        SuitabilityRating.FAIRLY: SuitabilityWords.FAIRLY,
        SuitabilityRating.BADLY: SuitabilityWords.BADLY,
    }
    return DOT.join((ratings[known.rating], _source(known)))


def suitability_explained(known: Suitability | None) -> str:
    """What the rating rests on, a line for each measure."""
    if known is None:
        return ""
    lines = [
        SuitabilityWords.EXPLAINED,
        tr("Of the experts, {share} can be told for 16 tokens in a row at once.").format(
            share=percent(known.segment_ratio)
        ),
    ]
    lines += [
        tr("A memory of {number} times the experts of a token answers at most {share}.").format(
            number=number, share=percent(ratio)
        )
        for number, ratio in enumerate(known.hit_ratios, 1)
    ]
    return "\n".join(lines)


def _source(known: Suitability) -> str:
    if known.basis is HitsBasis.OWN:
        return tr("counted over {tokens} here").format(tokens=tokens(known.num_tokens))
    return SuitabilityWords.OF_FAMILY
