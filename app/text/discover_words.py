"""Words of *Discover*: models of a hub, and downloads."""

from collections.abc import Sequence

from app.state.downloads import DownloadItem, DownloadStage
from app.text.errors import sentence
from app.text.phrases import DOT, progress_line
from app.text.translate import tr, trn
from app.text.units import count, rate_band, size, weights
from app.text.words import Word
from runtime.protocol.hub import HubCard, HubFit, HubModel, HubOutlook, HubVariant


class DiscoverWords:
    """Fixed words."""

    DISCOVER = Word("Discover")
    SEARCH = Word("Search a hub of models, for example qwen3 moe")
    SEARCHING = Word("Searching…")
    STARTERS = Word("Models that are known to run")
    FOUND = Word("What the hub has, suited to this PC first")
    NOTHING = Word("The hub has no such model. Try fewer or other words.")
    ALLOW_TITLE = Word("Larder has not asked the network for anything")
    ALLOW_TEXT = Word(
        "To search and download, it has to ask a hub of models. It sends the words you search for, "
        "the names of models that are listed here and, if you have one, your token there. Nothing "
        "else, and nothing about your chats. You can turn this off in the settings."
    )
    ALLOW = Word("Allow searching and downloading")
    CHOOSE_TITLE = Word("Look at a model before it is downloaded")
    CHOOSE_TEXT = Word(
        "For a model on the left you see here what would come, how large it is, and how fast it "
        "would answer on this PC. Only the beginnings of its files are fetched for that."
    )
    ASKING = Word("Asking the hub…")
    PLANNING = Word("Planning for this PC…")
    NO_OUTLINE = Word(
        "This drive cannot hold an outline of the model, so how fast it would be is told after the "
        "download."
    )
    GATED = Word("its owner wants to be asked")
    DOWNLOAD = Word("Download")
    DOWNLOADS = Word("Downloads")
    PAUSE = Word("Pause")
    RESUME = Word("Resume")
    REMOVE = Word("Cancel and delete what came")
    CLEAR = Word("Take off the list")
    LOOK_AT = Word("Look at it")
    SIZES = Word("The same model in files of several sizes: more bits are more exact")
    IN_MEMORY = Word("fits into memory")
    ON_DRIVE = Word("runs from the drive")
    ADVISED = Word("suits this PC best")
    TOO_LARGE = Word("needs more memory than this PC has")
    NO_ROOM = Word("There is not enough room for it on its drive.")
    HUB = Word("Models from a hub")
    HUB_ALLOWED = Word("Search and download models over the network")
    HUB_ADDRESS = Word("Address of the hub")
    HUB_ADDRESS_HINT = Word("empty: huggingface.co, or what HF_ENDPOINT says")
    HUB_ADDRESS_WRONG = Word("An address begins with https:// or http://. It is not taken yet.")
    FOLDER = Word("Downloads go to")
    CHOOSE_FOLDER = Word("Choose…")
    USUAL_FOLDER = Word("Usual place")


def fit_line(fit: HubFit) -> str:
    """How a model suits this program and PC."""
    names = {
        HubFit.FITS: tr("runs on Larder"),
        HubFit.NO_ROOM: tr("needs more room than its drive has"),
        HubFit.DENSE: tr("runs, but has no experts"),
        HubFit.UNKNOWN: tr("the hub does not say what kind it is"),
        HubFit.NOT_RUNNABLE: tr("cannot be run yet"),
    }
    return names[fit]


def model_facts(model: HubModel) -> str:
    """For example ``30.5 B weights · 56.9 GiB · apache-2.0``."""
    parts = []
    if model.num_parameters:
        parts.append(weights(model.num_parameters))
    if model.gguf_label:
        parts.append(_files_in_gguf(model))
    elif model.size_bytes:
        parts.append(size(model.size_bytes))
    if model.licence:
        parts.append(model.licence)
    if model.is_gated:
        parts.append(DiscoverWords.GATED)
    if model.num_downloads:
        text = trn("{count} download", "{count} downloads", model.num_downloads)
        parts.append(text.format(count=count(model.num_downloads)))
    return DOT.join(parts)


def _files_in_gguf(model: HubModel) -> str:
    """For example ``GGUF, about 17 GiB as Q4_K_M``."""
    if not model.size_bytes:
        return "GGUF"
    words = tr("GGUF, about {size} as {bits}")
    return words.format(size=size(model.size_bytes), bits=model.gguf_label)


