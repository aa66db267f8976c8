"""``larderctl`` in this process, with the scripted engine."""

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from runtime.cli.__main__ import main
from runtime.engine.script import Fault, FaultKind, FaultPlace, Script
from runtime.protocol.machine import DriveKind
from tests.support.mixed_gguf import q4_k_m, write_mixed

Capture = pytest.CaptureFixture[str]
SCRIPTED = ("--engine", "scripted", "--rate", "0")


@pytest.fixture
def model(tmp_path: Path) -> str:
    folder = tmp_path / "a-model"
    folder.mkdir()
    return str(folder)


def run_json(capsys: Capture, *arguments: str, status: int = 0) -> dict[str, Any]:
    assert main([*arguments, "--json", *SCRIPTED]) == status
    document = json.loads(capsys.readouterr().out)
    assert isinstance(document, dict)
    return document


def with_script(tmp_path: Path, script: Script) -> list[str]:
    path = tmp_path / "script.json"
    path.write_bytes(msgspec.json.encode(script))
    return ["--engine", "scripted", "--script", str(path)]


def test_inspect_of_a_model_tells_what_it_holds(model: str, capsys: Capture) -> None:
    assert main(["inspect", model, *SCRIPTED]) == 0
    text = capsys.readouterr().out
    assert "a-model" in text
    assert "32 in each of 30 layers, 8 used for each token" in text
    assert (
        "well (50.0% of experts can be told for 16 tokens in a row; 50.0% of needs hit with" in text
    )
    assert "recorded of its family)" in text


def test_inspect_of_a_mixed_gguf_file_tells_its_formats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("LARDER_HOME", str(tmp_path / "home"))
    path = str(write_mixed(tmp_path / "m.gguf", q4_k_m))
    assert main(["inspect", path]) == 0
    text = capsys.readouterr().out
    assert "GGUF Q4_K, Q6_K, F32, experts read as q4k_g32 and q6k_g16, 4.84 bits a weight" in text
    assert main(["inspect", path, "--json"]) == 0
    mixed = json.loads(capsys.readouterr().out)["mixed_experts"]
    assert list(mixed["format_bytes"]) == ["q4k_g32", "q6k_g16"]


def test_inspect_json_of_a_model_is_its_report(model: str, capsys: Capture) -> None:
    report = run_json(capsys, "inspect", model)
    assert (report["name"], report["num_experts"], report["problems"]) == ("a-model", 32, [])
    assert "error" not in report


