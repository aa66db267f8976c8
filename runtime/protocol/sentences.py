"""What a person reads for each error and each reason, in English.

A template says what happened, with numbers and units, then what to do. Its places in braces are the
parameters of the report. A translation replaces the template and is filled by the same ``fill``.
"""

from collections.abc import Mapping
from types import MappingProxyType

from runtime.protocol.errors import ErrorCode, ErrorReport
from runtime.protocol.hub_sentences import HUB_TEMPLATES
from runtime.protocol.plan import Reason, ReasonCode
from runtime.protocol.wording import fill

__all__ = [
    "ERROR_TEMPLATES", "REASON_TEMPLATES", "fill", "reason_sentence", "sentence", "template",
]  # fmt: skip

ERROR_TEMPLATES: Mapping[ErrorCode, str] = MappingProxyType(
    {
        **HUB_TEMPLATES,
        ErrorCode.PROMPT_TOO_LONG: (
            "This conversation takes {prompt_tokens} tokens (pieces of words) and the context has"
            " room for {context_tokens}. Shorten the message, start a new chat, or load the model"
            " with a longer context."
        ),
        ErrorCode.ENGINE_BUSY: (
            "The model is still busy with the request before. Wait until it is done, or press Stop."
        ),
        ErrorCode.NO_MODEL_LOADED: "No model is loaded. Choose one on the Models page.",
        ErrorCode.MODEL_ALREADY_LOADED: (
            "{name} is loaded already. Unload it before you load another model."
        ),
        ErrorCode.SETTING_INVALID: (
            "The setting {name} is {found}, but {expected} is needed. Change it and try again."
        ),
        ErrorCode.MACHINE_FILE_INVALID: (
            "{file}, which states figures of this PC, cannot be used: at {place}, {found} was"
            " found, but {expected} is needed. Change that in a text editor, or take the file away"
            " so that what is found here counts, and try again."
        ),
        ErrorCode.TEXT_INVALID: (
            "{file} cannot be used as the text that a model reads: {reason}. Choose a file of plain"
            " text, saved as UTF-8, of at least {min_words} words."
        ),
        ErrorCode.CONVERSATION_INVALID: (
            "The model does not accept this conversation: “{reason}”. Change that message, or start"
            " a new chat."
        ),
        ErrorCode.FOLDER_NOT_FOUND: (
            "There is no folder {folder}. Check the name, or choose the folder again."
        ),
        ErrorCode.NOT_A_MODEL: (
            "{folder} is not a model folder: {reason}. Choose a folder that holds config.json and"
            " safetensors files, or a GGUF file."
        ),
        ErrorCode.SEVERAL_MODELS: (
            "{folder} holds {num_models} models. Choose one of them: {names}."
        ),
        ErrorCode.COPY_WITHOUT_MODEL: (
            "{folder} is a prepared copy of {name} and not the model itself, which is needed too."
            " Choose the folder of {name}; the copy is used if it lies where copies are kept."
        ),
        ErrorCode.FILE_UNREADABLE: (
            "{file} cannot be read: {reason}. Check that the drive is connected and that you may"
            " read the file."
        ),
        ErrorCode.FILE_INVALID: "{file} cannot be used: {reason}. Download it again.",
        ErrorCode.CONFIG_INVALID: (
            "In {file}, {field} is {found}, but {expected} is needed. Download the file again, or"
            " choose another model."
        ),
        ErrorCode.ARCHITECTURE_UNSUPPORTED: (
            "Models of the kind {architecture} cannot be run yet. Choose a model of one of these"
            " kinds: {supported}."
        ),
        ErrorCode.QUANTIZATION_UNSUPPORTED: (
            "The weights are stored as {method}, which cannot be read yet. Choose a version of the"
            " model that is stored as one of these: {supported}."
        ),
        ErrorCode.SHARD_MISSING: (
            "The weight file {file} is missing (matrices in it: {num_tensors}, the first:"
            " {first_tensor}). Download it into the model folder."
        ),
        ErrorCode.SHARD_MISNAMED: (
            "The weight file {file} is missing, but {found} holds what belongs in it. Rename"
            " {found} to {file}."
        ),
        ErrorCode.INDEX_STALE: (
            "{file} does not fit the weight files beside it: by this list {tensor} is in"
            " {expected}, but {found} (matrices it gets wrong: {num_tensors}). Download the whole"
            " model again into an empty folder."
        ),
        ErrorCode.SHARD_TRUNCATED: (
            "The weight file {file} is not complete: it has {found_bytes} of {expected_bytes}."
            " Download it again."
        ),
        ErrorCode.SHARD_INVALID: (
            "The weight file {file} is damaged: {reason}. Download it again."
        ),
        ErrorCode.TENSOR_MISSING: (
            "The weight files lack matrices that the model needs (in all {num_missing}, {tensor}"
            " among them). Download the model again."
        ),
        ErrorCode.TENSOR_MISMATCHED: (
            "In {file}, the matrix {tensor} is {found}, but {expected} is needed. Download the"
            " model again, or choose another model."
        ),
        ErrorCode.WEIGHTS_NOT_FINITE: (
            "{place} holds values that are not numbers, so every answer would be nonsense. Download"
            " the model again, or choose another version of it."
        ),
        ErrorCode.TOKENIZER_MISSING: (
            "The file {file} is missing; it says how text is cut into tokens. Download it into the"
            " model folder."
        ),
        ErrorCode.TOKENIZER_INVALID: ("{file} cannot be used: {reason}. Download it again."),
        ErrorCode.CHAT_TEMPLATE_MISSING: (
            "{folder} does not say how a conversation is written down for this model. Choose a"
            " model made for chat; the names of many end in Instruct or Chat."
        ),
        ErrorCode.CHAT_TEMPLATE_INVALID: (
            "The model's own description of how a conversation is written down has a mistake:"
            " {reason}. Download tokenizer_config.json again, or choose another model."
        ),
        ErrorCode.RAM_BUDGET_TOO_SMALL: (
            "The RAM budget is {budget_bytes}, but this plan needs at least {needed_bytes}. Raise"
            " the budget, or choose a plan with fewer bits."
        ),
        ErrorCode.RAM_NOT_FREE: (
            "The model may take {free_bytes} of RAM now, but this plan needs at least"
            " {needed_bytes}. Close other programs, or choose a plan with fewer bits."
        ),
        ErrorCode.VRAM_BUDGET_TOO_SMALL: (
            "Beside {ram_bytes} of RAM this plan needs at least {needed_bytes} of {device}, and may"
            " use {budget_bytes} of it. Raise that budget, or the one of RAM."
        ),
        ErrorCode.VRAM_NOT_THERE: (
            "There is no graphics card {device} in this PC. Choose a card that is listed, or plan"
            " without one."
        ),
        ErrorCode.VRAM_FULL: (
            "The graphics card {device} has no memory left, although its experts gave a part back."
            " Close programs that use the card, or choose a smaller VRAM budget, then load the"
            " model again."
        ),
        ErrorCode.CONTEXT_TOO_LONG: (
            "A context of {asked_tokens} tokens is more than this model can use, which is"
            " {max_tokens}. Choose a shorter context."
        ),
        ErrorCode.NOT_PREPARED: (
            "This plan needs a prepared copy of {folder}, and there is none yet. Prepare the model"
            " first, or choose a plan that needs none."
        ),
        ErrorCode.PLAN_OUTDATED: (
            "The files in {folder} have changed since this plan was made. Plan the model again."
        ),
        ErrorCode.DISK_FULL: (
            "{folder} has {free_bytes} free, but {needed_bytes} are needed. Free some room, or"
            " choose a folder on another drive."
        ),
        ErrorCode.DISK_NOT_WRITABLE: (
            "Nothing can be written to {folder}: {reason}. Choose another folder, or change who may"
            " write there."
        ),
        ErrorCode.STORE_INVALID: (
            "The prepared copy in {folder} cannot be used: {reason}. Delete it and prepare the"
            " model again."
        ),
        ErrorCode.STORE_DAMAGED: (
            "{file} is damaged at byte {offset_bytes} ({part}). Delete the prepared copy and"
            " prepare the model again; if it happens again, check the drive."
        ),
        ErrorCode.DRIVE_READ_FAILED: (
            "Reading {file} at byte {offset_bytes} failed: {reason}. Check that the drive is"
            " connected, then try again; if that fails too, load the model again."
        ),
        ErrorCode.PREPARE_FAILED: (
            "Preparing the model in {folder} stopped: {reason}. Close other programs, which frees"
            " RAM, and start it again; it goes on where it stopped."
        ),
        ErrorCode.NOT_CALIBRATED: (
            "A mix of bits is chosen by what {name} does with a text, and it has read none yet."
            " Choose another plan, or run larderctl calibrate on {folder}, which says how long it"
            " still takes."
        ),
        ErrorCode.NOTHING_TO_PREPARE: (
            "The model in {folder} has no experts, so a prepared copy would gain nothing. Choose"
            " the plan that uses its files where they lie."
        ),
        ErrorCode.USED_IN_PLACE: (
            "The GGUF model {folder} is used where it lies, and a prepared copy of it would gain"
            " nothing. Choose the plan that uses its files where they lie."
        ),
        ErrorCode.COPY_PLACE_REFUSED: (
            "The prepared copy cannot be put into {folder}: {reason}. Choose another folder."
        ),
        ErrorCode.COPY_BUSY: (
            "The prepared copy in {folder} is being written or removed already. Wait until that is"
            " done, then try again."
        ),
        ErrorCode.COPY_WRITE_FAILED: (
            "Writing to {folder} failed: {reason}. Check that the drive is connected and sound and"
            " prepare the model again, or choose another drive for the copy."
        ),
        ErrorCode.COPY_MISWRITTEN: (
            "{file} reads back with other bytes than were written, so the drive or the RAM is"
            " failing. Choose another drive for the copy, and have both tested."
        ),
        ErrorCode.COPY_LOST: (
            "The copy of {folder} was prepared, but is not there any more. Check that its drive is"
            " connected, then load the model again."
        ),
        ErrorCode.ENGINE_MISSING: (
            "The part that runs models cannot be started: {reason}. Install the program again."
        ),
        ErrorCode.OUT_OF_MEMORY: (
            "The PC had no more memory to give. Close other programs, or lower the RAM budget, then"
            " load the model again."
        ),
        ErrorCode.DEVICE_LOST: (
            "The graphics card {device} does not answer any more, as happens after sleep or a fault"
            " of its driver. Start the background process again; if the card is not there then,"
            " the model runs on the processor."
        ),
        ErrorCode.PROTOCOL_MISMATCHED: (
            "The window and its background process are of different versions ({expected} and"
            " {found}). Install the program again."
        ),
        ErrorCode.FRAME_INVALID: (
            "The window and its background process misunderstood each other: {reason}. Start the"
            " background process again."
        ),
        ErrorCode.RUNTIME_NOT_STARTED: (
            "The background process could not be started: {reason}. Restart the program; if that"
            " does not help, install it again."
        ),
        ErrorCode.RUNTIME_ENDED: (
            "The background process ended by itself (status {exit_status}): {reason}. Start it"
            " again; what was answered so far is kept."
        ),
        ErrorCode.RUNTIME_SILENT: (
            "The background process did not answer for {seconds} seconds and was ended. Start it"
            " again; what was answered so far is kept."
        ),
        ErrorCode.INTERNAL: (
            "Something went wrong that should not have; the details are in the log. Try it again,"
            " or start the background process again."
        ),
    }
)

