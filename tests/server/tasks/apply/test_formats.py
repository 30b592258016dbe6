"""Which models merge snippets, and how they are asked."""

from __future__ import annotations

import pytest
from text_cases import data_cases

from lsp_server.models.manifest import read_manifest
from lsp_server.tasks.apply.formats import apply_format, apply_job, file_of_answer


@data_cases("name")
def test_models_that_merge_are_known_by_their_names(name: str) -> None:
    found = apply_format(name)
    assert found is not None
    assert found.name == "fast-apply"


@data_cases("name")
def test_others_are_not(name: str) -> None:
    assert apply_format(name) is None


def test_those_that_are_offered_are_known() -> None:
    offered = [model for model in read_manifest() if "apply" in model.does]
    assert offered
    assert all(apply_format(model.file) is not None for model in offered)
    assert all(not {"fim", "edit", "next-edit"} & set(model.does) for model in offered)


def test_a_model_is_asked_as_its_card_says() -> None:
    found = apply_format("FastApply-1.5B-v1.0")
    assert found is not None
    job = apply_job(found, "a = '{update}'\r\n", "a = '{code}'\n", "", "python")
    assert job.messages == [
        (
            "system",
            "You are a coding assistant that helps merge code updates, ensuring every modification "
            "is fully integrated.",
        ),
        (
            "user",
            "Merge all changes from the <update> snippet into the <code> below.\n"
            "- Preserve the code's structure, order, comments, and indentation exactly.\n"
            "- Output only the updated code, enclosed within <updated-code> and </updated-code> "
            "tags.\n"
            "- Do not include any additional text, explanations, placeholders, ellipses, or code "
            "fences.\n\n"
            "<code>a = '{update}'\n</code>\n\n<update>a = '{code}'\n</update>\n\n"
            "Provide the complete updated code.",
        ),
    ]
    assert job.prediction == "<updated-code>a = '{update}'\n</updated-code>"
    assert job.sampling.temperature == 0


@pytest.mark.parametrize("name", ["aiXapply-4B-RL", "aiXcoder/aiXapply-4B-SFT", "aixapply.gguf"])
def test_aixapply_is_asked_as_its_card_says(name: str) -> None:
    form = apply_format(name)
    assert form is not None
    assert form.name == "aixapply"
    job = apply_job(form, "a = 1\n", "a = 2\n", "no part of it", "python")
    assert job.messages is not None
    (_, system), (_, message) = job.messages
    assert system.endswith("<update_file>[Your final code here]</update_file>")
    assert message == (
        "<language>python</language>\n\n<source_file>a = 1\n</source_file>\n\n"
        "<update_snippet>a = 2\n</update_snippet>\n\n"
        "Please generate the full updated code strictly following the instructions."
    )
    for thought in ("", "<think>\n\n</think>\n\n"):
        answer = f"{thought}<update_file>a = 2\n</update_file>"
        assert file_of_answer(form, answer, "a = 1\n") == "a = 2\n"
    assert file_of_answer(form, "<think>why</think><update_file>a</update_file>", "a") is None