def test_inspect_of_no_folder_is_a_sentence_and_exit_status_2(
    tmp_path: Path, capsys: Capture
) -> None:
    assert main(["inspect", str(tmp_path / "missing"), *SCRIPTED]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("larderctl: There is no folder ")
    assert "Traceback" not in output.err


def test_inspect_json_of_no_folder_has_the_report_and_the_error(
    tmp_path: Path, capsys: Capture
) -> None:
    report = run_json(capsys, "inspect", str(tmp_path / "missing"), status=2)
    assert report["error"]["code"] == "folder_not_found"
    assert report["error"]["sentence"].startswith("There is no folder ")
    assert len(report["problems"]) == 1


def test_inspect_of_a_name_with_control_characters_does_not_steer_the_terminal(
    tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "red\x1b[31m"
    folder.mkdir()
    assert main(["inspect", str(folder), *SCRIPTED]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_plan_without_budgets_recommends_and_gives_reasons(model: str, capsys: Capture) -> None:
    assert main(["plan", model, *SCRIPTED]) == 0
    text = capsys.readouterr().out
    assert "exact  (recommended)" in text
    assert "The whole model fits in memory" in text
    assert "?" not in text, "every sentence has its values"


def test_plan_json_with_a_budget_stays_below_it(model: str, capsys: Capture) -> None:
    planned = run_json(capsys, "plan", model, "--ram", "1.2", "--context", "512")
    assert planned["recommended"] == "exact"
    assert [plan["kind"] for plan in planned["plans"]] == ["exact", "eight_bit", "four_bit"]
    for plan in planned["plans"]:
        assert plan["ram_bytes"] <= 1.2 * 2**30
        assert plan["context_tokens"] == 512


def test_plan_with_a_budget_too_small_says_what_is_needed(model: str, capsys: Capture) -> None:
    planned = run_json(capsys, "plan", model, "--ram", "0.1", status=2)
    assert planned["error"]["code"] == "ram_budget_too_small"
    assert planned["recommended"] is None


def test_plan_that_nothing_fits_says_so_once(model: str, capsys: Capture) -> None:
    assert main(["plan", model, "--ram", "0.1", *SCRIPTED]) == 2
    output = capsys.readouterr()
    assert output.err.startswith("larderctl: The RAM budget is ")
    assert output.err.removeprefix("larderctl: ") not in output.out
    assert "smallest, four bit" in output.out


def test_plan_with_vram_names_the_device(model: str, capsys: Capture) -> None:
    planned = run_json(capsys, "plan", model, "--vram", "1")
    assert planned["plans"][0]["budgets"]["vram_bytes"] == {"simulated:0": 2**30}


def test_plan_with_vram_and_no_device_names_the_one_that_is_missing(
    model: str, tmp_path: Path, capsys: Capture
) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"device_gib": 0}', encoding="utf-8")
    planned = run_json(capsys, "plan", model, "--vram", "1", "--script", str(script))
    assert planned["plans"][0]["budgets"]["vram_bytes"] == {"cuda:0": 2**30}


@pytest.mark.parametrize("wrong", ["-1", "nan", "much"])
def test_plan_with_an_impossible_budget_is_refused_by_name(
    model: str, wrong: str, capsys: Capture
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["plan", model, f"--ram={wrong}"])
    assert raised.value.code == 2
    assert "--ram" in capsys.readouterr().err


def test_prepare_prints_the_copy(model: str, capsys: Capture) -> None:
    copy = run_json(capsys, "prepare", model, "--bits", "4", "--out", f"{model}-copy")
    assert copy == {
        "folder": f"{model}-copy",
        "expert_format": "q4a_g32",
        "size_bytes": 104857600,
    }


@pytest.mark.parametrize(("bits", "expected"), [((), "q8_g32"), (("--bits", "16"), "bf16")])
def test_prepare_without_bits_takes_eight_and_with_sixteen_the_published_format(
    model: str, capsys: Capture, bits: tuple[str, ...], expected: str
) -> None:
    assert run_json(capsys, "prepare", model, *bits)["expert_format"] == expected


def test_prepare_with_a_text_that_nothing_would_read_is_refused(
    model: str, capsys: Capture
) -> None:
    answer = run_json(capsys, "prepare", model, "--bits", "4", "--text", "mine.txt", status=2)
    assert answer["error"]["code"] == "setting_invalid"
    assert answer["error"]["parameters"]["name"] == "--text"


def test_prepare_of_no_folder_is_refused_as_inspecting_refuses_it(
    tmp_path: Path, capsys: Capture
) -> None:
    answer = run_json(capsys, "prepare", str(tmp_path / "missing"), status=2)
    assert answer["error"]["code"] == "folder_not_found"


def test_prepare_with_progress_json_prints_an_event_a_line(model: str, capsys: Capture) -> None:
    assert main(["prepare", model, "--progress-json", *SCRIPTED]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["type"] for line in lines[:-1]} == {"PrepareProgressed"}
    assert lines[-1]["type"] == "ModelPrepared"


def test_chat_with_a_prompt_prints_the_answer_alone_to_its_output(
    model: str, capsys: Capture
) -> None:
    arguments = ["chat", model, "--prompt", "script: say Paris.", "--temperature", "0"]
    assert main([*arguments, *SCRIPTED]) == 0
    output = capsys.readouterr()
    assert output.out == "Paris.\n"
    assert "1 tokens" in output.err


@pytest.mark.parametrize("prompt", ["", " \n"])
def test_chat_with_a_prompt_of_no_words_is_refused_before_loading(
    model: str, prompt: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentence = "The setting --prompt is empty, but a question is needed."
    assert (
        sentence
        in run_json(capsys, "chat", model, "--prompt", prompt, status=2)["error"]["sentence"]
    )
    monkeypatch.setattr("sys.stdin", io.StringIO(prompt))
    assert sentence in run_json(capsys, "chat", model, status=2)["error"]["sentence"]


def test_chat_json_has_all_that_was_promised(model: str, capsys: Capture) -> None:
    answer = run_json(
        capsys,
        *("chat", model, "--prompt", "hello", "--max-tokens", "4", "--seed", "7", "--top-k", "3"),
    )
    assert len(answer["token_ids"]) == 4
    assert answer["text"] == "The capital of France"
    assert answer["finish_reason"] == "length"
    assert answer["seed"] == 7
    assert list(answer["tiers"]) == ["vram", "ram", "drive"]
    for tier in answer["tiers"].values():
        assert set(tier) == {"hits", "misses", "bytes"}
    assert answer["energy_sources"][0]["source"] == "scripted"
    promised = (
        *("prompt_tokens_per_s", "decode_tokens_per_s", "ttft_s", "drive_bytes_read", "seconds"),
        *("base_bytes", "budget_bytes", "peak_bytes", "energy_j", "predicted"),
    )
    assert all(name in answer for name in promised)


def test_chat_with_thinking_keeps_it_out_of_the_answer(model: str, capsys: Capture) -> None:
    said = "script: say <think>hm, well</think> Paris."
    assert main(["chat", model, "--prompt", said, *SCRIPTED]) == 0
    output = capsys.readouterr()
    assert output.out == "Paris.\n"
    assert output.err.count("[thinking]") == 1
    assert "thought for 0 s" in output.err
    answer = run_json(capsys, "chat", model, "--prompt", said)
    assert (answer["text"], answer["thinking"]) == ("Paris.", "hm, well")


def test_chat_with_bits_that_are_not_prepared_says_so(model: str, capsys: Capture) -> None:
    answer = run_json(capsys, "chat", model, "--prompt", "x", "--bits", "8", status=2)
    assert answer["error"]["code"] == "not_prepared"


def test_chat_with_an_engine_that_fails_is_a_sentence(
    model: str, tmp_path: Path, capsys: Capture
) -> None:
    script = Script(load_s=0, fault=Fault(FaultKind.FAIL, FaultPlace.LOAD))
    assert main(["chat", model, "--prompt", "x", *with_script(tmp_path, script)]) == 2
    assert "Reading scripted.safetensors" in capsys.readouterr().err


@pytest.mark.expects_log("runtime.service.log", "ERROR")
def test_chat_with_a_bug_is_a_sentence_with_where_to_look_and_exit_status_1(
    model: str, capsys: Capture
) -> None:
    assert main(["chat", model, "--prompt", "script: bug", *SCRIPTED]) == 1
    text = capsys.readouterr().err
    assert "Traceback" not in text
    assert "(log: " in text


def test_chat_with_a_system_text_sends_it_first(model: str, capsys: Capture) -> None:
    plain = run_json(capsys, "chat", model, "--prompt", "x")
    told = run_json(capsys, "chat", model, "--prompt", "x", "--system", "Be kind.")
    assert told["prompt_tokens"] > plain["prompt_tokens"]


def test_doctor_tells_each_figure_with_its_method(capsys: Capture) -> None:
    assert main(["doctor", *SCRIPTED]) == 0
    text = capsys.readouterr().out
    assert "16.00 GiB" in text
    assert text.count("scripted") >= 5
    for fact in ("Scripted card", "simulated", "NVMe", "passed by", "simulated:0 link"):
        assert fact in text


def test_doctor_without_a_card_and_without_files_says_so(tmp_path: Path, capsys: Capture) -> None:
    assert main(["doctor", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "not measured" in text
    assert "RAM reads" in text
    assert str(tmp_path) in text


def test_doctor_of_a_folder_with_weights_measures_its_drive(
    tmp_path: Path, capsys: Capture
) -> None:
    with (tmp_path / "weights.safetensors").open("wb") as file:
        file.write(bytes(64 << 20))
    assert main(["doctor", str(tmp_path), "--json"]) == 0
    (drive,) = json.loads(capsys.readouterr().out)["machine"]["drives"]
    assert drive["is_direct"] is (drive["read_bytes_per_s"] is not None)
    assert drive["kind"] in set(DriveKind)


def test_doctor_of_a_folder_that_is_not_there_says_so(tmp_path: Path, capsys: Capture) -> None:
    document = run_json(capsys, "doctor", str(tmp_path / "missing"), status=2)
    assert document["error"]["code"] == "folder_not_found"


def test_doctor_json_has_machine_version_and_folders(tmp_home: Path, capsys: Capture) -> None:
    document = run_json(capsys, "doctor")
    assert document["machine"]["num_physical_cores"] == 4
    assert document["folders"]["data"] == str(tmp_home / "data")


def test_demo_with_its_folder_named_prints_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (tmp_path / "config.json").touch()
    monkeypatch.setenv("LARDER_DEMO_DIR", str(tmp_path))
    assert main(["demo"]) == 0
    assert capsys.readouterr().out == f"{tmp_path}\n"
    assert run_json(capsys, "demo") == {"folder": str(tmp_path)}


def test_demo_that_is_not_there_says_how_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("LARDER_DEMO_DIR", str(tmp_path))
    assert main(["demo"]) == 2
    assert "make setup" in capsys.readouterr().err


def test_version_is_printed(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["--version"])
    assert raised.value.code == 0
    assert capsys.readouterr().out.startswith("larderctl ")


def test_machine_profile_that_is_missing_is_a_sentence(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("LARDER_MACHINE", "")
    assert main(["doctor", "--machine", str(tmp_path / "missing.json")]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("vram_gib", [0, 1])
def test_chat_with_budgets_loads_under_both(model: str, vram_gib: int, capsys: Capture) -> None:
    budgets = ("--ram", "0.75", "--vram", str(vram_gib))
    answer = run_json(capsys, "chat", model, "--prompt", "hello", *budgets)
    assert ("vram" in answer["tiers"]) is bool(vram_gib)
    assert answer["budget_bytes"] <= 0.75 * 2**30
    assert answer["vram_bytes"] <= vram_gib * 2**30
    assert (answer["device"] == "simulated:0") is bool(vram_gib)


def test_plan_names_stated_figures_and_what_was_found_instead(
    tmp_path: Path, tmp_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("LARDER_MACHINE", "")
    path = str(write_mixed(tmp_path / "m.gguf", q4_k_m))
    assert main(["plan", path]) == 0
    assert "stated in" not in capsys.readouterr().out
    place = tmp_home / "settings" / "machine.json"
    place.parent.mkdir(parents=True)
    place.write_text(
        '{"ram": {"read_gb_per_s": 40}, "drive": {"num_readers": 2, "total_gib": 2000},'
        ' "instruction_set": "portable"}'
    )
    assert main(["plan", path]) == 0
    text = capsys.readouterr().out
    (head, *rows) = text[text.index("stated in") :].splitlines()
    assert head == f"stated in {place}, and counted with in place of what was found"
    ram, total, readers, instructions = (" ".join(row.split()) for row in rows)
    assert ram.startswith("ram.read_gb_per_s 40 GB/s found: ")
    assert total.startswith("drive.total_gib 2000 GiB found: ")
    assert total.endswith("(file system)")
    assert readers == "drive.num_readers 2 found: nothing"
    assert instructions.startswith("instruction_set portable found: ")
    monkeypatch.setenv("LARDER_MACHINE", "")
    assert main(["plan", path, "--json"]) == 0
    stated = json.loads(capsys.readouterr().out)["stated"]
    assert stated["file"] == str(place)
    first = stated["figures"][0]
    assert (first["name"], first["stated"]) == ("ram.read_gb_per_s", 40)


def test_broken_figures_of_the_settings_are_told_with_their_file(
    model: str, tmp_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("LARDER_MACHINE", "")
    place = tmp_home / "settings" / "machine.json"
    place.parent.mkdir(parents=True)
    place.write_text('{"ram": {"total_gib": "much"}}')
    assert main(["doctor"]) == 2
    told = capsys.readouterr().err
    assert str(place) in told
    assert 'at ram.total_gib, "much" was found, but a number of GiB from 0 on is needed' in told