REASON_TEMPLATES: Mapping[ReasonCode, str] = MappingProxyType(
    {
        ReasonCode.FITS_IN_RAM: (
            "The whole model fits in memory; with its context it takes {needed_bytes}."
        ),
        ReasonCode.FITS_IN_VRAM: (
            "The whole model fits on the graphics card; with its context it takes {needed_bytes}."
        ),
        ReasonCode.READS_FROM_DRIVE: (
            "{num_experts} of {num_all_experts} experts stay on the drive; about {bytes_per_token}"
            " are read for each token."
        ),
        ReasonCode.RAM_LIMITED_BY_FREE: (
            "{free_bytes} of memory are free, and {reserve_bytes} are left to the system; all of"
            " the model with its full context would need {needed_bytes}."
        ),
        ReasonCode.RAM_LIMITED_BY_CONTROL_GROUP: (
            "The system limits this program to {limit_bytes} of memory; all of the model with its"
            " full context would need {needed_bytes}."
        ),
        ReasonCode.RAM_LIMITED_BY_BUDGET: (
            "Your RAM budget is {budget_bytes}; all of the model with its full context would need"
            " {needed_bytes}."
        ),
        ReasonCode.RAM_GIVEN_BACK: (
            "Larder gave back {given_bytes} of the {wanted_bytes} of RAM of this model because the"
            " PC ran short. It takes them again once there is room; until then answers are slower"
            " and stay the same."
        ),
        ReasonCode.RAM_TAKEN_AGAIN: (
            "There is memory again: the model has all {wanted_bytes} of RAM that it had before the"
            " PC ran short."
        ),
        ReasonCode.CONTEXT_SHORTENED: (
            "The context is {context_tokens} tokens instead of {wanted_tokens}, to leave memory for"
            " the model."
        ),
        ReasonCode.NOTHING_WRITTEN: "Nothing is written: the files are used where they lie.",
        ReasonCode.WRITES_ONCE: "A prepared copy of {size_bytes} is written once.",
        ReasonCode.ALREADY_PREPARED: (
            "The prepared copy is there already: {size_bytes} in {folder}."
        ),
        ReasonCode.ANSWERS_AS_PUBLISHED: "The weights are used exactly as published.",
        ReasonCode.ANSWERS_NEARLY_AS_PUBLISHED: (
            "The experts are stored in {bits} bits for each weight: answers hardly differ from"
            " those of the published model."
        ),
        ReasonCode.ANSWERS_DIFFER_LITTLE: (
            "The experts are stored in {bits} bits for each weight: answers are about as good, in"
            " other words here and there; code and sums suffer first."
        ),
        ReasonCode.ANSWERS_DIFFER: (
            "The experts are stored in {bits} bits for each weight: answers are worse than those of"
            " the published model, most of all in code and sums."
        ),
        ReasonCode.ANSWERS_DIFFER_MUCH: (
            "The experts are stored in {bits} bits for each weight: answers are clearly worse than"
            " those of the published model, with mistakes that it would not make."
        ),
        ReasonCode.WEIGHTS_ARE_WIDENED: (
            "The weights are published in {bits} bits each; they are widened to 16 while they are"
            " read, each rounded once."
        ),
        ReasonCode.BLOCKS_ARE_REPACKED: (
            "The weights lie in GGUF blocks ({kinds}). Those that are not computed as they are get"
            " new scales while they are read, so answers can differ a little from those of the"
            " file."
        ),
        ReasonCode.SLOW_KERNELS: (
            "The fast arithmetic is not installed, so answers are slower ({kernels} is used)."
            " Install a C++ compiler and set the program up again."
        ),
        ReasonCode.HOT_EXPERTS_IN_VRAM: (
            "The part that every token uses and {num_experts} of {num_all_experts} experts lie on"
            " {device}: {vram_bytes}."
        ),
        ReasonCode.VRAM_LIMITED_BY_FREE: (
            "{free_bytes} of the memory of {device} are free, and {reserve_bytes} are left to the"
            " system and other programs."
        ),
        ReasonCode.VRAM_LIMITED_BY_BUDGET: (
            "Your budget for {device} is {budget_bytes}; the whole model would need {needed_bytes}."
        ),
        ReasonCode.KV_IN_RAM: (
            "The conversation's memory of {num_layers} of {num_all_layers} layers ({kv_bytes}) lies"
            " in RAM; {device} holds instead what saves more time there."
        ),
        ReasonCode.VRAM_TOO_SMALL: (
            "{device} is not used: the part that every token uses needs {needed_bytes} there, and"
            " it may take {budget_bytes}."
        ),
        ReasonCode.HITS_FROM_OWN: (
            "{percent} % of the experts that a token needs are expected in memory, as this model"
            " chose them for the last {num_tokens} tokens that it wrote on this PC."
        ),
        ReasonCode.HITS_FROM_FAMILY: (
            "{percent} % of the experts that a token needs are expected in memory, as models of"
            " this family choose them; once it has answered here, its own choices count."
        ),
        ReasonCode.HITS_ASSUMED: (
            "{percent} % of the experts that a token needs are expected in memory, as other models"
            " choose them; once it has answered here, its own choices count."
        ),
        ReasonCode.SUITS_WELL: (
            "This model suits offloading well: tokens in a row choose much the same experts"
            " ({percent} % of them can be told for 16 tokens at once)."
        ),
        ReasonCode.SUITS_FAIRLY: (
            "This model suits offloading fairly: tokens in a row choose partly the same experts"
            " ({percent} % of them can be told for 16 tokens at once)."
        ),
        ReasonCode.SUITS_BADLY: (
            "This model suits offloading badly: tokens in a row choose other experts each time"
            " ({percent} % of them can be told for 16 tokens at once), so it should lie in memory"
            " whole."
        ),
        ReasonCode.RAN_BEFORE: (
            "Under a plan like this it wrote {tokens_per_s} tokens/s here (answers counted:"
            " {num_answers}); the forecast had been {predicted_tokens_per_s}."
        ),
        ReasonCode.WHOLE_IN_MEMORY: "It stays in memory as a whole.",
        ReasonCode.BEST_IN_MEMORY: (
            "It is the most exact choice whose experts all stay in memory."
        ),
        ReasonCode.BEST_NEARLY_IN_MEMORY: (
            "It is the most exact choice that hardly waits for the drive."
        ),
        ReasonCode.BEST_BY_SPEED: (
            "All choices wait for the drive, and this one is expected to be the fastest."
        ),
        ReasonCode.MORE_EXACT_SLOWER: (
            "A more exact one would read {bytes_per_token} from the drive for each token and write"
            " about {tokens_per_s} tokens/s instead of {own_tokens_per_s}."
        ),
        ReasonCode.MORE_EXACT_TOO_LARGE: (
            "A more exact one needs at least {needed_bytes} of RAM, more than it may take now."
        ),
        ReasonCode.SMALLER_LESS_EXACT: (
            "A smaller one would write about {tokens_per_s} tokens/s instead of"
            " {own_tokens_per_s}, and its answers could differ from those of the published model."
        ),
        ReasonCode.ONLY_CHOICE: "It is the only choice that can be loaded.",
        ReasonCode.OTHER_GPU_UNUSED: "{device} is not used: a plan takes one graphics card.",
        ReasonCode.FASTER_THAN_FORECAST: (
            "This was {percent} % faster than the forecast, {tokens_per_s} tokens/s."
        ),
        ReasonCode.SLOWER_THAN_FORECAST: (
            "This was {percent} % slower than the forecast, {tokens_per_s} tokens/s."
        ),
        ReasonCode.SLOWER_THAN_USUAL: (
            "This was {percent} % slower than this model usually is here, {tokens_per_s} tokens/s;"
            " another program may be using the PC."
        ),
        ReasonCode.NO_GPU_USED: "{device} is not used by this plan; the processor computes.",
    }
)


def template(code: ErrorCode | ReasonCode) -> str:
    """Return the English template of a code, the key of its translation."""
    if isinstance(code, ErrorCode):
        return ERROR_TEMPLATES[code]
    return REASON_TEMPLATES[code]


def sentence(report: ErrorReport) -> str:
    """Return what a person reads for an error."""
    return fill(template(report.code), report.parameters)


def reason_sentence(reason: Reason) -> str:
    """Return what a person reads for a reason of a plan."""
    return fill(template(reason.code), reason.parameters)
