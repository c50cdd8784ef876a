"""The settings of one test: its markers before the command line before the ini file."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest

from leakkit.plugin.options import Config
from leakkit.settings import Settings, SettingsError, make_settings, setting_names


def fail(message: str) -> NoReturn:
    """Fail with one clear line, whatever was being handled."""
    raise pytest.fail.Exception(message, pytrace=False) from None


def settings_of(
    item: pytest.Item, session: Mapping[str, Any], request: pytest.FixtureRequest
) -> Settings:
    """The marker before the command line before the ini file; limits are put together."""
    own = marked(item)
    options = {**session, **own}
    options["limits"] = {**session.get("limits", {}), **own.get("limits", {})}
    if "folders" not in options and "tmp_path" in request.fixturenames:
        options["folders"] = (request.getfixturevalue("tmp_path"),)
    options["device"] = request.getfixturevalue("leakkit_device") or options.get("device")
    options["directory"] = _folder(item, options.get("directory"), request)
    try:
        return make_settings(options)
    except SettingsError as error:
        fail(f"leakkit: {error}")


def marked(item: pytest.Item) -> dict[str, Any]:
    """The settings in the markers of a test, the closest last and so the strongest."""
    options: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("leakkit"))):
        options.update(_checked(marker))
        limits.update(options.get("limits") or {})
    return {**options, "limits": limits} if limits else options


def _checked(marker: pytest.Mark) -> Mapping[str, Any]:
    try:
        if marker.args:
            raise SettingsError(
                f"the marker takes settings by name, not {marker.args[0]!r}; "
                f"the settings are {', '.join(setting_names())}"
            )
        make_settings(marker.kwargs)
    except SettingsError as error:
        fail(f"leakkit: {error}")
    return marker.kwargs


def device_of(metafunc: pytest.Metafunc, config: Config) -> str | None:
    """The device that a test is to run on; what is wrong with its markers is told at its set-up."""
    marks = metafunc.definition.iter_markers("leakkit")
    asked = (mark.kwargs["device"] for mark in marks if "device" in mark.kwargs)
    device = next(asked, None) or config.settings.get("device")
    try:
        return None if config.off else make_settings({"device": device}).device
    except SettingsError:
        return None


def _folder(item: pytest.Item, directory: Any, request: pytest.FixtureRequest) -> Path:
    """Where a test's recording goes: a new one replaces that of the session before."""
    if directory is None:
        factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
        return factory.mktemp("leakkit")
    folder = Path(directory) / _slug(item.nodeid)
    if (folder / "meta.json").exists():
        shutil.rmtree(folder)
    return folder


def _slug(nodeid: str) -> str:
    return re.sub(r"[^\w.-]+", "_", nodeid).strip("_")[-120:]