def variant_line(variant: HubVariant, outlook: HubOutlook | None, *, is_advised: bool) -> str:
    """For example ``Q4_K_M · 17.3 GiB · about 19–24 tokens/s on this PC · fits into memory``."""
    parts = [variant.name, size(variant.size_bytes)]
    if variant.num_files > 1:
        text = trn("{count} file", "{count} files", variant.num_files)
        parts.append(text.format(count=count(variant.num_files)))
    if variant.is_here:
        parts.append(tr("is here"))
    elif variant.fit is HubFit.NO_ROOM:
        parts.append(fit_line(variant.fit))
    if outlook is not None:
        parts.append(forecast_line(outlook))
        if outlook.forecast is not None:
            parts.append(DiscoverWords.ON_DRIVE if outlook.is_on_drive else DiscoverWords.IN_MEMORY)
    if is_advised:
        parts.append(DiscoverWords.ADVISED)
    return DOT.join(filter(None, parts))


def unreadable_line(variants: Sequence[HubVariant]) -> str:
    """Name the files whose numbers are not read."""
    names = ", ".join(each.name for each in variants)
    return tr("Their numbers cannot be read yet: {names}").format(names=names) if names else ""


def forecast_line(outlook: HubOutlook) -> str:
    """For example ``about 19–24 tokens/s on this PC``; empty where that is not known."""
    forecast = outlook.forecast
    if forecast is None:
        return DiscoverWords.TOO_LARGE if outlook.is_too_large else ""
    rate = rate_band(forecast.decode_tokens_per_s_low, forecast.decode_tokens_per_s_high)
    return tr("about {rate} on this PC").format(rate=rate)


def card_lines(card: HubCard) -> str:
    """What the hub says of a model, and what would come."""
    facts = [tr("licence: {name}").format(name=card.licence or tr("not stated"))]
    if card.is_gated:
        facts.append(DiscoverWords.GATED)
    if card.last_modified:
        facts.append(tr("changed {day}").format(day=card.last_modified))
    if card.base_model:
        facts.append(tr("made from {name}").format(name=card.base_model))
    if card.languages:
        facts.append(", ".join(card.languages))
    lines = [DOT.join(facts)]
    if card.size_bytes:
        files = trn("{size} in {count} file", "{size} in {count} files", card.num_files)
        coming = [files.format(size=size(card.size_bytes), count=count(card.num_files))]
        if card.left_out_bytes:
            left_out = tr("{size} of other formats stay there")
            if card.variant:
                left_out = tr("{size} of other sizes and files stay there")
            coming.append(left_out.format(size=size(card.left_out_bytes)))
        if card.kept_bytes and not card.is_here:
            coming.append(tr("{size} are here already").format(size=size(card.kept_bytes)))
        lines.append(DOT.join(coming))
        place = tr("goes to {folder}, where {size} are free")
        lines.append(place.format(folder=card.folder, size=size(card.free_bytes)))
    return "\n".join(lines)


def download_button(card: HubCard) -> str:
    """For example ``Download 56.9 GiB``."""
    return tr("Download {size}").format(size=size(max(card.size_bytes - card.kept_bytes, 0)))


def download_line(item: DownloadItem) -> str:
    """Where a download is: amount, rate, time left, or why it stopped."""
    amount = progress_line(item.done_bytes, item.total_bytes, item.bytes_per_s, item.seconds_left)
    names = {
        DownloadStage.WAITING: tr("waits for its turn"),
        DownloadStage.RUNNING: "" if item.bytes_per_s > 0 else tr("waiting for the hub"),
        DownloadStage.PAUSING: tr("pausing…"),
        DownloadStage.PAUSED: tr("paused, what came is kept"),
    }
    if item.stage is DownloadStage.DONE:
        return tr("complete and verified, {size}").format(size=size(item.total_bytes))
    if item.stage is DownloadStage.FAILED and item.error is not None:
        parts = [amount, sentence(item.error)]
        if item.is_passing:
            parts.append(tr("It is tried again by itself."))
        return "\n".join(part for part in parts if part)
    if item.num_retries:
        names[DownloadStage.RUNNING] = tr("the line broke, trying again")
    return DOT.join(part for part in (amount, names.get(item.stage, "")) if part)


def downloaded_line(item: DownloadItem) -> str:
    """What a person reads when a model is here."""
    return tr("{name} is here, complete and verified: {folder}").format(
        name=download_name(item), folder=item.folder
    )


def download_name(item: DownloadItem) -> str:
    """For example ``owner/model · Q4_K_M``."""
    return DOT.join(filter(None, (item.model_id, item.variant)))
