"""Settings: defaults, what is reported, switches, and the generated page."""

from __future__ import annotations

from typing import Any

from text_cases import data_cases

from lsp_server.shared.settings import Settings, folder_enabled, language_enabled, read_settings
from release.settings_page import PAGE, settings_page, settings_rows


def test_values_are_read_by_their_camel_case_names() -> None:
    read = read_settings({"completion": {"maxTokens": 7, "multiline": "never"}, "enabled": False})
    assert read.problems == []
    assert read.settings.completion.max_tokens == 7
    assert read.settings.completion.multiline == "never"
    assert not read.settings.enabled


@data_cases()
def test_what_cannot_be_used_is_reported_and_defaulted(values: Any, problem: str) -> None:
    read = read_settings(values)
    assert len(read.problems) == 1
    assert problem in read.problems[0]
    assert "\n" not in read.problems[0]
    assert read.settings == Settings()


def test_layers_on_a_gpu_are_a_number_or_left_to_the_library() -> None:
    for given in (0, 20, "auto"):
        read = read_settings({"model": {"gpuLayers": given}})
        assert (read.problems, read.settings.model.gpu_layers) == ([], given)


def test_one_bad_value_does_not_spoil_the_others() -> None:
    read = read_settings({"completion": {"maxTokens": -1, "prefetch": False}})
    assert read.settings.completion.max_tokens == Settings().completion.max_tokens
    assert read.settings.completion.prefetch is False


def test_nothing_and_null_are_the_defaults() -> None:
    assert read_settings(None).settings == read_settings({}).settings == Settings()
    assert read_settings({"model": None, "enabled": None}).settings == Settings()


def test_languages_are_switched_one_by_one_or_all_together() -> None:
    settings = read_settings({"languages": {"*": False, "python": True}}).settings
    assert language_enabled(settings, "python")
    assert not language_enabled(settings, "lua")
    assert language_enabled(Settings(), "lua")


def test_the_innermost_folder_counts_and_names_are_compared_whole() -> None:
    settings = read_settings({"folders": {"/a": False, "/a/b": True}}).settings
    assert not folder_enabled(settings, "/a/x.py")
    assert folder_enabled(settings, "/a/b/x.py")
    assert folder_enabled(settings, "/ab/x.py")


def test_every_setting_is_documented_on_the_generated_page() -> None:
    assert all(row.doc for row in settings_rows())
    assert PAGE.read_text("utf-8") == settings_page()
