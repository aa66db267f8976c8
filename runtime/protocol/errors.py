"""What can go wrong, as closed codes with parameters; sentences for people are in ``sentences``."""

import enum

from runtime.protocol.values import Value


class Severity(enum.StrEnum):
    """What the person has to change before trying again."""

    REQUEST = "request"
    """This request; the model stays loaded."""
    MODEL = "model"
    """The model, its files or the plan."""
    RUNTIME = "runtime"
    """The background process has to start again."""


class ErrorCode(enum.StrEnum):
    """Every error that can reach a person; each has one sentence in ``sentences``."""

    # request
    PROMPT_TOO_LONG = "prompt_too_long"
    ENGINE_BUSY = "engine_busy"
    NO_MODEL_LOADED = "no_model_loaded"
    MODEL_ALREADY_LOADED = "model_already_loaded"
    SETTING_INVALID = "setting_invalid"
    MACHINE_FILE_INVALID = "machine_file_invalid"
    TEXT_INVALID = "text_invalid"
    CONVERSATION_INVALID = "conversation_invalid"
    # a hub and downloads
    HUB_OFFLINE = "hub_offline"
    HUB_UNREACHABLE = "hub_unreachable"
    HUB_ANSWER_INVALID = "hub_answer_invalid"
    HUB_MODEL_MISSING = "hub_model_missing"
    HUB_MODEL_GATED = "hub_model_gated"
    HUB_MODEL_UNUSABLE = "hub_model_unusable"
    DOWNLOAD_MISMATCHED = "download_mismatched"
    DOWNLOAD_PLACE_TAKEN = "download_place_taken"
    DOWNLOAD_BUSY = "download_busy"
    DOWNLOAD_WRITE_FAILED = "download_write_failed"
    # newer versions of the program
    UPDATE_UNREACHABLE = "update_unreachable"
    UPDATE_INVALID = "update_invalid"
    UPDATE_UNSIGNED = "update_unsigned"
    # the engine for graphics cards
    ENGINE_PARTS_UNREACHABLE = "engine_parts_unreachable"
    ENGINE_PARTS_UNUSABLE = "engine_parts_unusable"
    # model: reading it
    FOLDER_NOT_FOUND = "folder_not_found"
    NOT_A_MODEL = "not_a_model"
    SEVERAL_MODELS = "several_models"
    COPY_WITHOUT_MODEL = "copy_without_model"
    FILE_UNREADABLE = "file_unreadable"
    FILE_INVALID = "file_invalid"
    CONFIG_INVALID = "config_invalid"
    ARCHITECTURE_UNSUPPORTED = "architecture_unsupported"
    QUANTIZATION_UNSUPPORTED = "quantization_unsupported"
    SHARD_MISSING = "shard_missing"
    SHARD_MISNAMED = "shard_misnamed"
    INDEX_STALE = "index_stale"
    SHARD_TRUNCATED = "shard_truncated"
    SHARD_INVALID = "shard_invalid"
    TENSOR_MISSING = "tensor_missing"
    TENSOR_MISMATCHED = "tensor_mismatched"
    WEIGHTS_NOT_FINITE = "weights_not_finite"
    TOKENIZER_MISSING = "tokenizer_missing"
    TOKENIZER_INVALID = "tokenizer_invalid"
    CHAT_TEMPLATE_MISSING = "chat_template_missing"
    CHAT_TEMPLATE_INVALID = "chat_template_invalid"
    # model: placing and preparing it
    RAM_BUDGET_TOO_SMALL = "ram_budget_too_small"
    RAM_NOT_FREE = "ram_not_free"
    VRAM_BUDGET_TOO_SMALL = "vram_budget_too_small"
    VRAM_NOT_THERE = "vram_not_there"
    VRAM_FULL = "vram_full"
    CONTEXT_TOO_LONG = "context_too_long"
    NOT_PREPARED = "not_prepared"
    PLAN_OUTDATED = "plan_outdated"
    DISK_FULL = "disk_full"
    DISK_NOT_WRITABLE = "disk_not_writable"
    STORE_INVALID = "store_invalid"
    STORE_DAMAGED = "store_damaged"
    DRIVE_READ_FAILED = "drive_read_failed"
    PREPARE_FAILED = "prepare_failed"
    NOT_CALIBRATED = "not_calibrated"
    NOTHING_TO_PREPARE = "nothing_to_prepare"
    USED_IN_PLACE = "used_in_place"
    COPY_PLACE_REFUSED = "copy_place_refused"
    COPY_BUSY = "copy_busy"
    COPY_WRITE_FAILED = "copy_write_failed"
    COPY_MISWRITTEN = "copy_miswritten"
    COPY_LOST = "copy_lost"
    # runtime
    ENGINE_MISSING = "engine_missing"
    OUT_OF_MEMORY = "out_of_memory"
    DEVICE_LOST = "device_lost"
    PROTOCOL_MISMATCHED = "protocol_mismatched"
    FRAME_INVALID = "frame_invalid"
    RUNTIME_NOT_STARTED = "runtime_not_started"
    RUNTIME_ENDED = "runtime_ended"
    RUNTIME_SILENT = "runtime_silent"
    INTERNAL = "internal"


class ErrorReport(Value):
    """One error as both processes tell it: code, severity, parameters, technical detail."""

    code: ErrorCode
    severity: Severity
    parameters: dict[str, str | int | float] = {}
    """Values for the sentence of the code; bytes and counts as numbers, paths as text."""
    detail: str = ""
    """Technical text for the log and the *Details* fold, never the main text."""
    log_reference: str = ""
    """Where the log holds more; empty if nothing was logged."""
