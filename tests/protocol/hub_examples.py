"""Examples of messages about models of a hub."""

from runtime.protocol.errors import ErrorCode, ErrorReport, Severity
from runtime.protocol.hub import HubCard, HubFit, HubModel, HubVariant
from runtime.protocol.hub_messages import (
    DescribeHubModel,
    DiscardDownload,
    DownloadDiscarded,
    DownloadModel,
    DownloadPaused,
    DownloadProgressed,
    HubCancelled,
    HubModelDescribed,
    HubSearched,
    ModelDownloaded,
    ReadHubConfigs,
    SearchHub,
)

ERROR = ErrorReport(
    code=ErrorCode.SHARD_MISSING,
    severity=Severity.MODEL,
    parameters={"file": "model-00002.safetensors", "num_tensors": 12, "first_tensor": "näme"},
    detail="detail",
    log_reference="runtime.log, entry 0123abcd",
)
HUB_COMMANDS = (
    SearchHub(request_id=14, query="moe", endpoint="https://hub.example", folder="/models"),
    DescribeHubModel(request_id=15, model_id="a/b", folder="/models"),
    ReadHubConfigs(request_id=19, model_ids=["a/b"], endpoint="https://hub.example"),
    DownloadModel(request_id=16, model_id="a/b", revision="0" * 40, folder="/models"),
    DiscardDownload(request_id=17, model_id="a/b", folder="/models"),
)
HUB_EVENTS = (
    HubSearched(
        request_id=14,
        models=[
            HubModel(model_id="a/b", fit=HubFit.NO_ROOM, num_parameters=5, size_bytes=10),
            HubModel(model_id="a/b-GGUF", fit=HubFit.FITS, gguf_label="Q4_K_M", base_model="a/b"),
        ],
    ),
    HubModelDescribed(
        request_id=15,
        card=HubCard(
            model_id="a/b",
            revision="0" * 40,
            languages=["en"],
            num_files=3,
            size_bytes=10,
            folder="/models/a/b",
            problem=ERROR,
            variant="Q4_K_M",
            variants=[
                HubVariant(name="Q4_K_M", label="Q4_K_M", size_bytes=10, num_files=2, is_here=True)
            ],
        ),
    ),
    HubCancelled(request_id=15),
    DownloadProgressed(
        request_id=16, done_bytes=1, total_bytes=2, bytes_per_s=0.5, file="x", num_retries=1
    ),
    ModelDownloaded(request_id=16, folder="/models/a/b", size_bytes=10),
    DownloadPaused(request_id=16, kept_bytes=5),
    DownloadDiscarded(request_id=17, freed_bytes=5),
)
